//! Query of the compiler about a source: the types of its kernels' parameters, and whether macros
//! still have the tuner's values at its end.
//! The answers are in the mangled names of kernels that the query instantiates, so the compiler itself
//! resolves typedefs, macros and templates.

use super::types::Parameter;
use crate::compile::ProbedKernel;
use std::fmt::Write as _;
use tuner_core::value::Value;

/// Name of the query in messages of the compiler.
pub(super) const NAME: &str = "tuner_question";

/// Every name begins with `tuner_`, since the source's macros also apply to this text. A number of `sizes`
/// is four times the size of the value or pointee, plus one for an enumeration.
const DECLARATIONS: &str = r##"
#line 1 "tuner_question"
namespace tuner_declarations {
template <class tuner_t, class tuner_u = void> struct tuner_size { static constexpr unsigned long long tuner_v = 0; };
template <class tuner_t> struct tuner_size<tuner_t, decltype(void(sizeof(tuner_t)))> { static constexpr unsigned long long tuner_v = sizeof(tuner_t); };
template <> struct tuner_size<void, void> { static constexpr unsigned long long tuner_v = 0; };
template <> struct tuner_size<const void, void> { static constexpr unsigned long long tuner_v = 0; };
template <> struct tuner_size<volatile void, void> { static constexpr unsigned long long tuner_v = 0; };
template <> struct tuner_size<const volatile void, void> { static constexpr unsigned long long tuner_v = 0; };
template <class tuner_t> struct tuner_fact { static constexpr unsigned long long tuner_v = 4 * tuner_size<tuner_t>::tuner_v + (__is_enum(tuner_t) ? 1 : 0); };
template <class tuner_t> struct tuner_fact<tuner_t*> : tuner_fact<tuner_t> {};
template <class tuner_t> struct tuner_fact<tuner_t&> : tuner_fact<tuner_t> {};
template <class tuner_t> struct tuner_fact<tuner_t[]> : tuner_fact<tuner_t> {};
template <class tuner_t, decltype(sizeof(0)) tuner_n> struct tuner_fact<tuner_t[tuner_n]> : tuner_fact<tuner_t> {};
template <class tuner_r, class... tuner_a> struct tuner_fact<tuner_r(tuner_a...)> { static constexpr unsigned long long tuner_v = 0; };
template <unsigned long long... tuner_n> struct tuner_sizes {};
template <class tuner_f> struct tuner_facts;
template <class tuner_r, class... tuner_a> struct tuner_facts<tuner_r (*)(tuner_a...)> { using tuner_t = tuner_sizes<tuner_fact<tuner_a>::tuner_v...>; };
template <int tuner_i, class tuner_f, class tuner_s> __global__ void tuner_signature() {}
constexpr __device__ bool tuner_equal(const char* tuner_a, const char* tuner_b) { return *tuner_a == *tuner_b && (*tuner_a == 0 || tuner_equal(tuner_a + 1, tuner_b + 1)); }
template <int tuner_i, bool tuner_b> __global__ void tuner_macro() {}
template <int tuner_i, unsigned long long tuner_v, unsigned long long tuner_w> __global__ void tuner_member() {}
template <class tuner_t> struct tuner_pointee { using tuner_u = tuner_t; };
template <class tuner_t> struct tuner_pointee<const tuner_t> : tuner_pointee<tuner_t> {};
template <class tuner_t> struct tuner_pointee<tuner_t*> : tuner_pointee<tuner_t> {};
template <int tuner_n, class tuner_f> struct tuner_nth {};
template <int tuner_n, class tuner_r, class tuner_a, class... tuner_b> struct tuner_nth<tuner_n, tuner_r (*)(tuner_a, tuner_b...)> : tuner_nth<tuner_n - 1, tuner_r (*)(tuner_b...)> {};
template <class tuner_r, class tuner_a, class... tuner_b> struct tuner_nth<0, tuner_r (*)(tuner_a, tuner_b...)> : tuner_pointee<tuner_a> {};
}
#define TUNER_SPELLED(...) #__VA_ARGS__
#define TUNER_MEANING(...) TUNER_SPELLED(__VA_ARGS__)
"##;

/// Builds the query: the signatures of kernels, by qualified names, and whether these macros still
/// have these values.
///
/// The offsets of `members` are queried too: the index of a kernel, the number of its parameter,
/// the field.
pub(super) fn ask(
    kernels: &[String],
    macros: &[(&str, &Value)],
    members: &[(usize, usize, &str)],
) -> String {
    let mut text = DECLARATIONS.to_owned();
    for (index, (kernel, parameter, field)) in members.iter().enumerate() {
        let Some(kernel) = kernels.get(*kernel) else {
            continue;
        };
        let place = format!("((tuner_t*)0)->{field}");
        let answer = |name: &str, value: &str| {
            format!(
                "template <class tuner_t, class = decltype({place})> static constexpr __device__ \
                 unsigned long long {name}(int) {{ return {value}; }}\n\
                 template <class tuner_t> static constexpr __device__ unsigned long long {name}(...) \
                 {{ return ~0ull; }}"
            )
        };
        let at = format!("(unsigned long long)__INTADDR__(&({place}))");
        let (at, bytes) = (
            answer("tuner_at", &at),
            answer("tuner_bytes", &format!("sizeof({place})")),
        );
        let owner = format!("tuner_declarations::tuner_field_{index}");
        let ty =
            format!("tuner_declarations::tuner_nth<{parameter}, decltype(&{kernel})>::tuner_u");
        // Writing to a String cannot fail. A type without the member answers with all bits set.
        let _ = writeln!(
            text,
            "namespace tuner_declarations {{ struct tuner_field_{index} {{\n{at}\n{bytes} }}; }}\n\
             template __global__ void tuner_declarations::tuner_member<{index}, \
             {owner}::tuner_at<{ty}>(0), {owner}::tuner_bytes<{ty}>(0)>();"
        );
    }
    for (index, kernel) in kernels.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "template __global__ void tuner_declarations::tuner_signature<{index}, \
             decltype(&{kernel}), tuner_declarations::tuner_facts<decltype(&{kernel})>::tuner_t>();"
        );
    }
    for (index, (name, value)) in macros.iter().enumerate() {
        let value = match value {
            Value::Bool(value) => u8::from(*value).to_string(),
            Value::Text(text) => text.replace('\n', " "),
            other => other.to_string(),
        };
        let _ = writeln!(
            text,
            "template __global__ void tuner_declarations::tuner_macro<{index}, \
             tuner_declarations::tuner_equal(TUNER_MEANING({name}), TUNER_MEANING({value}))>();"
        );
    }
    text
}

/// Returns the parameters of kernel number `index` of the query.
pub(super) fn signature(answer: &[ProbedKernel], index: usize) -> Option<Vec<Parameter>> {
    let arguments = instance(answer, "tuner_signature", index)?;
    let [function, sizes] = arguments.as_slice() else {
        return None;
    };
    let types = parameter_types(function)?;
    let (_, sizes) = sizes.split_once('<')?;
    let sizes = split(sizes.trim().strip_suffix('>')?);
    if sizes.len() != types.len() {
        return None;
    }
    let each = types.into_iter().zip(sizes);
    each.map(|(ty, size)| {
        let fact = number(&size)?;
        Some(Parameter {
            ty,
            bytes: fact / 4,
            is_enum: fact % 4 == 1,
        })
    })
    .collect()
}

/// Returns the offset of a struct's member and its size, bytes; the inner `None` if the struct has
/// no such member.
pub(super) fn member(answer: &[ProbedKernel], index: usize) -> Option<Option<(u64, u64)>> {
    let numbers = instance(answer, "tuner_member", index)?;
    let [at, bytes] = numbers.as_slice() else {
        return None;
    };
    let (at, bytes) = (number(at)?, number(bytes)?);
    // All bits set: the member is missing.
    Some((at != u64::MAX).then_some((at, bytes)))
}

/// Reports whether macro number `index` of the query still has its value.
pub(super) fn unchanged(answer: &[ProbedKernel], index: usize) -> Option<bool> {
    let arguments = instance(answer, "tuner_macro", index)?;
    arguments.first()?.parse().ok()
}

/// Returns the arguments after the first of the template instance with `index` as first argument.
fn instance(answer: &[ProbedKernel], template: &str, index: usize) -> Option<Vec<String>> {
    answer.iter().find_map(|kernel| {
        let mut arguments = arguments_of(&kernel.name, template)?;
        let is_it = arguments.first()?.parse() == Ok(index);
        is_it.then(|| arguments.split_off(1))
    })
}

/// Parses the number in an argument such as `(unsigned long long)16`.
fn number(argument: &str) -> Option<u64> {
    argument.rsplit(')').next()?.trim().parse().ok()
}

/// Returns the arguments of a template's instance, from its mangled name.
fn arguments_of(mangled: &str, template: &str) -> Option<Vec<String>> {
    if !mangled.contains(template) {
        return None;
    }
    let name = cpp_demangle::Symbol::new(mangled).ok()?.demangle().ok()?;
    let (_, rest) = name.split_once(&format!("{template}<"))?;
    let end = rest.rfind('>')?;
    Some(split(&rest[..end]))
}

/// Returns the types between the parentheses of `void (*)(…)`.
fn parameter_types(function: &str) -> Option<Vec<String>> {
    let (_, rest) = function.split_once("(*)(")?;
    let types = split(&rest[..rest.rfind(')')?]);
    Some(if types == ["void"] { Vec::new() } else { types })
}

/// Splits at commas outside of brackets, like a list of template arguments.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    let (mut pieces, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(text[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !(pieces.is_empty() && last.is_empty()) {
        pieces.push(last.to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests;
