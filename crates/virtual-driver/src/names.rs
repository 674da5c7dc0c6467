//! Names of kernels.

/// Maximum length of a name in a message, characters.
const MESSAGE_CHARACTERS: usize = 100;

const OPENING: [char; 3] = ['<', '(', '{'];
const CLOSING: [char; 3] = ['>', ')', '}'];

/// Parses a C++ name. The parser would interpret other names as those of types: `f` is `float`.
fn mangled(symbol: &str) -> Option<cpp_demangle::Symbol<&str>> {
    let is_mangled = symbol.starts_with("_Z");
    is_mangled.then(|| cpp_demangle::Symbol::new(symbol).ok())?
}

/// Returns the name of a kernel as in the source, without its parameters.
pub(crate) fn plain_name(symbol: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    let parsed = mangled(symbol);
    let name = parsed.and_then(|parsed| parsed.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// Returns the name of a kernel with its template arguments and parameters.
pub(crate) fn full_name(symbol: &str) -> String {
    let parsed = mangled(symbol);
    let name = parsed.and_then(|parsed| parsed.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// Shortens a long name for messages: omits its innermost template arguments and parameters, at as many
/// levels as its length requires.
#[must_use]
pub fn shortened(name: &str) -> String {
    let is_short = |text: &String| text.chars().count() <= MESSAGE_CHARACTERS;
    let mut shown = name.to_owned();
    let deepest = levels(name).map(|(_, level)| level).max().unwrap_or(0);
    for depth in (1..=deepest).rev() {
        if is_short(&shown) {
            break;
        }
        shown = without_level(name, depth);
    }
    if is_short(&shown) {
        return shown;
    }
    let start: String = shown.chars().take(MESSAGE_CHARACTERS).collect();
    format!("{start}…")
}

/// Returns the characters of a name, each with the number of brackets around it; a bracket counts itself.
fn levels(name: &str) -> impl Iterator<Item = (char, usize)> + '_ {
    let mut inside: usize = 0;
    name.chars().map(move |c| {
        inside += usize::from(OPENING.contains(&c));
        let level = inside;
        inside = inside.saturating_sub(usize::from(CLOSING.contains(&c)));
        (c, level)
    })
}

/// Returns a name with `…` for the contents of the brackets of a level.
fn without_level(name: &str, depth: usize) -> String {
    let mut text = String::new();
    for (c, level) in levels(name) {
        let is_bracket = OPENING.contains(&c) || CLOSING.contains(&c);
        if level < depth || level == depth && is_bracket {
            text.push(c);
        } else if !text.ends_with('…') {
            text.push('…');
        }
    }
    text
}

#[cfg(test)]
mod tests;
