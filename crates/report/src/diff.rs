//! The difference of two texts, as `diff -u` writes it.

use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Above this product of lengths of the middle the texts are replaced as a whole: the quadratic
/// table would be larger than what it explains.
const TABLE_MAX: usize = 16_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Delete,
    Insert,
}

/// The unified difference; empty for equal texts.
#[must_use]
pub(super) fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let mut text = format!("--- {old_name}\n+++ {new_name}\n");
    for hunk in hunks(&edits) {
        write_hunk(&mut text, &edits, hunk, &old, &new);
    }
    text
}

/// The edits that lead from one to the other: a longest common subsequence of the middle.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut edits = vec![Edit::Keep; head];
    edits.extend(middle(a, b));
    edits.extend(vec![Edit::Keep; tail]);
    edits
}

fn middle(a: &[&str], b: &[&str]) -> Vec<Edit> {
    if a.len().saturating_mul(b.len()) > TABLE_MAX {
        let mut edits = vec![Edit::Delete; a.len()];
        edits.extend(vec![Edit::Insert; b.len()]);
        return edits;
    }
    let width = b.len() + 1;
    // longest[i][j]: common lines of a[i..] and b[j..].
    let mut longest = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::with_capacity(a.len() + b.len());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            edits.push(Edit::Keep);
            (i, j) = (i + 1, j + 1);
        } else if i < a.len()
            && (j == b.len() || longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            edits.push(Edit::Delete);
            i += 1;
        } else {
            edits.push(Edit::Insert);
            j += 1;
        }
    }
    edits
}

/// Ranges of edits that are shown together.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        if *edit == Edit::Keep {
            continue;
        }
        let (from, to) = (
            at.saturating_sub(CONTEXT),
            (at + CONTEXT + 1).min(edits.len()),
        );
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

fn write_hunk(
    text: &mut String,
    edits: &[Edit],
    hunk: std::ops::Range<usize>,
    old: &[&str],
    new: &[&str],
) {
    let count =
        |edits: &[Edit], skipped: Edit| edits.iter().filter(|edit| **edit != skipped).count();
    let (before, inside) = (&edits[..hunk.start], &edits[hunk]);
    let (mut i, mut j) = (count(before, Edit::Insert), count(before, Edit::Delete));
    let (olds, news) = (count(inside, Edit::Insert), count(inside, Edit::Delete));
    let _ = writeln!(text, "@@ -{},{olds} +{},{news} @@", i + 1, j + 1);
    for edit in inside {
        let (sign, line) = match edit {
            Edit::Keep => (' ', old[i]),
            Edit::Delete => ('-', old[i]),
            Edit::Insert => ('+', new[j]),
        };
        i += usize::from(*edit != Edit::Insert);
        j += usize::from(*edit != Edit::Delete);
        let _ = writeln!(text, "{sign}{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
        let expected = "--- x\n+++ y\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n";
        assert_eq!(unified("x", "y", old, new), expected);
        assert_eq!(unified("x", "y", old, old), "");
    }

    proptest! {
        #[test]
        fn the_edits_lead_from_one_text_to_the_other(
            old in proptest::collection::vec("[ab]", 0..12),
            new in proptest::collection::vec("[ab]", 0..12),
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let (mut i, mut rebuilt) = (0, Vec::new());
            let mut inserted = new.iter();
            let mut j = 0;
            for edit in edits(&old, &new) {
                match edit {
                    Edit::Keep => { rebuilt.push(old[i]); i += 1; j += 1; inserted.next(); }
                    Edit::Delete => i += 1,
                    Edit::Insert => { rebuilt.push(new[j]); j += 1; inserted.next(); }
                }
            }
            prop_assert_eq!(i, old.len());
            prop_assert_eq!(rebuilt, new);
        }
    }
}
