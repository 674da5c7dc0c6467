//! Fleets as users have them: the real program and a real `nats-server`, with everything that goes
//! wrong between machines. `scripts/get-nats` brings the server; without it these tests are reported as
//! ignored.

mod clocks;
mod faults;
mod hostile;
mod kills;
mod kernels;
mod ordinary;
mod page;
mod proxy;
mod security;
mod server;
mod siblings;

use crate::program::{in_folder, root};
use server::{Server, children};
use sqlx::{Connection as _, Row as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The project's recorded file.
fn recorded() -> PathBuf {
    root().join("tests/data/recorded/convbat_RTX3090.json.gz")
}

/// `replay:` and the recorded file.
fn device() -> String {
    format!("replay:{}", recorded().display())
}

/// The program, which is not asked anything.
fn tuner() -> Command {
    let mut command = in_folder(env!("CARGO_BIN_EXE_tuner"), root());
    command.stdin(Stdio::null());
    command
}

/// A process that ends with its test, together with what it wrote to standard error.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(command: &mut Command, log: PathBuf) -> Self {
        let file = std::fs::File::create(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(pid)
            .status();
        assert!(sent.unwrap().success());
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The exit code, once it ends by itself.
    fn code(&mut self) -> i32 {
        let status = self.child.wait().unwrap();
        status
            .code()
            .unwrap_or_else(|| panic!("{status}: {}", self.log()))
    }

    /// Waits until it has said something.
    fn says(&mut self, what: &str) {
        until(
            || self.log().contains(what),
            || format!("`{what}` is not said:\n{}", self.log()),
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A stopped process does not see the end of its test.
        self.kill();
    }
}

/// Waits for something that must come; three minutes are for machines that do other things.
fn until(mut there: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let began = Instant::now();
    while !there() {
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "{}",
            otherwise()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server, a folder, and the processes of one test.
struct Site {
    server: Server,
    folder: TempDir,
    /// How long a worker may be silent about a candidate.
    patience: &'static str,
    workers: usize,
}

/// A daemon with a fleet.
struct Hub {
    /// Host and port of its page.
    address: String,
    _process: Process,
}

impl Site {
    fn new() -> Self {
        Self::with("")
    }

    /// With lines for the server's configuration.
    fn with(settings: &str) -> Self {
        Self {
            server: Server::start(settings),
            folder: TempDir::new().unwrap(),
            patience: "1s",
            workers: 0,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A worker with the recording.
    fn worker(&mut self) -> Process {
        let url = self.server.url();
        self.worker_with(&url, &["--device", &device()])
    }

    fn worker_with(&mut self, url: &str, arguments: &[&str]) -> Process {
        self.workers += 1;
        let log = self.path(&format!("worker{}.log", self.workers));
        // A machine of its own: what it needs comes over the network.
        let cache = self.path(&format!("cache{}", self.workers));
        let mut command = tuner();
        command.args(["worker", "--fleet", url]).args(arguments);
        Process::start(command.env("TUNER_CACHE", cache), log)
    }

    fn run_command(&self, db: &str, arguments: &[&str]) -> Command {
        let mut command = tuner();
        command
            .args(["run", "--fleet", &self.server.url()])
            .args(["--fleet-patience", self.patience, "--fleet-cache", "4"])
            .args(["--device", &device(), "--db"])
            .arg(self.path(db))
            .args(arguments);
        command
    }

    /// A run on the fleet, which goes on beside the test.
    fn run(&self, db: &str, arguments: &[&str]) -> Process {
        let log = self.path(&format!("{db}.log"));
        Process::start(&mut self.run_command(db, arguments), log)
    }

    /// What one machine finds, and the same run on so many workers, which goes on beside the test.
    fn begin(&mut self, workers: usize, wanted: &[&str]) -> (Vec<Row>, Vec<Process>, Process) {
        let alone = self.alone(wanted);
        let workers = (0..workers).map(|_| self.worker()).collect();
        (alone, workers, self.run("t.db", wanted))
    }

    /// A daemon whose runs the fleet judges, when it serves.
    fn daemon(&self, db: &str) -> Hub {
        let path = self.path(db);
        let mut command = tuner();
        command.args(["serve", "--listen", "127.0.0.1:0", "--db"]);
        command.arg(&path).args(["--fleet", &self.server.url()]);
        let process = Process::start(&mut command, self.path(&format!("{db}.log")));
        let asks = || {
            tuner()
                .args(["status", "--db"])
                .arg(&path)
                .output()
                .unwrap()
        };
        until(
            || asks().status.success() && process.log().contains("serving"),
            || process.log(),
        );
        let log = process.log();
        let after = log.split("address=").nth(1).unwrap();
        let address = after.split_whitespace().next().unwrap().to_owned();
        Hub {
            address,
            _process: process,
        }
    }

    /// What one undisturbed machine finds.
    fn alone(&self, arguments: &[&str]) -> Vec<Row> {
        let db = self.path("alone.db");
        let _ = std::fs::remove_file(&db);
        let mut command = tuner();
        command.args(["run", "--device", &device(), "--db"]);
        finish(command.arg(&db).args(arguments));
        rows(&db)
    }

    /// Results stored so far.
    fn stored(&self, db: &str) -> usize {
        let path = self.path(db);
        if path.exists() { count(&path) } else { 0 }
    }

    /// Waits until so many results are stored.
    fn until_stored(&self, run: &Process, db: &str, count: usize) {
        until(
            || self.stored(db) >= count,
            || format!("{count} results are not stored:\n{}", run.log()),
        );
    }
}

/// Runs to the end; the exit code must be 0.
fn finish(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    output
}

/// A stored result, without what differs between any two runs.
type Row = (i64, String, String, String, Option<f64>);

/// Asks a database that another process may be writing to.
fn ask<T>(db: &Path, question: &str, answer: impl Fn(&sqlx::sqlite::SqliteRow) -> T) -> Vec<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(db)
            .busy_timeout(Duration::from_secs(10));
        let Ok(mut connection) = sqlx::SqliteConnection::connect_with(&options).await else {
            return Vec::new();
        };
        let question = sqlx::query(sqlx::AssertSqlSafe(question.to_owned()));
        let rows = question.fetch_all(&mut connection).await;
        // Before the first commit there are no tables.
        rows.unwrap_or_default().iter().map(answer).collect()
    })
}

fn count(db: &Path) -> usize {
    let counts = ask(db, "SELECT count(*) FROM verdicts", |row| {
        row.get::<i64, _>(0)
    });
    counts
        .first()
        .map_or(0, |count| usize::try_from(*count).unwrap())
}

/// Everything that was stored, in the order in which it was told to the search.
fn rows(db: &Path) -> Vec<Row> {
    let question = "SELECT v.sequence, hex(c.hash), c.config, v.verdict, m.p50_us
        FROM verdicts v JOIN candidates c ON c.id = v.candidate
        LEFT JOIN measurements m ON m.verdict = v.id ORDER BY v.task, v.sequence";
    ask(db, question, |row| {
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))
    })
}

/// The run must end well, with the results of one machine.
#[track_caller]
fn assert_same(site: &Site, db: &str, alone: &[Row], run: &mut Process) {
    assert_eq!(run.code(), 0, "{}", run.log());
    assert_stored(site, db, alone, run);
}

/// The stored results must be those of one machine: none lost, none twice, none else.
#[track_caller]
fn assert_stored(site: &Site, db: &str, alone: &[Row], run: &Process) {
    let fleet = rows(&site.path(db));
    assert_eq!(fleet.len(), alone.len(), "{}", run.log());
    for (ours, theirs) in fleet.iter().zip(alone) {
        assert_eq!(ours, theirs, "{}", run.log());
    }
}

/// What `tuner status --fleet` knows.
fn status(site: &Site) -> serde_json::Value {
    let mut command = tuner();
    command.args(["status", "--format", "json", "--fleet", &site.server.url()]);
    serde_json::from_slice(&finish(&mut command).stdout).unwrap()
}
