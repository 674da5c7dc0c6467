//! Store: the only access to SQLite, with runs, verdicts, measurements, and their queries.
//!
//! Each [`Store`] has one writer task. It groups waiting results into one transaction and acknowledges
//! them after its COMMIT has reached the disk: results with a resolved [`Ack`] survive `kill -9` and
//! power loss. Two processes may write the same database at once: SQLite's lock orders them.
// The daemon depends on this crate: it must not panic, not even on an index.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod ack;
mod baselines;
mod begin;
mod bests;
mod board;
mod changes;
mod deletion;
mod details;
mod error;
mod evidence;
mod history;
mod known;
mod leaderboard;
mod log_watch;
mod open;
mod owner;
mod profiles;
mod proof;
mod queue;
mod rank;
mod related;
mod resume;
mod rows;
mod run;
mod runs;
mod saved;
mod sync;
mod tasks;
mod times;
mod top;
mod waits;
mod writer;

pub use ack::Ack;
pub use bests::CurvePoint;
pub use board::Board;
pub use changes::{Change, ChangeTime, EvolutionStart, Lineage};
pub use deletion::Deletion;
pub use error::{Failure, StoreError};
pub use history::{BestPeriod, Moment, RunFacts, Step, TimeLine};
pub use known::{KnownTrial, KnownTrials};
pub use leaderboard::{Admits, Admitted, DeviceFilter, LeaderboardQuery, VerdictCount};
pub use profiles::{Profile, ProfileSource};
pub use queue::{DaemonRow, JobState, MAX_QUEUED_RUNS, NewJob, QueuedJob};
pub use related::{Related, RelatedResults, TRIAL_COSTS, TrialCost};
pub use run::{
    DeviceStart, RecordingSource, RunEnd, RunId, RunStart, StoredRun, StoredTask, TaskStart,
};
pub use runs::{RunFilter, RunRow, RunTask, RunTrial};
pub use sync::{SyncCounts, pull};
pub use top::{Attempt, BoardEffects, CandidatePage, DeviceRow, Effect, EffectValue, FoundHazard};

use ack::closed;
use error::WithPath as _;
use open::OlderSchema;
use sqlx::{Connection as _, SqliteConnection};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, mpsc, oneshot, watch};
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::evidence::Measured;
use tuner_core::record::{LeaderboardRow, TaskKey, TrialRecord, Verdict};
use writer::{Command, Writer};

/// Default database path.
pub const DEFAULT_PATH: &str = "leaderboard/tuner.db";

/// Maximum wait of the daemon for another process's lock: a day.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(86_400);

/// A handle to a database; cheap to clone. It has no `commands` if it was opened for reading.
#[derive(Clone)]
pub struct Store {
    path: Arc<Path>,
    commands: Option<mpsc::Sender<Command>>,
    reader: Arc<Mutex<Option<SqliteConnection>>>,
    loss: watch::Receiver<Option<StoreError>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish()
    }
}

impl Store {
    /// Opens a database for writing and reading; creates it and its directories if missing. Needs a
    /// tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    /// See [`StoreError`]: not a database, newer, damaged, read-only, locked.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::writable(path).await?;
        Ok(Self::writing(path, connection, waits::BUSY_TIMEOUT))
    }

    fn writing(path: &Path, connection: SqliteConnection, busy_timeout: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(writer::MAX_QUEUED_COMMANDS);
        let writer = Writer::new(path.to_owned(), connection, busy_timeout);
        let loss = writer.loss();
        tokio::spawn(writer.run(receiver));
        Self {
            path: path.into(),
            commands: Some(sender),
            reader: Arc::default(),
            loss,
        }
    }

    /// Opens a database like [`Store::open`], for a process that can wait: if another one holds the
    /// lock (a backup), writes wait for a day instead of a minute.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_or_wait(path: &Path) -> Result<Self, StoreError> {
        let mut connection = open::writable(path).await?;
        sqlx::query("PRAGMA busy_timeout = 86400000")
            .execute(&mut connection)
            .await
            .with_path(path)?;
        Ok(Self::writing(path, connection, PATIENT_TIMEOUT))
    }

    /// Opens an existing database for reading, including from read-only folders.
    ///
    /// # Errors
    /// See [`StoreError`]: missing, not a database, newer, damaged.
    pub async fn open_read(path: &Path) -> Result<Self, StoreError> {
        Ok(Self::reading(
            path,
            open::readable(path, OlderSchema::Migrate).await?,
        ))
    }

    /// Opens an existing database for reading without changing it: if its schema is older, a copy
    /// is read.
    ///
    /// # Errors
    /// As [`Store::open_read`].
    pub async fn open_unchanged(path: &Path) -> Result<Self, StoreError> {
        Ok(Self::reading(
            path,
            open::readable(path, OlderSchema::Copy).await?,
        ))
    }

    fn reading(path: &Path, connection: SqliteConnection) -> Self {
        Self {
            path: path.into(),
            commands: None,
            reader: Arc::new(Mutex::new(Some(connection))),
            loss: watch::channel(None).1,
        }
    }

    /// Returns the size of the file and its log, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len());
        size(&self.path) + size(&open::log_of(&self.path))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a receiver of the loss of the database's files (moved, deleted, replaced or truncated),
    /// which is noticed within a second while a run is open. Submissions after it are rejected.
    #[must_use]
    pub fn loss(&self) -> watch::Receiver<Option<StoreError>> {
        self.loss.clone()
    }

    /// Stores a new run and its tasks.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn begin_run(&self, start: RunStart) -> Result<RunId, StoreError> {
        self.begin_run_as(None, start).await
    }

    /// Stores a new run under an existing name, such as that of a queued run.
    ///
    /// # Errors
    /// The name is taken, or the database cannot be written.
    pub async fn begin_run_as(
        &self,
        id: Option<RunId>,
        start: RunStart,
    ) -> Result<RunId, StoreError> {
        let id = id.unwrap_or_else(RunId::new);
        self.request(move |writer| Box::pin(async move { writer.begin(id, &start).await }))
            .await
    }

    /// Takes over an unfinished run found by [`Store::unfinished_run`]; its name is kept.
    ///
    /// # Errors
    /// Another process took it over first, or the database cannot be written.
    pub async fn reopen_run(&self, run: &RunId, start: RunStart) -> Result<(), StoreError> {
        let run = run.clone();
        self.request(move |writer| Box::pin(async move { writer.reopen(run, &start).await }))
            .await
    }

    /// Submits a judged candidate; waits only if thousands are queued. Stored when the
    /// [`Ack`] resolves. A time requires its proof:
    ///
    /// ```compile_fail
    /// # use tuner_core::record::{Measurement, TaskKey, TrialRecord};
    /// async fn forged(
    ///     store: &tuner_store::Store,
    ///     (run, task): (&tuner_store::RunId, &TaskKey),
    ///     trial: TrialRecord<Measurement>,
    /// ) {
    ///     let _ = store.submit(run, task, trial).await;
    /// }
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub async fn submit(
        &self,
        run: &RunId,
        task: &TaskKey,
        trial: TrialRecord<Measured>,
    ) -> Result<Ack, StoreError> {
        self.queue(run, task, trial, false).await
    }

    /// Stores a verdict of `timeout` before a launch that may hang or crash the machine, so that a
    /// resumed run does not repeat it. Wait for the [`Ack`], launch, then [`Store::submit`] the
    /// result: that replaces the announcement.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn announce(
        &self,
        run: &RunId,
        task: &TaskKey,
        mut trial: TrialRecord<Measured>,
    ) -> Result<Ack, StoreError> {
        trial.judgement.verdict = Verdict::Timeout;
        trial.measurement = None;
        if trial.judgement.detail.is_empty() {
            "the launch never came back: the tuner or the machine ended during it"
                .clone_into(&mut trial.judgement.detail);
        }
        self.queue(run, task, trial, true).await
    }

    /// Marks a run as ended; all its submitted trials are stored before it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn finish_run(&self, run: &RunId, end: RunEnd) -> Result<(), StoreError> {
        let run = run.clone();
        self.request(move |writer| Box::pin(async move { writer.finish(&run, end).await }))
            .await
    }

    /// Returns the latest run with the same kernels, template versions, problems, device and seed
    /// that was interrupted, failed or killed; with its trials in the order they were reported.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn unfinished_run(&self, start: &RunStart) -> Result<Option<StoredRun>, StoreError> {
        let reader = &mut *self.reader().await?;
        resume::unfinished(reader, start)
            .await
            .with_path(&self.path)
    }

    /// Returns the run of that name with its trials, for resuming it; `None` if it has not begun.
    ///
    /// # Errors
    /// The kernels changed since it began, or the database cannot be read.
    pub async fn begun_run(
        &self,
        id: &RunId,
        start: &RunStart,
    ) -> Result<Option<StoredRun>, StoreError> {
        let reader = &mut *self.reader().await?;
        resume::named(reader, id, start).await.with_path(&self.path)
    }

    /// Returns the ranked rows of every group that the query selects.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn leaderboard(
        &self,
        query: &LeaderboardQuery,
    ) -> Result<Vec<LeaderboardRow>, StoreError> {
        let boards = self.boards(query).await?;
        Ok(boards.into_iter().flat_map(|board| board.rows).collect())
    }

    /// Returns the leaderboard: each group's rows with their context.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn boards(&self, query: &LeaderboardQuery) -> Result<Vec<Board>, StoreError> {
        let reader = &mut *self.reader().await?;
        leaderboard::boards(reader, query)
            .await
            .with_path(&self.path)
    }

    /// Returns the entries of boards for exports: the best row of each that has one, and every
    /// time.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn entries(&self, boards: &[Board]) -> Result<Vec<Entry>, StoreError> {
        let reader = &mut *self.reader().await?;
        let mut entries = Vec::with_capacity(boards.len());
        for board in boards {
            entries.extend(
                leaderboard::entry(reader, board)
                    .await
                    .with_path(&self.path)?,
            );
        }
        Ok(entries)
    }

    /// Counts candidates by verdict.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn verdict_counts(
        &self,
        query: &LeaderboardQuery,
    ) -> Result<Vec<VerdictCount>, StoreError> {
        let reader = &mut *self.reader().await?;
        leaderboard::verdict_counts(reader, query)
            .await
            .with_path(&self.path)
    }

    /// Returns every candidate of a board's kernel, problem and device with its valid verdict: its
    /// best time of the search, or else its latest failure.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn candidates(&self, board: &Board) -> Result<Vec<StoredTrial>, StoreError> {
        let reader = &mut *self.reader().await?;
        leaderboard::candidates(reader, board)
            .await
            .with_path(&self.path)
    }

    /// Returns the runs of a board's times, oldest first, each with its trials in reported order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn time_lines(&self, board: &Board) -> Result<Vec<TimeLine>, StoreError> {
        let reader = &mut *self.reader().await?;
        history::time_lines(reader, board)
            .await
            .with_path(&self.path)
    }

    /// Returns the names of the kernels with any verdict.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn kernels(&self) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar(
            "SELECT DISTINCT k.name FROM kernels k JOIN problems p ON p.kernel = k.id
             JOIN tasks t ON t.problem = p.id
             WHERE EXISTS (SELECT 1 FROM verdicts v WHERE v.task = t.id) ORDER BY k.name",
        )
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)
    }

    /// Writes the queued results, and closes the database for every clone of this handle.
    ///
    /// # Errors
    /// The log could not be checkpointed; stored results are not lost.
    pub async fn close(self) -> Result<(), StoreError> {
        if let Some(reader) = self.reader.lock().await.take() {
            let _ = reader.close().await;
        }
        if self.commands.is_some() {
            let (reply, answer) = oneshot::channel();
            self.send(Command::Close(reply)).await?;
            answer.await.unwrap_or_else(|_| Err(closed(&self.path)))?;
        }
        Ok(())
    }

    async fn queue(
        &self,
        run: &RunId,
        task: &TaskKey,
        trial: TrialRecord<Measured>,
        announced: bool,
    ) -> Result<Ack, StoreError> {
        let trial = trial.map_time(Measured::into_record);
        self.queue_record(run, task, trial, announced).await
    }

    /// Queues a trial whose time is known to have a proof.
    async fn queue_record(
        &self,
        run: &RunId,
        task: &TaskKey,
        trial: TrialRecord,
        announced: bool,
    ) -> Result<Ack, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Submit {
            run: run.clone(),
            task: task.clone(),
            trial: Box::new(trial),
            announced,
            reply,
        })
        .await?;
        Ok(Ack {
            path: Arc::clone(&self.path),
            reply: answer,
        })
    }

    /// Runs work on the writer's connection, after everything submitted before.
    async fn write<T: Send + 'static>(
        &self,
        work: impl for<'c> FnOnce(
            &'c mut SqliteConnection,
        ) -> writer::Pending<'c, Result<T, sqlx::Error>>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        self.request(move |writer| {
            Box::pin(async move {
                // Checks the file and its log first, like every group of results.
                writer.ready().await?;
                work(&mut writer.connection).await.with_path(&writer.path)
            })
        })
        .await
    }

    /// Sends a request to the writer, after everything submitted before.
    async fn request<T: Send + 'static>(
        &self,
        work: impl for<'w> FnOnce(&'w mut Writer) -> writer::Pending<'w, Result<T, StoreError>>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let request = Command::WriteRequest(Box::new(move |writer| {
            let work = work(writer);
            Box::pin(async move { writer::answer(reply, work.await) })
        }));
        self.send(request).await?;
        answer.await.unwrap_or_else(|_| Err(closed(&self.path)))
    }

    async fn send(&self, command: Command) -> Result<(), StoreError> {
        let Some(commands) = &self.commands else {
            return Err(Failure::ReadOnly("it was opened to read".to_owned()).with_path(&self.path));
        };
        commands.send(command).await.map_err(|_| closed(&self.path))
    }

    /// Returns the reading connection, opened on first use.
    async fn reader(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, StoreError> {
        let mut reader = self.reader.lock().await;
        if reader.is_none() {
            *reader = Some(open::readable(&self.path, OlderSchema::Migrate).await?);
        }
        MutexGuard::try_map(reader, Option::as_mut).map_err(|_| closed(&self.path))
    }
}
