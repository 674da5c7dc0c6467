//! C, C++ and CUDA header: provenance, a table, a lookup, checks, and Kernel Tuner's defines.
//!
//! It needs no include, so that NVRTC accepts it unchanged. Every value is written once, in a macro
//! that feeds the table and its checks: a wrong value fails to compile.
#![expect(
    clippy::indexing_slicing,
    reason = "entries and families are numbered by the export that holds them"
)]

use super::cexpr::{self, Rule};
use super::names::{MacroName, check_macro, identifier, members, target};
use super::rules::{SizeRule, size_rules};
use super::values::{c_type, c_value, check_entry, is_flag};
use super::{ExportError, devices, launches, lookup, shipped};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::{CComment, CMacroBody};
use tuner_core::record::{ConfigValues, Definition, TimingKind, value_of};
use tuner_core::units::counted;
use tuner_core::value::Value;

/// Data shared by the parts of the header.
pub(super) struct Plan<'e> {
    pub(super) kernel: CComment,
    /// Prefix in lower case, `gemm_tuned`; the upper-case one is `GEMM_TUNED_`.
    pub(super) lower: String,
    pub(super) upper: String,
    pub(super) entries: &'e [Entry],
    /// Parameter names with their member and C type.
    pub(super) parameters: Vec<Column>,
    /// Problem sizes with their member and C type.
    pub(super) sizes: Vec<Column>,
    /// One set of rules for each distinct definition.
    pub(super) families: Vec<Family<'e>>,
    /// For each entry the index of its family.
    family_of: Vec<usize>,
    /// The first entry with each configuration.
    pub(super) instances: Vec<usize>,
    /// For each entry the rules that other sizes may break.
    pub(super) size_rules: Vec<Vec<SizeRule>>,
}

/// A column of the table.
pub(super) struct Column {
    pub(super) name: MacroName,
    pub(super) member: String,
    pub(super) c_type: &'static str,
    /// A size that must match exactly rather than approximately.
    pub(super) exact: bool,
}

/// Rules of entries that share a definition.
pub(super) struct Family<'e> {
    pub(super) definition: &'e Definition,
    pub(super) rules: Vec<Rule>,
    /// Sizes and device names in the rules, in a stable order.
    pub(super) constants: Vec<String>,
    pub(super) helpers: cexpr::Helpers,
}

/// Writes the header.
///
/// # Errors
/// Nothing to export, or a parameter whose name is invalid in C.
pub fn header(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    let entries = most_trusted(entries);
    let plan = Plan::new(kernel, &entries)?;
    let mut text = String::new();
    plan.opening(&mut text);
    plan.provenance(&mut text);
    plan.values(&mut text);
    plan.checks(&mut text);
    lookup::table(&plan, &mut text);
    let bodies = lookup::rules(&plan) + &launches::functions(&plan);
    text.push_str(&lookup::with_numbers(&plan, &bodies));
    lookup::function(&plan, &mut text);
    plan.defines(&mut text);
    text.push_str("\n/* What `tuner gate` reads back. */\n");
    text.extend(entries.iter().map(shipped::as_comment));
    let _ = writeln!(text, "\n#endif /* {}H */", plan.upper);
    Ok(text)
}

/// Returns the rules that C cannot express for sizes other than an entry's own, one for each line:
/// the header returns that entry only if the sizes in the rule are its own.
///
/// # Errors
/// As [`header()`].
pub fn own_sizes_only(kernel: &str, entries: &[Entry]) -> Result<Vec<String>, ExportError> {
    let entries = most_trusted(entries);
    let plan = Plan::new(kernel, &entries)?;
    let mut lines = Vec::new();
    for (entry, rules) in plan.entries.iter().zip(&plan.size_rules) {
        for rule in rules {
            if let Some(why) = &rule.limit {
                let (problem, device) = (&entry.best.problem, &entry.best.device);
                lines.push(format!(
                    "{problem} on {device}: returned for its own sizes only, because C cannot \
                     state `{}` ({why})",
                    rule.source
                ));
            }
        }
    }
    Ok(lines)
}

/// Returns the measured entries of a device; without those the recorded, and then the predicted: a
/// lookup by device must never compare different kinds.
fn most_trusted(entries: &[Entry]) -> Vec<Entry> {
    // Names that mean the same GPU are one device.
    let device = |entry: &Entry| match devices::model(&entry.best.device) {
        model if model.is_empty() => target(&entry.best.device),
        model => model,
    };
    let mut best: BTreeMap<String, TimingKind> = BTreeMap::new();
    for entry in entries {
        let kind = best.entry(device(entry)).or_insert(entry.best.timing);
        if trust(entry.best.timing) < trust(*kind) {
            *kind = entry.best.timing;
        }
    }
    let kept = |entry: &&Entry| best.get(&device(entry)) == Some(&entry.best.timing);
    entries.iter().filter(kept).cloned().collect()
}

fn trust(kind: TimingKind) -> u8 {
    match kind {
        TimingKind::Measured => 0,
        TimingKind::Recorded => 1,
        TimingKind::Predicted => 2,
    }
}

impl<'e> Plan<'e> {
    fn new(kernel: &'e str, entries: &'e [Entry]) -> Result<Self, ExportError> {
        let first = entries.first().ok_or(ExportError::Empty)?;
        for entry in entries {
            check_entry(entry)?;
        }
        let macros = |values: &ConfigValues| -> Result<Vec<MacroName>, ExportError> {
            values.iter().map(|(name, _)| check_macro(name)).collect()
        };
        let names = macros(&first.best.config)?;
        let mut size_names: Vec<MacroName> = Vec::new();
        for name in macros(&entries.iter().flat_map(|e| e.sizes.clone()).collect())? {
            if !size_names.contains(&name) {
                size_names.push(name);
            }
        }
        let taken = [
            "device", "problem", "p50_us", "config", "entry", "best", "nearest", "instance",
            "model", "cc", "how",
        ];
        let all: Vec<&str> = names
            .iter()
            .chain(&size_names)
            .map(|name| &**name)
            .collect();
        let mut found = members(&all, &taken).into_iter();
        let mut column = |name: &MacroName, of: fn(&Entry) -> &ConfigValues| {
            let values: Vec<Option<&Value>> = entries
                .iter()
                .map(|entry| value_of(of(entry), name))
                .collect();
            Column {
                name: name.clone(),
                member: found.next().unwrap_or_default(),
                c_type: c_type(&values),
                exact: values.iter().any(|value| is_flag(*value)),
            }
        };
        let parameters = names
            .iter()
            .map(|n| column(n, |e| &e.best.config))
            .collect();
        let sizes = size_names.iter().map(|n| column(n, |e| &e.sizes)).collect();
        let lower = format!("{}_tuned", identifier(kernel).to_ascii_lowercase());
        let upper = format!("{}_", lower.to_ascii_uppercase());
        let mut plan = Self {
            kernel: CComment::new(kernel),
            lower,
            upper,
            entries,
            parameters,
            sizes,
            families: Vec::new(),
            family_of: Vec::new(),
            instances: Vec::new(),
            size_rules: Vec::new(),
        };
        for (index, entry) in entries.iter().enumerate() {
            let same = |known: &usize| entries[*known].best.config == entry.best.config;
            if !plan.instances.iter().any(same) {
                plan.instances.push(index);
            }
        }
        (plan.families, plan.family_of) = plan.find_families();
        plan.size_rules = entries
            .iter()
            .map(|entry| size_rules(&plan, entry))
            .collect();
        Ok(plan)
    }

    /// Returns the number of an entry's configuration among the distinct ones.
    pub(super) fn instance(&self, index: usize) -> usize {
        let config = |at: usize| &self.entries[at].best.config;
        let same = |known: &usize| config(*known) == config(index);
        self.instances.iter().position(same).unwrap_or(0)
    }

    /// Returns a name for the header's variables, alone or before a number, that differs from every
    /// member and macro.
    pub(super) fn unused(&self, wanted: &str) -> String {
        let columns = self.parameters.iter().chain(&self.sizes);
        let taken: Vec<&str> = columns
            .flat_map(|column| [&*column.name, &column.member])
            .collect();
        let mut name = wanted.to_owned();
        let meets = |name: &str| {
            let rest = |known: &&str| known.strip_prefix(name).map(str::to_owned);
            let numbered = |rest: String| rest.bytes().all(|byte| byte.is_ascii_digit());
            taken.iter().filter_map(rest).any(numbered)
        };
        while meets(&name) {
            name.push('_');
        }
        name
    }

    fn find_families(&self) -> (Vec<Family<'e>>, Vec<usize>) {
        let mut families: Vec<Family<'e>> = Vec::new();
        let mut indices = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            let constants = constants(entry);
            let (rules, helpers) = cexpr::translate(&entry.definition, &constants, &self.upper);
            let known = families
                .iter()
                .position(|f| *f.definition == entry.definition && f.rules == rules);
            indices.push(known.unwrap_or(families.len()));
            if known.is_some() {
                continue;
            }
            let written = |name: &String| {
                let mut rules = rules.iter().filter(|rule| rule.text.is_some());
                rules.any(|rule| rule.names.contains(name))
            };
            let names = constants.into_iter().map(|(name, _)| name);
            families.push(Family {
                definition: &entry.definition,
                constants: names.filter(written).collect(),
                rules,
                helpers,
            });
        }
        (families, indices)
    }

    /// Returns the family of an entry with its index.
    pub(super) fn family(&self, entry: usize) -> (usize, &Family<'e>) {
        let index = self.family_of.get(entry).copied().unwrap_or(0);
        (index, &self.families[index])
    }

    fn opening(&self, text: &mut String) {
        let predicted = self
            .entries
            .iter()
            .filter(|entry| entry.best.timing == TimingKind::Predicted)
            .count();
        let kernel = &self.kernel;
        let _ = match (predicted, self.entries.len()) {
            (0, _) => writeln!(text, "/* {kernel}: tuned configurations."),
            (some, all) if some < all => writeln!(
                text,
                "/* {kernel}: {some} of {all} configurations are PREDICTED by a model, not \
                 measured."
            ),
            _ => writeln!(
                text,
                "/* {kernel}: PREDICTED configurations: a model's times, nothing was measured."
            ),
        };
        let _ = write!(
            text,
            " * Generated by tuner {version}; do not edit: tune again and export again.\n\
             *\n\
             *   C11, C++17, CUDA and NVRTC; includes nothing.\n\
             *   {lower}_lookup(device, …) gives the entry of a device's nearest problem, {lower}_find\n\
             *   also that of a device with the same compute capability, and says so.\n\
             *   {upper}CONFIGS(X) lists the configurations to instantiate.\n\
             *   -D{upper}MACROS makes #defines of one; -DTARGET_<device> says of which device.\n\
             */\n\
             #ifndef {upper}H\n#define {upper}H\n",
            version = env!("CARGO_PKG_VERSION"),
            lower = self.lower,
            upper = self.upper,
        );
        *text = text.replace("\n*", "\n *").replace('…', "...");
    }

    /// Writes one comment for each entry: the source of its numbers.
    fn provenance(&self, text: &mut String) {
        for (index, entry) in self.entries.iter().enumerate() {
            let row = &entry.best;
            let kind = match row.timing {
                TimingKind::Measured => "measured",
                TimingKind::Predicted => "PREDICTED",
                TimingKind::Recorded => "recorded by others",
            };
            let _ = writeln!(
                text,
                "\n/* [{index}] {} on {}, {kind}",
                CComment::new(&assignments(&row.problem, &entry.sizes)),
                CComment::new(&row.device)
            );
            let speedup = row
                .speedup_vs_default
                .map(|ratio| format!(", {ratio:.2}x the default's speed"))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                " *     p50 {:.3} us, p90 {:.3} us, {}{speedup}",
                row.time_us_p50,
                row.time_us_p90,
                counted(row.samples, "sample"),
            );
            if let Some(compared) = row.compared {
                let _ = writeln!(text, " *     compared {compared}: {}", compared.describe());
            }
            let or_none = |value: Option<&str>| CComment::new(value.unwrap_or("none"));
            let dirty = if row.dirty == Some(true) {
                " (dirty)"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                " *     driver {}, commit {}{dirty}, {}",
                or_none(entry.driver.as_deref()),
                or_none(row.commit.as_deref()),
                CComment::new(row.measured_at.get(..10).unwrap_or("no date"))
            );
            if let Some(hash) = &row.diff_hash {
                let _ = writeln!(text, " *     diff {} (SHA-256)", CComment::new(hash));
            }
            let template = or_none(row.template_hash.as_deref());
            let _ = writeln!(text, " *     template {template}");
            if row.stale == Some(true) {
                let _ = writeln!(
                    text,
                    " *     STALE: the template was edited since; tune again before relying on this."
                );
            }
            let values = assignments("", &row.config);
            let _ = writeln!(text, " *    {} */", CComment::new(&values));
        }
    }

    /// Writes the values, each once.
    fn values(&self, text: &mut String) {
        text.push('\n');
        for (index, entry) in self.entries.iter().enumerate() {
            let values: Vec<String> = self
                .parameters
                .iter()
                .map(|p| c_value(value_of(&entry.best.config, &p.name), p.c_type))
                .collect();
            let _ = writeln!(text, "#define {}{index} {}", self.upper, values.join(", "));
        }
    }

    /// Writes Kernel Tuner's defines: one configuration for each device, and a default.
    fn defines(&self, text: &mut String) {
        let mut devices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let device = target(&entry.best.device);
            devices.entry(device).or_default().push(index);
        }
        let _ = writeln!(
            text,
            "\n#ifndef kernel_tuner /* only use these when not tuning */\n\
             #if defined({}MACROS) || defined({}_MACROS)",
            self.upper,
            self.upper.trim_end_matches("_TUNED_")
        );
        for (at, (device, indices)) in devices.iter().enumerate() {
            let _ = match at {
                0 => writeln!(text, "\n#ifdef TARGET_{device}"),
                _ => writeln!(text, "\n#elif defined(TARGET_{device})"),
            };
            self.define_block(text, self.typical(indices), indices.len());
        }
        let all: Vec<usize> = (0..self.entries.len()).collect();
        text.push_str("\n#else /* default configuration */\n");
        self.define_block(text, self.typical(&all), all.len());
        text.push_str("#endif /* GPU TARGETS */\n\n");
        let _ = writeln!(
            text,
            "#endif /* {}MACROS */\n#endif /* kernel_tuner */",
            self.upper
        );
    }

    fn define_block(&self, text: &mut String, index: usize, among: usize) {
        let entry = &self.entries[index];
        let _ = if among == 1 {
            writeln!(text, "/* [{index}] */")
        } else {
            writeln!(
                text,
                "/* [{index}], the least slow-down over {among} entries */"
            )
        };
        for parameter in &self.parameters {
            let value = value_of(&entry.best.config, &parameter.name);
            let body = match value {
                Some(Value::Text(text)) => CMacroBody::new(text).map(|body| body.to_string()),
                other => Ok(c_value(other, parameter.c_type)),
            };
            // `check_entry` has refused invalid macro bodies.
            let body = body.unwrap_or_default();
            let _ = writeln!(text, "#define {} {body}", parameter.name);
        }
        let names: Vec<&str> = self.parameters.iter().map(|p| &*p.name).collect();
        self.check_call(text, index, entry, &names.join(", "));
    }

    /// Returns the winner with the smallest loss, in the geometric mean, over the groups of these
    /// entries in which it was timed; it must have been timed in most. The first of equals.
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
                    let (_, us) = entry.times.iter().find(|(c, _)| c == config)?;
                    Some((us / entry.best.time_us_p50).ln())
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

/// Returns sizes and device names of an entry.
pub(super) fn constants(entry: &Entry) -> ConfigValues {
    entry
        .sizes
        .iter()
        .chain(&entry.environment)
        .cloned()
        .collect()
}

fn assignments(head: &str, values: &ConfigValues) -> String {
    let mut text = head.to_owned();
    for (name, value) in values {
        let _ = write!(text, " {name}={value}");
    }
    text
}
