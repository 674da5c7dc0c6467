//! Every command that README.md and the pages in [`PAGES`] show, run as shown.
//!
//! The commands run in sequence, as a reader would type them in one shell, in a fresh clone. Every
//! line that a page shows must be printed, except for parts that differ between runs. The short form in the suite shortens budgets by [`SHORT`]; the long form, for the
//! night, runs every kernel ([`NIGHTLY`]):
//! `cargo test --release --test program readme:: -- --ignored`

mod document;
mod lines;

use document::steps;
pub(crate) use document::write_files;
use lines::{is_run, loose, masked, shape};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The pages in the order of the session.
const PAGES: [&str; 10] = [
    "README.md",
    "docs/how-to/read-a-verdict.md",
    "docs/how-to/bring-a-kernel.md",
    "docs/how-to/choose-a-budget.md",
    "docs/how-to/use-the-header.md",
    "docs/how-to/from-kernel-tuner.md",
    "docs/write-a-kernel.md",
    "docs/daemon.md",
    "docs/results.md",
    "docs/how-to/run-a-program.md",
];

/// Commands that are not run here, and why.
const LEFT_OUT: [(&str, &str); 4] = [
    (
        "make install",
        "it builds a release; tests/installed.rs runs a program away from the project",
    ),
    ("make test", "it runs this"),
    ("scripts/get-nvcc", "it fetches 270 MB"),
    (
        "tuner exec --build",
        "it needs nvcc; exec::nvcc runs it where that is installed",
    ),
];

/// What makes commands short: a text in a command, and what stands there instead.
const SHORT: [(&str, &str); 7] = [
    ("make run", "make run DEMO_EVALS=4"),
    ("--budget 30m", "--budget 30m --evals 1"),
    ("--evals 200", "--evals 1"),
    ("--budget 8h", "--budget 8h --evals 1"),
    ("--budget 2h --resume", "--budget 2h --resume --evals 1"),
    ("--sample 20", "--sample 2"),
    ("--evals 11", "--evals 1"),
];

/// The same for the night: hours become a number of candidates that all kernels share.
const NIGHTLY: [(&str, &str); 3] = [
    ("--budget 30m", "--budget 10m"),
    ("--budget 8h", "--evals 160 --device vgpu:l4"),
    ("--budget 2h", "--budget 10m"),
];

/// In both forms: a port of its own, so that a daemon that runs already is in nobody's way, and a
/// program that is built already.
const ALWAYS: [(&str, &str); 2] = [
    ("tuner serve", "tuner serve --listen 127.0.0.1:0"),
    ("make run", "make run CARGO=true"),
];

/// Commands that a reader types a while after the one before: repeated until they say this.
const PATIENT: [(&str, &str); 1] = [("tuner status", "convolution2d")];

/// The search spaces of the short form: the one that README names, and a small one to share with.
const FEW: [(&str, &str); 3] = [
    ("gemm_f32.yaml", "gemm_f32.yaml"),
    ("reduce_sum.quick.yaml", "reduce_sum.yaml"),
    ("conv2d_f32.quick.yaml", "conv2d_f32.quick.yaml"),
];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Output {
    let mut git = Command::new("git");
    let output = git.args(arguments).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    output
}

/// The files of a clone of this tree as it is, and those of a release's archive.
fn files(project: &Path) -> Vec<String> {
    let listing = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    if project.join(".git").exists() {
        let listed = String::from_utf8(git(project, &listing).stdout).unwrap();
        let names = listed.split('\0').filter(|name| !name.is_empty());
        return names.map(str::to_owned).collect();
    }
    let parts = [
        "templates",
        "tests/data",
        "search_spaces",
        "scripts",
        "Makefile",
    ];
    parts.map(str::to_owned).into()
}

/// A fresh clone with the program where `make run` leaves it, and the search spaces asked for or all.
fn clone(few: bool) -> TempDir {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for name in files(project) {
        let (from, to) = (project.join(&name), here.join(&name));
        if from.is_dir() {
            copy(&from, &to);
        } else if from.is_file() {
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&from, &to).unwrap();
        }
    }
    std::fs::create_dir_all(here.join("target/release")).unwrap();
    let program = here.join("target/release/tuner");
    let built = Path::new(env!("CARGO_BIN_EXE_tuner"));
    if std::fs::hard_link(built, &program).is_err() {
        crate::rig::executable::copied(built, &program);
    }
    git(here, &["init", "--quiet"]);
    git(here, &["add", "--all"]);
    let author = [
        "-c",
        "user.name=reader",
        "-c",
        "user.email=reader@localhost",
    ];
    git(
        here,
        &[&author[..], &["commit", "--quiet", "-m", "clone"]].concat(),
    );
    let (from, to) = (project.join("search_spaces"), here.join("search_spaces"));
    if few {
        std::fs::remove_dir_all(&to).unwrap();
        std::fs::create_dir(&to).unwrap();
        for (name, target) in FEW {
            std::fs::copy(from.join(name), to.join(target)).unwrap();
        }
    }
    folder
}

/// Whether the compiler is the one that README's figures are of.
fn figures_hold(session: &Session) -> bool {
    let doctor = session.shell("tuner doctor --format csv").output().unwrap();
    text(&doctor).contains("nvrtc,ok,13.0 ")
}

/// Ends with the test.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Session {
    folder: TempDir,
    daemons: Vec<Daemon>,
    /// What README's reader has exported so far.
    exports: String,
    /// Runs of README and what they are called here.
    runs: Vec<(String, String)>,
}

impl Session {
    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{}{command}", self.exports)])
            .current_dir(self.folder.path())
            .env_remove("TUNER_TOKEN");
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
        if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
            shell.env("TUNER_NVRTC", own);
        }
        shell
    }

    /// Starts what README starts with `&`; its first line.
    fn start(&mut self, command: &str) -> String {
        let mut child = self
            .shell(&format!("exec {command}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        // Read on, so that it never waits for its reader.
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
        self.daemons.push(Daemon(child));
        line
    }

    /// What a command answers, after a while where [`PATIENT`] says so.
    fn settled(&self, command: &str) -> Output {
        let awaited = PATIENT.iter().find(|(start, _)| command.starts_with(start));
        for _ in 0..300 {
            let output = self.shell(command).output().unwrap();
            if awaited.is_none_or(|(_, word)| text(&output).contains(word)) {
                return output;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{command} never says {awaited:?}");
    }

    /// The command with this session's runs in the place of README's.
    fn own(&self, command: &str) -> String {
        let replace = |text: String, (theirs, ours): &(String, String)| text.replace(theirs, ours);
        self.runs.iter().fold(command.to_owned(), replace)
    }

    fn remember(&mut self, shown: &[String], stdout: &str) {
        for (theirs, ours) in shown.iter().zip(stdout.lines()) {
            if is_run(theirs) && is_run(ours) {
                self.runs.push((theirs.clone(), ours.to_owned()));
            }
        }
    }
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    format!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
}

/// The steps of all pages, with the page of each.
fn steps_of_pages(folder: &Path) -> Vec<(&'static str, document::Step)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        write_files(&text, folder);
        all.extend(steps(&text).into_iter().map(|step| (page, step)));
    }
    all
}

/// Runs all commands of the pages with these substitutions.
fn run(substitutions: &[(&str, &str)], few: bool) {
    let mut session = Session {
        folder: clone(few),
        daemons: Vec::new(),
        exports: String::new(),
        runs: Vec::new(),
    };
    let steps = steps_of_pages(session.folder.path());
    let mut used = vec![false; substitutions.len()];
    session.exports = "PATH=\"$PWD/target/release:$PATH\"; ".to_owned();
    let exact = figures_hold(&session);
    session.exports.clear();
    for (at, (page, step)) in steps.iter().enumerate() {
        let place = format!("{page}:{}: {}", step.line, step.command);
        let left_out = LEFT_OUT
            .iter()
            .any(|(start, _)| step.command.starts_with(start));
        if left_out || step.command == "echo $?" {
            continue;
        }
        let mut command = session.own(&step.command);
        if command.starts_with("export ") {
            let assignment = command.split(" #").next().unwrap_or_default();
            session.exports = format!("{}{}; ", session.exports, assignment.trim());
            continue;
        }
        let mut whole = true;
        for ((from, to), used) in substitutions.iter().zip(&mut used) {
            *used |= command.contains(from);
            whole &= !command.contains(from);
            command = command.replace(from, to);
        }
        for (from, to) in ALWAYS {
            command = command.replace(from, to);
        }
        let began = std::time::Instant::now();
        let told = if let Some(daemon) = command.strip_suffix(" &") {
            session.start(daemon)
        } else {
            let output = session.settled(&command);
            let next = steps.get(at + 1).map(|(_, next)| next);
            let next = next.filter(|next| next.command == "echo $?");
            let expected = next.map_or(0, |next| next.shown[0].parse().unwrap());
            let told = text(&output);
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{place}\n{command}\n{told}"
            );
            session.remember(&step.shown, &String::from_utf8_lossy(&output.stdout));
            told
        };
        eprintln!("{:6.1} s  {command}", began.elapsed().as_secs_f64());
        for line in &step.shown {
            // What earlier commands left there decides about a report.
            let exact = whole && exact && !step.command.starts_with("tuner report");
            let said = |told: &str| {
                if exact {
                    masked(line).is_none_or(|line| masked(told) == Some(session.own(&line)))
                } else {
                    loose(told) == loose(line)
                }
            };
            let found = !exact && line.contains(" | best ") || told.lines().any(said);
            assert!(
                found,
                "{place}\nshows `{line}`, but the program says\n{told}"
            );
        }
        // No kernel of this repository may ever be wrong.
        let judged = command.contains("tuner run");
        assert!(
            !(judged && told.contains("incorrect")),
            "{place}\n{command}\n{told}"
        );
    }
    for ((from, _), used) in substitutions.iter().zip(used) {
        assert!(
            used,
            "no page shows `{from}` any more: remove it from the table"
        );
    }
}

#[test]
fn every_command_of_the_pages_prints_what_they_show() {
    run(&SHORT, true);
}

#[test]
#[ignore = "nightly: every kernel, some hours"]
fn every_command_of_the_readme_works_with_its_budget_and_all_kernels() {
    run(&NIGHTLY, false);
}

#[test]
fn commands_are_found_in_both_kinds_of_blocks() {
    let readme = "```sh\ntuner a # why\n\ntuner b\n```\ntext\n```text\n$ tuner c\n one\n\n two\n\
                  $ echo $?\n4\n```\n```yaml\n$ no\n```\n";
    let steps_of = steps;
    let steps = steps(readme);
    let found: Vec<_> = steps
        .iter()
        .map(|s| (s.line, &*s.command, s.shown.len()))
        .collect();
    let expected = [
        (2, "tuner a # why", 0),
        (4, "tuner b", 0),
        (8, "tuner c", 2),
        (12, "echo $?", 1),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        shape("run 20261122T072606229-d8f153: 12  in 0.6s"),
        "run RUN: # in #s"
    );
    assert_eq!(
        masked("run 20261122T072606229-d8f153: 12  in 0.6s, 7m02s of recorded time").unwrap(),
        "run RUN: 12 in DURATION, 7m02s of recorded time"
    );
    assert_eq!(
        masked(" 1  4.5  6eabd8fb40  2026-11-22  07:01:38 17/50 A=1").unwrap(),
        "1 4.5 COMMIT DAY TIME PART A=1"
    );
    assert_eq!(masked("15/40 | best 4.550 us | 2.9/s"), None);
    let printed = "```sh\nmake run\n```\n```text\n== a\nb\n```\n";
    assert_eq!(steps_of(printed)[0].shown, ["== a", "b"]);
    assert!(LEFT_OUT.iter().all(|(_, why)| !why.is_empty()));
}
