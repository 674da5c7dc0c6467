//! The table and the lookup of the header.

use super::header::{Column, Plan, c_value, value_of};
use super::names::string;
use std::fmt::Write as _;

/// Types and the table.
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
        let (declaration, name) = (declaration(column), &column.name);
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
        "  double p50_us;\n  {lower}_config config;\n}} {lower}_entry;\n\n\
         {upper}CONST {lower}_entry {lower}_table[] = {{\n"
    );
    for (index, entry) in plan.entries.iter().enumerate() {
        let mut cells = vec![string(&entry.best.device), string(&entry.best.problem)];
        for column in &plan.sizes {
            cells.push(c_value(
                value_of(&entry.sizes, &column.name),
                size_type(column),
            ));
        }
        cells.push(format!("{:?}", entry.best.time_us_p50));
        let cells = cells.join(", ");
        let _ = writeln!(text, "  {{{cells}, {{{upper}{index}}}}},");
    }
    let count = plan.entries.len();
    let _ = writeln!(text, "}};\n#define {upper}COUNT {count}");
}

fn declaration(column: &Column) -> String {
    spaced(column.c_type, &column.member)
}

fn size_declaration(column: &Column) -> String {
    spaced(size_type(column), &column.member)
}

/// A caller's sizes may be larger than any that was tuned.
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

/// The lookup: same device, flags equal, nearest problem.
pub(super) fn function(plan: &Plan<'_>, text: &mut String) {
    let (lower, upper) = (&plan.lower, &plan.upper);
    let _ = write!(
        text,
        "\n{upper}FUNCTION int {lower}_same(const char *a, const char *b) {{\n\
         \x20 while (*a && *a == *b) {{ ++a; ++b; }}\n\
         \x20 return *a == *b;\n\
         }}\n"
    );
    if plan.sizes.iter().any(|column| !column.exact) {
        let _ = write!(
            text,
            "\n/* How many times larger one is than the other; 0 when only one is positive. */\n\
             {upper}FUNCTION double {lower}_ratio(double a, double b) {{\n\
             \x20 return a <= 0.0 || b <= 0.0 ? (a == b ? 1.0 : 0.0) : (a > b ? a / b : b / a);\n\
             }}\n"
        );
    }
    let parameters: String = plan
        .sizes
        .iter()
        .map(|column| format!(", {}", size_declaration(column)))
        .collect();
    let _ = write!(
        text,
        "\n/* The device's entry whose problem is nearest: the smallest sum of |log2 ratio| over the\n \
         * sizes, which is the smallest product of ratios. The first of equals; null when there is\n \
         * none. */\n\
         {upper}FUNCTION const {lower}_entry *{lower}_lookup(const char *device{parameters}) {{\n\
         \x20 const {lower}_entry *best = 0;\n\
         \x20 double nearest = 0.0;\n\
         \x20 for (int i = 0; i < {upper}COUNT; ++i) {{\n\
         \x20   const {lower}_entry *entry = &{lower}_table[i];\n\
         \x20   double distance = {lower}_same(device, entry->device) ? 1.0 : 0.0;\n"
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
    text.push_str(
        "    if (distance > 0.0 && (!best || distance < nearest)) {\n\
         \x20     best = entry;\n\
         \x20     nearest = distance;\n\
         \x20   }\n\
         \x20 }\n\
         \x20 return best;\n\
         }\n",
    );
}
