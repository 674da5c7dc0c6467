//! Lower bounds of kernel times: the work of a problem at the peaks of the device.

use super::evaluate::{Results, Tuned};
use super::options::Options;
use tuner_core::record::ConfigValues;
use tuner_report::us;
use tuner_space::Bound;
use vgpu::Arch;

/// Returns the time of a problem at the peaks of single-precision arithmetic and of bandwidth,
/// microseconds; `None`: the search space has no `metric`, or the device is unknown.
pub(super) fn roofline_us(options: &Options, problem: &str, config: &ConfigValues) -> Option<f64> {
    let (arch, bound) = bound(options, problem, config)?;
    let [arithmetic, memory] = arch.floors_us(bound.flops?, bound.bytes?, false);
    Some(arithmetic.max(memory))
}

/// Returns a doubt if a predicted time is below the lower bound of its problem.
pub(super) fn below(
    options: &Options,
    problem: &str,
    shipped: &Results,
    tuned: &Tuned,
) -> Option<String> {
    if !options.predicted {
        return None;
    }
    let shipped = shipped.get(problem)?;
    let (arch, bound) = bound(options, problem, &shipped.config)?;
    let least = least_us(arch, &bound);
    // A bound above the shipped template's time is invalid: the `metric` of the search space overestimates
    // the work.
    let is_broken = tuned.time.us < least && least <= shipped.time.us;
    is_broken.then(|| {
        format!(
            "{} us are below {} us, the time of the problem's work at the peaks of the device",
            us(tuned.time.us),
            us(least)
        )
    })
}

/// Returns a lower bound of the time of some work, microseconds: part of the data may already be cached,
/// and matrix instructions may do the arithmetic.
fn least_us(arch: &Arch, bound: &Bound) -> f64 {
    let bytes = (bound.bytes.unwrap_or(0.0) - arch.l2_bytes as f64).max(0.0);
    // The peak of 8-bit floats is twice that of 16-bit ones.
    let flops = bound.flops.unwrap_or(0.0) / 2.0;
    let [arithmetic, memory] = arch.floors_us(flops, bytes, true);
    arithmetic.max(memory)
}

/// Binds a configuration of the shipped search space, whose `metric` no mutator changes.
fn bound(
    options: &Options,
    problem: &str,
    config: &ConfigValues,
) -> Option<(&'static Arch, Bound)> {
    let arch = vgpu::arch::by_device_name(&options.device_name)?;
    let spec = &options.parsed.spec;
    let limits = options.limits?;
    let space = spec.space(problem, &limits).ok()?;
    let config = space
        .config_from_values(config)
        .ok()
        .unwrap_or_else(|| space.default_config());
    let bound = spec.binder(problem, &limits).ok()?.bind(&config).ok()?;
    Some((arch, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_is_that_of_bytes_beyond_the_cache() {
        let arch = Arch::by_name("l4").unwrap();
        let bound = |bytes: f64| Bound {
            macros: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            launches: Vec::new(),
            reference: None,
            options: Vec::new(),
            flops: None,
            bytes: Some(bytes),
            terms: None,
        };
        assert!(least_us(arch, &bound(1e6)).abs() < 1e-9);
        // 134 MB of softmax, of which the L2 cache holds 50 MB.
        let least = least_us(arch, &bound(134e6));
        assert!((200.0..400.0).contains(&least), "{least}");
    }
}
