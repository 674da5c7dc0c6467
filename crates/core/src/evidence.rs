//! Storable and rankable times: only for candidates whose results are correct.

use crate::record::{Energy, Measurement, OtherMode, TimingKind};
use crate::statistics::summarise;
use crate::units::Micros;
use serde::Serialize;

/// Proof that a candidate's results were judged correct. The only implementation in this program is the
/// gate's `Verified`, which only the gate constructs (`tests/gate.rs` checks that no other type implements
/// it); tests have separate proofs.
pub trait Proof {
    /// Returns the name of the verification level; `None` if it is unknown.
    fn level(&self) -> Option<&'static str> {
        None
    }
}

/// A time of a candidate that passed the gate, with its samples and its source.
///
/// Every constructor requires a [`Proof`], and a recorded time is marked as recorded;
/// there is no other constructor: a time that was taken before the result was checked does not
/// compile.
///
/// ```compile_fail
/// fn forged(record: tuner_core::record::Measurement) -> tuner_core::evidence::Measured {
///     tuner_core::evidence::Measured { record }
/// }
/// ```
///
/// It cannot be deserialized either:
///
/// ```compile_fail
/// let forged: tuner_core::evidence::Measured = serde_json::from_str("{}").unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Measured {
    record: Measurement,
}

impl Measured {
    /// Creates a time with its samples and evidence.
    #[must_use]
    pub fn new(proof: &dyn Proof, mut record: Measurement) -> Self {
        if let (Some(evidence), Some(level)) = (&mut record.evidence, proof.level()) {
            evidence.gate = Some(level.to_owned());
        }
        Self { record }
    }

    /// Creates a time from a recorded file, accepted by its author: its kind is recorded, and it never
    /// ranks with a measured one. `samples` are the launches that the file lists, or its single figure.
    /// `None` without a sample.
    #[must_use]
    pub fn recorded(samples: Vec<Micros>) -> Option<Self> {
        let record = summarise(TimingKind::Recorded, "recorded", &samples)?;
        Some(Self { record })
    }

    /// Creates a time that a recorded file declares as predicted: it needs the same consent as a prediction
    /// of this program. `None` without a sample.
    #[must_use]
    pub fn recorded_prediction(samples: Vec<Micros>) -> Option<Self> {
        let record = summarise(TimingKind::Predicted, "recorded", &samples)?;
        Some(Self { record })
    }

    /// Creates a time from a model of a device. Its interval is the point itself: a model's error is not
    /// noise and does not show in samples.
    #[must_use]
    pub fn predicted(proof: &dyn Proof, time: Micros, protocol: &str) -> Self {
        let record = Measurement {
            kind: TimingKind::Predicted,
            p50: time,
            p90: time,
            ci95: [time, time],
            samples: vec![time.get()],
            protocol: protocol.to_owned(),
            reused: false,
            evidence: None,
        };
        Self::new(proof, record)
    }

    /// Creates a time from samples on a real device under the named protocol. `None` without a
    /// sample.
    #[must_use]
    pub fn on_device(proof: &dyn Proof, protocol: &str, samples: Vec<Micros>) -> Option<Self> {
        let record = summarise(TimingKind::Measured, protocol, &samples)?;
        Some(Self::new(proof, record))
    }

    /// Adds the time in the cache mode that does not rank.
    #[must_use]
    pub fn with_other_mode(mut self, other: OtherMode) -> Self {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.other = Some(other);
        }
        self
    }

    /// Adds the energy of a launch sequence.
    #[must_use]
    pub fn with_energy(mut self, energy: Energy) -> Self {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.energy = Some(energy);
        }
        self
    }

    /// Marks a candidate with deferred checks on other problems: the gate's level is `level`, independent
    /// of the proof.
    #[must_use]
    pub fn put_off(mut self, level: &str) -> Self {
        let evidence = self.record.evidence.get_or_insert_default();
        evidence.gate = Some(level.to_owned());
        self
    }

    /// Adds a flag for the reader, such as `cycles_disagree`.
    pub fn flag(&mut self, flag: &str) {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.flags.push(flag.to_owned());
        }
    }

    /// Copies this time to another candidate that compiled to the same machine code.
    #[must_use]
    pub fn reused(mut self) -> Self {
        self.record.reused = true;
        self
    }

    /// Scales this time to a reference of `reference_us` microseconds by its ratio to the
    /// reference. Unchanged without a reference, or if the result is not a valid time.
    #[must_use]
    pub fn in_units_of(mut self, reference_us: f64) -> Self {
        let record = &mut self.record;
        let Some(evidence) = &mut record.evidence else {
            return self;
        };
        let Some(own) = evidence.reference_us else {
            return self;
        };
        let scale = |time: Micros| Micros::new(time.get() * reference_us / own);
        let [low, high] = record.ci95;
        let scaled = (
            scale(record.p50),
            scale(record.p90),
            scale(low),
            scale(high),
        );
        if let (Some(p50), Some(p90), Some(low), Some(high)) = scaled {
            (record.p50, record.p90, record.ci95) = (p50, p90, [low, high]);
            evidence.reference_us = Some(reference_us);
        }
        self
    }

    /// Returns the median.
    #[must_use]
    pub fn p50(&self) -> Micros {
        self.record.p50
    }

    /// Returns the plain record.
    #[must_use]
    pub fn record(&self) -> &Measurement {
        &self.record
    }

    /// Converts to the plain record.
    #[must_use]
    pub fn into_record(self) -> Measurement {
        self.record
    }
}

impl AsRef<Measurement> for Measured {
    fn as_ref(&self) -> &Measurement {
        &self.record
    }
}
