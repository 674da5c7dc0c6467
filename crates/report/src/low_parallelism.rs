//! Low parallelism: correct results while most of the device idles.
//!
//! A kernel may be correct on every problem and still use only a few multiprocessors, or take longer per
//! operation on larger problems. Only tuned problems are judged: check problems are intentionally small.

use super::roofline::floor_us;
use tuner_core::roofline::explain_impossible;
use vgpu::Arch;

/// Maximum growth of the time per operation from one problem to a larger one.
const MAX_GROWTH: f64 = 1.5;
/// Maximum ratio of time to the roofline's lower bound.
const MAX_OVER_FLOOR: f64 = 20.0;

/// Time of one configuration on one tuned problem, from any source.
#[derive(Debug, Clone)]
pub struct TimedProblem {
    /// The problem.
    pub problem: String,
    /// Its time, µs.
    pub time_us: f64,
    /// Source of the time, as one word.
    pub label: &'static str,
    /// Blocks of the longest launch, if known.
    pub blocks: Option<u64>,
    /// The kernel uses tensor cores.
    pub tensor: bool,
    /// Useful operations.
    pub flops: Option<f64>,
    /// Bytes that must move.
    pub bytes: Option<f64>,
}

impl TimedProblem {
    /// Returns warnings on a correct result; `others` are the results of the same kernel on its other
    /// problems.
    #[must_use]
    pub fn warnings(&self, others: &[Self], arch: &Arch) -> Vec<String> {
        let few = self
            .blocks
            .and_then(|blocks| few_blocks(blocks, arch.sm_count));
        let reasons = [few, self.far_from_floor(arch), self.growth(others)];
        reasons.into_iter().flatten().collect()
    }

    /// Explains a time that the metric makes impossible. Holds for any problem, tuned or only
    /// checked.
    #[must_use]
    pub fn below_floor(&self, arch: &Arch) -> Option<String> {
        let (flops, bytes) = (self.flops.unwrap_or(0.0), self.bytes.unwrap_or(0.0));
        // 0: it was not predicted.
        let time = Some(self.time_us).filter(|time| *time > 0.0)?;
        explain_impossible(time, arch.least_us(flops, bytes, self.tensor))
    }

    fn far_from_floor(&self, arch: &Arch) -> Option<String> {
        let (floor, _) = floor_us(self.flops, self.bytes, self.tensor, arch)?;
        let times = self.time_us / floor;
        (times > MAX_OVER_FLOOR).then(|| {
            format!(
                "far from the roofline: {:.1} us ({}) is {times:.0} times the floor of {floor:.2} us",
                self.time_us, self.label
            )
        })
    }

    /// Compares with the smaller problem that has the cheapest operations.
    fn growth(&self, others: &[Self]) -> Option<String> {
        let flops = self.flops.filter(|flops| *flops > 0.0)?;
        let each = self.time_us / flops;
        let (problem, times) = others
            .iter()
            .filter_map(|other| {
                let smaller = other
                    .flops
                    .filter(|smaller| *smaller > 0.0 && *smaller < flops)?;
                Some((&other.problem, each / (other.time_us / smaller)))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (times > MAX_GROWTH).then(|| {
            format!(
                "poor scaling: an operation takes {times:.1} times as long as on the smaller \
                 problem {problem}"
            )
        })
    }
}

/// Reports a launch with fewer blocks than multiprocessors.
#[must_use]
pub fn few_blocks(blocks: u64, multiprocessors: u32) -> Option<String> {
    let multiprocessors = u64::from(multiprocessors);
    let idle = multiprocessors
        .checked_sub(blocks)
        .filter(|idle| *idle > 0)?;
    Some(format!(
        "grid too small: {idle} of {multiprocessors} SMs idle"
    ))
}

#[cfg(test)]
mod tests;
