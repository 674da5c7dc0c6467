//! Source text with its loops, from its syntax tree.

use cuda_source::tree::{self, Node, Tree};
use std::ops::Range;

/// Source with its syntax tree.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    tree: Tree,
}

/// Loop `for (int NAME = FROM; NAME < TO; NAME += STEP) BODY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loop<'a> {
    /// The whole statement, with the pragma before it.
    pub(super) whole: Range<usize>,
    /// The statement from `for` on.
    pub(super) statement: Range<usize>,
    pub(super) name: &'a str,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) step: &'a str,
    pub(super) body: &'a str,
    /// Line of `for`, from 1.
    pub(super) line: usize,
    /// A `#pragma unroll` precedes it.
    pub(super) unrolled: bool,
    /// It has no loop inside.
    pub(super) innermost: bool,
}

impl<'a> Source<'a> {
    /// Parses a source; text that is not C++ has fewer loops.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        // The grammar does not allow a pragma between a loop's header and its body.
        let tree = tree::parse(text, &pragmas(text))?;
        Some(Self { text, tree })
    }

    /// Returns the counted loops, in the order of the text.
    pub(super) fn loops(&self) -> Vec<Loop<'a>> {
        let mut found = Vec::new();
        let mut open = vec![self.tree.root_node()];
        while let Some(node) = open.pop() {
            if node.kind() == "for_statement" {
                found.extend(self.counted(node));
            }
            let children = (0..node.child_count()).rev();
            open.extend(children.filter_map(|index| node.child(index as _)));
        }
        found
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    fn counted(&self, node: Node<'_>) -> Option<Loop<'a>> {
        let field = |name: &str| Some(self.slice(node.child_by_field_name(name)?.byte_range()));
        let body = field("body")?;
        let (name, from) = assignment(field("initializer")?)?;
        let to = field("condition")?
            .strip_prefix(name)?
            .trim_start()
            .strip_prefix('<')?;
        let update = field("update")?;
        let step = match update
            .strip_prefix("++")
            .or_else(|| update.strip_suffix("++"))
        {
            Some(counter) if counter.trim() == name => "1",
            _ => update
                .strip_prefix(name)?
                .trim_start()
                .strip_prefix("+=")?
                .trim(),
        };
        let start = node.start_byte();
        let before = self.slice(0..start).trim_end();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let unrolled = self
            .slice(line_start..before.len())
            .trim_start()
            .starts_with("#pragma unroll");
        Some(Loop {
            whole: if unrolled { line_start } else { start }..node.end_byte(),
            statement: node.byte_range(),
            name,
            from,
            to: to.trim(),
            step,
            body,
            line: node.start_position().row + 1,
            unrolled,
            innermost: !body.contains("for ("),
        })
        // Of `<=` only the first character is stripped above.
        .filter(|one| !one.to.starts_with('='))
    }
}

/// Returns the places of pragmas.
fn pragmas(text: &str) -> Vec<Range<usize>> {
    let mut end = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let start = end;
        end += line.len();
        (line, start..end)
    });
    let found = lines.filter(|(line, _)| line.trim_start().starts_with("#pragma"));
    found.map(|(_, place)| place).collect()
}

/// Splits `int name = value` or `int name = value;`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let text = text.trim().trim_end_matches(';');
    let (left, value) = text.split_once('=')?;
    let name = left.trim().rsplit(' ').next()?;
    (left.trim().len() > name.len()).then_some((name, value.trim()))
}

/// Replaces whole words.
pub(super) fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = b' ';
    while let Some(at) = rest.find(word) {
        let (head, tail) = rest.split_at(at);
        let after = tail.get(word.len()..).unwrap_or_default();
        let left = head.bytes().last().unwrap_or(before);
        let right = after.bytes().next().unwrap_or(b' ');
        out.push_str(head);
        out.push_str(if is_word(left) || is_word(right) {
            word
        } else {
            by
        });
        before = word.bytes().last().unwrap_or(b' ');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Reports whether a text contains this word.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    replace_word(text, word, "\0").contains('\0')
}

/// Returns the source with a range replaced.
pub(super) fn spliced(text: &str, range: Range<usize>, by: &str) -> String {
    let head = text.get(..range.start).unwrap_or_default();
    let tail = text.get(range.end..).unwrap_or_default();
    [head, by, tail].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_found_with_their_parts() {
        let text = "__global__ void k(float* y) {\n#pragma unroll\n  for (int i = 0; i < N; ++i)\n    for (int j = threadIdx.x; j < M; j += STEP) y[j] = i;\n  for (;;) {}\n}\n";
        let source = Source::parse(text).unwrap();
        let loops = source.loops();
        let parts: Vec<_> = loops
            .iter()
            .map(|one| (one.name, one.from, one.to, one.step, one.line))
            .collect();
        assert_eq!(
            parts,
            [
                ("i", "0", "N", "1", 3),
                ("j", "threadIdx.x", "M", "STEP", 4)
            ]
        );
        assert!(loops[0].unrolled && !loops[0].innermost);
        assert!(!loops[1].unrolled && loops[1].innermost);
        assert!(text[loops[0].whole.clone()].starts_with("#pragma unroll"));
        assert_eq!(loops[1].body, "y[j] = i;");
    }

    #[test]
    fn words_are_replaced_whole() {
        assert_eq!(replace_word("i + i2 + _i + i", "i", "k"), "k + i2 + _i + k");
        assert!(has_word("a[row]", "row") && !has_word("row0", "row"));
    }
}
