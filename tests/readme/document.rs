//! What README.md holds: blocks of commands and of files.

use std::path::Path;

/// A command and what README shows below it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) shown: Vec<String>,
}

/// A block of README: its language and its lines, the first of them at `line`.
pub(super) struct Block<'r> {
    pub(super) language: &'r str,
    pub(super) line: usize,
    pub(super) lines: Vec<&'r str>,
}

pub(super) fn blocks(readme: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(readme.lines()) {
        match (line.strip_prefix("```"), inside) {
            (Some(language), false) => {
                blocks.push(Block {
                    language,
                    line: number + 1,
                    lines: Vec::new(),
                });
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => blocks.last_mut().unwrap().lines.push(line),
            (None, false) => {}
        }
    }
    assert!(!inside, "a block of README.md is never closed");
    blocks
}

/// The lines of `sh` blocks, and those of `text` blocks that begin with `$ ` with what follows them.
pub(super) fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(readme) {
        let mut known = false;
        // What `make run` prints stands in a block of its own.
        let printed = block
            .lines
            .first()
            .is_some_and(|line| line.starts_with("== "));
        if printed && block.language == "text" {
            let run = steps
                .iter_mut()
                .rev()
                .find(|step| step.command.starts_with("make run"));
            let lines = block.lines.iter().filter(|line| !line.is_empty());
            run.unwrap()
                .shown
                .extend(lines.map(|line| (*line).to_owned()));
            continue;
        }
        for (number, line) in (block.line..).zip(&block.lines) {
            let command = match block.language {
                "sh" => Some(*line).filter(|line| !line.trim().is_empty()),
                "text" => line.strip_prefix("$ "),
                _ => None,
            };
            if let Some(command) = command {
                known = true;
                steps.push(Step {
                    line: number,
                    command: command.to_owned(),
                    shown: Vec::new(),
                });
            } else if block.language == "text" && known && !line.is_empty() {
                steps.last_mut().unwrap().shown.push((*line).to_owned());
            }
        }
    }
    steps
}

/// Files that README shows: blocks whose first line is a comment with a name.
pub(crate) fn write_files(readme: &str, folder: &Path) {
    for block in blocks(readme) {
        let first = block.lines.first().copied().unwrap_or_default();
        let name = first.strip_prefix("// ").or(first.strip_prefix("# "));
        let name = name.filter(|_| matches!(block.language, "cpp" | "yaml"));
        if let Some(name) = name {
            std::fs::write(folder.join(name), block.lines.join("\n") + "\n").unwrap();
        }
    }
}
