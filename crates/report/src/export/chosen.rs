//! Choice of one entry of the header, with its macros and assertions.

use super::cexpr::{Target, Variable, Writer};
use super::header::constants as entry_constants;
use super::names::target;
use super::plan::{Column, Plan};
use super::rules::{lowered, meanings};
use super::values::c_value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CMacroBody;
use tuner_core::record::value_of;
use tuner_core::value::Value;
use tuner_space::Parameter;

impl Plan<'_> {
    /// Writes the choice of an entry by device, as in Kernel Tuner's header.
    #[expect(
        clippy::indexing_slicing,
        reason = "entries are numbered by the export that holds them"
    )]
    pub(super) fn targets(&self, text: &mut String) {
        let mut devices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let device = target(&entry.best.device);
            devices.entry(device).or_default().push(index);
        }
        let all: Vec<usize> = (0..self.entries.len()).collect();
        let default = self.typical(&all);
        let upper = &self.upper;
        let chosen = devices
            .iter()
            .map(|(device, indices)| (device, self.typical(indices)));
        let others: Vec<(&String, usize)> = chosen.filter(|(_, entry)| *entry != default).collect();
        for (at, (device, entry)) in others.iter().enumerate() {
            let word = if at == 0 { "if" } else { "elif" };
            let _ = writeln!(
                text,
                "#{word} defined(TARGET_{device})\n#define {upper}ENTRY {entry}"
            );
        }
        let (before, after) = match others.as_slice() {
            [] => ("", ""),
            _ => ("#else\n", "#endif\n"),
        };
        let device = target(&self.entries[default].best.device);
        let _ = write!(
            text,
            "{before}#define {upper}ENTRY {default} /* of TARGET_{device}, and the default: the least slow-down over all */\n{after}"
        );
    }

    /// Writes the macros of the chosen entry, and the names of its functions.
    pub(super) fn chosen(&self, text: &mut String) {
        let (lower, upper) = (&self.lower, &self.upper);
        let count = self.entries.len();
        let names: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
        let names = names.join(", ");
        let mut macros = String::new();
        let mut picked = false;
        for parameter in &self.parameters {
            let body = self.macro_body(parameter);
            picked |= body.starts_with(upper.as_str());
            let _ = writeln!(macros, "#define {} {body}", parameter.name);
        }
        if macros.contains(&format!("{upper}BODY(")) {
            let _ = writeln!(text, "#define {upper}BODY(...) __VA_ARGS__");
        }
        let functions = self.launches.iter().map(|name| format!("launch_{name}"));
        let functions = ["valid".to_owned()].into_iter().chain(functions);
        if count == 1 {
            let _ = writeln!(text, "#define {upper}H 0");
            for name in functions {
                let _ = writeln!(text, "#define {lower}_{name} {lower}_0_{name}");
            }
        } else {
            for index in 0..count {
                let word = if index == 0 { "if" } else { "elif" };
                let _ = writeln!(
                    text,
                    "#{word} {upper}ENTRY == {index}\n#define {upper}H {index}"
                );
                if picked {
                    let _ = writeln!(text, "#define {upper}OF({names}) a{index}");
                }
            }
            let _ = writeln!(
                text,
                "#endif\n\
                 #define {upper}NAME(i, name) {lower}_##i##_##name\n\
                 #define {upper}OWN(i, name) {upper}NAME(i, name)"
            );
            for name in functions {
                let _ = writeln!(
                    text,
                    "#define {lower}_{name} {upper}OWN({upper}ENTRY, {name})"
                );
            }
        }
        text.push_str(&macros);
        self.assertions(text);
    }

    /// Reports whether a constraint is asserted.
    pub(super) fn has_rules(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| macro_rules(entry, &self.parameters).is_some())
    }

    /// Writes the constraints over the macros, one assertion for each entry.
    fn assertions(&self, text: &mut String) {
        let upper = &self.upper;
        let entries = self.entries.iter();
        let rules: Vec<Option<String>> = entries
            .map(|entry| macro_rules(entry, &self.parameters))
            .collect();
        for (index, rules) in rules.iter().enumerate() {
            if let Some(rules) = rules {
                let other = match self.entries.len() {
                    1 => String::new(),
                    _ => format!("{upper}ENTRY != {index} || "),
                };
                let _ = writeln!(
                    text,
                    "{upper}ASSERT({other}({rules}), \"the constraints of the search space\");"
                );
            }
        }
    }

    /// Returns a parameter's value, or its values by entry.
    fn macro_body(&self, parameter: &Column) -> String {
        let mut bodies: Vec<String> = self
            .entries
            .iter()
            .map(
                |entry| match value_of(&entry.best.config, &parameter.name) {
                    // `check_entry` has rejected invalid macro bodies.
                    Some(Value::Text(text)) => CMacroBody::new(text)
                        .map(|body| body.to_string())
                        .unwrap_or_default(),
                    other => c_value(other, parameter.c_type),
                },
            )
            .collect();
        let first = bodies.first().cloned().unwrap_or_default();
        if bodies.iter().all(|body| *body == first) {
            return first;
        }
        for body in &mut bodies {
            // A comma would separate arguments.
            if body.contains(',') {
                *body = format!("{}BODY({body})", self.upper);
            }
        }
        format!("{}OF({})", self.upper, bodies.join(", "))
    }

    /// Returns the winner with the smallest loss, in the geometric mean, over those groups of these entries
    /// in which it was timed; it must have been timed in most. The first one if several are equal.
    #[expect(
        clippy::indexing_slicing,
        reason = "entries are numbered by the export that holds them"
    )]
    fn typical(&self, indices: &[usize]) -> usize {
        let mut best = (
            usize::MAX,
            f64::INFINITY,
            indices.first().copied().unwrap_or(0),
        );
        for &index in indices {
            let config = &self.entries[index].best.config;
            let losses: Vec<f64> = indices
                .iter()
                .filter_map(|other| {
                    let entry = &self.entries[*other];
                    let time = |config| Some(entry.times.iter().find(|(c, _)| c == config)?.1);
                    // The best's own time may be of a final comparison, which the others lack.
                    let best = time(&entry.best.config).unwrap_or(entry.best.time_us_p50);
                    Some((time(config)? / best).ln())
                })
                .collect();
            let untimed = indices.len() - losses.len();
            let loss = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
            if (untimed, loss) < (best.0, best.1) {
                best = (untimed, loss, index);
            }
        }
        best.2
    }
}

/// Writes the rules over the macros of the parameters as an integer constant expression; `None` if no rule
/// has such a form.
fn macro_rules(entry: &Entry, columns: &[Column]) -> Option<String> {
    let rules = &entry.definition.constraints;
    let mut parameters = Vec::new();
    let mut constants = entry_constants(entry);
    for column in columns {
        let definition = entry.definition.parameters.iter();
        let known = definition.clone().find(|known| *known.name == *column.name);
        let own = value_of(&entry.best.config, &column.name)?;
        let numbers = |values: &[Value]| values.iter().all(|value| value.as_i64().is_some());
        match known {
            Some(known) if numbers(&known.values) && known.values.contains(own) => {
                parameters.push(Parameter::new(known.name.clone(), known.values.clone()));
            }
            _ => constants.push((column.name.to_string(), own.clone())),
        }
    }
    let variables: Vec<Variable> = parameters
        .iter()
        .map(|parameter| {
            let values = parameter.values.iter().filter_map(Value::as_i64);
            let values: Vec<f64> = values.map(|value| value as f64).collect();
            Variable {
                name: parameter.name.clone(),
                real: false,
                low: values.iter().copied().fold(f64::INFINITY, f64::min),
                bound: values.iter().map(|value| value.abs()).fold(1.0, f64::max),
            }
        })
        .collect();
    let used = rules.iter().map(|rule| &*rule.rule).collect();
    let mut names = meanings(entry, used, &parameters, constants);
    let mut texts: Vec<String> = Vec::new();
    for rule in rules {
        let Ok((root, names)) = lowered(&mut names, &rule.rule) else {
            continue;
        };
        if names.terms.constant(root).is_some() {
            continue;
        }
        let mut writer = Writer::new(&names.terms, &variables, None, Target::Constant);
        texts.extend(writer.condition(root));
    }
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join(" && "))
}
