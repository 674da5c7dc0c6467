//! C, C++ and CUDA header: provenance, macros and launches of one entry, or a table with its lookup.
//!
//! It needs no include, so that NVRTC accepts it unchanged. With `NAME_ENTRY` it defines only the macros
//! and the launch functions of that entry, so that a kernel cannot be launched with the values of another.

use super::names::{MacroName, check_macro, identifier, members, suffix, target};
use super::plan::{Column, Plan};
use super::rules::{MAX_SIZE, fold_entries};
use super::values::{c_type, c_value, check_entry, is_flag};
use super::{ExportError, lookup};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::record::{ConfigValues, TimingKind, value_of};
use tuner_core::value::Value;
use vgpu::arch::model;

/// Helper functions of expressions.
const HELPERS: [(&str, &str); 5] = [
    ("min", "a < b ? a : b"),
    ("max", "a > b ? a : b"),
    // With operators, compilers would warn of comparisons with constants.
    ("bitand", "a & b"),
    ("bitor", "a | b"),
    ("bitxor", "a ^ b"),
];

/// Additional texts for launches with clusters, in this order: a note, the member, its value if nothing is
/// launched, the parameters of its extents, their limits, and its value. 16 is the largest cluster of any
/// device.
const CLUSTERS: [&str; 6] = [
    "/* cluster: where its product is above 1, the launch has the attribute cudaLaunchAttributeClusterDimension (cudaLaunchKernelExC),\n \
     * and above 8 the kernel cudaFuncAttributeNonPortableClusterSizeAllowed. */\n",
    ", cluster[3]",
    ", {0, 0, 0}",
    ", long long cx, long long cy, long long cz",
    " &&\n    cx >= 1 && cx <= 16 && cy >= 1 && cy <= 16 && cz >= 1 && cz <= 16 && cx * cy * cz <= 16 && x % cx == 0 && y % cy == 0 && z % cz == 0",
    ", {cx, cy, cz}",
];

/// Writes the header.
///
/// # Errors
/// Nothing to export, or a parameter whose name is invalid in C.
pub fn header(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    let entries = most_trusted(entries);
    Ok(Plan::new(kernel, &entries, &[])?.text())
}

/// Returns the rules, one per line, that C cannot express for sizes other than an entry's own. The header
/// returns that entry only if the sizes in the rule are its own.
///
/// # Errors
/// As [`header()`].
pub fn own_sizes_only(kernel: &str, entries: &[Entry]) -> Result<Vec<String>, ExportError> {
    let entries = most_trusted(entries);
    let plan = Plan::new(kernel, &entries, &[])?;
    let mut lines = Vec::new();
    for (entry, code) in plan.entries.iter().zip(&plan.codes) {
        let (problem, device) = (&entry.best.problem, &entry.best.device);
        for (rule, why) in &code.limits {
            lines.push(format!(
                "{problem} on {device}: returned for its own sizes only, because C cannot \
                 state `{rule}` ({why})"
            ));
        }
        if code.alone {
            lines.push(format!(
                "{problem} on {device}: returned for its own sizes only: they are beyond 32 bits"
            ));
        }
    }
    Ok(lines)
}

/// Returns the measured entries of a device; without any, the recorded, and then the predicted ones: a
/// lookup by device must never compare different kinds.
pub(super) fn most_trusted(entries: &[Entry]) -> Vec<Entry> {
    // Names of the same GPU count as one device.
    let device = |entry: &Entry| match model(&entry.best.device) {
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
    /// Plans a header whose functions of sizes use these names in addition to their own.
    pub(super) fn new(
        kernel: &'e str,
        entries: &'e [Entry],
        reserved: &[&str],
    ) -> Result<Self, ExportError> {
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
        let launches = launch_names(entries);
        let mut taken = vec![
            "device", "problem", "p50_us", "config", "entry", "best", "nearest", "instance",
            "model", "cc", "how", "valid", "distance", "meant",
        ];
        let pointers: Vec<String> = launches
            .iter()
            .map(|name| format!("launch_{name}"))
            .collect();
        taken.extend(
            pointers
                .iter()
                .map(String::as_str)
                .chain(reserved.iter().copied()),
        );
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
            launches,
            temporary: String::new(),
            instances: Vec::new(),
            codes: Vec::new(),
            bounded: false,
        };
        plan.instances = instances(entries);
        plan.temporary = plan.unused("v");
        (plan.codes, plan.bounded) = fold_entries(&plan);
        Ok(plan)
    }

    /// Returns the number of an entry's configuration among the distinct ones.
    #[expect(
        clippy::indexing_slicing,
        reason = "entries are numbered by the export that holds them"
    )]
    pub(super) fn instance(&self, index: usize) -> usize {
        let config = |at: usize| &self.entries[at].best.config;
        let same = |known: &usize| config(*known) == config(index);
        self.instances.iter().position(same).unwrap_or(0)
    }

    /// Formats the values of an entry's parameters.
    pub(super) fn values(&self, entry: &Entry) -> String {
        let values = self
            .parameters
            .iter()
            .map(|p| c_value(value_of(&entry.best.config, &p.name), p.c_type));
        values.collect::<Vec<_>>().join(", ")
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

    /// Writes the header.
    pub(super) fn text(&self) -> String {
        let upper = &self.upper;
        let mut text = String::new();
        self.opening(&mut text);
        self.helpers(&mut text);
        for index in 0..self.entries.len() {
            self.entry(&mut text, index);
        }
        let _ = writeln!(
            text,
            "#ifdef {upper}ENTRY /* one entry: its macros and its launches */"
        );
        self.chosen(&mut text);
        let _ = writeln!(
            text,
            "#else /* all entries: a table and its lookup */\n#define {upper}H -1"
        );
        lookup::table(self, &mut text);
        lookup::functions(self, &mut text);
        let _ = writeln!(text, "#endif /* {upper}ENTRY */\n#endif /* {upper}H */");
        text
    }

    /// Writes the first comment, the choice of an entry and the guard.
    fn opening(&self, text: &mut String) {
        let predicted = self
            .entries
            .iter()
            .filter(|e| e.best.timing == TimingKind::Predicted);
        let kernel = &self.kernel;
        let first = match (predicted.count(), self.entries.len()) {
            (0, _) => format!("{kernel}: tuned configurations."),
            (some, all) if some < all => {
                format!(
                    "{kernel}: {some} of {all} configurations are PREDICTED by a model, not measured."
                )
            }
            _ => format!(
                "{kernel}: PREDICTED configurations: a model's times, nothing was measured."
            ),
        };
        let (lower, upper) = (&self.lower, &self.upper);
        let sizes: String = self
            .sizes
            .iter()
            .map(|c| format!(", {}", c.member))
            .collect();
        let short = upper.trim_end_matches("_TUNED_");
        let _ = write!(
            text,
            "/* {first} Generated by tuner {version}: do not edit. C11, C++17, CUDA, NVRTC; includes nothing.\n \
             * {lower}_lookup(device{sizes}): the entry of the nearest problem whose rules hold, or null; {lower}_launch_KERNEL(entry{sizes}): its launch, `runs` is 0\n \
             * where left out or refused. #define {upper}ENTRY i (or -D{upper}MACROS -DTARGET_<device>) before the include: macros and launches of entry i, no table. */\n\
             #if (defined({upper}MACROS) || defined({short}_MACROS)) && !defined({upper}ENTRY)\n",
            version = env!("CARGO_PKG_VERSION"),
        );
        self.targets(text);
        let _ = writeln!(
            text,
            "#endif\n\
             #if (defined({upper}ENTRY) && ({upper}ENTRY < 0 || {upper}ENTRY >= {count})) || (defined({upper}H) && (defined({upper}ENTRY) ? {upper}H != {upper}ENTRY : {upper}H != -1))\n\
             #error \"{upper}ENTRY is not the number of an entry (0 to {last}), or the include before had another one: entries cannot be mixed\"\n\
             #elif !defined({upper}H)",
            count = self.entries.len(),
            last = self.entries.len() - 1,
        );
    }

    /// Writes the functions that all entries share.
    fn helpers(&self, text: &mut String) {
        let (lower, upper) = (&self.lower, &self.upper);
        let [c, cpp] = match self.has_rules() {
            true => ["_Static_assert", "static_assert"]
                .map(|word| format!("#define {upper}ASSERT {word}\n")),
            false => [String::new(), String::new()],
        };
        let _ = write!(
            text,
            "#if defined(__CUDACC_RTC__) /* knows device code only */\n{cpp}\
             #define {upper}STATIC static __device__ constexpr\n\
             #elif defined(__cplusplus)\n{cpp}\
             #define {upper}STATIC static constexpr\n\
             #else\n{c}\
             #define {upper}STATIC static\n\
             #endif\n"
        );
        let used = |name: &str| self.codes.iter().any(|code| code.helpers.contains(name));
        for (name, body) in HELPERS {
            if used(name) {
                let _ = writeln!(
                    text,
                    "{upper}STATIC inline long long {lower}_{name}(long long a, long long b) {{ return {body}; }}"
                );
            }
        }
        if used("whole") {
            let _ = writeln!(
                text,
                "{upper}STATIC inline long long {lower}_whole(double a) {{ return a >= 0 && a < 9e15 && (double)(long long)a == a ? (long long)a : -1; }}"
            );
        }
        if self
            .sizes
            .iter()
            .any(|column| column.c_type == "const char *")
        {
            lookup::same(self, text);
        }
        self.limits(text);
    }

    /// Writes the limits of sizes and launches.
    fn limits(&self, text: &mut String) {
        let (lower, upper) = (&self.lower, &self.upper);
        if self.sizes.iter().any(|size| !size.exact) {
            let mut conditions: Vec<String> = Vec::new();
            let mut product: Vec<String> = Vec::new();
            for size in self.sizes.iter().filter(|size| !size.exact) {
                let member = &size.member;
                let most = match size.c_type {
                    "double" => "9007199254740992.0".to_owned(),
                    _ => MAX_SIZE.to_string(),
                };
                conditions.push(format!("{member} > 0 && {member} <= {most}"));
                product.push(format!("(double){member}"));
            }
            if self.bounded {
                conditions.push(format!("{} <= 9007199254740992.0", product.join(" * ")));
            }
            let parameters = lookup::parameters(self.sizes.iter().filter(|size| !size.exact));
            let _ = writeln!(
                text,
                "{upper}STATIC inline int {lower}_sized({parameters}) {{ return {}; }}",
                conditions.join(" && ")
            );
        }
        if !self.launches.is_empty() {
            let [note, member, none, parameters, limits, value] = match self.has_clusters() {
                true => CLUSTERS,
                false => [""; 6],
            };
            let _ = write!(
                text,
                "{note}typedef struct {lower}_launch {{ int runs; long long grid[3], block[3], shared_bytes{member}; }} {lower}_launch;\n\
                 {upper}STATIC const {lower}_launch {lower}_none = {{0, {{0, 0, 0}}, {{0, 0, 0}}, 0{none}}};\n\
                 {upper}STATIC inline {lower}_launch {lower}_make(int runs, long long x, long long y, long long z, long long bx, long long by, long long bz, long long shared{parameters}, long long most) {{\n\
                 \x20 const {lower}_launch made = {{x >= 1 && x <= 2147483647 && y >= 1 && y <= 65535 && z >= 1 && z <= 65535 && bx >= 1 && bx <= 1024 && by >= 1 && by <= 1024 &&\n\
                 \x20   bz >= 1 && bz <= 64 && bx * by * bz <= 1024 && shared >= 0 && shared <= most{limits}, {{x, y, z}}, {{bx, by, bz}}, shared{value}}}; /* what CUDA and the device refuse */\n\
                 \x20 return runs ? made : {lower}_none; }}\n"
            );
        }
    }
}

/// Returns the first entry with each configuration.
#[expect(
    clippy::indexing_slicing,
    reason = "entries are numbered by the export that holds them"
)]
fn instances(entries: &[Entry]) -> Vec<usize> {
    let mut instances: Vec<usize> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let same = |known: &usize| entries[*known].best.config == entry.best.config;
        if !instances.iter().any(same) {
            instances.push(index);
        }
    }
    instances
}

/// Returns a name for each launch: its kernel function, numbered if it is launched again.
fn launch_names(entries: &[Entry]) -> Vec<String> {
    let all = entries.iter().map(|entry| &entry.definition.launches);
    let most = all.max_by_key(|launches| launches.len());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    most.into_iter()
        .flatten()
        .map(|launch| {
            let name = suffix(&launch.entry);
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            match *count {
                1 => name,
                again => format!("{name}_{again}"),
            }
        })
        .collect()
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
