//! Recorded measurements as a device.

use super::evaluator::{BoxError, Evaluator, Judged, Preparation};
use super::schedule::Task;
use std::sync::Arc;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::provenance;
use tuner_core::record::{DeviceKind, TaskKey, TimingKind};
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::replay::Recording;
use tuner_judge::judgement::TimedJudgement;
use tuner_search::Knowledge;
use tuner_space::Config;
use tuner_store::TaskStart;

/// Replays a recording: no compile, no launch, the recorded outcome and its recorded cost.
#[derive(Debug)]
pub struct ReplayEvaluator {
    recording: Arc<Recording>,
    facts: DeviceFacts,
}

impl ReplayEvaluator {
    /// Creates an evaluator of this recording.
    #[must_use]
    pub fn new(recording: Arc<Recording>) -> Self {
        let facts = Self::facts_of(&recording);
        Self { recording, facts }
    }

    /// Returns a recording as a run's task: it has no template, reference or search space.
    #[must_use]
    pub fn task(recording: &Recording) -> TaskStart {
        TaskStart {
            kernel: recording.kernel.clone(),
            problem: recording.problem.clone(),
            sizes: recording.sizes.clone(),
            template_hash: None,
            reference_hash: None,
            definition: recording.definition(),
            default_config: None,
            space_path: None,
            provenance: provenance::of_recording(),
        }
    }

    /// Returns the search task of a recording.
    pub(super) fn searched(recording: &Recording) -> Task {
        Task {
            key: TaskKey {
                kernel: recording.kernel.clone(),
                problem: recording.problem.clone(),
                device: recording.device.clone(),
            },
            space: recording.space.clone(),
            start: Vec::new(),
            knowledge: Knowledge::default(),
            weight: 1.0,
            work: 0.0,
        }
    }

    /// Returns a recording's device facts.
    pub(super) fn facts_of(recording: &Recording) -> DeviceFacts {
        DeviceFacts {
            name: recording.device.clone(),
            kind: DeviceKind::Replay,
            limits: None,
            arch: String::new(),
            driver: None,
        }
    }

    /// Returns the identity of a recorded configuration.
    pub(super) fn identity(recording: &Recording, config: &Config) -> ContentHash {
        let choices: Vec<u8> = config
            .choices()
            .iter()
            .flat_map(|choice| choice.to_le_bytes())
            .collect();
        ContentHash::from_parts([recording.content.as_str().as_bytes(), &choices])
    }

    /// Converts a recorded result to a judgement.
    pub(super) fn judge(candidate: ContentHash, recorded: &Recorded, timing: TimingKind) -> Judged {
        let found = match &recorded.outcome {
            Outcome::Timed { time, samples } => {
                let one = [*time];
                // A measurement needs samples; without single launches the file's own figure is the only
                // one.
                let samples = if samples.is_empty() {
                    &one
                } else {
                    &samples[..]
                };
                let measured = match timing {
                    TimingKind::Predicted => Measured::recorded_prediction(samples.to_vec()),
                    TimingKind::Measured | TimingKind::Recorded => {
                        Measured::recorded(samples.to_vec())
                    }
                };
                TimedJudgement {
                    measured,
                    ..Judgement::ok(None).into()
                }
            }
            Outcome::Failed { verdict, detail } => Judgement::new(*verdict, &**detail).into(),
        };
        Judged {
            candidate,
            found,
            compilation: None,
            charged_us: recorded.charged_us(),
            put_off: false,
            whole_tried: false,
        }
    }
}

impl Evaluator for ReplayEvaluator {
    type Work = (ContentHash, Recorded);

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn instant(&self) -> bool {
        true
    }

    fn identity(&self, _task: usize, config: &Config) -> Option<ContentHash> {
        Some(Self::identity(&self.recording, config))
    }

    fn prepare(&self, _task: usize, config: &Config) -> Result<Preparation<Self::Work>, BoxError> {
        let candidate = Self::identity(&self.recording, config);
        Ok(Preparation::Ready {
            facts: None,
            candidate: candidate.clone(),
            work: (candidate, self.recording.lookup(config)),
        })
    }

    fn evaluate(
        &self,
        _task: usize,
        _config: &Config,
        work: Self::Work,
    ) -> Result<Judged, BoxError> {
        let (candidate, recorded) = work;
        Ok(Self::judge(candidate, &recorded, self.recording.timing))
    }
}
