//! GPUs at a fixed clock: `h100@1500MHz`.

use super::{Arch, list_gpus};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Lowest clock that a name can ask for, MHz: that of the tables.
pub const MIN_CLOCK_MHZ: u32 = 100;
/// Highest clock that a name can ask for, MHz: that of the tables.
pub const MAX_CLOCK_MHZ: u32 = 5000;

/// An error in the name of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// No table has this name.
    #[error("no GPU is called `{0}`")]
    UnknownGpu(String),
    /// The text after `@` is not a clock.
    #[error(
        "invalid clock `{clock}`; use whole megahertz from {MIN_CLOCK_MHZ} to {MAX_CLOCK_MHZ}, such \
         as vgpu:{gpu}@1500MHz"
    )]
    InvalidClock {
        /// The name before `@`.
        gpu: &'static str,
        /// The text after it.
        clock: String,
    },
}

/// GPUs at the clocks that were asked for. They live as long as the program, like the tables; their
/// number is bounded by that of the valid clocks.
static CLOCKED: Mutex<BTreeMap<(&'static str, u32), &'static Arch>> = Mutex::new(BTreeMap::new());

/// Returns the GPU of a name with or without a clock.
pub(super) fn find(name: &str) -> Result<&'static Arch, ClockError> {
    let (plain, clock) = match name.split_once('@') {
        None => (name, None),
        Some((plain, clock)) => (plain, Some(clock)),
    };
    let table = list_gpus().iter().find(|arch| arch.name == plain);
    let table = table.ok_or_else(|| ClockError::UnknownGpu(plain.to_owned()))?;
    let Some(text) = clock else {
        return Ok(table);
    };
    let mhz = megahertz(text).ok_or_else(|| ClockError::InvalidClock {
        gpu: table.name,
        clock: text.to_owned(),
    })?;
    let mut all = CLOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    let arch = all.entry((table.name, mhz));
    Ok(arch.or_insert_with(|| Box::leak(Box::new(at_clock(table, mhz)))))
}

/// Parses `1500MHz`, in any case.
fn megahertz(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.strip_suffix("mhz")?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let mhz: u32 = digits.parse().ok().filter(|_| plain)?;
    (MIN_CLOCK_MHZ..=MAX_CLOCK_MHZ)
        .contains(&mhz)
        .then_some(mhz)
}

/// Builds the table of a GPU whose multiprocessors and L2 cache run at `mhz`.
fn at_clock(table: &Arch, mhz: u32) -> Arch {
    // The memory keeps its own clock: its bandwidth, and its latency beyond the L2 cache in time.
    let beyond_l2 = table.dram_cycles.saturating_sub(table.l2_cycles);
    let scaled = f64::from(beyond_l2) * f64::from(mhz) / f64::from(table.boost_mhz);
    Arch {
        name: Box::leak(format!("{}@{mhz}MHz", table.name).into_boxed_str()),
        boost_mhz: mhz,
        tensor_mhz: mhz,
        dram_cycles: table.l2_cycles + scaled.round() as u32,
        ..*table
    }
}
