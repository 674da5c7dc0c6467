//! Recorded measurements as a device.

use super::evaluator::{BoxError, Clock, Evaluator, Judged, Order, Preparation};
use std::sync::Arc;
use tuner_core::record::{DeviceKind, Verdict};
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::replay::Recording;
use tuner_judge::gate;
use tuner_judge::timing::Measured;
use tuner_space::Config;

/// Plays back a recording: no compile, no launch, the recorded outcome and its recorded cost.
#[derive(Debug)]
pub struct ReplayEvaluator {
    recording: Arc<Recording>,
    facts: DeviceFacts,
}

impl ReplayEvaluator {
    /// Plays back this recording.
    #[must_use]
    pub fn new(recording: Arc<Recording>) -> Self {
        let facts = Self::facts_of(&recording);
        Self { recording, facts }
    }

    /// A recording as a device.
    pub(super) fn facts_of(recording: &Recording) -> DeviceFacts {
        DeviceFacts {
            name: recording.device().to_owned(),
            kind: DeviceKind::Replay,
            limits: None,
            arch: String::new(),
            driver: None,
        }
    }

    /// Identity of a recorded configuration.
    pub(super) fn identity(recording: &Recording, config: &Config) -> ContentHash {
        let choices: Vec<u8> = config
            .choices()
            .iter()
            .flat_map(|choice| choice.to_le_bytes())
            .collect();
        ContentHash::of([recording.content().as_str().as_bytes(), &choices])
    }

    /// What a recorded result amounts to.
    pub(super) fn judge(candidate: ContentHash, recorded: &Recorded) -> Judged {
        let measured = gate::recorded(&recorded.outcome).and_then(|verified| {
            let samples = match &recorded.outcome {
                Outcome::Timed { time, samples } if samples.is_empty() => vec![*time],
                Outcome::Timed { samples, .. } => samples.to_vec(),
                Outcome::Failed { verdict, .. } => return Err(*verdict),
            };
            Ok(Measured::recorded(&verified, samples))
        });
        let detail = match &recorded.outcome {
            Outcome::Failed { detail, .. } => detail.to_string(),
            Outcome::Timed { .. } => String::new(),
        };
        let (verdict, measured) = match measured {
            Ok(measured) => (Verdict::Ok, measured),
            Err(verdict) => (verdict, None),
        };
        Judged {
            candidate,
            verdict,
            detail,
            hazards: Vec::new(),
            compilation: None,
            max_error: None,
            measured,
            charged_us: recorded.charged_us(),
            counters: None,
        }
    }
}

impl Evaluator for ReplayEvaluator {
    type Work = (ContentHash, Recorded);

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn order(&self) -> Order {
        Order::Fixed
    }

    fn clock(&self) -> Clock {
        Clock::Charged
    }

    fn instant(&self) -> bool {
        true
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
        (candidate, recorded): Self::Work,
    ) -> Result<Judged, BoxError> {
        Ok(Self::judge(candidate, &recorded))
    }
}
