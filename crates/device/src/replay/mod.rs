//! Replay of recorded measurements: Kernel Tuner cache files and T4 results.
//!
//! Entries of a file become outcomes:
//!
//! | recorded | outcome |
//! |---|---|
//! | a time (`time`, `times`; T4 `correct`) | `ok`; predicted if the file's `timing` says so |
//! | `CompilationFailedConfig`, T4 `compile` | `compile_failed` |
//! | `RuntimeFailedConfig`, T4 `runtime`, any other error text | `crashed` |
//! | `InvalidConfig` (over a device limit at launch) | `launch_failed` |
//! | T4 `timeout` / `correctness` | `timeout` / `incorrect` |
//! | T4 `constraints` | not in the space (a constraint reject is free) |
//! | a time of 1e20 or more, the failure mark of the oldest files | `crashed` |
//! | nothing: valid by the constraints, but not in the file | `launch_failed`, "not recorded" |
//!
//! Rows that the file's own `constraints` exclude are omitted. A file without constraints defines
//! its space by its rows.

mod kernel_tuner;
mod outcome;
mod t4;
mod table;
mod text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::{Source, Table, Top};
use text::Text;
use tuner_core::files;
use tuner_core::record::{
    ConfigValues, ConstraintDefinition, Definition, ParameterDefinition, TimingKind, Verdict,
};
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::units::{ContentHash, Micros};
use tuner_space::{Config, Space};
use tuner_space::{Diagnostic, Diagnostics};

/// One recorded file: kernel, device, space and measurements.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The kernel's name; the file's stem if it names none.
    pub kernel: String,
    /// The device's name; the file's stem if it names none.
    pub device: String,
    /// The problem's name: its sizes joined by `x`.
    pub problem: String,
    /// The problem's sizes by name; empty if the file does not have them.
    pub sizes: ConfigValues,
    /// `Predicted` if the file says that a model computed its times, else `Recorded`.
    pub timing: TimingKind,
    constraints: Vec<String>,
    /// The space of configurations.
    pub space: Space,
    rows: HashMap<Config, Recorded>,
    /// Rows that the file's own constraints exclude.
    pub excluded_rows: usize,
    /// Hash of the file on disk.
    pub content: ContentHash,
    missing: Arc<str>,
}

impl Recording {
    /// Reads a Kernel Tuner cache (open or closed) or T4 results, gzipped or not.
    ///
    /// # Errors
    /// A [`Diagnostics`] with file, line and column: unreadable, truncated or corrupt file, unknown
    /// format, values outside the declared ones, unsatisfiable constraints.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("yaml" | "yml" | "cu")) = extension {
            let shown = path.display().to_string();
            let (what, instead) = match extension {
                "cu" => ("CUDA", "--device auto".to_owned()),
                _ => (
                    "search space",
                    format!("`tuner run {shown}`, without --device replay"),
                ),
            };
            let message = format!("this is a {what} file, and no recording of measurements");
            let wrong = Diagnostic::of_file(message).help(format!(
                "replay: plays back a Kernel Tuner cache or T4 results (FILE.json.gz); to tune the \
                 kernel, type {instead}"
            ));
            return Err(Diagnostics::new(shown, "", vec![wrong]));
        }
        let bytes = files::read(path, files::MAX_RECORDING_BYTES).map_err(|error| {
            text::plain(path, format!("cannot read the recorded file: {error}"))
        })?;
        let content = ContentHash::from_parts([bytes.as_slice()]);
        let text = Text::decode(path, bytes)?;
        let table = read_table(&text)?;
        let (space, rows, excluded_rows) = table.build(&text)?;
        Ok(Self {
            path: path.to_owned(),
            kernel: table.kernel,
            device: table.device,
            problem: table.problem,
            sizes: table.sizes,
            timing: table.timing,
            constraints: table
                .constraints
                .into_iter()
                .map(|(rule, _)| rule)
                .collect(),
            space,
            rows,
            excluded_rows,
            content,
            missing: "not recorded: the file has no row for this configuration".into(),
        })
    }

    /// Returns parameters and constraints in stored form. A recorded file has no defaults.
    #[must_use]
    pub fn definition(&self) -> Definition {
        Definition {
            parameters: self
                .space
                .parameters()
                .iter()
                .map(|parameter| ParameterDefinition {
                    name: parameter.name.clone(),
                    values: parameter.values.to_vec(),
                    default: None,
                    doc: String::new(),
                })
                .collect(),
            derived: Vec::new(),
            constraints: self
                .constraints
                .iter()
                .map(|rule| ConstraintDefinition::unexplained(rule))
                .collect(),
            launches: Vec::new(),
        }
    }

    /// Returns the recorded configurations, in the order of the space.
    #[must_use]
    pub fn configs(&self) -> Vec<&Config> {
        let mut configs: Vec<&Config> = self.rows.keys().collect();
        configs.sort_by(|a, b| a.choices().cmp(b.choices()));
        configs
    }

    /// Returns the record of a configuration. A valid one without a row counts as failed, at no cost.
    #[must_use]
    pub fn lookup(&self, config: &Config) -> Recorded {
        self.rows.get(config).cloned().unwrap_or_else(|| Recorded {
            outcome: Outcome::Failed {
                verdict: Verdict::LaunchFailed,
                detail: self.missing.clone(),
            },
            compile_us: 0,
            benchmark_us: 0,
        })
    }

    /// Returns the fastest recorded time; `None` if every configuration failed.
    #[must_use]
    pub fn optimum(&self) -> Option<Micros> {
        self.rows.values().filter_map(Recorded::time).min()
    }

    /// Reports whether the file records the cost of compiling and benchmarking; without it a budget
    /// of recorded time never runs out.
    #[must_use]
    pub fn has_costs(&self) -> bool {
        self.rows.values().any(|row| row.charged_us() > 0)
    }
}

/// Reads the table of either format.
fn read_table(text: &Text) -> Result<Table, Diagnostics> {
    let mut completed = String::new();
    let whole = text.complete(&mut completed)?;
    let source = Source { text, whole };
    let neither = || {
        text.error(
            0,
            "neither a Kernel Tuner cache (no `cache`) nor T4 results (no `results`)",
            "name a file that Kernel Tuner, KTT or `tuner export --to t4` wrote",
        )
    };
    if !whole.trim_start().starts_with('{') {
        return Err(neither());
    }
    let top: Top<'_> = serde_json::from_str(whole).map_err(|error| text.json(0, whole, &error))?;
    match (top.cache, top.results) {
        (Some(cache), _) => kernel_tuner::read(&source, &top, cache),
        (None, Some(results)) => t4::read(&source, &top, results),
        (None, None) => Err(neither()),
    }
}
