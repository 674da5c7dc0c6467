//! Baselines: times of other programs for the same problem on the same GPU.
//!
//! A space names a command. It runs in a separate process, gets the problem's sizes as JSON on
//! standard input and prints its measurement. It is called before and after the run; if the
//! device's fixed reference was timed at both moments, the drift between them is removed. Missing
//! figures are not guessed: for absent, hanging, failing and malformed commands the record has the
//! reason.

mod command;

pub use command::{Answer, BaselineError, ask, parse};
use tuner_core::baseline_record::{BaselineRecord, Moment, Visit};

use std::path::PathBuf;
use std::time::Duration;
use tuner_core::record::{ConfigValues, TaskKey};
use tuner_core::units::ContentHash;
use tuner_kernel::catalog::Kernel;

/// Maximum time of a command: libraries load slowly, figures are quick.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// The baseline of one task during a run.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// The task.
    pub key: TaskKey,
    /// Working directory of the command: the folder of the space file.
    pub folder: PathBuf,
    /// The problem's sizes.
    pub sizes: ConfigValues,
    /// The GPU as `CUDA_VISIBLE_DEVICES` names it (an ordinal or a UUID); `None` leaves the
    /// environment unchanged.
    pub gpu: Option<String>,
    /// The record so far.
    pub record: BaselineRecord,
}

impl Baseline {
    /// Returns the baseline that a kernel's space names for a problem, if any.
    #[must_use]
    pub fn from_kernel(kernel: &Kernel, key: &TaskKey, gpu: Option<String>) -> Option<Self> {
        let problem = kernel.spec.problem(&key.problem)?;
        let folder = kernel
            .path
            .parent()
            // The parent of a bare file name is the empty path, which no process can start in.
            .filter(|path| !path.as_os_str().is_empty());
        (!kernel.spec.baseline.is_empty()).then(|| Self {
            key: key.clone(),
            folder: folder.map_or_else(|| PathBuf::from("."), PathBuf::from),
            sizes: problem.sizes.clone(),
            gpu,
            record: BaselineRecord {
                command: kernel.spec.baseline.clone(),
                ..BaselineRecord::default()
            },
        })
    }

    /// Runs the command, and records its answer or the reason why there is none. A command that
    /// failed once is not run again. `reference` times the device's fixed reference at this moment,
    /// and is called only after an answer. Returns the failure if the same command would fail for
    /// every other problem too.
    pub fn visit(
        &mut self,
        moment: Moment,
        reference: &mut dyn FnMut() -> Option<(f64, ContentHash)>,
        deadline: Duration,
    ) -> Option<String> {
        if self.record.failure.is_some() {
            return None;
        }
        match ask(
            &self.record.command,
            &self.folder,
            &self.sizes,
            self.gpu.as_deref(),
            deadline,
        ) {
            Ok(answer) => {
                self.keep(moment, answer, reference());
                None
            }
            Err(error) => {
                let everywhere = error.holds_everywhere();
                let why = error.to_string();
                self.record.failure = Some(why.clone());
                everywhere.then_some(why)
            }
        }
    }

    fn keep(&mut self, moment: Moment, answer: Answer, reference: Option<(f64, ContentHash)>) {
        let record = &mut self.record;
        // A peer that chooses among several implementations names its choice in parentheses at the
        // end.
        let whole = |name: &str| {
            name.rsplit_once(" (")
                .map_or(name, |(peer, _)| peer)
                .to_owned()
        };
        if record
            .name
            .as_ref()
            .is_some_and(|name| whole(name) != whole(&answer.name))
        {
            record.failure = Some(format!(
                "it called itself `{}` before and `{}` now",
                record.name.as_deref().unwrap_or_default(),
                answer.name
            ));
            return;
        }
        let (reference_us, identity) = reference.unzip();
        if record.visits.is_empty() {
            record.reference = identity;
        } else if record.reference != identity {
            // Drift can be removed only between two times of the same reference.
            record.reference = None;
        }
        let fastest = record.visits.iter().map(|visit| visit.p50_us);
        if fastest.fold(f64::INFINITY, f64::min) >= answer.p50_us {
            record.name = Some(answer.name);
        }
        record.version = answer.version.or(record.version.take());
        record.visits.push(Visit {
            moment,
            p50_us: answer.p50_us,
            p90_us: answer.p90_us,
            reference_us,
        });
    }
}
