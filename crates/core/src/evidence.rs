//! A time that may be stored and ranked: one that was taken of a candidate whose results are right.

use crate::record::{Energy, Measurement, OtherMode, TimingKind};
use crate::statistics::summarise;
use crate::units::Micros;
use serde::Serialize;

/// Proof that a candidate's results were judged right. In this program only the gate's `Verified`
/// is one, which nothing but the gate can make (`tests/gate.rs` holds that no other type
/// implements it); tests have proofs of their own.
pub trait Proof {
    /// How hard the gate has looked, by the name of its level; `None` where that says nothing.
    fn level(&self) -> Option<&'static str> {
        None
    }
}

/// A time of a candidate that passed the gate, with its samples and how it came to be.
///
/// Every constructor takes a [`Proof`] (a recorded time says that it is no more than recorded), and
/// there is no other way to make one: a time that was taken before the result was checked does not
/// compile.
///
/// ```compile_fail
/// fn forged(record: tuner_core::record::Measurement) -> tuner_core::evidence::Measured {
///     tuner_core::evidence::Measured { record }
/// }
/// ```
///
/// Nor can one be read from text:
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
    /// A time with its samples and evidence.
    #[must_use]
    pub fn new(proof: &dyn Proof, mut record: Measurement) -> Self {
        if let (Some(evidence), Some(level)) = (&mut record.evidence, proof.level()) {
            evidence.gate = Some(level.to_owned());
        }
        Self { record }
    }

    /// A time read from a recorded file, accepted by whoever recorded it: its kind says so, and it
    /// never ranks beside a measured one. `samples` are the launches the file lists, or its one
    /// figure. `None` when there is no sample.
    #[must_use]
    pub fn recorded(samples: Vec<Micros>) -> Option<Self> {
        let record = summarise(TimingKind::Recorded, "recorded", &samples)?;
        Some(Self { record })
    }

    /// A time that a recorded file calls predicted: it needs the same consent as a prediction of ours.
    /// `None` when there is no sample.
    #[must_use]
    pub fn recorded_prediction(samples: Vec<Micros>) -> Option<Self> {
        let record = summarise(TimingKind::Predicted, "recorded", &samples)?;
        Some(Self { record })
    }

    /// A time computed by a model of a device. Its interval is the point itself: a model's error
    /// is no noise, and no number of samples would show it.
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

    /// Samples taken on a real device under the named protocol. `None` when there is no sample.
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

    /// This time of a candidate whose looks at other problems were put off: whatever the proof, the
    /// gate's level is `level`.
    #[must_use]
    pub fn put_off(mut self, level: &str) -> Self {
        let evidence = self.record.evidence.get_or_insert_default();
        evidence.gate = Some(level.to_owned());
        self
    }

    /// Notes something that a reader should know, such as `cycles_disagree`.
    pub fn flag(&mut self, flag: &str) {
        if let Some(evidence) = &mut self.record.evidence {
            evidence.flags.push(flag.to_owned());
        }
    }

    /// This time for another candidate that compiled to the same machine code.
    #[must_use]
    pub fn reused(mut self) -> Self {
        self.record.reused = true;
        self
    }

    /// This time as it would be where the reference takes so many microseconds: its ratio to the
    /// reference, times that. The same where it has no reference, or the result is no time.
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

    /// The median.
    #[must_use]
    pub fn p50(&self) -> Micros {
        self.record.p50
    }

    /// The plain record.
    #[must_use]
    pub fn record(&self) -> &Measurement {
        &self.record
    }

    /// The plain record.
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
