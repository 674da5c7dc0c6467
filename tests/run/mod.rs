//! `tuner run` and `tuner replay` as a user has them: the real program, killed, interrupted,
//! resumed, and given nonsense.

mod converged;
mod endings;
mod inputs;
mod knowledge;
mod known;
mod night;
mod objectives;
mod postponed;
pub(crate) mod proof;
mod replay;
mod results;
mod waits;

use sqlx::Connection as _;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use tuner_store::Store;

/// The project's recorded file.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/convbat_RTX3090.json.gz")
}

/// `tuner run` on the recorded file, with a database.
fn tuner_run(db: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command
        .arg("run")
        .arg("--device")
        .arg(format!("replay:{}", recorded().display()))
        .arg("--db")
        .arg(db)
        .args(arguments);
    command
}

/// Runs to the end; the exit code must be 0.
fn finish(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A run whose announcements are read as they come.
struct Announcing {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// One announced result: configuration and verdict.
pub(crate) type Announced = (String, String);

impl Announcing {
    fn start(db: &Path, arguments: &[&str]) -> Self {
        let mut child = tuner_run(db, arguments)
            .args(["--events", "-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next announced result; `None` when the stream ends, a cut last line included.
    fn next(&mut self) -> Option<Announced> {
        loop {
            let line = self.lines.next()?.ok()?;
            let event: serde_json::Value = serde_json::from_str(&line).ok()?;
            if event["event"] == "trial" {
                return Some((
                    event["config"].to_string(),
                    event["verdict"].as_str()?.to_owned(),
                ));
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<Announced> {
        (0..count).map_while(|_| self.next()).collect()
    }

    fn rest(&mut self) -> Vec<Announced> {
        std::iter::from_fn(|| self.next()).collect()
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Announcing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Markdown pages of the report of that database, one after the other.
fn report_pages(db: &Path, folder: &Path) -> String {
    finish(
        Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["report", "--db"])
            .arg(db)
            .arg("-o")
            .arg(folder),
    );
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let pages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages
        .map(|page| std::fs::read_to_string(page).unwrap())
        .collect()
}

/// What a database holds: every judged configuration with its verdict, whether anything of its task
/// passed or not (a task without a time has no board, so the boards cannot tell).
pub(crate) fn stored(db: &Path) -> BTreeMap<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let _opens_as_any_command_does = Store::open_read(db).await.unwrap();
        let mut connection = crate::rig::database::connected(db).await;
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT c.config, v.verdict FROM verdicts v JOIN candidates c ON c.id = v.candidate
             ORDER BY v.verdict = 'ok', v.id",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        connection.close().await.unwrap();
        let judged = rows.into_iter().map(|(config, verdict)| {
            let config: serde_json::Value = serde_json::from_str(&config).unwrap();
            (config.to_string(), verdict)
        });
        judged.collect()
    })
}

/// Everything announced must be stored, with the same verdict.
pub(crate) fn assert_stored(db: &Path, announced: &[Announced]) {
    let stored = stored(db);
    for (config, verdict) in announced {
        assert_eq!(stored.get(config), Some(verdict), "{config} was announced");
    }
}
