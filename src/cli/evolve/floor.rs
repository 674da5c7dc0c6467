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
    let (flops, bytes) = (bound.flops.unwrap_or(0.0), bound.bytes.unwrap_or(0.0));
    let least = arch.least_us(flops, bytes, true);
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
