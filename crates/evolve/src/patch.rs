//! Unified diffs of one file, applied strictly: every context and removed line must match at the line
//! that its hunk names.

use std::ops::Range;

/// Defect of a unified diff.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// No hunk.
    #[error("the diff has no hunk; a hunk begins with `@@ -LINE,COUNT +LINE,COUNT @@`")]
    NoHunk,
    /// More than one file.
    #[error("line {0} of the diff: it is about a second file; a change has one source")]
    SecondFile(usize),
    /// A line outside of all hunks.
    #[error("line {line} of the diff: `{text}` is not a line of a unified diff")]
    Line {
        /// Line of the diff, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// The counts of a hunk's header differ from its lines.
    #[error("line {0} of the diff: the hunk has other numbers of lines than its header")]
    Counts(usize),
    /// The source differs.
    #[error("line {line} of the diff does not match line {source_line} of the source")]
    Mismatch {
        /// Line of the diff, from 1.
        line: usize,
        /// Line of the source, from 1.
        source_line: usize,
    },
}

/// Prefixes of header lines of a diff that carry no content.
const HEADERS: [&str; 3] = ["+++ ", "diff ", "index "];

/// Header of a hunk: the lines of the source that it covers, and the number of new lines.
struct Hunk {
    old: Range<usize>,
    new_count: usize,
}

/// Applies a unified diff to a source.
///
/// # Errors
/// The first defect.
pub fn apply(source: &str, diff: &str) -> Result<String, PatchError> {
    let old: Vec<&str> = source.lines().collect();
    let mut new: Vec<&str> = Vec::new();
    let (mut next, mut hunks, mut files) = (0, 0, 0);
    let mut lines = diff.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        if line.starts_with("--- ") {
            files += 1;
            if files > 1 {
                return Err(PatchError::SecondFile(index + 1));
            }
            continue;
        }
        if line.trim().is_empty() || HEADERS.iter().any(|begin| line.starts_with(begin)) {
            continue;
        }
        let Some(hunk) = header(line) else {
            return Err(wrong_line(index, line));
        };
        let out_of_order = hunk.old.start < next || hunk.old.end > old.len();
        if out_of_order {
            return Err(PatchError::Mismatch {
                line: index + 1,
                source_line: hunk.old.start + 1,
            });
        }
        hunks += 1;
        new.extend(old.get(next..hunk.old.start).unwrap_or_default());
        next = hunk.old.start;
        let mut added = 0;
        while next < hunk.old.end || added < hunk.new_count {
            let Some((index, line)) = lines.next() else {
                return Err(PatchError::Counts(index + 1));
            };
            // Editors strip the blank of an empty context line.
            let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            let matches = old.get(next) == Some(&text) && next < hunk.old.end;
            match sign {
                // `\ No newline at end of file` is about the line before it.
                "\\" => {}
                " " | "-" if !matches => {
                    return Err(PatchError::Mismatch {
                        line: index + 1,
                        source_line: next + 1,
                    });
                }
                "-" => next += 1,
                " " => {
                    new.push(text);
                    next += 1;
                    added += 1;
                }
                "+" => {
                    new.push(text);
                    added += 1;
                }
                _ => return Err(wrong_line(index, line)),
            }
        }
        if added != hunk.new_count {
            return Err(PatchError::Counts(index + 1));
        }
        lines.next_if(|(_, line)| line.starts_with('\\'));
    }
    new.extend(old.get(next..).unwrap_or_default());
    match hunks {
        0 => Err(PatchError::NoHunk),
        _ => Ok(new.join("\n") + "\n"),
    }
}

/// Returns the unified diff of two sources.
#[must_use]
pub fn between(old: &str, new: &str) -> String {
    similar::TextDiff::from_lines(old, new)
        .unified_diff()
        .header("parent", "change")
        .to_string()
}

fn wrong_line(index: usize, line: &str) -> PatchError {
    PatchError::Line {
        line: index + 1,
        text: line.chars().take(60).collect(),
    }
}

/// Parses `@@ -12,3 +12,4 @@ …`.
fn header(line: &str) -> Option<Hunk> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let numbers = |text: &str| -> Option<[usize; 2]> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some([start.parse().ok()?, count.parse().ok()?])
    };
    let ([start, count], [_, new_count]) = (numbers(old)?, numbers(new)?);
    // A hunk without old lines names the line before it.
    let begin = if count == 0 {
        start
    } else {
        start.checked_sub(1)?
    };
    Some(Hunk {
        old: begin..begin.checked_add(count)?,
        new_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";

    #[test]
    fn a_diff_of_two_texts_is_applied_to_the_first() {
        for new in [
            "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\n",
            "b\nc\nd\ne\nf\ng\nh\nj\n",
            "x\n",
        ] {
            let diff = between(OLD, new);
            assert_eq!(apply(OLD, &diff).unwrap(), new, "{diff}");
        }
    }

    #[test]
    fn a_line_that_differs_is_named() {
        let diff = "@@ -2,2 +2,2 @@\n b\n-x\n+y\n";
        let error = apply(OLD, diff).unwrap_err();
        assert_eq!(
            error,
            PatchError::Mismatch {
                line: 3,
                source_line: 3
            }
        );
        // No search for a similar position: the hunk is one line off.
        assert!(apply(OLD, "@@ -3,1 +3,1 @@\n-b\n+B\n").is_err());
    }

    #[test]
    fn other_defects_are_named() {
        let no_hunk = apply(OLD, "--- a\n+++ b\n").unwrap_err();
        assert_eq!(no_hunk, PatchError::NoHunk);
        let two = "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-a\n+A\n--- b\n";
        assert_eq!(apply(OLD, two), Err(PatchError::SecondFile(6)));
        assert!(matches!(
            apply(OLD, "@@ -1,2 +1,2 @@\n a\n"),
            Err(PatchError::Counts(_))
        ));
        assert!(matches!(
            apply(OLD, "hello"),
            Err(PatchError::Line { line: 1, .. })
        ));
        assert!(apply(OLD, "@@ -99,1 +99,1 @@\n-a\n+b\n").is_err());
        assert!(apply(OLD, "@@ -18446744073709551615,9 +1,1 @@\n-a\n+b\n").is_err());
    }
}
