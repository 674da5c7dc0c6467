//! What the daemon bears: requests a second on a leaderboard of a million measurements, and its
//! memory while a million candidates go through its engines.
//!
//! `cargo bench --bench serve`; `TUNER_BENCH_ROWS` and `TUNER_BENCH_CANDIDATES` make it smaller,
//! 0 leaves a part out.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tuner_store::{RunEnd, Store};

#[expect(dead_code, clippy::unwrap_used, reason = "shared with the tests")]
#[path = "../tests/store/support.rs"]
mod support;

type Anything = Box<dyn std::error::Error>;

/// Clients that ask at once.
const CLIENTS: usize = 8;

/// How long each kind of question is asked.
const ASKING: Duration = Duration::from_secs(10);

/// Results that are handed over before their commits are waited for.
const GROUP: u64 = 10_000;

fn main() -> Result<(), Anything> {
    let rows = number("TUNER_BENCH_ROWS", 1_000_000);
    let candidates = number("TUNER_BENCH_CANDIDATES", 1_000_000);
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let db = directory.path().join("tuner.db");
    if rows > 0 {
        tokio::runtime::Runtime::new()?.block_on(fill(&db, rows))?;
        load(&db)?;
    }
    if candidates > 0 {
        soak(&directory.path().join("soak.db"), candidates)?;
    }
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Stores that many measurements of distinct candidates of one kernel.
async fn fill(db: &Path, rows: u64) -> Result<(), Anything> {
    let clock = Instant::now();
    let store = Store::open(db).await?;
    let start = support::start(tuner_core::record::DeviceKind::Vgpu);
    let task = support::key(&start);
    let run = store.begin_run(start.clone()).await?;
    let mut next = 0;
    while next < rows {
        let mut acks = Vec::new();
        for sequence in next..rows.min(next + GROUP) {
            let config = support::config(i64::try_from(sequence)?, 0);
            // Every place in the order is as likely as any other.
            let us = 100.0 + (sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / 1e3;
            let trial = support::timed(&start, sequence, config, us);
            acks.push(store.submit(&run, &task, support::proven(trial)).await?);
        }
        for ack in acks {
            ack.await?;
        }
        next += GROUP;
    }
    store.finish_run(&run, RunEnd::Finished).await?;
    store.close().await?;
    let size = std::fs::metadata(db)?.len() as f64 / 1e6;
    report("measurements stored", rows as f64, "");
    report(
        "rows/s while filling",
        rows as f64 / clock.elapsed().as_secs_f64(),
        "",
    );
    report("database", size, "MB");
    Ok(())
}

/// Questions of several clients at once.
fn load(db: &Path) -> Result<(), Anything> {
    let daemon = Daemon::start(db)?;
    let first = Connection::open(&daemon.address)?.get("/api/v1/leaderboard?top=1")?;
    let rows: serde_json::Value = serde_json::from_str(&first)?;
    let hash = rows[0]["candidate"].as_str().ok_or("no candidate")?;
    let candidate = format!("/api/v1/candidates/{hash}");
    ask("leaderboard, top 20", &daemon, &|_| {
        "/api/v1/leaderboard?top=20".to_owned()
    })?;
    // A hundred questions in turn: each is asked less often than its answer is kept, and answered
    // anew from the database.
    ask(
        "leaderboard, hundred numbers of rows in turn",
        &daemon,
        &|turn| format!("/api/v1/leaderboard?top={}", 1 + turn % 100),
    )?;
    ask("candidates", &daemon, &|_| candidate.clone())?;
    report(
        "daemon's memory",
        daemon.metric("process_resident_memory_bytes")? / 1e6,
        "MB",
    );
    daemon.end()
}

/// Has all clients ask for a while; prints requests a second and latencies.
fn ask(what: &str, daemon: &Daemon, path: &(dyn Fn(u64) -> String + Sync)) -> Result<(), Anything> {
    let turn = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let mut latencies: Vec<f64> = std::thread::scope(|scope| {
        let client = || -> Result<Vec<f64>, String> {
            let mut connection = Connection::open(&daemon.address).map_err(|e| e.to_string())?;
            let mut latencies = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let path = path(turn.fetch_add(1, Ordering::Relaxed));
                let clock = Instant::now();
                connection.get(&path).map_err(|e| e.to_string())?;
                latencies.push(clock.elapsed().as_secs_f64() * 1e3);
            }
            Ok(latencies)
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        std::thread::sleep(ASKING);
        over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for client in clients {
            match client.join() {
                Ok(latencies) => all.extend(latencies?),
                Err(_) => return Err("a client panicked".to_owned()),
            }
        }
        Ok(all)
    })?;
    let rate = latencies.len() as f64 / began.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    report(&format!("{what}, {CLIENTS} clients"), rate, "requests/s");
    report("  p50", at(0.5), "ms");
    report("  p99", at(0.99), "ms");
    report("  slowest", at(1.0), "ms");
    Ok(())
}

/// Runs through the engine until that many candidates are judged; memory on the way.
fn soak(db: &Path, candidates: u64) -> Result<(), Anything> {
    let daemon = Daemon::start(db)?;
    let clock = Instant::now();
    let mut connection = Connection::open(&daemon.address)?;
    // 6768 configurations a run.
    for seed in 0..candidates.div_ceil(6768) {
        let body = format!(
            "{{\"device\":\"replay:convbat_RTX3090.json.gz\",\"strategy\":\"exhaustive\",\
             \"seed\":{seed}}}"
        );
        connection.send("POST", "/api/v1/runs", &body)?;
    }
    let mut next = 0;
    loop {
        let judged = daemon.metric("tuner_candidates_total")? as u64;
        if judged >= next {
            let memory = daemon.metric("process_resident_memory_bytes")? / 1e6;
            report(&format!("memory after {judged} candidates"), memory, "MB");
            next += candidates / 10;
        }
        if judged >= candidates {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let rate = candidates as f64 / clock.elapsed().as_secs_f64();
    report("candidates/s through the daemon", rate, "");
    report(
        "database",
        daemon.metric("tuner_database_bytes")? / 1e6,
        "MB",
    );
    daemon.end()
}

fn report(what: &str, figure: f64, unit: &str) {
    eprintln!("{what:<60} {figure:>12.1} {unit}");
}

/// The daemon, in its own process.
struct Daemon {
    child: Child,
    address: String,
}

impl Daemon {
    fn start(db: &Path) -> Result<Self, Anything> {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["serve", "--listen", "127.0.0.1:0", "--db"])
            .arg(db)
            .arg("--kernels")
            .arg(recorded)
            .env("TUNER_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no standard output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().rsplit('/').next().ok_or("no address")?;
        let address = address.to_owned();
        Ok(Self { child, address })
    }

    /// The sum of a metric's samples.
    fn metric(&self, name: &str) -> Result<f64, Anything> {
        let page = Connection::open(&self.address)?.get("/metrics")?;
        let lines = page.lines().filter(|line| line.starts_with(name));
        Ok(lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    fn end(mut self) -> Result<(), Anything> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A connection that is used again.
struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
        })
    }

    fn get(&mut self, path: &str) -> std::io::Result<String> {
        self.send("GET", path, "")
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes())?;
        let mut line = String::new();
        let mut length = 0;
        self.stream.read_line(&mut line)?;
        if !line.contains(" 20") {
            return Err(std::io::Error::other(line));
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}
