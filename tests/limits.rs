//! The program where the system gives few threads, files or little memory: an error with its reason,
//! no panic, and a run in the queue that waits.

use crate::program::{json, root};
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A user without processes: the limit on them does not hold for root.
const NOBODY: u32 = 65_534;

/// A folder that this user and nobody can write, with a copy of the program.
struct Place {
    dir: TempDir,
    program: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let program = dir.path().join("tuner");
        crate::rig::executable::copied(Path::new(env!("CARGO_BIN_EXE_tuner")), &program);
        let recorded = root().join("tests/data/recorded/convbat_RTX3090.json.gz");
        std::fs::copy(recorded, dir.path().join("r.json.gz")).unwrap();
        Self { dir, program }
    }

    /// `prlimit`, as a user for whom limits hold. It sets the limit that holds, not the most that it may
    /// be raised to.
    fn prlimit(&self, limit: &str) -> Command {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--{limit}:"))
            .current_dir(self.dir.path())
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if rustix::process::getuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The program with a limit, such as `nproc=5`.
    fn command(&self, limit: &str, arguments: &[&str]) -> Command {
        let mut command = self.prlimit(limit);
        command.arg("--").arg(&self.program).args(arguments);
        command
    }

    fn change(&self, child: &Child, limit: &str) {
        let id = child.id().to_string();
        let status = self.prlimit(limit).args(["--pid", &id]).status().unwrap();
        assert!(status.success(), "{limit}");
    }
}

fn outcome(command: &mut Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    let (sender, over) = std::sync::mpsc::channel::<()>();
    // A thread that never comes is a command that never ends.
    let watch = std::thread::spawn(move || {
        if over.recv_timeout(Duration::from_secs(120))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(sender);
    watch.join().unwrap();
    output
}

/// Runs a command under falling limits. Each time it does its work, or says which limit to raise.
fn sweep(place: &Place, name: &str, limits: &[u64], arguments: &[&str]) -> (usize, usize) {
    let (mut done, mut refused) = (0, 0);
    for limit in limits {
        let output = outcome(&mut place.command(&format!("{name}={limit}"), arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        let case = format!("{name} {limit} {arguments:?}: {:?} {said}", output.status);
        assert!(!said.contains("panicked"), "{case}");
        let aborts = ["memory allocation of", "Fatal glibc error"];
        if output.status.code().is_none() && aborts.iter().any(|words| said.contains(words)) {
            // The allocator or glibc aborts where a few bytes are missing: no error can be returned there.
            refused += 1;
            continue;
        }
        let code = output.status.code().unwrap_or_else(|| panic!("{case}"));
        if code == 0 {
            done += 1;
            continue;
        }
        refused += 1;
        let reasons = ["ulimit", "os error", "out of memory", "shared libraries"];
        assert!(reasons.iter().any(|words| said.contains(words)), "{case}");
    }
    (done, refused)
}

const RUN: [&str; 7] = [
    "run",
    "--device",
    "replay:r.json.gz",
    "--evals",
    "5",
    "--db",
    "t.db",
];

#[test]
fn few_processes_are_an_error_and_no_panic() {
    let place = Place::new();
    // Another user than root may have any number of them already.
    let limits: Vec<u64> = (0..12).chain([64, 10_000]).collect();
    let (done, refused) = sweep(&place, "nproc", &limits, &RUN);
    assert!(done >= 1 && refused >= 3, "{done} {refused}");
    sweep(
        &place,
        "nproc",
        &[0, 1, 2],
        &["leaderboard", "--db", "t.db"],
    );
    sweep(
        &place,
        "nproc",
        &[0, 1, 2, 3, 4, 6],
        &["serve", "--listen", "127.0.0.1:0", "--db", "/none/t.db"],
    );
}

#[test]
fn few_files_are_an_error_and_no_panic() {
    let place = Place::new();
    let limits: Vec<u64> = (3..24).chain([64]).collect();
    let (done, refused) = sweep(&place, "nofile", &limits, &RUN);
    assert!(done >= 1 && refused >= 5, "{done} {refused}");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--db", "/none/t.db"];
    sweep(&place, "nofile", &[6, 8, 10, 12, 14, 16], &serve);
}

#[test]
fn little_memory_is_an_error_and_no_panic() {
    let place = Place::new();
    // Below the first, the dynamic linker and the allocator end the program before it can speak.
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_tuner"))
        .unwrap()
        .len();
    let limits: Vec<u64> = [140, 200, 300, 500].map(|mib| size + (mib << 20)).to_vec();
    let (done, _) = sweep(&place, "as", &limits, &RUN);
    assert!(done >= 1, "{done}");
}

/// A daemon that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_queued_run_waits_for_threads_and_is_carried_out_when_there_are_some() {
    let place = Place::new();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--db",
        "t.db",
        "--kernels",
        ".",
    ];
    let log = std::fs::File::create(place.dir.path().join("log")).unwrap();
    let mut command = place.command("nproc=10000", &serve);
    let mut daemon = Serving(command.stderr(log).spawn().unwrap());
    let mut line = String::new();
    let output = daemon.0.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert!(line.contains("dashboard"), "{line}");
    // From now on no thread is given.
    place.change(&daemon.0, "nproc=0");
    let mut submit = vec!["submit"];
    submit.extend(&RUN[1..]);
    let output = outcome(&mut place.command("nproc=10000", &submit));
    assert!(output.status.success(), "{output:?}");
    let said = || std::fs::read_to_string(place.dir.path().join("log")).unwrap();
    let until = |words: &str| {
        let began = Instant::now();
        while !said().contains(words) {
            assert!(
                began.elapsed() < Duration::from_secs(90),
                "{words}: {}",
                said()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("ulimit -u");
    place.change(&daemon.0, "nproc=10000");
    until("evals=5");
    assert!(
        !said().contains("panicked") && !said().contains("failed"),
        "{}",
        said()
    );
    // It is said a moment before it is stored.
    let began = Instant::now();
    loop {
        let (code, runs) = json(place.dir.path(), "status --db t.db");
        if code == 0 && format!("{runs:?}").contains("finished") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{runs:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn threads_and_runtimes_are_started_by_functions_that_return_errors() {
    // These panic where the system gives no thread, or wait for ever.
    let forbidden = [
        "thread::spawn(",
        "scope.spawn(",
        "spawn_blocking(",
        "Runtime::new(",
        "Builder::new_multi_thread(",
        "Builder::new_current_thread(",
        "tokio::fs::",
    ];
    let mut folders = vec![root().join("src"), root().join("crates")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                // Tests may panic.
                if !["tests", "benches", "examples", "testkit", "target"].contains(&&*name) {
                    folders.push(path);
                }
                continue;
            }
            let is_checked = name.ends_with(".rs") && name != "tests.rs";
            if !is_checked || path.ends_with("engine/src/threads.rs") {
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let found = forbidden.iter().find(|words| text.contains(**words));
            assert_eq!(found, None, "{}: use tuner_engine::threads", path.display());
        }
    }
    assert!(seen > 300, "{seen}");
}
