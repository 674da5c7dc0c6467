//! `tuner new`: a kernel skeleton.

use super::{CliError, CommandResult, usage};
use crate::{atomic, exit};
use std::path::{Path, PathBuf};
use tuner_core::escape::shell as quoted;
use tuner_kernel::catalog::{Catalog, shown};

/// Create a template, a search space and a reference to start from
///
/// In the project around the working directory, or else in the working directory itself:
/// search_spaces/NAME.yaml, templates/NAME/kernel.cu and templates/NAME/reference.cu. The kernel
/// computes out = alpha x + y; change it step by step, and `tuner check NAME` after each step.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner new saxpy && tuner check saxpy
  tuner new saxpy -o ~/kernels

Exit codes: 0 done, 2 the name is no C identifier, or a file is there already.")]
pub(crate) struct Args {
    /// Name of the kernel and of its function
    name: String,

    /// Folder of search_spaces/ and templates/ [default: the enclosing project, else here]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

const SPACE: &str = include_str!("../../search_spaces/_skeleton.yaml");
const TEMPLATE: &str = include_str!("../../templates/_skeleton/kernel.cu");
const REFERENCE: &str = include_str!("../../templates/_skeleton/reference.cu");

/// Runs the command.
///
/// # Errors
/// A name that is not a C identifier, existing files, and folders that cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    let name = &args.name;
    if !is_identifier(name) {
        refuse!(
            "`{name}` cannot be the name of a kernel's function; use letters, digits and `_`, \
             beginning with a letter, such as `{}`",
            repaired(name)
        );
    }
    let here = std::env::current_dir()?;
    let project = Catalog::folder(&here).and_then(|spaces| spaces.parent().map(Path::to_owned));
    let root = args.output.clone().or(project).unwrap_or(here);
    let files = files(&root, name);
    // Before the first write: a refusal in between would leave a part of the kernel.
    if let Some((there, _)) = files.iter().find(|(path, _)| path.exists()) {
        refuse!(
            "{} is there already; choose another name, or move it away",
            shown(there)
        );
    }
    for (path, text) in &files {
        write(path, text)?;
    }
    // Editors use it for completion in the search space.
    let schema = root.join("search_spaces/schema.json");
    if !schema.exists() {
        let text = serde_json::to_string_pretty(&tuner_space::json_schema());
        write(&schema, &format!("{}\n", text?))?;
    }
    let named = match &args.output {
        Some(_) => quoted(&shown(&files[0].0)),
        None => name.clone(),
    };
    say!("next: tuner check {named}");
    Ok(exit::DONE)
}

/// Returns the kernel's files, the search space first.
fn files(root: &Path, name: &str) -> [(PathBuf, String); 3] {
    let templates = root.join("templates").join(name);
    let own = |text: &str| {
        text.replace("templates/_skeleton", &format!("templates/{name}"))
            .replace("skeleton", name)
    };
    let without = |text: &str, line: &str| {
        let kept = text.lines().filter(|other| !other.starts_with(line));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    let template = TEMPLATE.replace(" Copy this file, then change it.", "");
    [
        (
            root.join("search_spaces").join(format!("{name}.yaml")),
            own(&without(SPACE, "# Copy this to")),
        ),
        (templates.join("kernel.cu"), own(&template)),
        (templates.join("reference.cu"), own(REFERENCE)),
    ]
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| atomic::write(path, text.as_bytes()))
        .map_err(|error| usage(format!("{}: cannot be written: {error}", shown(path))))?;
    say!("wrote {}", shown(path));
    Ok(())
}

/// Reports whether a name is a valid function name in C. Names that begin with `_` are reserved.
fn is_identifier(name: &str) -> bool {
    const WORDS: [&str; 20] = [
        "auto", "bool", "break", "case", "char", "const", "double", "else", "float", "for", "if",
        "int", "kernel", "long", "new", "return", "short", "static", "void", "while",
    ];
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !WORDS.contains(&name)
        && name.len() <= MAX_NAME
}

/// Maximum length of a name that file systems and compilers accept.
const MAX_NAME: usize = 100;

/// Returns the nearest valid name.
fn repaired(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    // Leaves space for the letter or the ending that is added below.
    let text: String = name.chars().map(plain).take(MAX_NAME - 2).collect();
    let text = text.trim_start_matches('_');
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        if is_identifier(text) {
            text.to_owned()
        } else {
            format!("{text}_1")
        }
    } else {
        format!("k{text}")
    }
}

#[cfg(test)]
mod tests;
