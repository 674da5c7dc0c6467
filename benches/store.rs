//! What storing costs: rows a second when results queue up, the latency of one result alone (a
//! flush to the disk), and a leaderboard over all of it.

use std::time::Instant;
use tuner_store::{LeaderboardQuery, RunEnd, Store};

#[expect(dead_code, clippy::unwrap_used, reason = "shared with the tests")]
#[path = "../tests/store/support.rs"]
mod support;

const TRIALS: u64 = 50_000;
const ALONE: u64 = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let store = Store::open(&directory.path().join("tuner.db")).await?;
    let start = support::start(tuner_core::record::DeviceKind::Replay);
    let task = support::key(&start);
    let run = store.begin_run(start.clone()).await?;
    let trial = |sequence: u64| {
        let config = support::config(i64::try_from(sequence).unwrap_or(0), 0);
        support::timed(&start, sequence, config, 1.0 + sequence as f64)
    };

    let trials: Vec<_> = (0..TRIALS).map(trial).collect();
    let clock = Instant::now();
    let mut acks = Vec::new();
    for trial in trials {
        acks.push(store.submit(&run, &task, support::proven(trial)).await?);
    }
    for ack in acks {
        ack.await?;
    }
    let seconds = clock.elapsed().as_secs_f64();
    report("stored, grouped", TRIALS as f64 / seconds, "rows/s");
    report(
        "cost of a row, grouped",
        seconds * 1e6 / TRIALS as f64,
        "µs",
    );

    let clock = Instant::now();
    for sequence in TRIALS..TRIALS + ALONE {
        store
            .submit(&run, &task, support::proven(trial(sequence)))
            .await?
            .await?;
    }
    let each = clock.elapsed().as_secs_f64() * 1e3 / ALONE as f64;
    report("one result alone, to its commit", each, "ms");
    store.finish_run(&run, RunEnd::Finished).await?;

    let clock = Instant::now();
    let query = LeaderboardQuery {
        top: Some(10),
        ..LeaderboardQuery::default()
    };
    let rows = store.leaderboard(&query).await?.len();
    let took = clock.elapsed().as_secs_f64() * 1e3;
    report(
        &format!("leaderboard, top {rows} of {}", TRIALS + ALONE),
        took,
        "ms",
    );
    store.close().await?;
    Ok(())
}

fn report(what: &str, figure: f64, unit: &str) {
    eprintln!("{what:<36} {figure:>12.1} {unit}");
}
