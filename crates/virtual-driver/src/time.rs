//! Virtual time: an estimate of each launch and copy, for events and the summary.

use vgpu::{Arch, Counters};

/// Bandwidth of copies between host and device, GB/s: PCIe 4.0 ×16 without protocol overhead.
const HOST_LINK_GB_S: f64 = 25.0;
/// Fixed time of a copy, µs.
const COPY_US: f64 = 5.0;

/// Returns the time of a copy between host and device, µs.
pub(crate) fn host_copy_us(bytes: u64) -> f64 {
    COPY_US + bytes as f64 / (HOST_LINK_GB_S * 1e3)
}

/// Returns the time of a copy or fill in device memory, µs; each byte is read or written `passes` times.
pub(crate) fn device_copy_us(arch: &Arch, bytes: u64, passes: f64) -> f64 {
    COPY_US + passes * bytes as f64 / (arch.dram_gb_s * 1e3)
}

/// Returns a lower bound of a launch's time from its counters, µs: that of the busiest unit, plus the
/// launch itself. Units are the instruction issue, the L2 cache and shared memory, over the multiprocessors
/// with blocks.
pub(crate) fn launch_us(arch: &Arch, counters: &Counters) -> f64 {
    let active = counters.blocks.clamp(1, u64::from(arch.sm_count)) as f64;
    let clocks = |work: f64, each_clock: f64| work / each_clock.max(1.0);
    let issue = clocks(
        counters.warp_instructions as f64 / active,
        f64::from(arch.schedulers),
    );
    let shared = counters.shared_wavefronts as f64 / active;
    let sectors = (counters.global_load_sectors + counters.global_store_sectors) as f64;
    let l2 = clocks(32.0 * sectors, f64::from(arch.l2_bytes_per_clock));
    let busiest = issue.max(shared).max(l2);
    arch.launch_us + busiest / f64::from(arch.boost_mhz)
}
