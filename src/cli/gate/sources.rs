//! Sources of the shipped and the best configurations.

use super::Args;
use crate::cli::CliError;
use crate::cli::check::select::parse_config;
use crate::cli::history::commits_at;
use crate::cli::results::default_database;
use crate::cli::verify::shipped_entries;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tuner_core::record::{ConfigValues, LeaderboardRow, TimingKind};
use tuner_engine::job::Prepared;
use tuner_report::export;
use tuner_report::export::Shipped;
use tuner_space::Space;
use tuner_store::{DeviceFilter, LeaderboardQuery, Store};

/// Data from the database and the files, by problem.
pub(super) struct GateData {
    /// Path and entries of the shipped file.
    file: Option<(PathBuf, Vec<Shipped>)>,
    /// The file was given explicitly: problems missing in it count as not shipped.
    asked: bool,
    /// The best results at or before HEAD.
    at_head: BTreeMap<String, LeaderboardRow>,
    /// The best results.
    pub(super) best: BTreeMap<String, LeaderboardRow>,
    /// Busy multiprocessors of the best, percent, if it was profiled.
    pub(super) sm_busy: BTreeMap<String, f64>,
}

/// A shipped configuration with its origin and shipped time.
pub(super) struct ShippedConfig {
    pub(super) config: ConfigValues,
    pub(super) from: String,
    pub(super) shipped_us: Option<f64>,
    /// Kind of the shipped time, if the file has it.
    pub(super) shipped_timing: Option<TimingKind>,
    /// Its entry in a shipped file.
    pub(super) record: Option<Shipped>,
}

impl ShippedConfig {
    fn untimed(config: ConfigValues, from: &str) -> Self {
        Self {
            config,
            from: from.to_owned(),
            shipped_us: None,
            shipped_timing: None,
            record: None,
        }
    }
}

/// Reads the database, if any, and the shipped file.
pub(super) async fn known(args: &Args, prepared: &Prepared) -> Result<GateData, CliError> {
    let device = prepared.facts().name.clone();
    let kernel = prepared
        .plan()
        .tasks
        .first()
        .map(|task| task.key.kernel.clone());
    let kernel = kernel.unwrap_or_else(|| args.kernel.clone());
    let mut known = GateData {
        asked: args.shipped.is_some(),
        file: shipped_file(args, &device, &kernel)?,
        at_head: BTreeMap::new(),
        best: BTreeMap::new(),
        sm_busy: BTreeMap::new(),
    };
    if !args.db.exists() {
        return Ok(known);
    }
    let store = Store::open_read(&args.db).await?;
    let mut query = LeaderboardQuery {
        kernel: Some(kernel),
        device: Some(DeviceFilter::Name(device)),
        top: Some(1),
        admitted: Some(tuner_report::admitted),
        ..LeaderboardQuery::default()
    };
    for board in store.boards(&query).await? {
        let Some(row) = board.rows.first() else {
            continue;
        };
        let profiles = store.profiles(&board, &row.config).await?;
        let busy = profiles
            .iter()
            .find_map(|profile| profile.metrics.get("sm_busy_pct")?.as_f64());
        if let Some(busy) = busy {
            known.sm_busy.insert(row.problem.clone(), busy);
        }
        known.best.insert(row.problem.clone(), row.clone());
    }
    // Outside git, and where no result has a commit, the best overall is the best at HEAD.
    query.commits = match commits_at(&store, "HEAD").await {
        Ok(commits) if !commits.is_empty() => Some(commits),
        _ => None,
    };
    for board in store.boards(&query).await? {
        known
            .at_head
            .extend(board.rows.into_iter().map(|row| (row.problem.clone(), row)));
    }
    store.close().await?;
    Ok(known)
}

/// Returns the given file, else the committed record of the device.
fn shipped_file(
    args: &Args,
    device: &str,
    kernel: &str,
) -> Result<Option<(PathBuf, Vec<Shipped>)>, CliError> {
    if args.config.is_some() {
        return Ok(None);
    }
    let path = match &args.shipped {
        Some(path) => path.clone(),
        None => {
            let name = format!("{}.json", export::target_name(kernel));
            let plain = format!("{kernel}.json");
            let folder = default_database()
                .with_file_name("")
                .join(export::target_name(device));
            // `tuner record` does not change a kernel's name unless it could lead out of the folder.
            let found = [plain, name]
                .into_iter()
                .map(|name| folder.join(name))
                .find(|path| path.is_file());
            let Some(path) = found else { return Ok(None) };
            path
        }
    };
    let shown = path.display().to_string();
    let entries = shipped_entries(&path)?;
    let of_device: Vec<Shipped> = entries
        .iter()
        .filter(|entry| is_shipped_for(entry, &path, device, kernel))
        .cloned()
        .collect();
    if of_device.is_empty() {
        let mut devices: Vec<&str> = entries.iter().map(|entry| entry.device.as_str()).collect();
        devices.sort_unstable();
        devices.dedup();
        refuse!(
            "{shown} has nothing for {device}; it has {}",
            devices.join(", ")
        );
    }
    Ok(Some((path, of_device)))
}

/// Reports whether an entry of a shipped file is for a device and a kernel. A folder may hold entries of
/// several kernels; an explicitly named file is accepted whatever its kernel's name.
pub(super) fn is_shipped_for(entry: &Shipped, path: &Path, device: &str, kernel: &str) -> bool {
    let own = entry.kernel.as_deref().is_none_or(|own| own == kernel);
    entry.device == device && (own || !path.is_dir())
}

impl GateData {
    /// Returns the shipped configuration of a problem; `None` if a given file lacks it.
    pub(super) fn shipped(
        &self,
        args: &Args,
        problem: &str,
        space: &Space,
    ) -> Result<Option<ShippedConfig>, CliError> {
        if let Some(text) = &args.config {
            let config = parse_config(space, text)?;
            if let Some(why) = space.reject_reason(&config) {
                refuse!("--config: not in the space of problem {problem}: {why}");
            }
            return Ok(Some(ShippedConfig::untimed(
                space.values(&config),
                "--config",
            )));
        }
        if let Some((path, entries)) = &self.file {
            let entry = entries.iter().find(|entry| entry.problem == problem);
            if entry.is_some() || self.asked {
                return Ok(entry.map(|entry| ShippedConfig {
                    config: entry.config.clone(),
                    from: path.display().to_string(),
                    shipped_us: Some(entry.p50_us),
                    shipped_timing: entry.timing,
                    record: Some(entry.clone()),
                }));
            }
        }
        if let Some(row) = self.at_head.get(problem) {
            return Ok(Some(ShippedConfig::untimed(
                row.config.clone(),
                "best at HEAD",
            )));
        }
        let default = space.values(&space.default_config());
        Ok(Some(ShippedConfig::untimed(
            default,
            "default configuration",
        )))
    }
}
