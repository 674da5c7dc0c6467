//! Recorded results as rows of the database.

use crate::cli::{CliError, CommandResult, usage};
use crate::exit;
use std::path::Path;
use std::sync::Arc;
use tuner_core::escape;
use tuner_core::provenance;
use tuner_core::record::{DeviceKind, TaskKey, Verdict};
use tuner_core::units::Seed;
use tuner_core::units::counted;
use tuner_device::replay::Recording;
use tuner_engine as engine;
use tuner_engine::{Evaluator as _, Preparation, ReplayEvaluator};
use tuner_store::{
    DeviceFilter, DeviceStart, LeaderboardQuery, RecordingSource, RunEnd, RunStart, Store,
};

/// Selector and strategy that mark an import.
const NAME: &str = "import";
/// Number of trials submitted before waiting for their commits.
const TRIALS_IN_FLIGHT: usize = 1024;

/// Stores every recorded row, including failed ones, as one finished run.
pub(super) async fn import(file: &Path, db: &Path) -> CommandResult {
    let recording = Arc::new(Recording::load(file)?);
    let store = Store::open(db).await?;
    let (path, hash) = provenance::recording(file)
        .map_err(|error| usage(format!("{}: cannot be read: {error}", file.display())))?;
    let source = RecordingSource { path, hash };
    if imported_before(&store, &source).await? {
        say!(
            "{}: was imported into {} before",
            file.display(),
            db.display()
        );
        store.close().await?;
        return Ok(exit::DONE);
    }
    let start = start(&recording, source);
    let (rows, passed) = fill(&store, &recording, start).await?;
    store.close().await?;
    say!(
        "{}: {rows} {} rows of {} on {} into {}, {passed} with a time",
        file.display(),
        recording.timing,
        escape::line(&recording.kernel),
        escape::line(&recording.device),
        db.display()
    );
    if recording.excluded_rows > 0 {
        say!(
            "note: left out: {} that the file's own constraints forbid",
            counted(recording.excluded_rows, "row")
        );
    }
    Ok(if passed == 0 {
        exit::NOTHING_PASSED
    } else {
        exit::DONE
    })
}

fn start(recording: &Recording, source: RecordingSource) -> RunStart {
    RunStart {
        device: DeviceStart {
            name: recording.device.clone(),
            kind: DeviceKind::Replay,
            arch: String::new(),
            selector: NAME.to_owned(),
            recording: Some(source),
            environment: Vec::new(),
        },
        seed: Seed(0),
        strategy: NAME.to_owned(),
        settings: serde_json::json!({}),
        tasks: vec![ReplayEvaluator::task(recording)],
    }
}

/// Reports whether a finished run contains all of this file.
async fn imported_before(store: &Store, source: &RecordingSource) -> Result<bool, CliError> {
    let query = LeaderboardQuery {
        device: Some(DeviceFilter::Recording(source.clone())),
        top: Some(1),
        ..LeaderboardQuery::default()
    };
    for board in store.boards(&query).await? {
        let lines = store.time_lines(&board).await?;
        let whole = lines.iter().map(|line| &line.run).any(|run| {
            run.strategy == NAME
                && run.state == "finished"
                && run.recording_hash.as_deref() == Some(source.hash.as_str())
        });
        if whole {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Submits all rows in the order of the space; returns their number and the number with a time.
async fn fill(
    store: &Store,
    recording: &Arc<Recording>,
    start: RunStart,
) -> Result<(usize, usize), CliError> {
    let task = TaskKey {
        kernel: recording.kernel.clone(),
        problem: recording.problem.clone(),
        device: recording.device.clone(),
    };
    let evaluator = ReplayEvaluator::new(Arc::clone(recording));
    let run = store.begin_run(start).await?;
    let failed = |error: engine::BoxError| anyhow::anyhow!("{error}");
    let (mut rows, mut passed) = (0, 0);
    let mut acks = Vec::with_capacity(TRIALS_IN_FLIGHT);
    for config in recording.configs() {
        let judged = match evaluator.prepare(0, config).map_err(failed)? {
            Preparation::Judged(judged) => *judged,
            Preparation::Ready { work, .. } => {
                evaluator.evaluate(0, config, work).map_err(failed)?
            }
        };
        passed += usize::from(judged.verdict() == Verdict::Ok);
        let values = recording.space.values(config);
        let trial = engine::record(judged, rows as u64, values, NAME);
        acks.push(store.submit(&run, &task, trial).await?);
        rows += 1;
        // Waiting for each trial would make each its own transaction: the writer groups commits.
        if acks.len() == TRIALS_IN_FLIGHT {
            for ack in acks.drain(..) {
                ack.await?;
            }
        }
    }
    for ack in acks {
        ack.await?;
    }
    // Last: a later import assumes that a finished run has all rows of the file.
    store.finish_run(&run, RunEnd::Finished).await?;
    Ok((rows, passed))
}
