//! `tuner serve` as its users have it: the real process, asked over HTTP, killed, and mistreated.

mod abuse;
mod api;
pub(crate) mod browser;
mod commands;
mod faults;
mod kill;
mod streams;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The folder of the project's recorded file.
fn recorded_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded")
}

/// Its name.
const RECORDED: &str = "convbat_RTX3090.json.gz";

/// A daemon on a free port.
pub(crate) struct Daemon {
    child: Child,
    address: String,
    log: PathBuf,
}

/// `tuner serve` on that database, with the recorded file's folder.
fn serve(db: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--db"])
        .arg(db)
        .arg("--kernels")
        .arg(recorded_folder())
        .env_remove("TUNER_TOKEN");
    command
}

impl Daemon {
    pub(crate) fn start(db: &Path) -> Self {
        Self::from(&mut serve(db), db)
    }

    /// Starts the command and waits until it serves.
    pub(crate) fn from(command: &mut Command, db: &Path) -> Self {
        let log = db.with_extension("log");
        let errors = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("dashboard: http://")
            .unwrap_or_else(|| {
                panic!("{line:?}: {}", std::fs::read_to_string(&log).unwrap());
            });
        let address = address.split(' ').next().unwrap().to_owned();
        Self {
            child,
            address,
            log,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The file of what it says.
    pub(crate) fn log_file(&self) -> &Path {
        &self.log
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.request("GET", path, "", b"").unwrap();
        (answer.status, answer.json())
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let json = "content-type: application/json\r\n";
        let answer = self.request("POST", path, json, body.as_bytes()).unwrap();
        (answer.status, answer.json())
    }

    /// Sends a request; its answer, or nothing where the daemon dies meanwhile.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let mut stream = self.open(method, path, headers, body.len())?;
        // A daemon that refuses by the length alone may close before it has read everything.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    /// Sends a request's head.
    fn open(&self, method: &str, path: &str, headers: &str, length: usize) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(90)))
            .ok()?;
        let host = if headers.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("host: {}\r\n", self.address)
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n\
             {headers}\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        Some(stream)
    }

    /// Submits a run on the recorded file.
    fn submit(&self, evals: u64, seed: u64, strategy: &str) -> String {
        let body = request(RECORDED, evals, seed, strategy);
        let (status, answer) = self.post("/api/v1/runs", &body);
        assert_eq!(status, 201, "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    /// The run, once it is in that state.
    pub(crate) fn wait(&self, id: &str, state: &str) -> Value {
        let path = format!("/api/v1/runs/{id}");
        wait_for(&format!("{id} is {state}"), || {
            let (_, run) = self.get(&path);
            (run["state"] == state).then_some(run)
        })
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn metric(&self, name: &str) -> f64 {
        let page = self.request("GET", "/metrics", "", b"").unwrap().body;
        let line = page.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {page}"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer over HTTP.
pub(crate) struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some(Self {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        })
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// A request for a run on a recorded file, as JSON.
fn request(file: &str, evals: u64, seed: u64, strategy: &str) -> String {
    serde_json::json!({
        "device": format!("replay:{file}"), "evals": evals, "seed": seed, "strategy": strategy,
    })
    .to_string()
}

/// What `look` finds; fails after three minutes, in which any machine does anything here.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
