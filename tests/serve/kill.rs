//! SIGKILL at random points under load: what was acknowledged is there, what was announced is
//! stored, every run comes to the same end as if nothing had happened.
//!
//! Small here; `TUNER_KILL_RUNS=100 TUNER_KILL_EVALS=1000 TUNER_KILLS=40` is the size that
//! docs/evidence/measurements.md reports.

use super::{Daemon, RECORDED, recorded_folder, request, serve, wait_for};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use sqlx::Row as _;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Copies of the recorded file: each is a device of its own, so that engines work side by side.
const DEVICES: u64 = 3;

fn size(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// What the world was told.
#[derive(Default)]
struct Told {
    /// Runs whose submission was answered with 201.
    acknowledged: Mutex<BTreeSet<String>>,
    /// Run, sequence and verdict of announced results.
    announced: Mutex<BTreeSet<(String, u64, String)>>,
}

#[test]
fn killed_at_random_points_under_load_it_loses_nothing() {
    let (runs, evals) = (size("TUNER_KILL_RUNS", 16), size("TUNER_KILL_EVALS", 250));
    let kills = size("TUNER_KILLS", 12);
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let folder = dir.path().join("recorded");
    std::fs::create_dir(&folder).unwrap();
    for copy in 0..DEVICES {
        std::fs::copy(
            recorded_folder().join(RECORDED),
            folder.join(format!("{copy}.json.gz")),
        )
        .unwrap();
    }
    let start = || {
        Daemon::from(
            serve(&db)
                .arg("--kernels")
                .arg(&folder)
                .args(["--engines", "3"]),
            &db,
        )
    };
    let told = Told::default();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(11);
    let (mut submitted, mut killed, mut under_load) = (0, 0, 0);
    while killed < kills {
        let daemon = start();
        let over = AtomicBool::new(false);
        let pause = Duration::from_millis(rng.random_range(30..900));
        std::thread::scope(|scope| {
            scope.spawn(|| listen(&daemon, &told, &over));
            // Submitting goes on while the daemon dies.
            scope.spawn(|| submitted = submit(&daemon, &told, submitted, runs, evals, &over));
            std::thread::sleep(pause);
            under_load += u64::from(daemon_is_busy(&daemon));
            daemon.signal("KILL");
            over.store(true, Ordering::Relaxed);
        });
        killed += 1;
    }
    let daemon = start();
    submit(
        &daemon,
        &told,
        submitted,
        runs,
        evals,
        &AtomicBool::new(false),
    );
    let (_, list) = daemon.get("/api/v1/runs?limit=1");
    // One after another, so that each has its own time.
    let mut before = list["runs"][0]["id"].as_str().map(|id| format!("{id}~"));
    while let Some(id) = before.take() {
        let (_, page) = daemon.get(&format!("/api/v1/runs?before={id}"));
        for run in page["runs"].as_array().unwrap().iter().rev() {
            daemon.wait(run["id"].as_str().unwrap(), "finished");
        }
        before = page["next"].as_str().map(str::to_owned);
    }
    assert!(daemon.end().success());
    let stored = judge(&db, &told, evals);
    let (acknowledged, announced) = (
        told.acknowledged.lock().unwrap().len(),
        told.announced.lock().unwrap().len(),
    );
    println!(
        "kills {killed} ({under_load} with engines at work), runs acknowledged {acknowledged}, \
         results announced before their death {announced}, candidates stored {stored}"
    );
    assert!(acknowledged as u64 >= runs);
    assert!(under_load > 0);
}

fn daemon_is_busy(daemon: &Daemon) -> bool {
    daemon
        .request("GET", "/metrics", "", b"")
        .is_some_and(|page| {
            page.body
                .lines()
                .any(|line| line.starts_with("tuner_engines_busy") && !line.ends_with(" 0"))
        })
}

/// Submits until all runs are acknowledged or the daemon is gone; how many were asked for.
fn submit(
    daemon: &Daemon,
    told: &Told,
    from: u64,
    runs: u64,
    evals: u64,
    over: &AtomicBool,
) -> u64 {
    let mut next = from;
    while next < runs && !over.load(Ordering::Relaxed) {
        let file = format!("{}.json.gz", next % DEVICES);
        let body = request(&file, evals, next, "random");
        let json = "content-type: application/json\r\n";
        let Some(answer) = daemon.request("POST", "/api/v1/runs", json, body.as_bytes()) else {
            break;
        };
        assert_eq!(answer.status, 201, "{}", answer.body);
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        told.acknowledged.lock().unwrap().insert(id);
        next += 1;
    }
    next
}

/// Listens to the runs under way, one after another, until the daemon is gone.
fn listen(daemon: &Daemon, told: &Told, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let Some(answer) = daemon.request("GET", "/api/v1/runs?state=running&limit=1", "", b"")
        else {
            return;
        };
        let Some(id) = answer.json()["runs"][0]["id"].as_str().map(str::to_owned) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let path = format!("/api/v1/runs/{id}/events");
        let Some(stream) = daemon.open("GET", &path, "", 0) else {
            return;
        };
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let data = line.strip_prefix("data: ").unwrap_or_default();
            let Ok(event) = serde_json::from_str::<Value>(data) else {
                continue;
            };
            if event["event"] == "trial" {
                told.announced.lock().unwrap().insert((
                    id.clone(),
                    event["sequence"].as_u64().unwrap(),
                    event["verdict"].as_str().unwrap().to_owned(),
                ));
            }
        }
    }
}

/// Holds the database against what was told; the number of results in it.
fn judge(db: &Path, told: &Told, evals: u64) -> u64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = crate::rig::database::connected(db).await;
        let whole: String = sqlx::query_scalar("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(whole, "ok");
        let states: Vec<(String, String)> = sqlx::query_as("SELECT name, state FROM queue")
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let states: BTreeMap<String, String> = states.into_iter().collect();
        for id in told.acknowledged.lock().unwrap().iter() {
            assert_eq!(states.get(id).map(String::as_str), Some("finished"), "{id}");
        }
        let rows = sqlx::query(
            "SELECT r.name, r.seed, v.sequence, v.verdict, c.config FROM verdicts v
             JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
             JOIN candidates c ON c.id = v.candidate ORDER BY r.name, v.sequence",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let mut stored: BTreeMap<String, Vec<(i64, String, String)>> = BTreeMap::new();
        let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in &rows {
            let run: String = row.get("name");
            let seed: String = row.get("seed");
            same.entry(seed).or_default().push(run.clone());
            stored.entry(run).or_default().push((
                row.get("sequence"),
                row.get("verdict"),
                row.get("config"),
            ));
        }
        for (run, results) in &stored {
            let sequences: Vec<i64> = results.iter().map(|(sequence, _, _)| *sequence).collect();
            assert_eq!(sequences, (0..evals as i64).collect::<Vec<_>>(), "{run}");
            let distinct: BTreeSet<&String> = results.iter().map(|(_, _, c)| c).collect();
            assert_eq!(distinct.len() as u64, evals, "{run} judged something twice");
        }
        for (run, sequence, verdict) in told.announced.lock().unwrap().iter() {
            let (_, kept, _) = &stored[run][usize::try_from(*sequence).unwrap()];
            assert_eq!(kept, verdict, "{run} result {sequence}");
        }
        // A request that was sent and never acknowledged may have been queued, and then sent
        // again: both came to the same.
        for runs in same.values() {
            for run in runs {
                assert_eq!(stored[run], stored[&runs[0]], "{run} and {}", runs[0]);
            }
        }
        rows.len() as u64
    })
}

#[test]
fn a_killed_run_ends_as_one_that_was_never_killed() {
    let dir = TempDir::new().unwrap();
    let leaderboard = |db: &Path, kills: u32| {
        let mut daemon = Daemon::start(db);
        let id = daemon.submit(700, 13, "evolve");
        for _ in 0..kills {
            let path = format!("/api/v1/runs/{id}");
            let (_, run) = daemon.get(&path);
            let before = run["evals"].as_u64().unwrap();
            wait_for("progress", || {
                (daemon.get(&path).1["evals"].as_u64().unwrap_or(0) > before).then_some(())
            });
            daemon.kill();
            daemon = Daemon::start(db);
        }
        daemon.wait(&id, "finished");
        let (_, mut rows) = daemon.get("/api/v1/leaderboard?top=1000");
        for row in rows.as_array_mut().unwrap() {
            for key in ["run_id", "measured_at"] {
                row.as_object_mut().unwrap().remove(key);
            }
        }
        rows
    };
    let killed = leaderboard(&dir.path().join("killed.db"), 4);
    let whole = leaderboard(&dir.path().join("whole.db"), 0);
    assert_eq!(killed, whole);
}
