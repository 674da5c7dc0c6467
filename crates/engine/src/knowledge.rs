//! Prior knowledge of a search: results of the same kernel from elsewhere.
//!
//! A run loads results of other devices, problems and versions of a kernel from its database, and of
//! kernels with the same parameters and sizes, and reads the given files. The sources are stored with the
//! run, so that a resumed run uses the same ones.

pub(crate) mod notes;

use super::job::error::{JobError, usage};
use super::{Event, Task};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_core::record::{ConfigValues, TaskKey};
use tuner_core::units::{ContentHash, Micros};
use tuner_core::value::Value;
use tuner_device::replay::Recording;
use tuner_search::{Experience, MAX_SOURCES};
use tuner_store::{Related, RunId, RunStart, Store, StoreError, TaskStart};

/// The first bytes of a database.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Columns that hold a time, by preference, and their unit in microseconds.
const TIME_COLUMNS: [(&str, f64); 5] = [
    ("time_us_p50", 1.0),
    ("predicted_us", 1.0),
    ("time_us", 1.0),
    ("time_ms", 1e3),
    ("time", 1e3),
];

/// An invalid file of knowledge, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}; --knowledge takes recorded files, databases of results, and CSV with a column for each parameter and one called {}", TIME_COLUMNS.map(|(name, _)| name).join(", "))]
pub struct KnowledgeError {
    pub(crate) path: String,
    why: String,
}

/// A file of knowledge, read.
#[derive(Debug, Clone)]
pub struct KnowledgeFile {
    /// Its path.
    pub path: PathBuf,
    /// Hash of its bytes.
    pub content: ContentHash,
    /// Its kernel; `None` if it does not name one.
    pub kernel: Option<String>,
    /// Its sources.
    pub experiences: Vec<Experience>,
}

/// Reads a file. Of a database: the results of `kernel`.
///
/// # Errors
/// An unreadable file, or one of unknown kind.
pub async fn read(path: &Path, kernel: &str) -> Result<KnowledgeFile, KnowledgeError> {
    let wrong = |why: String| KnowledgeError {
        path: path.display().to_string(),
        why,
    };
    let bytes = files::read(path, files::MAX_RECORDING_BYTES);
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    let content = ContentHash::from_parts([bytes.as_slice()]);
    let mut file = KnowledgeFile {
        path: path.to_owned(),
        content,
        kernel: None,
        experiences: Vec::new(),
    };
    if bytes.starts_with(SQLITE_MAGIC) {
        // SQLite reads the file itself, and the copy may be large.
        drop(bytes);
        let store = Store::open_unchanged(path).await;
        let store = store.map_err(|error| wrong(error.to_string()))?;
        let related = store.related(kernel, None, None, &[]).await;
        let related = related.map_err(|error| wrong(error.to_string()))?;
        let groups = related.groups.into_iter();
        file.experiences = groups.map(|group| experience(group, None)).collect();
        file.kernel = Some(kernel.to_owned());
    } else if path.extension().is_some_and(|ending| ending == "csv") {
        let rows = csv_rows(&bytes).map_err(wrong)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        file.experiences.push(Experience { name, rows });
    } else {
        let recording = Recording::load(path).map_err(|error| wrong(error.to_string()))?;
        file.kernel = Some(recording.kernel.clone());
        file.experiences.push(recorded(&recording));
    }
    Ok(file)
}

/// Converts a recording to knowledge.
#[must_use]
pub fn recorded(recording: &Recording) -> Experience {
    let rows = recording.configs().into_iter().map(|config| {
        let values = recording.space.values(config);
        (values, recording.lookup(config).time())
    });
    Experience {
        name: format!("{} on {}", recording.problem, recording.device),
        rows: rows.collect(),
    }
}

/// Reads configurations and times of a CSV with headings. A row without a time has failed.
fn csv_rows(bytes: &[u8]) -> Result<Vec<(ConfigValues, Option<Micros>)>, String> {
    let mut reader = csv::Reader::from_reader(bytes);
    let headings = reader.headers().map_err(|error| error.to_string())?.clone();
    let place = |name: &str| headings.iter().position(|heading| heading == name);
    let time = TIME_COLUMNS
        .iter()
        .find_map(|(name, unit)| Some((place(name)?, *unit)));
    let (time, unit) = time.ok_or("no column holds times")?;
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let found = row
            .get(time)
            .and_then(|text| text.trim().parse::<f64>().ok());
        let values = headings.iter().zip(&row).enumerate();
        let values = values.filter(|(at, _)| *at != time);
        let values = values.map(|(_, (name, text))| (name.to_owned(), value(text.trim())));
        rows.push((
            values.collect(),
            found.and_then(|found| Micros::new(found * unit)),
        ));
    }
    Ok(rows)
}

/// Parses a value of a CSV.
fn value(text: &str) -> Value {
    match text {
        // Python writes booleans with a capital letter.
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => Value::Int(whole),
            (_, Ok(number)) if number.is_finite() => Value::Float(number),
            _ => Value::Text(text.into()),
        },
    }
}

/// Converts one group of a database to knowledge; `own`: kernel and version of the task, which are not
/// mentioned.
fn experience(group: Related, own: Option<(&str, Option<&str>)>) -> Experience {
    let twin = own.filter(|(kernel, _)| *kernel != group.kernel);
    let twin = twin
        .map(|_| format!("{} ", group.kernel))
        .unwrap_or_default();
    let old = match own {
        Some((_, Some(version))) if twin.is_empty() && version != group.version => {
            let short: String = group.version.chars().take(8).collect();
            format!(", version {short}")
        }
        _ => String::new(),
    };
    Experience {
        name: format!("{twin}{} on {}{old}", group.problem, group.device),
        rows: group.rows,
    }
}

/// Prior knowledge of a run, as stored with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnowledgeRecord {
    /// Time stamp of the database, by task.
    as_of: Vec<i64>,
    /// Files by path and content.
    files: Vec<(PathBuf, String)>,
    /// Names of the used sources, by task.
    pub(crate) sources: Vec<Vec<String>>,
}

impl KnowledgeRecord {
    /// Reads a stored run's settings; `None`: it had no knowledge.
    pub(crate) fn from_settings(settings: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(settings.get("knowledge")?.clone()).ok()
    }
}

/// Loads the experiences of every task of a run, most similar first, and their record. `before`:
/// the record of the interrupted run, whose knowledge is restored. `without`: rows of runs that are
/// left out.
///
/// # Errors
/// An invalid file, and a file that changed since the interrupted run; a database that cannot be
/// read.
pub(crate) async fn load(
    start: &RunStart,
    store: &Store,
    given: &[PathBuf],
    before: Option<&KnowledgeRecord>,
    without: &[i64],
) -> Result<(Vec<Vec<Experience>>, KnowledgeRecord), JobError> {
    let mut noted = KnowledgeRecord::default();
    let mut all = Vec::with_capacity(start.tasks.len());
    let paths: Vec<PathBuf> = match before {
        Some(before) => before.files.iter().map(|(path, _)| path.clone()).collect(),
        None => given.to_vec(),
    };
    for (at, task) in start.tasks.iter().enumerate() {
        let key = start.key(task);
        let mut experiences = Vec::new();
        for path in &paths {
            let file = read(path, &task.kernel).await?;
            let hash = file.content.to_string();
            let changed = before.is_some_and(|before| {
                let known = before.files.iter().find(|(other, _)| other == path);
                known.is_some_and(|(_, known)| *known != hash)
            });
            if changed {
                return Err(usage(format!(
                    "{} changed since the run began, which knew it; begin a new run without --resume",
                    path.display()
                )));
            }
            // The recording that is replayed would reveal its own results to the search.
            let own = start.device.recording.as_ref();
            if own.is_none_or(|own| own.hash != file.content) {
                experiences.extend(file.experiences);
            }
            if at == 0 {
                noted.files.push((path.clone(), hash));
            }
        }
        let as_of = before.map(|before| before.as_of.get(at).copied().unwrap_or(0));
        let related = store
            .related(&task.kernel, Some((start, task)), as_of, without)
            .await;
        let related = related?;
        noted.as_of.push(as_of.unwrap_or(related.as_of));
        experiences.extend(ranked(related.groups, &key, task));
        all.push(experiences);
    }
    Ok((all, noted))
}

/// Orders by similarity to the task: the same kernel, problem, device, then the most results.
fn ranked(mut groups: Vec<Related>, key: &TaskKey, task: &TaskStart) -> Vec<Experience> {
    groups.sort_by_key(|group| {
        let other = (
            group.kernel != key.kernel,
            group.problem != key.problem,
            group.device != key.device,
        );
        (other, std::cmp::Reverse(group.rows.len()))
    });
    groups.truncate(MAX_SOURCES);
    let version = task.template_hash.as_ref().map(ToString::to_string);
    let own = Some((&*task.kernel, version.as_deref()));
    let experience = |group| experience(group, own);
    groups.into_iter().map(experience).collect()
}

/// Reports the value of each source of each task, and stores it with the run.
///
/// # Errors
/// The database cannot be written.
pub(crate) async fn appraise(
    tasks: &[Task],
    correlations: &[Vec<f64>],
    run: &RunId,
    store: &Store,
    sink: &mut (dyn FnMut(&Event) + Send),
) -> Result<(), StoreError> {
    let mut kept = Vec::new();
    let mut saved: Option<u64> = None;
    for (task, worth) in tasks
        .iter()
        .zip(correlations)
        .filter(|(_, worth)| !worth.is_empty())
    {
        let sources: Vec<(&str, &f64)> = task.knowledge.names().zip(worth).collect();
        saved = match store.trials_saved(run, &task.key).await? {
            Some(trials) => Some(saved.unwrap_or(0) + trials),
            None => saved,
        };
        kept.push(serde_json::json!({
            "kernel": task.key.kernel,
            "problem": task.key.problem,
            "sources": sources,
        }));
    }
    if let Some(text) = notes::describe_worth(tasks, correlations, saved) {
        sink(&Event::Note { text });
    }
    if kept.is_empty() {
        return Ok(());
    }
    let kept = serde_json::Value::from(kept);
    store.note_setting(run, "knowledge_worth", &kept).await
}

impl From<KnowledgeError> for JobError {
    fn from(error: KnowledgeError) -> Self {
        Self::Input {
            file: error.path.clone(),
            text: format!("error: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
