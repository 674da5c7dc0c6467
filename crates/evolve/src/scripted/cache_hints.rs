//! Cache hints on accesses: streaming stores and loads, read-only loads.

use super::{Subject, Variant};

/// Replacements with their labels.
const HINTS: [(&str, &str, &str); 4] = [
    (
        "\"ld.global.f32 ",
        "\"ld.global.cs.f32 ",
        "streaming plain loads",
    ),
    (
        "__ldg(",
        "__ldcs(",
        "streaming loads instead of read-only ones",
    ),
    (
        "\"ld.global.nc\"",
        "\"ld.global.nc.L2::128B\"",
        "read-only loads that fetch 128 bytes into L2",
    ),
    ("\"st.global\"", "\"st.global.wt\"", "write-through stores"),
];

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let replaced = HINTS.iter().filter(|(from, _, _)| text.contains(from));
    let replaced = replaced.map(|(from, to, label)| {
        Variant::new(format!("cache_hints: {label}"), text.replace(from, to))
    });
    replaced.chain(streaming_store(text)).collect()
}

/// Makes the plain store of an output `y[…] = v;` a streaming one.
fn streaming_store(text: &str) -> Option<Variant> {
    let at = text.rfind("y[")?;
    let statement = text.get(at..)?;
    let (target, value) = statement.split_once(" = ")?;
    let (value, _) = value.split_once(';')?;
    if target.contains('\n') || target.contains(';') {
        return None;
    }
    let store = format!("__stcs(&{target}, {value});");
    let old = format!("{target} = {value};");
    let label = "cache_hints: streaming stores of the output".to_owned();
    Some(Variant::new(label, text.replacen(&old, &store, 1)))
}
