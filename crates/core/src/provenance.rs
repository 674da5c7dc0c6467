//! Where a result comes from: the commit of the tree that holds a template, and the host.

use crate::files;
use crate::record::Provenance;
use crate::units::ContentHash;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tuner_process::{Program, run};

/// A repository on a dead network mount must not hold up a run.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a difference that is longer, the end is hashed.
const MAX_DIFF_BYTES: usize = 256 << 20;

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
    let mut provenance = Provenance {
        driver,
        nvrtc_version,
        ..of_recording()
    };
    let note = git_state(files, &mut provenance).err();
    (provenance, note)
}

/// Provenance of a recorded file: others made it, so no commit of ours applies.
#[must_use]
pub fn of_recording() -> Provenance {
    Provenance {
        commit: None,
        dirty: false,
        diff_hash: None,
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
    let bytes = files::read(path, files::MAX_RECORDING_BYTES)?;
    Ok((path.canonicalize()?, ContentHash::of([bytes.as_slice()])))
}

/// The full hash of a commit by any of its names, and of the known commits those that it contains.
/// `None` where the directory is in no git tree or git does not know the name.
#[must_use]
pub fn commits_of(directory: &Path, name: &str, known: &[String]) -> Option<(String, Vec<String>)> {
    let named = format!("{name}^{{commit}}");
    let commit = git(
        directory,
        &["rev-parse", "--verify", "--end-of-options", &named],
    )
    .ok()?;
    let contained = known.iter().filter(|known| {
        let arguments = ["merge-base", "--is-ancestor", known.as_str(), &commit];
        **known == commit || git(directory, &arguments).is_ok()
    });
    let contained = contained.cloned().collect();
    Some((commit, contained))
}

/// Notes commit and dirty flag, or says why there is none.
fn git_state(files: &[&Path], provenance: &mut Provenance) -> Result<(), String> {
    let first = files.first().ok_or("no template, so no commit to name")?;
    let first = first
        .canonicalize()
        .map_err(|error| format!("{}: {error}", first.display()))?;
    let tree = first.parent().unwrap_or(Path::new("/"));
    provenance.commit = Some(git(tree, &["rev-parse", "--verify", "HEAD"])?);
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
    let lines = git(tree, &arguments);
    if lines.as_ref().map_or(true, |lines| !lines.is_empty()) {
        provenance.dirty = true;
        provenance.diff_hash = Some(diff_hash(tree, &paths, &lines.unwrap_or_default()));
    }
    Ok(())
}

/// SHA-256 of `git diff --binary HEAD` of the files, followed by the same against nothing of each
/// file that git does not track. `status` is the porcelain listing of the files.
fn diff_hash(tree: &Path, paths: &[String], status: &str) -> String {
    use sha2::Digest as _;
    // Settings of the user (colours, prefixes, programs) must not change the hash.
    const PLAIN: [&str; 7] = [
        "-c",
        "core.quotepath=true",
        "diff",
        "--binary",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
    ];
    const PREFIXES: [&str; 2] = ["--src-prefix=a/", "--dst-prefix=b/"];
    let mut arguments = [&PLAIN[..], &PREFIXES, &["HEAD", "--"]].concat();
    arguments.extend(paths.iter().map(String::as_str));
    let mut hasher = sha2::Sha256::new();
    // A file outside the tree makes git fail: its bytes then stand for its diff.
    match git_bytes(tree, &arguments) {
        Ok(diff) => hasher.update(diff),
        Err(_) => paths.iter().for_each(|path| {
            hasher.update(bytes_of(path));
        }),
    }
    let untracked = status
        .lines()
        .filter_map(|line| {
            line.strip_prefix("?? ")
                .or_else(|| line.strip_prefix("!! "))
        })
        .filter_map(|name| {
            paths
                .iter()
                .find(|path| path.ends_with(name.trim_matches('"')))
        });
    for path in untracked {
        hasher.update(path.rsplit('/').next().unwrap_or_default());
        hasher.update(bytes_of(path));
    }
    hex::encode(hasher.finalize())
}

/// The bytes of a file; nothing where it cannot be read.
fn bytes_of(path: &str) -> Vec<u8> {
    files::read(Path::new(path), files::MAX_RECORDING_BYTES).unwrap_or_default()
}

/// Runs `git` in a directory and gives its trimmed output, or a note for people.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let bytes = git_bytes(directory, arguments)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// As [`git`], to the byte.
fn git_bytes(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let mut program = Program {
        path: "git".into(),
        arguments: vec!["-C".into(), directory.into()],
        // Reading must not write: no index refresh, no questions.
        environment: ["GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"]
            .map(|name| (name.to_owned(), "0".to_owned()))
            .to_vec(),
        folder: None,
    };
    program.arguments.extend(arguments.iter().map(Into::into));
    let finished = run(&program, Vec::new(), GIT_TIMEOUT, MAX_DIFF_BYTES).map_err(|error| {
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                "note: git is not installed, so results are stored without a commit".to_owned()
            }
            _ => format!(
                "note: git cannot be started ({error}); results are stored without a commit"
            ),
        }
    })?;
    match finished.status {
        Some(status) if status.success() => Ok(finished.output),
        // Also a tree of another owner, which git refuses to read: its own words say what to do.
        Some(_) => Err(format!(
            "note: {} is in no git tree with a commit that can be read, so results are stored without \
             one ({})",
            directory.display(),
            finished.said.lines().next().unwrap_or("git says nothing")
        )),
        None => Err(format!(
            "note: git did not answer within {} s; results are stored without a commit",
            GIT_TIMEOUT.as_secs()
        )),
    }
}
