//! Writer task: writes all waiting results in one transaction and then acknowledges them.
//!
//! A commit costs a flush to the disk, one to ten milliseconds; on replay results arrive every few
//! microseconds. So the task takes all results that were queued during the last commit: the slower the
//! disk, the larger the groups, and no timer is needed.

use super::begin::{self, OpenTask};
use super::error::{Failure, StoreError, WithPath as _};
use super::log_watch::{self, LogWatch};
use super::open;
use super::rows::{self, PendingTrial};
use super::run::{RunEnd, RunId, RunStart};
use super::tasks::now;
use super::waits::report_wait;
use sqlx::types::Text;
use sqlx::{Connection as _, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use tuner_core::record::{TaskKey, TrialRecord};

/// Maximum waiting commands; beyond it, submitting waits (memory stays bounded).
pub(super) const MAX_QUEUED_COMMANDS: usize = 4096;

/// Interval between two checks of the database's files while runs are open.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum trials of a transaction, so that other processes get their turn.
const MAX_GROUP_TRIALS: usize = 1024;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) type Pending<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// A request to the writer between two groups of results. It answers its caller and returns whether it
/// succeeded.
pub(super) type WriteRequest = Box<dyn for<'w> FnOnce(&'w mut Writer) -> Pending<'w, bool> + Send>;

pub(super) enum Command {
    Submit {
        run: RunId,
        task: TaskKey,
        trial: Box<TrialRecord>,
        announced: bool,
        reply: Reply<()>,
    },
    WriteRequest(WriteRequest),
    Close(Reply<()>),
}

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) connection: SqliteConnection,
    /// Maximum wait of a statement for another process's lock.
    busy_timeout: Duration,
    /// Device and inode of the open file.
    file: Option<(u64, u64)>,
    log: LogWatch,
    /// Receives the loss of the database's files.
    loss: watch::Sender<Option<StoreError>>,
    /// The last write failed, so the connection is reopened before the next.
    suspect: bool,
    open: BTreeMap<RunId, BTreeMap<TaskKey, OpenTask>>,
    /// Announced and unresolved: task and candidate.
    announced: BTreeSet<(i64, Vec<u8>)>,
    stored: u64,
    /// Tasks whose results could not be written, with the error. Later results of the same task are
    /// refused: a gap in the middle of a run's order would be worse than its early end.
    failed: BTreeMap<i64, StoreError>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, connection: SqliteConnection, busy_timeout: Duration) -> Self {
        Self {
            file: open::file_identity(&path).ok(),
            log: LogWatch::new(open::log_of(&path)),
            loss: watch::channel(None).0,
            path,
            connection,
            busy_timeout,
            suspect: false,
            open: BTreeMap::new(),
            announced: BTreeSet::new(),
            stored: 0,
            failed: BTreeMap::new(),
        }
    }

    /// Returns the receiver of the loss of the database's files.
    pub(super) fn loss(&self) -> watch::Receiver<Option<StoreError>> {
        self.loss.subscribe()
    }

    /// Runs until every handle is dropped or one requests the close.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut waiting = Vec::with_capacity(MAX_GROUP_TRIALS);
        let mut closing = None;
        let mut ticks = tokio::time::interval(WATCH_INTERVAL);
        // After a long write the default would fire all missed ticks immediately.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while closing.is_none() {
            tokio::select! {
                count = commands.recv_many(&mut waiting, MAX_GROUP_TRIALS) => if count == 0 { break },
                _ = ticks.tick() => {
                    self.watch_files().await;
                    continue;
                }
            }
            let mut group = Vec::new();
            for command in waiting.drain(..) {
                match command {
                    Command::Submit {
                        run,
                        task,
                        trial,
                        announced,
                        reply,
                    } => match self.pending(&run, &task, *trial, announced) {
                        Ok(trial) => group.push((trial, reply)),
                        Err(error) => {
                            answer(reply, Err(error));
                        }
                    },
                    Command::Close(reply) => closing = Some(reply),
                    Command::WriteRequest(request) => {
                        // Results that were submitted before a request must be stored when it is
                        // answered.
                        self.write(&mut group).await;
                        let path = self.path.clone();
                        self.suspect |= !report_wait(&path, request(&mut self)).await;
                    }
                }
            }
            self.write(&mut group).await;
        }
        // The last connection to close checkpoints the log.
        let path = self.path;
        let closed = self.connection.close().await.with_path(&path);
        if let Some(reply) = closing {
            answer(reply, closed);
        }
    }

    fn pending(
        &self,
        run: &RunId,
        task: &TaskKey,
        trial: TrialRecord,
        announced: bool,
    ) -> Result<PendingTrial, StoreError> {
        let open = self
            .open
            .get(run)
            .and_then(|tasks| tasks.get(task))
            .ok_or_else(|| {
                StoreError::broken(
                    &self.path,
                    format!(
                        "run {run} has no open task {} {}",
                        task.kernel, task.problem
                    ),
                )
            })?;
        Ok(PendingTrial {
            task: open.task,
            problem: open.problem,
            provenance: open.provenance,
            trial,
            announced,
        })
    }

    /// Checks the database's files while runs are open, and ends these runs if a file is lost. Announced
    /// results may be lost with this process, and a device may be busy for minutes before the next write.
    async fn watch_files(&mut self) {
        if self.open.is_empty() || self.loss.borrow().is_some() {
            return;
        }
        let Err(error) = self.check_files().await else {
            return;
        };
        let tasks = self.open.values().flat_map(BTreeMap::values);
        let failed = tasks.map(|open| (open.task, error.clone()));
        self.failed.extend(failed);
        self.suspect = true;
        tracing::error!(%error, "nothing more is announced");
        self.loss.send_replace(Some(error));
    }

    /// Checks that the database and its log are the files that this process opened.
    async fn check_files(&mut self) -> Result<(), StoreError> {
        match open::file_identity(&self.path) {
            Ok(file) if Some(file) != self.file => {
                return Err(Failure::Replaced.with_path(&self.path));
            }
            Err(_) if self.file.is_some() => return Err(Failure::Replaced.with_path(&self.path)),
            _ => {}
        }
        self.check_log().await
    }

    /// Ensures that the connection can write to the file with the database's name.
    pub(super) async fn ready(&mut self) -> Result<(), StoreError> {
        self.check_files().await?;
        if self.loss.borrow().is_some() {
            // The file has been restored.
            self.loss.send_replace(None);
        }
        if self.suspect || self.connection.is_in_transaction() {
            let fresh = open::again(&self.path, self.busy_timeout).await?;
            let old = std::mem::replace(&mut self.connection, fresh);
            // The remainder of a failed transaction is rolled back; nothing else can be lost.
            let _ = old.close_hard().await;
            self.suspect = false;
        }
        Ok(())
    }

    /// Checks that the log is the file that this process writes. The content of a deleted one is first
    /// checkpointed into the database: it exists while it is open.
    async fn check_log(&mut self) -> Result<(), StoreError> {
        let lost = match self.log.check() {
            Err(lost) => lost,
            Ok(()) if self.log.is_emptied() && self.has_frames().await => {
                Failure::LogLost(log_watch::CUT)
            }
            Ok(()) => return Ok(()),
        };
        if !matches!(lost, Failure::LogLost(log_watch::DELETED)) {
            // Pages of a truncated log would damage the database.
            return Err(lost.with_path(&self.path));
        }
        // The deleted log is still open here: its transactions can be copied into the database, then the
        // process must stop.
        let rescue = sqlx::query("PRAGMA wal_checkpoint(FULL)");
        if let Err(error) = rescue.execute(&mut self.connection).await {
            tracing::warn!(%error, "the rest of the log cannot be brought into the database");
        }
        Err(lost.with_path(&self.path))
    }

    /// Reports whether SQLite has frames in the log that are not in the database yet.
    async fn has_frames(&mut self) -> bool {
        let counts = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)");
        let counts = counts.fetch_one(&mut self.connection).await;
        counts.is_ok_and(|(_, frames, copied): (i64, i64, i64)| frames > copied)
    }

    /// Writes the whole group in one transaction, then answers.
    async fn write(&mut self, group: &mut Vec<(PendingTrial, Reply<()>)>) {
        if group.is_empty() {
            return;
        }
        // After a lost result, later ones of the task would leave a gap in its sequence.
        let refused = group.extract_if(.., |(trial, _)| self.failed.contains_key(&trial.task));
        for (trial, reply) in refused {
            answer(
                reply,
                self.failed.get(&trial.task).cloned().map_or(Ok(()), Err),
            );
        }
        let (trials, replies): (Vec<_>, Vec<_>) = group.drain(..).unzip();
        if trials.is_empty() {
            return;
        }
        let result = self.insert(&trials).await;
        match &result {
            Ok(()) => self.stored += trials.len() as u64,
            Err(error) => {
                let tasks = trials.iter().map(|trial| trial.task);
                self.failed.extend(tasks.map(|task| (task, error.clone())));
                // SQLite may have ended the transaction itself, unknown to sqlx.
                self.suspect = true;
            }
        }
        for reply in replies {
            answer(reply, result.clone());
        }
    }

    async fn insert(&mut self, trials: &[PendingTrial]) -> Result<(), StoreError> {
        self.ready().await?;
        // An announcement and its result may be in the same group: then only the result is written.
        let resolved: BTreeSet<(i64, &str)> = trials
            .iter()
            .filter(|row| !row.announced)
            .map(|row| (row.task, row.trial.candidate_hash.as_str()))
            .collect();
        let rows: Vec<&PendingTrial> = trials
            .iter()
            .filter(|row| {
                !row.announced || !resolved.contains(&(row.task, row.trial.candidate_hash.as_str()))
            })
            .collect();
        let replaces: Vec<(i64, Vec<u8>)> = rows
            .iter()
            // Replay and the virtual GPU announce nothing, so no comparison is needed.
            .filter(|_| !self.announced.is_empty())
            .map(|row| (row.task, rows::hash_bytes(&row.trial.candidate_hash)))
            .filter(|key| self.announced.contains(key))
            .collect();
        let judged_at = now();
        let path = self.path.clone();
        let committed = report_wait(&path, async {
            // IMMEDIATE takes the write lock at once: a deferred transaction that upgrades from
            // reading fails with SQLITE_BUSY without waiting.
            let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
            rows::insert_trials(&mut transaction, &rows, &replaces, &judged_at).await?;
            transaction.commit().await
        })
        .await;
        let lost = trials.len() as u64;
        committed
            .with_path(&self.path)
            .map_err(|error| error.with_counts(self.stored, lost))?;
        self.check_log().await?;
        let written = self.log.check_written();
        written.map_err(|lost| lost.with_path(&self.path))?;
        for key in replaces {
            // Only after the commit: a failed transaction leaves the announcement in the database.
            self.announced.remove(&key);
        }
        for row in rows.into_iter().filter(|row| row.announced) {
            let hash = rows::hash_bytes(&row.trial.candidate_hash);
            self.announced.insert((row.task, hash));
        }
        Ok(())
    }

    pub(super) async fn begin(&mut self, id: RunId, start: &RunStart) -> Result<RunId, StoreError> {
        self.ready().await?;
        let tasks = begin::begin(&mut self.connection, &id, start).await;
        self.open.insert(id.clone(), tasks.with_path(&self.path)?);
        Ok(id)
    }

    pub(super) async fn reopen(&mut self, id: RunId, start: &RunStart) -> Result<(), StoreError> {
        self.ready().await?;
        let reopened = begin::reopen(&mut self.connection, &id, start).await;
        let (tasks, announced) = reopened.with_path(&self.path)?;
        // A resumed run may write again, for example after the disk was freed.
        for open in tasks.values() {
            self.failed.remove(&open.task);
        }
        self.open.insert(id, tasks);
        self.announced.extend(announced);
        Ok(())
    }

    pub(super) async fn finish(&mut self, id: &RunId, end: RunEnd) -> Result<(), StoreError> {
        self.ready().await?;
        sqlx::query("UPDATE runs SET state = ?, owner = NULL, ended_at = ? WHERE name = ?")
            .bind(Text(end))
            .bind(now())
            .bind(id.as_str())
            .execute(&mut self.connection)
            .await
            .with_path(&self.path)?;
        self.open.remove(id);
        Ok(())
    }
}

/// Sends the answer, and returns whether it was a success; a caller that no longer waits does not lose its
/// data.
pub(super) fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) -> bool {
    let good = result.is_ok();
    // The receiver may have been dropped, for example after a cancelled request.
    let _ = reply.send(result);
    good
}
