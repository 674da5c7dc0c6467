//! SEARCH/REPLACE blocks, applied strictly.
//!
//! ```text
//! <<<<<<< SEARCH
//! text that occurs exactly once
//! =======
//! its replacement
//! >>>>>>> REPLACE
//! ```

const BEGIN: &str = "<<<<<<< SEARCH";
const MIDDLE: &str = "=======";
const END: &str = ">>>>>>> REPLACE";

/// Maximum number of blocks of an answer.
const MAX_BLOCKS: usize = 200;

/// Defect of SEARCH/REPLACE blocks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No block.
    #[error("there is no block; a block begins with the line `{BEGIN}`")]
    NoBlock,
    /// Too many blocks.
    #[error("there are more than {MAX_BLOCKS} blocks")]
    TooMany,
    /// A marker is missing or misplaced.
    #[error("line {line} of the blocks: expected `{expected}`")]
    Marker {
        /// Line, from 1.
        line: usize,
        /// Expected marker.
        expected: &'static str,
    },
    /// The SEARCH text is empty.
    #[error("block {block}: SEARCH is empty")]
    Empty {
        /// Block, from 1.
        block: usize,
    },
    /// The number of occurrences of the SEARCH text is not one.
    #[error(
        "block {block}: SEARCH occurs {count} times in the source, and must occur once: `{begin}`"
    )]
    Occurrences {
        /// Block, from 1.
        block: usize,
        /// Number of occurrences.
        count: usize,
        /// First line of the text.
        begin: String,
    },
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    search: String,
    replace: String,
}

/// Applies all blocks to a source, in order.
///
/// # Errors
/// The first defect; then no block is applied.
pub fn apply(source: &str, blocks: &str) -> Result<String, EditError> {
    let blocks = parse(blocks)?;
    let mut text = source.to_owned();
    for (index, block) in blocks.iter().enumerate() {
        let number = index + 1;
        if block.search.trim().is_empty() {
            return Err(EditError::Empty { block: number });
        }
        let count = text.matches(&block.search).count();
        if count != 1 {
            let begin = block.search.lines().next().unwrap_or_default();
            return Err(EditError::Occurrences {
                block: number,
                count,
                begin: begin.chars().take(80).collect(),
            });
        }
        text = text.replacen(&block.search, &block.replace, 1);
    }
    Ok(text)
}

/// Writes a block that replaces `search` by `replace`.
#[must_use]
pub fn block(search: &str, replace: &str) -> String {
    let line = |text: &str| match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    };
    format!(
        "{BEGIN}\n{}{MIDDLE}\n{}{END}\n",
        line(search),
        line(replace)
    )
}

fn parse(text: &str) -> Result<Vec<Block>, EditError> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if line.trim_end() != BEGIN {
            let expected = BEGIN;
            let line = index + 1;
            return Err(EditError::Marker { line, expected });
        }
        if blocks.len() == MAX_BLOCKS {
            return Err(EditError::TooMany);
        }
        let last = text.lines().count();
        let mut take = |end: &'static str| -> Result<String, EditError> {
            let mut part = String::new();
            for (index, line) in lines.by_ref() {
                if line.trim_end() == end {
                    return Ok(part);
                }
                if [BEGIN, MIDDLE, END].contains(&line.trim_end()) {
                    let line = index + 1;
                    return Err(EditError::Marker {
                        line,
                        expected: end,
                    });
                }
                part.push_str(line);
                part.push('\n');
            }
            Err(EditError::Marker {
                line: last,
                expected: end,
            })
        };
        blocks.push(Block {
            search: take(MIDDLE)?,
            replace: take(END)?,
        });
    }
    if blocks.is_empty() {
        return Err(EditError::NoBlock);
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "one\ntwo\nthree\ntwo again\n";

    #[test]
    fn a_block_replaces_the_text_that_occurs_once() {
        let blocks = format!("{}\n{}", block("one", "1\n1.5"), block("three\n", ""));
        assert_eq!(apply(SOURCE, &blocks).unwrap(), "1\n1.5\ntwo\ntwo again\n");
    }

    #[test]
    fn a_text_that_occurs_never_or_twice_is_refused() {
        let twice = apply("a\nb\na\n", &block("a", "c")).unwrap_err();
        assert!(twice.to_string().contains("occurs 2 times"), "{twice}");
        // Whitespace is significant.
        let never = apply(SOURCE, &block(" one", "c")).unwrap_err();
        assert!(never.to_string().contains("occurs 0 times"), "{never}");
    }

    #[test]
    fn nothing_is_applied_if_a_later_block_is_wrong() {
        let blocks = format!("{}{}", block("one", "1"), block("four", "4"));
        assert!(apply(SOURCE, &blocks).is_err());
    }

    #[test]
    fn missing_markers_are_named_with_their_line() {
        for (text, line) in [
            ("hello", 1),
            ("<<<<<<< SEARCH\none\n>>>>>>> REPLACE\n", 3),
            ("<<<<<<< SEARCH\none\n=======\nx\n", 4),
            ("<<<<<<< SEARCH\none\n<<<<<<< SEARCH\n", 3),
        ] {
            let error = apply(SOURCE, text).unwrap_err();
            let named = format!("line {line} of the blocks");
            assert!(error.to_string().contains(&named), "{text}: {error}");
        }
        assert_eq!(apply(SOURCE, " \n"), Err(EditError::NoBlock));
        let empty = apply(SOURCE, "<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n");
        assert_eq!(empty, Err(EditError::Empty { block: 1 }));
    }
}
