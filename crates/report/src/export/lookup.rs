//! The table and the lookup of the header.

use super::plan::{Column, Plan};
use super::values::c_value;
use std::fmt::Write as _;
use tuner_core::escape::CLiteral;
use tuner_core::record::value_of;
use vgpu::arch::model;

/// Writes types and the table.
pub(super) fn table(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let parameters = parameters(plan.sizes.iter());
    let parameters = if parameters.is_empty() {
        "void"
    } else {
        &parameters
    };
    let members = |columns: &[Column], c_type: fn(&Column) -> &'static str| -> String {
        let members = columns
            .iter()
            .map(|column| declaration(c_type(column), &column.member) + "; ");
        members.collect()
    };
    let launches: String = plan
        .launches
        .iter()
        .map(|name| format!(" {lower}_launch (*launch_{name})({parameters});"))
        .collect();
    let _ = write!(
        text,
        "typedef struct {lower}_config {{ {}}} {lower}_config;\n\
         typedef struct {lower}_entry {{ const char *device, *problem; {}double p50_us; {lower}_config config;\n\
         \x20 int instance /* in CONFIGS */; const char *model /* or empty */; int cc /* compute capability, or 0 */; int (*valid)({parameters});{launches} }} {lower}_entry;\n\
         {upper}STATIC const {lower}_entry {lower}_table[] = {{",
        members(&plan.parameters, |column| column.c_type),
        members(&plan.sizes, size_type),
    );
    for (index, entry) in plan.entries.iter().enumerate() {
        let mut cells = vec![
            CLiteral::new(&entry.best.device).to_string(),
            CLiteral::new(&entry.best.problem).to_string(),
        ];
        for column in &plan.sizes {
            cells.push(c_value(
                value_of(&entry.sizes, &column.name),
                size_type(column),
            ));
        }
        cells.push(format!("{:?}", entry.best.time_us_p50));
        cells.push(format!("{{{}}}", plan.values(entry)));
        cells.push(plan.instance(index).to_string());
        cells.push(CLiteral::new(&model(&entry.best.device)).to_string());
        cells.push(entry.cc.unwrap_or(0).to_string());
        cells.push(format!("{lower}_{index}_valid"));
        for (at, name) in plan.launches.iter().enumerate() {
            cells.push(match entry.definition.launches.get(at) {
                Some(_) => format!("{lower}_{index}_launch_{name}"),
                None => "0".to_owned(),
            });
        }
        let _ = write!(text, "\n  {{{}}},", cells.join(", "));
    }
    let names: Vec<&str> = plan.parameters.iter().map(|p| &*p.name).collect();
    let _ = write!(
        text,
        " }};\n#define {upper}COUNT {} /* the configurations to instantiate, each once: X(instance, {}) */\n\
         #define {upper}CONFIGS(X)",
        plan.entries.len(),
        names.join(", ")
    );
    for (instance, index) in plan.instances.iter().enumerate() {
        let values = plan.entries.get(*index).map(|entry| plan.values(entry));
        let line = if instance == 0 { " " } else { " \\\n  " };
        let _ = write!(text, "{line}X({instance}, {})", values.unwrap_or_default());
    }
    text.push('\n');
}

/// Returns the type of a size: a caller's sizes may exceed all tuned ones.
pub(super) fn size_type(column: &Column) -> &'static str {
    match column.c_type {
        "int" => "long long",
        other => other,
    }
}

fn declaration(c_type: &str, name: &str) -> String {
    if c_type.ends_with('*') {
        format!("{c_type}{name}")
    } else {
        format!("{c_type} {name}")
    }
}

/// Formats `long long n, …`.
pub(super) fn parameters<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let parameters = columns.map(|column| declaration(size_type(column), &column.member));
    parameters.collect::<Vec<_>>().join(", ")
}

/// Formats `n, …`.
pub(super) fn arguments<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let arguments = columns.map(|column| column.member.as_str());
    arguments.collect::<Vec<_>>().join(", ")
}

/// Writes the comparison of texts.
pub(super) fn same(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let _ = writeln!(
        text,
        "{upper}STATIC inline int {lower}_same(const char *a, const char *b) {{ while (*a && *a == *b) {{ ++a; ++b; }} return *a == *b; }}"
    );
}

/// Writes the lookup: same device, equal flags, nearest problem.
pub(super) fn functions(plan: &Plan<'_>, text: &mut String) {
    names(plan, text);
    let (lower, upper) = (&plan.lower, &plan.upper);
    let free: Vec<&Column> = plan.sizes.iter().filter(|size| !size.exact).collect();
    if !free.is_empty() {
        let _ = writeln!(
            text,
            "{upper}STATIC inline double {lower}_ratio(double a, double b) {{ return a > b ? a / b : b / a; }}"
        );
    }
    let (parameters, arguments) = (parameters(plan.sizes.iter()), arguments(plan.sizes.iter()));
    let comma = |text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            format!(", {text}")
        }
    };
    let (more, sizes) = (comma(&parameters), comma(&arguments));
    let ratios: Vec<String> = free
        .iter()
        .map(|size| {
            format!(
                "{lower}_ratio((double){m}, (double)entry->{m})",
                m = size.member
            )
        })
        .collect();
    let distance = if ratios.is_empty() {
        "1.0".to_owned()
    } else {
        ratios.join(" * ")
    };
    let i = plan.unused("i");
    let _ = write!(
        text,
        "/* The valid entry with the smallest product of the ratios of sizes, of those of the device's name (*how 1), else its model (2), else its compute capability, such as 89 (3). */\n\
         {upper}STATIC inline const {lower}_entry *{lower}_find(const char *device, int cc{more}, int *how) {{\n\
         \x20 const {lower}_entry *best = 0; double nearest = 0.0;\n\
         \x20 for (*how = 1; *how <= 3 && !best; *how += !best) for (int {i} = 0; {i} < {upper}COUNT; ++{i}) {{\n\
         \x20   const {lower}_entry *entry = &{lower}_table[{i}]; const int meant = {lower}_names(device, entry->device, entry->model);\n\
         \x20   if (!(*how == 3 ? cc > 0 && cc == entry->cc : *how == meant) || !entry->valid({arguments})) continue;\n\
         \x20   const double distance = {distance};\n\
         \x20   if (!best || distance < nearest) {{ best = entry; nearest = distance; }} }}\n\
         \x20 if (!best) *how = 0;\n\
         \x20 return best; }}\n\
         {upper}STATIC inline const {lower}_entry *{lower}_lookup(const char *device{more}) {{ int how = 0; return {lower}_find(device, 0{sizes}, &how); }}\n"
    );
    for name in &plan.launches {
        let _ = writeln!(
            text,
            "{upper}STATIC inline {lower}_launch {lower}_launch_{name}(const {lower}_entry *entry{more}) {{ return entry && entry->launch_{name} ? entry->launch_{name}({arguments}) : {lower}_none; }}"
        );
    }
}

/// Writes the comparison of a device's name with an entry's. A suffix that may denote another model (`Ti`,
/// `SUPER`, `Ada`, `Laptop`, `Max-Q`, `D`) makes the names differ.
fn names(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let _ = write!(
        text,
        "{upper}STATIC inline int {lower}_letter(char c) {{ return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }}\n\
         /* 1: the device has that name; 2: it is of that model, as `NVIDIA RTX A6000` of `a6000`; 0: another. */\n\
         {upper}STATIC inline int {lower}_names(const char *a, const char *name, const char *model) {{\n\
         \x20 int i = 0, k = 0, m = 0; while (a[i] && a[i] == name[i]) ++i;\n\
         \x20 if (a[i] == name[i]) return 1;\n\
         \x20 for (i = 0; *model && a[i] && (!i || model[m]); ++i) if (!{lower}_letter(a[i]) || (a[i] | 32) == 'x') /* behind a separator, or `RTX` */\n\
         \x20   for (m = 0, k = i + 1; model[m] && (a[k] | 32) == model[m]; ++m) do ++k; while (model[m + 1] && a[k] && !{lower}_letter(a[k]));\n\
         \x20 if (!*model || model[m] || {lower}_letter(a[k])) return 0;\n\
         \x20 while (a[k] && !{lower}_letter(a[k])) ++k;\n\
         \x20 i = a[k] | 32; /* Ti, Ada, Laptop, Max-Q, D, SUPER: another model */\n\
         \x20 return i == 't' || i == 'a' || i == 'l' || i == 'm' || i == 'd' || (i == 's' && (a[k + 1] | 32) == 'u') ? 0 : 2; }}\n"
    );
}
