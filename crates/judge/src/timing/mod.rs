//! From a verified candidate to a time that can be defended.
//!
//! [`Measured`] has private fields and every constructor takes a [`Verified`]: a time that was
//! taken before the result was checked does not compile.

pub mod blocks;
pub mod calibration;
pub mod executor;
pub mod finale;
pub mod paired;
pub mod plan;
pub mod predict;
pub mod race;
pub mod synthetic;

use crate::gate::Verified;
use crate::judgement::Judgement;
use tuner_core::record::{Measurement, OtherMode, TimingKind};
use tuner_core::statistics;
use tuner_core::units::Micros;

/// A time of a candidate that passed the gate, with its samples and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    record: Measurement,
}

impl Measured {
    /// A time read from a recorded file; `samples` are the launches the file lists, or its one
    /// figure. `None` when there is no sample.
    #[must_use]
    pub fn recorded(verified: &Verified, samples: Vec<Micros>) -> Option<Self> {
        Self::from_samples(verified, TimingKind::Recorded, "recorded", samples)
    }

    /// A time computed by a model of a device. Its interval is the point itself: a model's error
    /// is no noise, and no number of samples would show it.
    #[must_use]
    pub fn predicted(verified: &Verified, time: Micros, protocol: &str) -> Self {
        let _ = verified;
        Self {
            record: Measurement {
                kind: TimingKind::Predicted,
                p50: time,
                p90: time,
                ci95: [time, time],
                samples: vec![time.get()],
                protocol: protocol.to_owned(),
                reused: false,
                evidence: None,
            },
        }
    }

    /// Samples taken on a real device under the named protocol. `None` when there is no sample.
    #[must_use]
    pub fn on_device(verified: &Verified, protocol: &str, samples: Vec<Micros>) -> Option<Self> {
        Self::from_samples(verified, TimingKind::Measured, protocol, samples)
    }

    /// A record that an interleaved plan has made.
    pub(crate) fn interleaved(_verified: &Verified, record: Measurement) -> Self {
        Self { record }
    }

    /// The time that a worker process took of a candidate under its own proof. `None` when it took
    /// none.
    #[must_use]
    pub fn of_worker(_verified: &Verified, judgement: &Judgement) -> Option<Self> {
        let record = judgement.measurement.clone()?;
        (record.kind == TimingKind::Measured).then_some(Self { record })
    }

    /// The time that another machine of a fleet found, which must be of the kind that its device
    /// gives. `None` when it found none, or one of another kind.
    #[must_use]
    pub fn of_fleet(_verified: &Verified, judgement: &Judgement, kind: TimingKind) -> Option<Self> {
        let record = judgement.measurement.clone()?;
        (record.kind == kind).then_some(Self { record })
    }

    /// Adds the time in the cache mode that does not rank.
    #[must_use]
    pub fn with_other_mode(mut self, other: OtherMode) -> Self {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.other = Some(other);
        }
        self
    }

    /// Notes something that a reader should know, such as `cycles_disagree`.
    pub(crate) fn flag(&mut self, flag: &str) {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.flags.push(flag.to_owned());
        }
    }

    /// This time for another candidate that compiled to the same machine code.
    #[must_use]
    pub fn reused(&self) -> Self {
        let mut copy = self.clone();
        copy.record.reused = true;
        copy
    }

    /// The median.
    #[must_use]
    pub fn p50(&self) -> Micros {
        self.record.p50
    }

    /// The plain record, for the store.
    #[must_use]
    pub fn record(&self) -> &Measurement {
        &self.record
    }

    /// The plain record, for the store.
    #[must_use]
    pub fn into_record(self) -> Measurement {
        self.record
    }

    fn from_samples(
        _verified: &Verified,
        kind: TimingKind,
        protocol: &str,
        samples: Vec<Micros>,
    ) -> Option<Self> {
        let summary = statistics::summarise(&samples)?;
        Some(Self {
            record: Measurement {
                kind,
                p50: summary.p50,
                p90: summary.p90,
                ci95: summary.ci95,
                samples: samples.into_iter().map(Micros::get).collect(),
                protocol: protocol.to_owned(),
                reused: false,
                evidence: None,
            },
        })
    }
}
