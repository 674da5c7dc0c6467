//! The program as tests run it, and the folders that it runs in.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The project's own folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The words of a command line that quotes nothing.
pub(crate) fn words(line: &'static str) -> Vec<&'static str> {
    line.split(' ').collect()
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

/// Writes a file, whose folder is made where there is none.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    std::fs::write(path, text).expect("the file is written");
}

/// Puts another text in the place of one that a file holds.
pub(crate) fn replace(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).expect("the file is there");
    assert!(text.contains(from), "{} has no `{from}`", file.display());
    std::fs::write(file, text.replace(from, to)).expect("the file is written");
}

/// `tuner` in that folder.
pub(crate) fn tuner(folder: &Path) -> Command {
    in_folder(env!("CARGO_BIN_EXE_tuner"), folder)
}

/// `tuner` with the stand-in for a GPU, whose results may go to `tuner.db` in the folder only.
pub(crate) fn with_gpu(folder: &Path) -> Command {
    let mut command = in_folder(crate::rig::program(), folder);
    command.env("TUNER_FAKE_GPU", folder.join("tuner.db"));
    command
}

/// A program that knows nothing of a daemon of whoever runs the tests, and finds the compiler that
/// the project's set-up has fetched into the project.
pub(crate) fn in_folder(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_remove("TUNER_TOKEN");
    let own = root().join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command
}

/// The folder of nvcc's CUDA.
pub(crate) fn toolkit() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    match std::env::var_os("TUNER_NVCC").map(PathBuf::from) {
        Some(nvcc) => nvcc.join("../.."),
        None => data.unwrap().join("tuner/nvcc/nvidia/cu13"),
    }
}

/// What came of a program.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// What stands on standard output, as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// The same, where it is a list.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let Value::Array(rows) = self.json() else {
            panic!("{}", self.stdout);
        };
        rows
    }

    /// Asserts the exit code, and that standard error holds each of these parts.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, parts: &[&str]) {
        self.says_of(&"", code, parts);
    }

    /// The same of one case of several.
    #[track_caller]
    pub(crate) fn says_of(&self, case: &dyn std::fmt::Debug, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{case:?}: {}", self.stderr);
        for part in parts {
            let told = self.stderr.contains(part);
            assert!(told, "{case:?}, no {part:?}: {}", self.stderr);
        }
    }
}

/// Runs a program to its end.
pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code().expect("an exit code"),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Runs `tuner` in that folder with the arguments of a line, which are parted by spaces.
pub(crate) fn run(folder: &Path, line: &str) -> Ended {
    ended(tuner(folder).args(line.split(' ')))
}

/// Runs a command of `tuner` that answers in JSON: its exit code and its rows.
pub(crate) fn json(folder: &Path, line: &str) -> (i32, Vec<Value>) {
    let ended = run(folder, &format!("{line} --format json"));
    (ended.code, ended.rows())
}

/// Runs `git` in that folder, as somebody.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let somebody = "-c user.name=t -c user.email=t@t -c commit.gpgsign=false";
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    let ended = ended(git.args(somebody.split(' ')).args(arguments));
    assert_eq!(ended.code, 0, "{arguments:?} {}", ended.stderr);
    ended.stdout.trim().to_owned()
}
