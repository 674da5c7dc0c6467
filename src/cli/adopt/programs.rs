//! `tuner adopt --run`: builds and runs a program on the virtual GPU and captures its launches.

use super::super::{CliError, exec, usage};
use anyhow::Context as _;
use capture::Capture;
use std::path::{Path, PathBuf};
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
/// Maximum number of runs of one command.
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
            "--vary requests {} runs; the limit is {MAX_RUNS}\nhelp: give fewer values",
            runs.len()
        )));
    }
    let work = tempfile::Builder::new().prefix("tuner-adopt-").tempdir()?;
    let mut captures = Vec::new();
    for (number, values) in runs.iter().enumerate() {
        let build = work.path().join(format!("run-{number}"));
        copy(file, work.path(), &build)?;
        let text = values
            .iter()
            .fold(command.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), &value.to_string())
            });
        say!("running: {text}");
        let folder = work.path().join(format!("captured-{number}"));
        // Headers in folders next to the original, such as `../common/book.h`, are not in the copy.
        let place = exec::CommandPlace {
            copy: &build,
            original: folder_of(file),
            device,
        };
        exec::capture_command(&text, place, &folder, values)?;
        let captured = Capture::open(&folder).map_err(|error| usage(format!("{error}")))?;
        if captured.document.launches.is_empty() {
            return Err(usage(nothing_captured(&text, &captured.document.skipped)));
        }
        captures.push(captured);
    }
    Ok(Captures {
        all: captures,
        work: Some(work),
    })
}

/// Formats the error of a run without a captured launch. The build hint is omitted if a launch was
/// observed.
fn nothing_captured(text: &str, skipped: &[String]) -> String {
    let nothing = format!("`{text}` launched no kernel that was captured");
    if skipped.is_empty() {
        return format!(
            "{nothing}\nhelp: build with `nvcc -lineinfo`, and let the command run the program"
        );
    }
    format!("{nothing}\n{}", skipped.join("\n"))
}

/// Returns every combination of one value of each name.
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

/// Returns the folder of a file.
fn folder_of(file: &Path) -> &Path {
    let parent = file.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Copies the folder of a file, so that a build leaves no files in the original. `work` holds the copies.
fn copy(file: &Path, work: &Path, to: &Path) -> Result<(), CliError> {
    let from = folder_of(file);
    let mut copying = Copying {
        work: work.canonicalize()?,
        open: Vec::new(),
        left: MAX_BYTES,
    };
    let copied = copying.folder(from, to);
    copied.with_context(|| format!("cannot copy {}", shown(from)))?;
    if copying.left == 0 {
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

/// State of a copy.
struct Copying {
    /// Folder of the copies, links followed.
    work: PathBuf,
    /// Folders on the current recursion path, each within the previous one, links resolved.
    open: Vec<PathBuf>,
    /// Remaining bytes that may be copied; 0 if the limit is exceeded.
    left: u64,
}

impl Copying {
    /// Copies files and folders up to the byte limit. Links are followed.
    fn folder(&mut self, from: &Path, to: &Path) -> std::io::Result<()> {
        let real = from.canonicalize()?;
        // The copies may be in the folder itself, and a link may point to an enclosing folder: both would
        // be copied into themselves.
        if real == self.work || self.open.contains(&real) {
            return Ok(());
        }
        std::fs::create_dir_all(to)?;
        self.open.push(real);
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            let facts = match std::fs::metadata(&path) {
                Ok(facts) => facts,
                // A build does not need a dangling link.
                Err(_) if entry.file_type()?.is_symlink() => continue,
                Err(error) => return Err(error),
            };
            if facts.is_dir() {
                self.folder(&path, &target)?;
            } else if facts.is_file() {
                self.left = self.left.saturating_sub(facts.len());
                if self.left == 0 {
                    break;
                }
                std::fs::copy(&path, &target)?;
            }
        }
        self.open.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_that_holds_its_copy_is_copied_once() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir_all(folder.path().join("src")).unwrap();
        std::fs::create_dir(&work).unwrap();
        std::fs::write(folder.path().join("app.cu"), "app").unwrap();
        std::fs::write(folder.path().join("src/part.h"), "part").unwrap();
        for run in ["run-0", "run-1"] {
            let to = work.join(run);
            copy(&folder.path().join("app.cu"), &work, &to).unwrap();
            assert_eq!(std::fs::read_to_string(to.join("app.cu")).unwrap(), "app");
            assert!(to.join("src/part.h").is_file());
            assert!(!to.join("work").exists());
        }
    }

    #[test]
    fn links_without_an_end_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let place = folder.path();
        std::fs::create_dir(place.join("src")).unwrap();
        std::fs::write(place.join("app.cu"), "app").unwrap();
        symlink("gone.h", place.join("dangling.h")).unwrap();
        symlink("b.h", place.join("a.h")).unwrap();
        symlink("a.h", place.join("b.h")).unwrap();
        symlink("..", place.join("src/up")).unwrap();
        symlink("app.cu", place.join("linked.cu")).unwrap();
        let to = work.path().join("run-0");
        copy(&place.join("app.cu"), work.path(), &to).unwrap();
        let mut names: Vec<_> = std::fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["app.cu", "linked.cu", "src"]);
        assert!(!to.join("src/up").exists());
    }
}
