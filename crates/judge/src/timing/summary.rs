//! Statistics of samples that are interleaved with the reference.

use super::reference::Reference;
use crate::stopwatch::Sample;
use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::record::{Measurement, TimingEvidence, TimingKind};
use tuner_core::statistics::{interval_of_median, median};
use tuner_core::units::Micros;

/// A time as ratio to the reference times the reference's time, with the samples.
pub(super) struct SampleSummary {
    pub(super) p50: Micros,
    pub(super) p90: Micros,
    pub(super) ci95: [Micros; 2],
    pub(super) samples: Vec<Sample>,
    ratios: Vec<f64>,
    unit: f64,
}

/// Conditions of the samples.
pub(super) struct Conditions<'a> {
    /// Name of the timing protocol.
    pub(super) protocol: &'a str,
    pub(super) cache: CacheMode,
    /// Launch sequences per sample.
    pub(super) launches: u32,
    pub(super) reference: &'a Reference,
}

impl SampleSummary {
    /// Computes a summary from ratios to a reference that takes `unit` microseconds, and the 90th
    /// percentile of the time. `None` without ratios.
    pub(super) fn new(ratios: Vec<f64>, unit: f64, p90: f64, samples: Vec<Sample>) -> Option<Self> {
        let [low, high] = interval_of_median(&ratios)?;
        let p50 = median(&ratios)? * unit;
        Some(Self {
            p50: Micros::new(p50)?,
            // Both are different statistics of few samples and may cross.
            p90: Micros::new(p90.max(p50))?,
            ci95: [Micros::new(low * unit)?, Micros::new(high * unit)?],
            samples,
            ratios,
            unit,
        })
    }

    /// Returns the time with all evidence: protocol, mode, launches per sample, reference, and the
    /// flags that apply.
    pub(super) fn measured(
        self,
        proof: &dyn Proof,
        conditions: Conditions<'_>,
        flags: &[(bool, &str)],
    ) -> Measured {
        let Conditions {
            protocol,
            cache,
            launches,
            reference,
        } = conditions;
        let all = |field: fn(&Sample) -> Option<f64>| -> Vec<f64> {
            let values: Option<Vec<f64>> = self.samples.iter().map(field).collect();
            // Readers pair these lists with the samples by index, so a partial list is dropped.
            values.unwrap_or_default()
        };
        let named = flags.iter().filter(|(holds, _)| *holds);
        let evidence = TimingEvidence {
            cache,
            launches,
            cycles: all(|sample| sample.cycles),
            clock_mhz: all(|sample| sample.clock_mhz),
            reference: reference.identity.clone(),
            reference_us: Some(self.unit),
            flags: named.map(|(_, name)| (*name).to_owned()).collect(),
            gate: None,
            other: None,
            energy: None,
            reference_ratios: self.ratios,
        };
        Measured::new(
            proof,
            Measurement {
                kind: TimingKind::Measured,
                p50: self.p50,
                p90: self.p90,
                ci95: self.ci95,
                samples: self.samples.iter().map(|sample| sample.micros).collect(),
                protocol: protocol.to_owned(),
                reused: false,
                evidence: Some(Box::new(evidence)),
            },
        )
    }
}
