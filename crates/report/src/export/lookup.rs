//! The table and the lookup of the header.

use super::devices;
use super::header::{Column, Plan};
use super::number;
use super::rules::SizeRule;
use super::values::c_value;
use std::fmt::Write as _;
use tuner_core::escape::CLiteral;
use tuner_core::record::value_of;

/// Writes types and the table.
pub(super) fn table(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let _ = write!(
        text,
        "\n#if defined(__CUDACC_RTC__) /* knows device code only */\n\
         #define {upper}CONST static __device__ constexpr\n\
         #define {upper}FUNCTION __device__ constexpr\n\
         #elif defined(__cplusplus)\n\
         #define {upper}CONST inline constexpr\n\
         #define {upper}FUNCTION constexpr\n\
         #else\n\
         #define {upper}CONST static const\n\
         #define {upper}FUNCTION static inline\n\
         #endif\n"
    );
    let _ = writeln!(text, "\ntypedef struct {lower}_config {{");
    for column in &plan.parameters {
        let (declaration, name) = (spaced(column.c_type, &column.member), &column.name);
        let _ = writeln!(text, "  {declaration}; /* {name} */");
    }
    let _ = writeln!(text, "}} {lower}_config;");
    let _ = write!(
        text,
        "\ntypedef struct {lower}_entry {{\n  const char *device;\n  const char *problem;\n"
    );
    for column in &plan.sizes {
        let exact = if column.exact { ", must match" } else { "" };
        let (declaration, name) = (size_declaration(column), &column.name);
        let _ = writeln!(text, "  {declaration}; /* {name}{exact} */");
    }
    let _ = write!(
        text,
        "  double p50_us;\n  {lower}_config config;\n\
         \x20 int instance; /* the number of its configuration in {upper}CONFIGS */\n\
         \x20 const char *model; /* in lower case; empty where the device matches by its name only */\n\
         \x20 int cc; /* compute capability; 0 where it is not known */\n\
         }} {lower}_entry;\n\n\
         {upper}CONST {lower}_entry {lower}_table[] = {{\n"
    );
    for (index, entry) in plan.entries.iter().enumerate() {
        let names = [&entry.best.device, &entry.best.problem];
        let mut cells = names.map(|name| CLiteral::new(name).to_string()).to_vec();
        for column in &plan.sizes {
            cells.push(c_value(
                value_of(&entry.sizes, &column.name),
                size_type(column),
            ));
        }
        cells.push(format!("{:?}", entry.best.time_us_p50));
        let cells = cells.join(", ");
        let instance = plan.instance(index);
        let model = CLiteral::new(&devices::model(&entry.best.device));
        let cc = entry.cc.unwrap_or(0);
        let _ = writeln!(
            text,
            "  {{{cells}, {{{upper}{index}}}, {instance}, {model}, {cc}}},"
        );
    }
    let count = plan.entries.len();
    let _ = writeln!(text, "}};\n#define {upper}COUNT {count}");
    instances(plan, text);
}

/// Writes the distinct configurations as a list for the preprocessor.
fn instances(plan: &Plan<'_>, text: &mut String) {
    let upper = &plan.upper;
    let names: Vec<&str> = plan.parameters.iter().map(|p| &*p.name).collect();
    let _ = write!(
        text,
        "\n/* The configurations to instantiate, each once: X(instance, {}). */\n\
         #define {upper}CONFIGS(X)",
        names.join(", ")
    );
    for (instance, index) in plan.instances.iter().enumerate() {
        let _ = write!(text, " \\\n  {upper}EXPAND(X, {instance}, {upper}{index})");
    }
    text.push('\n');
}

fn size_declaration(column: &Column) -> String {
    spaced(size_type(column), &column.member)
}

/// Returns the type of a size: a caller's sizes may exceed all tuned ones.
fn size_type(column: &Column) -> &'static str {
    match column.c_type {
        "int" => "long long",
        other => other,
    }
}

fn spaced(c_type: &str, name: &str) -> String {
    if c_type.ends_with('*') {
        format!("{c_type}{name}")
    } else {
        format!("{c_type} {name}")
    }
}

/// Writes the rules that sizes may break, as a function of the entry and the sizes; nothing without
/// such rules.
pub(super) fn rules(plan: &Plan<'_>) -> String {
    if plan.size_rules.iter().all(Vec::is_empty) {
        return String::new();
    }
    // Entries with the same rules share a function.
    let mut sets: Vec<(&[SizeRule], Vec<usize>)> = Vec::new();
    for (index, rules) in plan.size_rules.iter().enumerate() {
        match sets.iter_mut().find(|(known, _)| known == rules) {
            _ if rules.is_empty() => {}
            Some((_, entries)) => entries.push(index),
            None => sets.push((rules, vec![index])),
        }
    }
    let mut body = String::new();
    for (at, (rules, _)) in sets.iter().enumerate() {
        set(plan, at, rules, &mut body);
    }
    let (lower, upper) = (&plan.lower, &plan.upper);
    let parameters = parameters(members(plan, plan.size_rules.iter().flatten()));
    let _ = write!(
        body,
        "\n/* Whether an entry's rules hold for other sizes; those without sizes hold as they stand. */\n\
         {upper}FUNCTION int {lower}_obeys(int entry{parameters}) {{\n  switch (entry) {{\n"
    );
    for (at, (rules, entries)) in sets.iter().enumerate() {
        let cases: String = entries
            .iter()
            .map(|entry| format!("  case {entry}:\n"))
            .collect();
        let arguments = members(plan, rules.iter()).map(|column| column.member.as_str());
        let arguments: Vec<&str> = arguments.collect();
        let _ = writeln!(
            body,
            "{cases}    return {lower}_rules_{at}({});",
            arguments.join(", ")
        );
    }
    body.push_str("  default:\n    return 1;\n  }\n}\n");
    body
}

/// Prepends the number functions that these functions use.
pub(super) fn with_numbers(plan: &Plan<'_>, bodies: &str) -> String {
    if bodies.is_empty() {
        return String::new();
    }
    let numbers = number::functions(&plan.lower, &plan.upper, bodies);
    format!("\n{numbers}{bodies}")
}

/// Writes the function of one set of rules.
fn set(plan: &Plan<'_>, at: usize, rules: &[SizeRule], text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let parameters = parameters(members(plan, rules.iter()));
    let parameters = parameters.strip_prefix(", ").unwrap_or("void");
    let _ = writeln!(
        text,
        "\n{upper}FUNCTION int {lower}_rules_{at}({parameters}) {{"
    );
    for rule in rules {
        let _ = writeln!(text, "  /* {} */", rule.source);
        if let Some(why) = &rule.limit {
            let _ = writeln!(
                text,
                "  /* For the tuned sizes only, C cannot state it: {why}. */"
            );
        }
        for statement in &rule.statements {
            let _ = writeln!(text, "  {statement}");
        }
        let _ = writeln!(text, "  if (!({})) return 0;", rule.condition);
    }
    text.push_str("  return 1;\n}\n");
}

/// Returns the sizes that a set of rules uses, in the order of the lookup's arguments.
fn members<'p>(
    plan: &'p Plan<'_>,
    rules: impl Iterator<Item = &'p SizeRule> + Clone,
) -> impl Iterator<Item = &'p Column> {
    let used = move |column: &&Column| {
        let mut rules = rules.clone();
        rules.any(|rule| rule.members.contains(&column.member))
    };
    plan.sizes.iter().filter(used)
}

/// Formats `, long long n` and so on.
pub(super) fn parameters<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    columns
        .map(|column| format!(", {}", size_declaration(column)))
        .collect()
}

/// Writes the lookup: same device, equal flags, nearest problem.
pub(super) fn function(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let _ = write!(
        text,
        "\n{upper}FUNCTION int {lower}_same(const char *a, const char *b) {{\n\
         \x20 while (*a && *a == *b) {{ ++a; ++b; }}\n\
         \x20 return *a == *b;\n\
         }}\n"
    );
    models(plan, text);
    if plan.sizes.iter().any(|column| !column.exact) {
        let _ = write!(
            text,
            "\n/* How many times larger one is than the other; 0 when only one is positive. */\n\
             {upper}FUNCTION double {lower}_ratio(double a, double b) {{\n\
             \x20 return a <= 0.0 || b <= 0.0 ? (a == b ? 1.0 : 0.0) : (a > b ? a / b : b / a);\n\
             }}\n"
        );
    }
    let parameters = parameters(plan.sizes.iter());
    nearest(plan, &parameters, text);
    entrances(plan, &parameters, text);
}

/// Writes the search for the entry with the nearest problem.
fn nearest(plan: &Plan<'_>, parameters: &str, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let ruled = plan.size_rules.iter().any(|rules| !rules.is_empty());
    let among = if ruled {
        "\n * Only entries whose rules hold for the sizes asked. "
    } else {
        " "
    };
    let each = plan.unused("i");
    let _ = write!(
        text,
        "\n/* The entry whose problem is nearest, of those of the device by its name (`how` 1), by its model\n \
         * (2) or by its compute capability (3): the smallest sum of |log2 ratio| over the sizes, which is\n \
         * the smallest product of ratios.{among}The first of equals; null when there is none. */\n\
         {upper}FUNCTION const {lower}_entry *{lower}_nearest(int how, const char *device, int cc{parameters}) {{\n\
         \x20 const {lower}_entry *best = 0;\n\
         \x20 double nearest = 0.0;\n\
         \x20 for (int {each} = 0; {each} < {upper}COUNT; ++{each}) {{\n\
         \x20   const {lower}_entry *entry = &{lower}_table[{each}];\n\
         \x20   const int meant = how == 1 ? {lower}_same(device, entry->device)\n\
         \x20     : how == 2 ? {lower}_is(device, entry->model) : cc > 0 && cc == entry->cc;\n\
         \x20   double distance = meant ? 1.0 : 0.0;\n"
    );
    for column in &plan.sizes {
        let member = &column.member;
        let _ = match (column.exact, size_type(column)) {
            (true, "const char *") => writeln!(
                text,
                "    if (!{lower}_same({member}, entry->{member})) distance = 0.0;"
            ),
            (true, _) => writeln!(text, "    if ({member} != entry->{member}) distance = 0.0;"),
            (false, _) => writeln!(
                text,
                "    distance *= {lower}_ratio((double){member}, (double)entry->{member});"
            ),
        };
    }
    let obeys = if ruled {
        let used = members(plan, plan.size_rules.iter().flatten());
        let arguments: String = used.map(|column| format!(", {}", column.member)).collect();
        format!(" &&\n        {lower}_obeys({each}{arguments})")
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "    if (distance > 0.0 && (!best || distance < nearest){obeys}) {{"
    );
    text.push_str(
        "      best = entry;\n\
         \x20     nearest = distance;\n\
         \x20   }\n\
         \x20 }\n\
         \x20 return best;\n\
         }\n",
    );
}

/// Writes the two public functions.
fn entrances(plan: &Plan<'_>, parameters: &str, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let sizes: String = plan
        .sizes
        .iter()
        .map(|c| format!(", {}", c.member))
        .collect();
    let _ = write!(
        text,
        "\n/* The device's entry for these sizes; the device as CUDA reports it, or as the tables of\n \
         * the virtual GPU name it. Null when there is none. */\n\
         {upper}FUNCTION const {lower}_entry *{lower}_lookup(const char *device{parameters}) {{\n\
         \x20 const {lower}_entry *best = {lower}_nearest(1, device, 0{sizes});\n\
         \x20 return best ? best : {lower}_nearest(2, device, 0{sizes});\n\
         }}\n\
         \n/* The same, and for a device that has no entry that of one with the same compute capability, such\n \
         * as 89. `*how` tells which it is: 1 the device's name, 2 its model, 3 the compute capability, 0 none. */\n\
         {upper}FUNCTION const {lower}_entry *{lower}_find(const char *device, int cc{parameters}, int *how) {{\n\
         \x20 const {lower}_entry *best = 0;\n\
         \x20 *how = 0;\n\
         \x20 while (!best && *how < 3) {{\n\
         \x20   *how += 1;\n\
         \x20   best = {lower}_nearest(*how, device, cc{sizes});\n\
         \x20 }}\n\
         \x20 if (!best) *how = 0;\n\
         \x20 return best;\n\
         }}\n"
    );
}

/// Writes the test whether a device's name denotes a model.
fn models(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let makers: String = devices::MAKERS
        .iter()
        .map(|word| format!("    if (!n) n = {lower}_word(name, \"{word}\");\n"))
        .collect();
    let variants: String = devices::VARIANTS
        .iter()
        .map(|word| {
            format!(
                "  if ({lower}_word(name, \"{word}\") && \
                 !{lower}_letter(name[{lower}_word(name, \"{word}\")])) return 0;\n"
            )
        })
        .collect();
    let _ = write!(
        text,
        "\n{upper}FUNCTION int {lower}_letter(char c) {{\n\
         \x20 return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');\n\
         }}\n\
         \n/* The length of a word in lower case, where the text begins with it in any case; else 0. */\n\
         {upper}FUNCTION int {lower}_word(const char *a, const char *word) {{\n\
         \x20 int n = 0;\n\
         \x20 while (word[n] && word[n] == (a[n] >= 'A' && a[n] <= 'Z' ? a[n] + 32 : a[n])) ++n;\n\
         \x20 return word[n] ? 0 : n;\n\
         }}\n\
         \n/* Whether a device's name is of that model: `NVIDIA RTX A6000` is an a6000. */\n\
         {upper}FUNCTION int {lower}_is(const char *name, const char *model) {{\n\
         \x20 int known = 0, n = 1;\n\
         \x20 if (!*model) return 0;\n\
         \x20 while (n) {{\n\
         \x20   while (*name && !{lower}_letter(*name)) ++name;\n\
         \x20   n = 0;\n{makers}\
         \x20   known = known || n;\n\
         \x20   name += n;\n\
         \x20 }}\n\
         \x20 while (*model) {{\n\
         \x20   while (*name && !{lower}_letter(*name)) ++name;\n\
         \x20   if (*model != (*name >= 'A' && *name <= 'Z' ? *name + 32 : *name)) return 0;\n\
         \x20   ++name;\n\
         \x20   ++model;\n\
         \x20 }}\n\
         \x20 if ({lower}_letter(*name)) return 0;\n\
         \x20 while (*name && !{lower}_letter(*name)) ++name;\n{variants}\
         \x20 return known;\n\
         }}\n"
    );
}
