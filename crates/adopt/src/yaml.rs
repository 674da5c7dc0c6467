//! The search space as text.

use super::Settings;
use super::expr::Expr;
use super::plan::{Argument, Plan, place};
use super::sizes;
use super::template::{DEVICE_DEFAULT, Made, relative};
use super::unit::Unit;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::plan::Role;

/// The search space's name of a type that the compiler or the source spells.
pub(crate) fn element(ty: &str) -> Option<String> {
    if ty.matches('*').count() > 1 || ty.contains('&') {
        return None;
    }
    let qualifiers = [
        "const",
        "volatile",
        "__restrict__",
        "restrict",
        "__restrict",
        "struct",
    ];
    let plain: Vec<&str> = ty
        .split(|c: char| c.is_whitespace() || matches!(c, '*' | '[' | ']'))
        .filter(|word| {
            !word.is_empty()
                && !qualifiers.contains(word)
                && !word.chars().all(|c| c.is_ascii_digit())
        })
        .collect();
    let plain = plain.join(" ");
    let known = match plain.as_str() {
        "float" => "f32",
        "double" => "f64",
        "half" | "__half" => "f16",
        "__nv_bfloat16" | "nv_bfloat16" => "bf16",
        "bool" => "bool",
        "char" | "signed char" | "int8_t" => "i8",
        "unsigned char" | "uint8_t" | "void" => "u8",
        "short" | "int16_t" => "i16",
        "unsigned short" | "uint16_t" => "u16",
        "int" | "int32_t" => "i32",
        "unsigned int" | "unsigned" | "uint" | "uint32_t" => "u32",
        "long" | "long long" | "int64_t" => "i64",
        // Sizes are declared as `i64`, whatever their sign.
        "unsigned long" | "unsigned long long" | "size_t" | "uint64_t" => "i64",
        "__nv_fp8_e4m3" => "f8e4m3",
        "__nv_fp8_e5m2" => "f8e5m2",
        "__half2" | "half2" => "half2",
        "__nv_bfloat162" => "bfloat162",
        other => {
            let bases = [
                "float",
                "double",
                "int",
                "uint",
                "short",
                "ushort",
                "char",
                "uchar",
                "longlong",
                "ulonglong",
            ];
            let (base, lanes) = other.split_at_checked(other.len().checked_sub(1)?)?;
            return (bases.contains(&base) && matches!(lanes, "2" | "3" | "4"))
                .then(|| other.to_owned());
        }
    };
    Some(known.to_owned())
}

fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', " ")
    )
}

/// Writes the search space of a plan.
pub(crate) fn write(
    settings: &Settings<'_>,
    unit: &Unit,
    item: usize,
    plan: &Plan,
    made: &Made,
) -> String {
    let mut text = String::new();
    let mut line = |one: String| {
        text.push_str(&one);
        text.push('\n');
    };
    line(format!(
        "# Adopted from {} by `tuner adopt`; what was guessed says so.",
        place(unit, item)
    ));
    line("version: 1".to_owned());
    line(format!("kernel: {}", plan.kernel));
    line(format!("source: {}.cu", plan.kernel));
    if plan.sizes.is_empty() {
        line("problems: { file: {} }".to_owned());
    } else {
        line(
            "sizes: argument                 # the kernel takes its sizes as arguments".to_owned(),
        );
        problems(&mut line, plan);
    }
    parameters(&mut line, plan);
    line("arguments:                      # in the order of the kernel's parameters".to_owned());
    let small = sizes::small(plan);
    for argument in &plan.arguments {
        line(argument_line(argument, plan, &small));
    }
    launch(&mut line, plan);
    line(
        "reference: none                 # hazards only; to compare results and to tune, write"
            .to_owned(),
    );
    line(
        "# reference: { source: reference.cu, entry: plain, grid: [1, 1, 1], block: [32, 1, 1] }"
            .to_owned(),
    );
    let folders: Vec<String> = settings
        .include
        .iter()
        .filter_map(|folder| relative(settings.folder, folder))
        .map(|folder| quoted(&folder))
        .collect();
    let include = if folders.is_empty() {
        String::new()
    } else {
        format!(", include: [{}]", folders.join(", "))
    };
    line(format!(
        "compile: {{ options: [\"{DEVICE_DEFAULT}\"]{include} }}"
    ));
    let _ = made;
    text
}

fn list(values: &BTreeMap<String, i64>, order: &[(String, Option<i64>)]) -> String {
    let each = order
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}: {}", values.get(name)?)));
    each.collect::<Vec<_>>().join(", ")
}

fn problems(line: &mut dyn FnMut(String), plan: &Plan) {
    let unknown: Vec<&str> = plan
        .sizes
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let guessed = if unknown.is_empty() {
        "# as the file launches it".to_owned()
    } else {
        format!(
            "# guessed: {}; write the sizes that you run",
            unknown.join(", ")
        )
    };
    line("problems:".to_owned());
    line(format!(
        "  file: {{ {} }}    {guessed}",
        list(&sizes::of_file(plan), &plan.sizes)
    ));
    line("check_problems:                 # small enough to be run whole".to_owned());
    line(format!(
        "  small: {{ {} }}",
        list(&sizes::small(plan), &plan.sizes)
    ));
}

fn parameters(line: &mut dyn FnMut(String), plan: &Plan) {
    if plan.parameters.is_empty() {
        line("parameters: {}".to_owned());
        return;
    }
    line("parameters:                     # proposed: neighbours by powers of two".to_owned());
    for each in &plan.parameters {
        let values: Vec<String> = each.values.iter().map(i64::to_string).collect();
        line(format!(
            "  {}: {{ values: [{}], default: {}, doc: {} }}",
            each.name,
            values.join(", "),
            each.default,
            quoted(&each.doc)
        ));
    }
    let product = plan
        .block
        .iter()
        .cloned()
        .reduce(|a, b| Expr::binary("*", a, b));
    let mut rules = Vec::new();
    if let Some(product) = product.filter(|it| it.number().is_none()) {
        rules.push((
            format!("{product} <= DEVICE_MAX_THREADS"),
            "a block has at most so many threads",
        ));
    }
    if let Some(shared) = plan.shared.as_ref().filter(|it| it.number().is_none()) {
        rules.push((
            format!("{shared} <= DEVICE_SHARED_BYTES"),
            "the shared memory of a block",
        ));
    }
    let size = |text: &str| {
        plan.sizes
            .iter()
            .any(|(name, _)| super::tree::words(text).contains(&name.as_str()))
    };
    rules.retain(|(rule, _)| !size(rule));
    if !rules.is_empty() {
        line("constraints:".to_owned());
        for (rule, why) in rules {
            line(format!("  - {{ rule: {}, why: {why} }}", quoted(&rule)));
        }
    }
}

fn argument_line(argument: &Argument, plan: &Plan, small: &BTreeMap<String, i64>) -> String {
    let mut text = format!("  - {{ name: {}, type: {}", argument.name, argument.ty);
    let role = match argument.role {
        Role::Input => "input",
        Role::Output => "output",
        Role::Inout => "inout",
        Role::Scratch => "scratch",
        Role::Scalar => "scalar",
    };
    let _ = write!(text, ", role: {role}");
    if let Some(shape) = &argument.shape {
        let _ = write!(text, ", shape: [{}]", quoted(&shape.to_string()));
    }
    let whole = matches!(
        argument.ty.as_str(),
        "i32" | "u32" | "i64" | "u64" | "i16" | "u16" | "i8" | "u8"
    );
    let filled = argument.role == Role::Input;
    let mut note = argument.guessed.map(str::to_owned);
    if whole && filled {
        let least = small.values().copied().min().unwrap_or(2).clamp(2, 100);
        let _ = write!(
            text,
            ", fill: {{ uniform: {{ min: 0, max: {} }} }}",
            least - 1
        );
        note = Some(match note {
            Some(note) => format!("{note}, and the values: indices of the smallest size"),
            None => "the values: indices of the smallest size".to_owned(),
        });
    }
    if let Some(value) = &argument.value
        && !plan
            .sizes
            .iter()
            .any(|(name, _)| *name == argument.name && value.to_string() == *name)
    {
        let _ = write!(text, ", value: {}", quoted(&value.to_string()));
    }
    text.push_str(" }");
    if let Some(note) = note {
        let _ = write!(text, "    # guessed: {note}");
    }
    text
}

fn launch(line: &mut dyn FnMut(String), plan: &Plan) {
    let extents = |all: &[Expr]| {
        let each = all.iter().map(|each| match each.number() {
            Some(number) => number.to_string(),
            None => quoted(&each.to_string()),
        });
        each.chain(std::iter::repeat("1".to_owned()))
            .take(3)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!(
        "  - {{ entry: {}, grid: [{}], block: [{}]",
        quoted(&plan.entry),
        extents(&plan.grid),
        extents(&plan.block)
    );
    if let Some(shared) = &plan.shared {
        let _ = write!(text, ", shared: {}", quoted(&shared.to_string()));
    }
    text.push_str(" }");
    if !plan.guessed_launch.is_empty() {
        let _ = write!(text, "    # guessed: {}", plan.guessed_launch.join(", "));
    }
    line("launches:".to_owned());
    line(text);
}

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn types_are_named_as_search_spaces_name_them() {
        for (ty, name) in [
            ("float const*", "f32"),
            ("const float* __restrict__", "f32"),
            ("__half*", "f16"),
            ("unsigned long long", "i64"),
            ("float4 const*", "float4"),
            ("void const*", "u8"),
            ("float [16]", "f32"),
        ] {
            assert_eq!(element(ty).as_deref(), Some(name), "{ty}");
        }
        for ty in ["float**", "Params", "cudaTextureObject_t3", "float&"] {
            assert_eq!(element(ty), None, "{ty}");
        }
    }
}
