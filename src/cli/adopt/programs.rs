//! `tuner adopt --run`: builds and runs a program on the virtual GPU and captures its launches.

use super::super::{CliError, exec, usage};
use anyhow::Context as _;
use capture::Capture;
use std::path::Path;
use tuner_device::DeviceSelector;
use tuner_kernel::catalog::shown;

/// Captures, with their temporary folder if there is one.
#[derive(Debug, Default)]
pub(super) struct Captures {
    pub(super) all: Vec<Capture>,
    /// Removed at the end.
    #[expect(dead_code, reason = "kept for its destructor")]
    pub(super) work: Option<tempfile::TempDir>,
}

/// Largest folder that is copied, bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Most runs of one command.
const MAX_RUNS: usize = 16;

/// Captures a run of the command for each combination of values.
///
/// # Errors
/// A name without values, a command that fails, a run that launches nothing.
pub(super) fn capture(
    file: &Path,
    command: &str,
    vary: &[(String, Vec<i64>)],
    device: &DeviceSelector,
) -> Result<Captures, CliError> {
    for (name, _) in vary {
        // The runs would be the same command, and the option would have no effect.
        if !command.contains(&format!("{{{name}}}")) {
            return Err(usage(format!(
                "--vary {name}: the command of --run has no {{{name}}}\nhelp: write {{{name}}} where \
                 the value belongs"
            )));
        }
    }
    let runs = combinations(vary);
    if runs.len() > MAX_RUNS {
        return Err(usage(format!(
            "--vary asks for {} runs, and {MAX_RUNS} is the limit\nhelp: give fewer values",
            runs.len()
        )));
    }
    let work = tempfile::Builder::new().prefix("tuner-adopt-").tempdir()?;
    let mut captures = Vec::new();
    for (number, values) in runs.iter().enumerate() {
        let build = work.path().join(format!("run-{number}"));
        copy(file, &build)?;
        let text = values
            .iter()
            .fold(command.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), &value.to_string())
            });
        say!("running: {text}");
        let folder = work.path().join(format!("captured-{number}"));
        // Headers of folders beside the original, such as `../common/book.h`, are not in the copy.
        let place = exec::CommandPlace {
            copy: &build,
            original: folder_of(file),
            device,
        };
        exec::capture_command(&text, place, &folder, values)?;
        let captured = Capture::open(&folder).map_err(|error| usage(format!("{error}")))?;
        if captured.document.launches.is_empty() {
            let skipped = captured.document.skipped.join("\n");
            return Err(usage(format!(
                "`{text}` launched no kernel that was captured\n{skipped}\nhelp: build with \
                 `nvcc -cudart shared -lineinfo`, and let the command run the program"
            )));
        }
        captures.push(captured);
    }
    Ok(Captures {
        all: captures,
        work: Some(work),
    })
}

/// Every combination of one value of each name.
fn combinations(vary: &[(String, Vec<i64>)]) -> Vec<Vec<(String, i64)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in vary {
        let longer = all.iter().flat_map(|known: &Vec<(String, i64)>| {
            values.iter().map(|value| {
                let mut next = known.clone();
                next.push((name.clone(), *value));
                next
            })
        });
        all = longer.collect();
    }
    all
}

/// The folder of a file.
fn folder_of(file: &Path) -> &Path {
    let parent = file.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Copies the folder of a file, so that a build leaves nothing there.
fn copy(file: &Path, to: &Path) -> Result<(), CliError> {
    let from = folder_of(file);
    let mut left = MAX_BYTES;
    copy_folder(from, to, &mut left).with_context(|| format!("cannot copy {}", shown(from)))?;
    if left == 0 {
        return Err(usage(format!(
            "{} holds more than {}, and --run builds in a copy of it\nhelp: capture the program where it is: \
             tuner exec --capture DIR -- PROGRAM ARGS, then tuner adopt {} --captured DIR",
            shown(from),
            capture::shown_bytes(MAX_BYTES),
            shown(file)
        )));
    }
    Ok(())
}

/// Copies files and folders, as far as `left` bytes go; 0 is left where there are more.
fn copy_folder(from: &Path, to: &Path, left: &mut u64) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let facts = std::fs::metadata(&path)?;
        if facts.is_dir() {
            copy_folder(&path, &target, left)?;
        } else if facts.is_file() {
            *left = left.saturating_sub(facts.len());
            if *left == 0 {
                return Ok(());
            }
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
