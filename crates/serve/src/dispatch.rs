//! Dispatcher: takes runs from the queue, runs one engine per device, and stores the end of each run.

use super::app::{App, KNOWN, KnownCount, NOTES, run_view};
use super::live::LiveRun;
use super::summary;
use super::view::RunView;
use rustix::io::Errno;
use serde_json::json;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tuner_device::DeviceSelector;
use tuner_device::worker::host::WorkerError;
use tuner_engine::job::{JobError, Prepared, Request};
use tuner_engine::threads::{run_blocking, start_blocking};
use tuner_engine::{EngineError, Event, Report, StopReason};
use tuner_store::{Failure, JobState, QueuedJob, RunId, RunRow, StoreError};

/// Polling interval of the queue: a `tuner submit` writes to the database directly.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between stores of a run's used time.
const USED_TIME_INTERVAL: Duration = Duration::from_secs(10);

/// Delay before a run whose results could not be stored is retried.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Maximum wait of the shutdown for candidates on their devices.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(60);

/// Runs the queue until the daemon ends; then stops the engines in order.
pub(super) async fn dispatch(app: Arc<App>, engines: usize) {
    let mut working: JoinSet<String> = JoinSet::new();
    let mut busy: HashMap<String, Arc<LiveRun>> = HashMap::new();
    let mut ending = app.ending.clone();
    let mut noted = Instant::now();
    while !*ending.borrow() {
        if busy.len() < engines {
            let devices: Vec<String> = busy.keys().cloned().collect();
            let most = engines - busy.len();
            let next = app.read(async move |store| store.next_jobs(&devices, most).await);
            match next.await {
                Ok(jobs) => {
                    let mut taken: Vec<String> = busy.keys().cloned().collect();
                    for job in jobs {
                        let device = job.job.device.clone();
                        // A run that needs several GPUs is not overtaken by runs that need one.
                        if !taken.iter().any(|other| overlap(other, &device)) {
                            begin(&app, job, &mut busy, &mut working).await;
                        }
                        taken.push(device);
                    }
                }
                Err(error) => tracing::error!(%error, "the queue cannot be read; trying again"),
            }
        }
        if noted.elapsed() >= USED_TIME_INTERVAL {
            noted = Instant::now();
            note_time(&app, &busy).await;
        }
        tokio::select! {
            Some(left) = working.join_next(), if !working.is_empty() => leave(&mut busy, left),
            () = app.wake.notified() => {}
            () = tokio::time::sleep(QUEUE_POLL_INTERVAL) => {}
            () = tuner_engine::turned(&mut ending) => {}
        }
    }
    for run in busy.values() {
        // Not requested by a user: an interrupted run returns to the queue.
        run.stop(false);
    }
    let drained = tokio::time::timeout(SHUTDOWN_GRACE, async {
        while let Some(left) = working.join_next().await {
            leave(&mut busy, left);
        }
    });
    if drained.await.is_err() {
        tracing::warn!(
            runs = busy.len(),
            "candidates are still on their devices after {} s; their runs go on at the next start",
            SHUTDOWN_GRACE.as_secs()
        );
    }
}

/// Reports whether two devices share a GPU: `cuda:0` and `cuda:0,1`.
fn overlap(a: &str, b: &str) -> bool {
    let parsed = (a.parse::<DeviceSelector>(), b.parse::<DeviceSelector>());
    if let (Ok(one), Ok(other)) = &parsed
        && !one.gpus().is_empty()
    {
        return one.gpus().iter().any(|gpu| other.gpus().contains(gpu));
    }
    a == b
}

fn leave(busy: &mut HashMap<String, Arc<LiveRun>>, left: Result<String, tokio::task::JoinError>) {
    match left {
        Ok(device) => drop(busy.remove(&device)),
        Err(error) => tracing::error!(%error, "an engine's thread is lost; please report this"),
    }
}

/// Stores the used budgets, so that they survive a power loss.
async fn note_time(app: &App, busy: &HashMap<String, Arc<LiveRun>>) {
    for run in busy.values() {
        let id = run.view().id;
        let noted = app.store.spend(&RunId::from_text(&id), run.spent_s()).await;
        if let Err(error) = noted {
            tracing::warn!(run = id, %error, "the time used cannot be noted");
        }
    }
}

async fn begin(
    app: &Arc<App>,
    queued: QueuedJob,
    busy: &mut HashMap<String, Arc<LiveRun>>,
    working: &mut JoinSet<String>,
) {
    match app.store.start_job(&queued.id).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            tracing::error!(run = %queued.id, %error, "the run cannot be taken up; trying again");
            return;
        }
    }
    let device = queued.job.device.clone();
    let stored = app.run(queued.id.as_str()).await.ok().flatten();
    let queued_row = || RunRow {
        id: queued.id.to_string(),
        request: Some(queued.job.request.clone()),
        selector: device.clone(),
        ..RunRow::default()
    };
    let mut view = stored.unwrap_or_else(|| run_view(queued_row()));
    "running".clone_into(&mut view.state);
    let run = Arc::new(LiveRun::new(view, queued.spent_s));
    busy.insert(device.clone(), Arc::clone(&run));
    app.live.add(&run);
    tracing::info!(run = %queued.id, device, "begins");
    let (id, spent) = (queued.id.clone(), queued.spent_s);
    let (ours, handle) = (Arc::clone(app), tokio::runtime::Handle::current());
    // The search computes for milliseconds between awaits, so it has a separate thread.
    let engine = start_blocking("engine", move || engine(&ours, &queued, &run, &handle));
    match engine {
        Ok(reply) => drop(working.spawn(async move {
            let _ = reply.await;
            device
        })),
        Err((error, _)) => {
            tracing::error!(run = %id, %error, "it cannot begin now; trying again");
            app.live.remove(id.as_str());
            if let Err(error) = app.store.leave_job(&id, JobState::Queued, "", spent).await {
                tracing::error!(run = %id, %error, "that it waits cannot be stored");
            }
            // After a pause the device is available for the next attempt.
            working.spawn(async move {
                tokio::time::sleep(STORE_RETRY_DELAY).await;
                device
            });
        }
    }
}

/// Executes one run on this thread, and stores its end even if the run panics.
fn engine(app: &App, queued: &QueuedJob, run: &LiveRun, handle: &tokio::runtime::Handle) {
    let conduct = || handle.block_on(conduct(app, queued, run));
    if catch_unwind(AssertUnwindSafe(conduct)).is_err() {
        // Candidates and lanes cannot cause this: it is a defect of the tuner, and ends one run.
        let report = super::crash::keep(app.store.path(), &queued.id);
        let message = match report {
            Some(path) => format!(
                "the tuner panicked while it set the run up; please report this with {}",
                path.display()
            ),
            None => "the tuner panicked while it set the run up; please report this".into(),
        };
        let spent = run.spent_s();
        let left = app
            .store
            .leave_job(&queued.id, JobState::Failed, &message, spent);
        if let Err(error) = handle.block_on(left) {
            tracing::error!(run = %queued.id, %error, "its end cannot be stored");
        }
    }
    app.live.remove(queued.id.as_str());
}

/// Executes one run and stores its end; retries until the database can be written or the daemon ends.
async fn conduct(app: &App, queued: &QueuedJob, run: &LiveRun) {
    let began = Instant::now();
    let result = work(app, queued, run).await;
    let mut ending = app.ending.clone();
    let (state, message) = verdict(&result, run);
    match device_failure(&result) {
        Some(why) => app.conditions.device_fails(&queued.job.device, why),
        None if result.is_ok() => app.conditions.device_works(&queued.job.device),
        // Failed for a reason unrelated to the device.
        None => {}
    }
    match &result {
        Err(error) if state == JobState::Queued => {
            tracing::error!(run = %queued.id, %error, "it cannot go on now; trying again");
            let wait = tokio::time::sleep(STORE_RETRY_DELAY);
            tokio::select! {
                () = wait => {}
                () = tuner_engine::turned(&mut ending) => {}
            }
        }
        Err(error) => tracing::warn!(run = %queued.id, %error, "failed"),
        Ok(report) => tracing::info!(
            run = %queued.id, state = state.name(), evals = report.evals(), "ends"
        ),
    }
    let spent = queued.spent_s + began.elapsed().as_secs_f64();
    while let Err(error) = app
        .store
        .leave_job(&queued.id, state, &message, spent)
        .await
    {
        tracing::error!(run = %queued.id, %error, "its end cannot be stored; trying again");
        if *ending.borrow() {
            // The run is still `running` in the database and continues at the next start.
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    run.edit(|view| {
        state.name().clone_into(&mut view.state);
        view.message.clone_from(&message);
    });
}

/// Maps the end of an engine to a queue state.
fn verdict(result: &Result<Report, JobError>, run: &LiveRun) -> (JobState, String) {
    match result {
        Ok(report) if report.reason == StopReason::Interrupted => {
            if run.was_asked() {
                (JobState::Stopped, summary::describe(report))
            } else {
                (JobState::Queued, String::new())
            }
        }
        Ok(report) => (JobState::Finished, summary::describe(report)),
        // First: a connection to the database also needs a thread.
        Err(error) if is_shortage(&format!("{error:#}")) => (JobState::Queued, String::new()),
        Err(JobError::Store(StoreError {
            failure: Failure::Broken(detail),
            ..
        })) => (JobState::Failed, detail.clone()),
        // A full disk or a lock is temporary, and so is the damage that a failing disk shows: the daemon opened a whole
        // database. Announced results are stored, and the run continues.
        Err(JobError::Store(_)) => (JobState::Queued, String::new()),
        Err(error) => (JobState::Failed, error.without_excerpts()),
    }
}

/// Reports whether a failure is due to a lack of descriptors, processes or memory, which may become
/// available. System errors of `dlopen`, threads and processes are reported as text.
fn is_shortage(reason: &str) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    reason.contains("SQLite gets no memory")
        || codes.iter().any(|code| {
            let text = std::io::Error::from(*code).to_string();
            let words = text.split(" (os error").next().unwrap_or_default();
            reason.contains(words)
        })
}

/// Returns the reason if the device or its driver ended a run.
fn device_failure(result: &Result<Report, JobError>) -> Option<String> {
    match result {
        Err(JobError::Device(text)) => Some(text.trim_end().to_owned()),
        Err(JobError::Failed(error))
            if error.is::<WorkerError>()
                || matches!(error.downcast_ref(), Some(EngineError::Device(_))) =>
        {
            Some(format!("{error:#}"))
        }
        _ => None,
    }
}

async fn work(app: &App, queued: &QueuedJob, run: &LiveRun) -> Result<Report, JobError> {
    let request: Request = serde_json::from_str(&queued.job.request).map_err(|error| {
        JobError::Failed(anyhow::anyhow!(
            "the stored request cannot be read: {error}"
        ))
    })?;
    let folder = Path::new(queued.job.folder.as_deref().unwrap_or("."));
    let mut prepared = match &app.settings.fleet {
        None => Prepared::new(&request, folder)?,
        Some(fleet) => {
            // Requests to the server block, so they must not run on an async thread.
            let (request, folder, fleet) = (request, folder.to_owned(), Arc::clone(fleet));
            let setting_up = move || Prepared::on_fleet(&request, &folder, fleet);
            let set_up = run_blocking("set-up", setting_up).await;
            set_up.map_err(|error| JobError::Failed(error.into()))??
        }
    };
    run.own(prepared.owner);
    let (id, start) = (queued.id.clone(), prepared.plan().start.clone());
    let begun = app.read(async move |store| store.begun_run(&id, &start).await);
    match begun.await? {
        Some(stored) => prepared.resume(stored)?,
        None => prepared.name(queued.id.clone()),
    }
    prepared.ready(&app.store, &run.stopping()).await?;
    // The budget is for all sessions of the run.
    prepared.spend(Duration::try_from_secs_f64(queued.spent_s).unwrap_or_default());
    run.edit(|view| view.notes.clone_from(&prepared.notes));
    let mut begun = false;
    let handle = tokio::runtime::Handle::current();
    let mut sink = |event: &Event| {
        if !begun {
            // From here on a crash of the daemon is not attributed to this run, because its setup is
            // complete.
            begun = true;
            let (store, id) = (app.store.clone(), queued.id.clone());
            handle.spawn(async move {
                if let Err(error) = store.job_works(&id).await {
                    tracing::warn!(run = %id, %error, "that it began cannot be noted");
                }
            });
        }
        run.take(event);
        if let Event::Trial(trial) = event {
            app.live.count(trial);
        }
    };
    let report = prepared
        .execute(&app.store, run.stopping(), &mut sink)
        .await;
    // A run that failed is tried again, or the disk is broken.
    if report.is_ok() {
        note_view(app, queued, &run.view()).await;
    }
    report
}

/// Stores what only the events of a run say: its notes, and the trials that earlier runs answered.
async fn note_view(app: &App, queued: &QueuedJob, view: &RunView) {
    let known: Vec<KnownCount> = view.tasks.iter().map(KnownCount::new).collect();
    let values = [(NOTES, json!(view.notes)), (KNOWN, json!(known))];
    for (key, value) in values {
        if let Err(error) = app.store.note_setting(&queued.id, key, &value).await {
            tracing::warn!(run = %queued.id, %error, "its notes cannot be stored");
        }
    }
}

#[cfg(test)]
mod tests;
