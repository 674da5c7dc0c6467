//! What the other tests run as a process of its own, to kill it or to bind it.

use crate::store::support::{config, key, proven, start, timed};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tuner_core::record::DeviceKind;
use tuner_core::units::Seed;
use tuner_store::{LeaderboardQuery, RunEnd, Store};

/// This program as a child that does `job` on the database.
pub(crate) fn command(job: &str, database: &Path, seed: u64, trials: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    as_child(&mut command, job, database, seed, trials);
    command
}

/// The arguments and environment that make this program a child.
pub(crate) fn as_child(command: &mut Command, job: &str, database: &Path, seed: u64, trials: u64) {
    command
        .args([
            "--exact",
            "store::child::entry",
            "--ignored",
            "--nocapture",
            "-q",
        ])
        .env("STORE_TEST_JOB", job)
        .env("STORE_TEST_DATABASE", database)
        .env("STORE_TEST_SEED", seed.to_string())
        .env("STORE_TEST_TRIALS", trials.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

/// The number after the last `key ` in a child's output.
pub(crate) fn last_number(output: &str, key: &str) -> Option<u64> {
    output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

#[test]
#[ignore = "a process that other tests start"]
fn entry() {
    let database = PathBuf::from(variable("STORE_TEST_DATABASE"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match variable("STORE_TEST_JOB").as_str() {
        "submit" => runtime.block_on(submit(&database)),
        "read" => runtime.block_on(read(&database)),
        job => panic!("unknown job {job}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Submits trials a few at a time, and says how many were acknowledged.
async fn submit(database: &Path) {
    let seed: u64 = variable("STORE_TEST_SEED").parse().unwrap();
    let trials: u64 = variable("STORE_TEST_TRIALS").parse().unwrap();
    let mut start = start(DeviceKind::Cuda);
    start.seed = Seed(seed);
    let store = match Store::open(database).await {
        Ok(store) => store,
        Err(error) => return say(&format!("error {error}")),
    };
    let run = store.begin_run(start.clone()).await.unwrap();
    let mut acked = 0;
    let mut sequence = 0;
    while sequence < trials {
        let mut acks = Vec::new();
        for _ in 0..5 {
            let trial = timed(
                &start,
                sequence,
                config(i64::try_from(sequence).unwrap(), 0),
                1.0,
            );
            acks.push(
                store
                    .submit(&run, &key(&start), proven(trial))
                    .await
                    .unwrap(),
            );
            sequence += 1;
        }
        for ack in acks {
            match ack.await {
                Ok(()) => acked += 1,
                Err(error) => {
                    say(&format!("acked {acked}"));
                    say(&format!("error {error}"));
                    let _ = store.finish_run(&run, RunEnd::Failed).await;
                    let _ = store.close().await;
                    return;
                }
            }
        }
        say(&format!("acked {acked}"));
    }
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    store.close().await.unwrap();
}

async fn read(database: &Path) {
    let result = async {
        let store = Store::open_read(database).await?;
        store.leaderboard(&LeaderboardQuery::default()).await
    };
    match result.await {
        Ok(rows) => say(&format!("rows {}", rows.len())),
        Err(error) => say(&format!("error {error}")),
    }
}
