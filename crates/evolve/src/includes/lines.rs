//! Lines of a source as the preprocessor sees them.

/// Returns the lines with their numbers, with spliced lines joined, digraphs replaced and block comments
/// that precede a directive removed: the compiler sees directives after these steps.
pub(super) fn logical_lines(source: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (index, line) in source.lines().enumerate() {
        let (number, mut text) = begun.take().unwrap_or((index + 1, String::new()));
        // Compilers also splice a line if blanks follow its backslash.
        let line = line.trim_end_matches(['\r', ' ', '\t']);
        // `??/` is the trigraph of the backslash.
        match line.strip_suffix('\\').or(line.strip_suffix("??/")) {
            Some(part) => {
                text.push_str(part);
                begun = Some((number, text));
            }
            None => {
                text.push_str(line);
                lines.push((number, cleaned(&text)));
            }
        }
    }
    lines.extend(begun.map(|(number, text)| (number, cleaned(&text))));
    lines
}

fn cleaned(line: &str) -> String {
    let mut text = line.replace("%:", "#").replace("??=", "#");
    while let Some(open) = text.find("/*") {
        let close = text.get(open + 2..).and_then(|rest| rest.find("*/"));
        match close {
            Some(close) => text.replace_range(open..open + 2 + close + 2, " "),
            None => break,
        }
    }
    // The end of a comment that began on an earlier line may be followed by a directive.
    match text.rsplit_once("*/") {
        Some((_, rest)) if rest.trim_start().starts_with('#') => rest.to_owned(),
        _ => text,
    }
}

/// Removes all comments: a block comment becomes a space. If it spans lines, empty lines follow its last
/// one. Spliced lines are joined.
pub(super) fn without_comments(source: &str) -> String {
    let spliced = source.replace("\r\n", "\n").replace("??/\n", "\\\n");
    let source = spliced.replace("\\\n", "");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    let mut removed = 0;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '/' if rest.starts_with("//") => {
                rest = rest
                    .find('\n')
                    .map_or("", |at| rest.get(at..).unwrap_or_default());
                continue;
            }
            '/' if rest.starts_with("/*") => {
                let body = rest.get(2..).unwrap_or_default();
                let end = body.find("*/").map_or(body.len(), |at| at + 2);
                removed += body.get(..end).unwrap_or_default().matches('\n').count();
                rest = body.get(end..).unwrap_or_default();
                out.push(' ');
                continue;
            }
            '"' => raw_literal(&out, rest).unwrap_or_else(|| literal(rest, '"')),
            '\n' => {
                out.push_str(&"\n".repeat(std::mem::take(&mut removed)));
                1
            }
            // An apostrophe after a digit or letter separates digits.
            '\'' if !out.ends_with(|c: char| c.is_alphanumeric()) => literal(rest, '\''),
            other => other.len_utf8(),
        };
        let (text, tail) = rest.split_at(taken);
        out.push_str(text);
        rest = tail;
    }
    out
}

/// Returns the length of a literal, which ends at its line's end at the latest.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, one) in text.char_indices().skip(1) {
        match one {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if one == quote => return at + one.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a raw string literal whose prefix ends `before`.
fn raw_literal(before: &str, text: &str) -> Option<usize> {
    let begin = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
        .last()
        .map_or(before.len(), |(at, _)| at);
    let prefix = before.get(begin..)?;
    if !["R", "LR", "uR", "UR", "u8R"].contains(&prefix) {
        return None;
    }
    let (delimiter, body) = text.get(1..)?.split_once('(')?;
    let end = format!("){delimiter}\"");
    let content = body.find(&end)?;
    Some(1 + delimiter.len() + 1 + content + end.len())
}
