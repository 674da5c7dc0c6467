//! Selection of results, shared by `leaderboard`, `export` and `record`.

use super::{CliError, usage};
use crate::atomic;
use clap::builder::{PathBufValueParser, TypedValueParser};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tuner_core::escape;
use tuner_core::record::{DeviceKind, LeaderboardRow, TaskKey};
use tuner_core::units::{ContentHash, counted};
use tuner_engine::threads::start_local_runtime;
use tuner_kernel::catalog::{self, Catalog};
use tuner_store as store;
use tuner_store::{Board, DeviceFilter, LeaderboardQuery, RecordingSource, Store};

/// Database, device and problem of the selected results.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Use only results of this device, as in `tuner run` or as the leaderboard names it [default:
    /// all]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,

    /// Use only results of this problem [default: all]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    pub(super) db: PathBuf,
}

/// Returns the parser of a database path; the default is that of the project around the working
/// directory.
pub(super) fn db_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| {
        if path == Path::new(store::DEFAULT_PATH) {
            default_database()
        } else {
            path
        }
    })
}

/// Returns the default database: `leaderboard/tuner.db` here, else in the project around the
/// working directory, located by its search spaces.
pub(super) fn default_database() -> PathBuf {
    let own = PathBuf::from(store::DEFAULT_PATH);
    let here = std::env::current_dir().unwrap_or_default();
    if own.exists() || here.join("search_spaces").is_dir() {
        return own;
    }
    let project = Catalog::folder(&here);
    let project = project.as_deref().and_then(Path::parent);
    project.map_or_else(|| own.clone(), |project| project.join(&own))
}

/// Resolves a kernel argument: a name, or a search space's file.
pub(super) fn kernel_named(argument: &str) -> Result<String, CliError> {
    let here = std::env::current_dir().unwrap_or_default();
    Ok(catalog::kernel_of(argument, &here)?)
}

/// Resolves several kernel arguments; none selects all kernels.
pub(super) fn kernels_named(arguments: &[String]) -> Result<Vec<Option<String>>, CliError> {
    if arguments.is_empty() {
        return Ok(vec![None]);
    }
    let named = arguments.iter().map(|one| kernel_named(one).map(Some));
    named.collect()
}

impl Selection {
    /// Returns the boards of these kernels, each with its best rows; if one is missing, the error lists the
    /// available boards.
    pub(super) async fn boards(
        &self,
        store: &Store,
        kernels: &[String],
        top: Option<usize>,
    ) -> Result<Vec<Board>, CliError> {
        let mut all = Vec::new();
        for kernel in kernels_named(kernels)? {
            let kernel = kernel.as_deref();
            let query = self.query(kernel, top);
            let boards = store.boards(&query).await?;
            if boards.is_empty() {
                self.explain_nothing(store, kernel).await?;
            }
            all.extend(boards);
        }
        Ok(all)
    }

    /// Builds the store's query.
    pub(super) fn query(&self, kernel: Option<&str>, top: Option<usize>) -> LeaderboardQuery {
        LeaderboardQuery {
            kernel: kernel.map(str::to_owned),
            device: self.device.as_deref().and_then(device_filter),
            problem: self.problem.clone(),
            top,
            admitted: Some(tuner_report::admitted),
            ..LeaderboardQuery::default()
        }
    }

    /// Opens the database for reading.
    pub(super) async fn open(&self) -> Result<Store, CliError> {
        Ok(Store::open_read(&self.db).await?)
    }

    /// Reports which of the given names matches nothing, and lists the available ones.
    pub(super) async fn explain_nothing(
        &self,
        store: &Store,
        kernel: Option<&str>,
    ) -> Result<(), CliError> {
        let everything = LeaderboardQuery::default();
        let counts = store.verdict_counts(&everything).await?;
        let keys: BTreeSet<&TaskKey> = counts.iter().map(|count| &count.key).collect();
        let db = self.db.display();
        if keys.is_empty() {
            refuse!("{db} has no results yet: `tuner run` makes some");
        }
        let of_kernel: Vec<&&TaskKey> = keys
            .iter()
            .filter(|key| kernel.is_none_or(|kernel| key.kernel == kernel))
            .collect();
        if let (Some(kernel), true) = (kernel, of_kernel.is_empty()) {
            let known = listed(keys.iter().map(|key| key.kernel.as_str()));
            refuse!(
                "{db} has no results of kernel `{kernel}`; it has {known}. `tuner run {kernel}` \
                 makes some"
            );
        }
        if let Some(problem) = &self.problem
            && !of_kernel.iter().any(|key| key.problem == *problem)
        {
            let known = listed(of_kernel.iter().map(|key| key.problem.as_str()));
            refuse!("no results of problem `{problem}`; there are {known}");
        }
        let Some(device) = &self.device else {
            return Ok(());
        };
        let counted = store.verdict_counts(&self.query(kernel, None)).await?;
        if counted.is_empty() {
            let known = listed(of_kernel.iter().map(|key| key.device.as_str()));
            refuse!("no results on device `{device}`; there are {known}");
        }
        Ok(())
    }
}

/// Returns the filter of a device argument; `auto` selects all.
fn device_filter(text: &str) -> Option<DeviceFilter> {
    if text == "auto" {
        return None;
    }
    if let Ok(kind) = text.parse::<DeviceKind>() {
        return Some(DeviceFilter::Kind(kind));
    }
    if let Some(file) = text.strip_prefix("replay:") {
        return Some(DeviceFilter::Recording(recording(Path::new(file))));
    }
    let index = text.strip_prefix("cuda:");
    if index.is_some_and(|index| index.parse::<u32>().is_ok()) {
        return Some(DeviceFilter::Selector(text.to_owned()));
    }
    Some(DeviceFilter::Name(text.to_owned()))
}

/// Identifies a recording by content, or by its path if the file no longer exists.
fn recording(file: &Path) -> RecordingSource {
    match tuner_core::provenance::recording(file) {
        Ok((path, hash)) => RecordingSource { path, hash },
        Err(_) => RecordingSource {
            path: std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
            // Without the file only its path can match.
            hash: ContentHash::from_parts([]),
        },
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: BTreeSet<&str> = names.collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the boards of a query, each with its fastest proven row. An interrupted run may have faster rows
/// that passed only the first checks.
pub(super) async fn proven_first(
    store: &Store,
    query: &LeaderboardQuery,
) -> Result<Vec<Board>, CliError> {
    let mut boards = store.boards(query).await?;
    for board in &mut boards {
        if board.rows.first().is_none_or(LeaderboardRow::is_proven) {
            continue;
        }
        let all = LeaderboardQuery {
            kernel: Some(board.key.kernel.clone()),
            device: Some(DeviceFilter::Name(board.key.device.clone())),
            problem: Some(board.key.problem.clone()),
            timings: vec![board.timing],
            // The first proven row may have any rank.
            top: None,
            ..query.clone()
        };
        let found = store.boards(&all).await?;
        let whole = found
            .into_iter()
            .find(|one| one.key == board.key && one.device_kind == board.device_kind);
        board.rows = whole.map_or_else(Vec::new, |whole| whole.rows);
        let unproven = board.rows.iter().take_while(|row| !row.is_proven()).count();
        note_unproven(unproven, &board_name(board));
        board.rows.drain(..unproven);
        board.rows.truncate(1);
    }
    boards.retain(|board| !board.rows.is_empty());
    Ok(boards)
}

/// Reports the number of candidates omitted because they passed only the gate's first checks.
pub(super) fn note_unproven(count: usize, board: &str) {
    if count > 0 {
        say!(
            "left out: {} of {board} that passed only the gate's first look (gate `first`); \
             `tuner check` judges them",
            counted(count, "candidate")
        );
    }
}

/// Formats a board's name for messages.
pub(super) fn board_name(board: &Board) -> String {
    escape::line(&format!(
        "`{}` on `{}`",
        board.key.problem, board.key.device
    ))
}

/// Writes a file named by the user.
pub(super) fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), CliError> {
    atomic::write(path, content.as_ref())
        .map_err(|error| usage(format!("{}: cannot be written: {error}", path.display())))
}

/// Runs an asynchronous function of the store.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    start_local_runtime()?.block_on(work)
}
