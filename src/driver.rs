//! What the CUDA driver says about this machine. A missing driver or GPU is an answer, not an
//! error: the virtual GPU does the work there.
#![expect(unsafe_code, reason = "asks the CUDA driver")]

use cudarc::driver::{result, sys};

/// The driver and its GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverReport {
    /// Version of the kernel driver, such as `580.65.06`, where it can be read.
    pub version: Option<String>,
    /// Newest CUDA that the driver supports, `major.minor`.
    pub cuda: Option<String>,
    /// Names of the GPUs, by ordinal.
    pub gpus: Vec<String>,
}

/// Asks the driver.
///
/// # Errors
/// A sentence, when the library is not there or does not start.
pub fn probe() -> Result<DriverReport, String> {
    // SAFETY: loads the driver library, whose initialisers have no preconditions. Asked first,
    // because every other call of cudarc panics where the library is missing.
    if !unsafe { sys::is_culib_present() } {
        return Err("libcuda.so.1 is not on the system's library path".to_owned());
    }
    let describe =
        |error: result::DriverError| format!("the CUDA driver does not start: {error:?}");
    result::init().map_err(describe)?;
    let count = result::device::get_count().map_err(describe)?;
    let gpus = (0..count)
        .map(|ordinal| result::device::get(ordinal).and_then(result::device::get_name))
        .collect::<Result<Vec<_>, _>>()
        .map_err(describe)?;
    Ok(DriverReport {
        version: kernel_driver_version(),
        cuda: cuda_version(),
        gpus,
    })
}

fn cuda_version() -> Option<String> {
    let mut version = 0;
    // SAFETY: writes one integer through a valid pointer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .ok()?;
    Some(format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// The word with digits and dots on the first line of the driver's `/proc` file.
fn kernel_driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    text.lines()
        .next()?
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_without_a_driver_is_an_answer_and_no_panic() {
        // Whatever this machine has, the call returns.
        let _ = super::probe();
    }
}
