//! Where a result comes from: the commit of the tree that holds a template, and the host.

use crate::record::Provenance;
use crate::units::ContentHash;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A repository on a dead network mount must not hold up a run.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The host's name; `unknown` where it has none.
#[must_use]
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map(|name| name.trim().to_owned())
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    })
}

/// Provenance of results made from these files (the template, what it includes, the space file).
///
/// The commit is that of the tree that holds the first file; `dirty` means that any of the files
/// differs from it or is not tracked. Also gives a note for the user when there is no commit.
#[must_use]
pub fn of_files(
    files: &[&Path],
    driver: Option<String>,
    nvrtc_version: Option<String>,
) -> (Provenance, Option<String>) {
    let (state, note) = match git_state(files) {
        Ok(state) => (Some(state), None),
        Err(note) => (None, Some(note)),
    };
    let provenance = Provenance {
        commit: state.as_ref().map(|(commit, _)| commit.clone()),
        dirty: state.is_some_and(|(_, dirty)| dirty),
        host: host().to_owned(),
        tuner_version: env!("CARGO_PKG_VERSION").to_owned(),
        driver,
        nvrtc_version,
    };
    (provenance, note)
}

/// Provenance of a recorded file: others made it, so no commit of ours applies.
#[must_use]
pub fn of_recording() -> Provenance {
    Provenance {
        commit: None,
        dirty: false,
        host: host().to_owned(),
        tuner_version: env!("CARGO_PKG_VERSION").to_owned(),
        driver: None,
        nvrtc_version: None,
    }
}

/// Identity of a recorded file: its absolute path and the hash of its bytes (as they lie on disk).
///
/// # Errors
/// The file cannot be read.
pub fn recording(path: &Path) -> std::io::Result<(std::path::PathBuf, ContentHash)> {
    let bytes = std::fs::read(path)?;
    Ok((path.canonicalize()?, ContentHash::of([bytes.as_slice()])))
}

/// Commit and dirty flag, or why there is none.
fn git_state(files: &[&Path]) -> Result<(String, bool), String> {
    let first = files.first().ok_or("no template, so no commit to name")?;
    let first = first
        .canonicalize()
        .map_err(|error| format!("{}: {error}", first.display()))?;
    let tree = first.parent().unwrap_or(Path::new("/"));
    let commit = git(tree, &["rev-parse", "--verify", "HEAD"])?;
    let mut arguments = vec![
        "status",
        "--porcelain",
        "--ignored",
        "--untracked-files=all",
        "--",
    ];
    let paths: Vec<String> = files
        .iter()
        .filter_map(|file| file.canonicalize().ok())
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    arguments.extend(paths.iter().map(String::as_str));
    // A file outside the tree makes `status` fail: its state is unknown, which is not clean.
    let dirty = git(tree, &arguments).map_or(true, |lines| !lines.is_empty());
    Ok((commit, dirty))
}

/// Runs `git` in a directory and gives its trimmed output, or a note for people.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        // Reading must not write: no index refresh, no questions.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                "git is not installed, so results are stored without a commit".to_owned()
            }
            _ => format!("git cannot be started ({error}); results are stored without a commit"),
        })?;
    // The output is a few lines, far below the pipes' capacity, so waiting first cannot deadlock.
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < GIT_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "git did not answer within {} s; results are stored without a commit",
                    GIT_TIMEOUT.as_secs()
                ));
            }
        }
    };
    if status.success() {
        Ok(read_all(child.stdout.take()))
    } else {
        // Also a tree of another owner, which git refuses to read: its own words say what to do.
        let words = read_all(child.stderr.take());
        Err(format!(
            "{} is in no git tree with a commit that can be read, so results are stored without \
             one ({})",
            directory.display(),
            words.lines().next().unwrap_or("git says nothing")
        ))
    }
}

/// What a finished child wrote, trimmed; nothing where it cannot be read.
fn read_all(pipe: Option<impl std::io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // A part is enough for a message, and a commit that is cut is no commit: git would have
        // failed.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
