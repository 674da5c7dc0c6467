//! `tuner run --device any`: concurrent runs, one on each kind of device in a fleet; their searches share
//! results.

use super::CommandResult;
use super::events::{stopping, watch_signals};
use super::terminal::ProgressMode;
use super::{CliError, progress};
use futures_util::future::join_all;
use std::path::Path;
use std::sync::Arc;
use tuner_engine::fleet::{Fleet, describe};
use tuner_engine::job::{JobError, Prepared, Request};
use tuner_engine::threads::start_runtime;
use tuner_engine::{Event, Report, StopReason};
use tuner_store::Store;

/// Device name for all kinds.
pub(super) const ANY: &str = "any";

/// Rejects options that are valid for a single run only.
pub(super) fn check_options(
    events: Option<&Path>,
    progress: Option<ProgressMode>,
) -> Result<(), CliError> {
    if events.is_some() {
        // Trial events do not name their run.
        refuse!("--events is for one run, and --device any starts several; leave --events out");
    }
    if progress.is_some_and(|mode| mode != ProgressMode::None) {
        refuse!(
            "--device any shows the new bests of all its runs and no other progress; leave \
             --progress out"
        );
    }
    Ok(())
}

/// Tunes for every kind of device lent now, each with its own leaderboard.
pub(super) fn run(
    request: &Request,
    folder: &Path,
    db: &Path,
    resume: bool,
    fleet: &Arc<dyn Fleet>,
) -> CommandResult {
    let offers = fleet.offers();
    if offers.is_empty() {
        refuse!(
            "no worker of the fleet lends a device for kernels; start one with `tuner worker --fleet \
             URL --device cuda:0`, or look with `tuner status --fleet URL`"
        );
    }
    say!("the fleet lends {}", describe(&offers));
    let mut all = Vec::with_capacity(offers.len());
    for offer in &offers {
        let device = offer.facts.name.clone();
        let mut request = request.clone();
        request.device.clone_from(&device);
        let prepared = Prepared::on_fleet(&request, folder, Arc::clone(fleet))?;
        all.push((device, prepared));
    }
    let runtime = start_runtime("tuner", 2)?;
    let reports = runtime.block_on(async {
        let shutdown = watch_signals(stopping)?;
        let store = Store::open(db).await?;
        for (device, prepared) in &mut all {
            if resume {
                prepared.resume_latest(&store).await?;
            }
            prepared.learn_from_others();
            prepared.ready(&store, &shutdown).await?;
            for note in &prepared.notes {
                say!("{device}: {note}");
            }
        }
        let runs = all.into_iter().map(async |(device, prepared)| {
            let mut sink = |event: &Event| tell(&device, event);
            prepared.execute(&store, shutdown.clone(), &mut sink).await
        });
        let reports = join_all(runs).await;
        store.close().await?;
        Ok::<_, CliError>(reports)
    })?;
    // Threads that still compile a dropped candidate are not joined.
    runtime.shutdown_background();
    conclude(reports)
}

/// Prints new bests and notes of one of several devices.
fn tell(device: &str, event: &Event) {
    match event {
        Event::RunStarted { run_id, .. } => say!("{device}: run {run_id}"),
        Event::Trial(trial) if trial.new_best && !trial.resumed => {
            let time = trial.time_us.map(|us| progress::labelled(us, trial.timing));
            let time = time.unwrap_or_default();
            let (kernel, problem) = (&trial.kernel, &trial.problem);
            say!("{device}: {kernel} {problem}: {time} after {}", trial.evals);
        }
        Event::Note { text } => say!("{device}: {text}"),
        Event::Trial(_) | Event::RunFinished { .. } => {}
    }
}

/// Returns the first failure, else the summary of all runs.
fn conclude(reports: Vec<Result<Report, JobError>>) -> CommandResult {
    let mut passed = false;
    let mut interrupted = false;
    let mut text = String::new();
    for report in reports {
        let report = report?;
        passed |= report.passed();
        interrupted |= report.reason == StopReason::Interrupted;
        for task in &report.tasks {
            super::summary::task_summary(&mut text, task);
        }
    }
    super::output::print(&text)?;
    Ok(super::run::exit_code(interrupted, passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_one_run_are_refused() {
        let refused = |events, progress| check_options(events, progress).unwrap_err().to_string();
        let log = Some(Path::new("events.jsonl"));
        assert!(refused(log, None).contains("leave --events out"));
        for mode in [ProgressMode::Plain, ProgressMode::Json] {
            assert!(refused(None, Some(mode)).contains("--progress out"));
        }
        assert!(check_options(None, None).is_ok());
        assert!(check_options(None, Some(ProgressMode::None)).is_ok());
    }
}
