//! Assertions of the header: each value belongs to its parameter, and each rule of the space
//! holds.
#![expect(
    clippy::indexing_slicing,
    reason = "there are two numbers at least, and a window of two has two"
)]

use super::cexpr::{HELPERS, Rule};
use super::header::{Family, Plan, constants};
use super::values::c_value;
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CLiteral;
use tuner_core::record::value_of;
use tuner_core::value::Value;

/// Longest list of values that is written out; a longer one is checked as a range if possible.
const LISTED_VALUES: usize = 64;
/// Maximum characters of an assertion's message.
const MAX_REASON_CHARACTERS: usize = 500;

impl Plan<'_> {
    /// Writes helper macros and the check of every entry.
    pub(super) fn checks(&self, text: &mut String) {
        let upper = &self.upper;
        let _ = write!(
            text,
            "\n#if defined(__cplusplus)\n\
             #define {upper}ASSERT(condition, why) static_assert(condition, why)\n\
             #else\n\
             #define {upper}ASSERT(condition, why) _Static_assert(condition, why)\n\
             #endif\n"
        );
        for (name, body) in HELPERS {
            if self.families.iter().any(|f| f.helpers.contains(name)) {
                let body = body.replace('@', upper);
                let _ = writeln!(text, "#define {upper}{name}{body}");
            }
        }
        for (index, family) in self.families.iter().enumerate() {
            self.family_check(text, index, family);
        }
        let _ = writeln!(text, "#define {upper}EXPAND(check, ...) check(__VA_ARGS__)");
        for (index, entry) in self.entries.iter().enumerate() {
            self.exact_check(text, index, entry);
            let values = format!("{upper}{index}");
            self.check_call(text, index, entry, &values);
        }
    }

    /// Writes the macro that asserts all rules of a family over a configuration.
    fn family_check(&self, text: &mut String, index: usize, family: &Family<'_>) {
        let mut parts: Vec<(String, String)> = Vec::new();
        for parameter in &family.definition.parameters {
            if let Some(condition) = membership(&parameter.name, &parameter.values) {
                let why = format!("{} is not one of its values", parameter.name);
                parts.push((condition, why));
            }
        }
        for (rule, constraint) in family.rules.iter().zip(&family.definition.constraints) {
            if let Some(condition) = &rule.text {
                let why = if constraint.why.is_empty() {
                    constraint.rule.clone()
                } else {
                    format!("{} ({})", constraint.why, constraint.rule)
                };
                parts.push((condition.clone(), why));
            }
        }
        if parts.is_empty() {
            parts.push(("1".to_owned(), "no rules".to_owned()));
        }
        let arguments = self.arguments(family);
        let _ = write!(text, "#define {}CHECK_{index}({arguments})", self.upper);
        let last = parts.len() - 1;
        for (at, (condition, why)) in parts.iter().enumerate() {
            let end = if at == last { "" } else { ";" };
            // C11 guarantees string literals of 4095 bytes.
            let why: String = why.chars().take(MAX_REASON_CHARACTERS).collect();
            let why = CLiteral::new(&why);
            let _ = write!(text, " \\\n  {}ASSERT({condition}, {why}){end}", self.upper);
        }
        text.push('\n');
    }

    fn arguments(&self, family: &Family<'_>) -> String {
        let names: Vec<&str> = self
            .parameters
            .iter()
            .map(|parameter| &*parameter.name)
            .chain(family.constants.iter().map(String::as_str))
            .collect();
        names.join(", ")
    }

    /// Writes the check of rules that C cannot express. They were checked when the candidate was
    /// proposed; the header asserts that the values they depend on are unchanged.
    fn exact_check(&self, text: &mut String, index: usize, entry: &Entry) {
        let (_, family) = self.family(index);
        let open: Vec<&Rule> = family.rules.iter().filter(|r| r.text.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let names: Vec<&str> = self.parameters.iter().map(|p| &*p.name).collect();
        let mut conditions: Vec<String> = Vec::new();
        for (name, value) in &entry.best.config {
            if let Some(number) = value.as_i64()
                && open.iter().any(|rule| rule.names.contains(name))
            {
                conditions.push(format!("({name}) == {number}"));
            }
        }
        if conditions.is_empty() {
            conditions.push("1".to_owned());
        }
        let _ = writeln!(
            text,
            "#define {upper}EXACT_{index}({}) {upper}ASSERT({}, \"rules that C cannot state were \
             checked for exactly these values\")",
            names.join(", "),
            conditions.join(" && "),
            upper = self.upper,
        );
    }

    /// Applies an entry's checks to values: its own, or the current macros.
    pub(super) fn check_call(&self, text: &mut String, index: usize, entry: &Entry, values: &str) {
        let (family_index, family) = self.family(index);
        let constants = constants(entry);
        let mut arguments = vec![values.to_owned()];
        for name in &family.constants {
            arguments.push(c_value(value_of(&constants, name), "long long"));
        }
        let upper = &self.upper;
        let arguments = arguments.join(", ");
        let _ = writeln!(
            text,
            "{upper}EXPAND({upper}CHECK_{family_index}, {arguments});"
        );
        if family.rules.iter().any(|rule| rule.text.is_none()) {
            let _ = writeln!(text, "{upper}EXPAND({upper}EXACT_{index}, {values});");
        }
    }
}

/// Returns the condition that an integer parameter has one of its values.
fn membership(name: &str, values: &[Value]) -> Option<String> {
    let numbers: Vec<i64> = values.iter().map(Value::as_i64).collect::<Option<_>>()?;
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    if numbers.len() <= LISTED_VALUES {
        let parts: Vec<String> = numbers.iter().map(|v| format!("({name}) == {v}")).collect();
        return Some(parts.join(" || "));
    }
    let step = numbers[1].checked_sub(first).filter(|step| *step > 0)?;
    let even = numbers
        .windows(2)
        .all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
    even.then(|| {
        format!("({name}) >= {first} && ({name}) <= {last} && (({name}) - {first}) % {step} == 0")
    })
}
