//! The difference of two texts, as `diff -u` writes it.

/// The unified difference; empty for equal texts.
#[must_use]
pub(super) fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    similar::TextDiff::from_lines(old, new)
        .unified_diff()
        .header(old_name, new_name)
        .missing_newline_hint(false)
        .to_string()
}

#[cfg(test)]
mod tests;
