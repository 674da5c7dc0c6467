//! Unroll and interleave: a copy to shared memory issues the loads of several passes before their stores.
//!
//! The form is a loop whose innermost body is `const T NAME = VALUE;` declarations and one assignment to
//! shared memory. The outer loop of a nest is unrolled, so that the passes differ in their rows.

use super::code::{Loop, has_word, replace_word, spliced};
use super::{Subject, Variant};

pub(super) const FACTORS: [u32; 3] = [2, 4, 8];

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let loops = subject.code.loops();
    let mut all = Vec::new();
    for outer in loops.iter().filter(|one| one.from.contains("threadIdx")) {
        let inner = loops.iter().find(|one| {
            one.innermost
                && one.statement.end <= outer.statement.end
                && one.statement.start > outer.statement.start
        });
        // A copy loop inside another one is batched with the outer one.
        let nested = loops.iter().any(|one| {
            one.from.contains("threadIdx")
                && one.statement.start < outer.statement.start
                && one.statement.end >= outer.statement.end
        });
        if nested
            || !(outer.innermost || inner.is_some_and(|inner| outer.body.contains(inner.body)))
        {
            continue;
        }
        let Some(copy) = Copy::read(inner.map_or(outer.body, |inner| inner.body)) else {
            continue;
        };
        for factor in FACTORS {
            let replaced = batched(text, outer, inner, &copy, factor);
            let label = format!(
                "batch_loads: {factor} passes of the copy in line {}",
                outer.line
            );
            all.push(Variant::new(
                label,
                spliced(text, outer.whole.clone(), &replaced),
            ));
        }
    }
    all
}

/// Declarations and the assignment of a copy.
struct Copy<'a> {
    declarations: Vec<&'a str>,
    target: &'a str,
    value: &'a str,
}

impl<'a> Copy<'a> {
    fn read(body: &'a str) -> Option<Self> {
        let inner = body.trim();
        let inner = match inner.strip_prefix('{') {
            Some(inner) => inner.strip_suffix('}')?,
            None => inner,
        };
        let mut statements: Vec<&str> = inner.split(';').map(str::trim).collect();
        if statements.pop() != Some("") {
            return None;
        }
        let (target, value) = statements.pop()?.split_once(" = ")?;
        let is_copy = target.contains("shared") && target.ends_with(']') && value.contains("load(");
        let declares = statements
            .iter()
            .all(|one| one.starts_with("const ") && one.contains(" = "));
        (is_copy && declares).then_some(Self {
            declarations: statements,
            target,
            value,
        })
    }
}

fn batched(
    text: &str,
    outer: &Loop<'_>,
    inner: Option<&Loop<'_>>,
    copy: &Copy<'_>,
    factor: u32,
) -> String {
    let (name, from, to, step) = (outer.name, outer.from, outer.to, outer.step);
    let place = format!("({name} + pass * ({step}))");
    let moved = |text: &str| replace_word(text, name, &place);
    let guard = format!("{place} < {to}");
    let mut declared = String::new();
    for one in &copy.declarations {
        declared.push_str(&format!("                    {};\n", moved(one)));
    }
    // Only white space and pragmas separate the two headers of a nest.
    let header = inner.map_or_else(String::new, |inner| {
        let head = inner.body.as_ptr() as usize - text.as_ptr() as usize;
        text.get(inner.statement.start..head)
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    });
    let header = match has_word(&header, name) {
        true => moved(&header),
        false => header,
    };
    format!(
        "for (int {name} = {from}; {name} < {to}; {name} += {factor} * ({step}))\n            {header} {{\n                \
         float held[{factor}];\n#pragma unroll\n                for (int pass = 0; pass < {factor}; ++pass)\n                    \
         if ({guard}) {{\n{declared}                    held[pass] = {value};\n                    }}\n#pragma unroll\n                \
         for (int pass = 0; pass < {factor}; ++pass)\n                    if ({guard}) {target} = held[pass];\n            }}",
        value = moved(copy.value),
        target = moved(copy.target),
    )
}
