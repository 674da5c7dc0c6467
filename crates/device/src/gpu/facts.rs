//! Facts that the driver reports about a GPU before any launch. No context is created.

use super::driver::{CudaError, Device, DeviceAttribute as A, Driver, code};
use crate::cuda::DriverAbsent;
use serde::{Deserialize, Serialize};
use tuner_core::target::ComputeTarget;
use tuner_judge::timing::calibration::DatasheetPeaks;
use tuner_space::DeviceLimits;

/// A GPU as reported by its driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Ordinal, as in `cuda:N`.
    pub ordinal: u32,
    /// Name, such as `NVIDIA H200`.
    pub name: String,
    /// UUID, `GPU-…`; of a MIG instance `MIG-…`.
    pub uuid: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub sm_count: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// Opt-in limit of shared memory per block, including static, bytes.
    pub shared_bytes_optin: u32,
    /// Shared memory of a multiprocessor, bytes.
    pub shared_bytes_per_sm: u32,
    /// Shared memory that the system reserves per block, bytes.
    pub shared_bytes_reserved: u32,
    /// Registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// Maximum number of threads in a block.
    pub max_threads: u32,
    /// Highest clock of the multiprocessors, MHz.
    pub max_clock_mhz: Option<f64>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<f64>,
    /// Width of the memory bus, bits.
    pub memory_bus_bits: Option<u32>,
    /// Error correction is on.
    pub ecc: bool,
    /// A display watchdog kills kernels that take seconds.
    pub watchdog: bool,
    /// Newest CUDA version that the driver supports, major and minor.
    pub cuda: (u32, u32),
    /// Version of the kernel driver, if readable.
    pub driver: Option<String>,
}

/// Reasons why a GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No driver.
    #[error(transparent)]
    Driver(#[from] DriverAbsent),
    /// The driver does not start.
    #[error("the CUDA driver does not start: {0}")]
    Start(CudaError),
    /// The driver has no GPU with that ordinal.
    #[error("there is no cuda:{ordinal}; the driver sees {}", seen(*.count))]
    NoSuch {
        /// Requested ordinal.
        ordinal: u32,
        /// Number of GPUs.
        count: u32,
    },
    /// The GPU returns an error.
    #[error("cuda:{ordinal} cannot be used: {error}")]
    Broken {
        /// Its ordinal.
        ordinal: u32,
        /// The error.
        error: CudaError,
    },
}

fn seen(count: u32) -> String {
    match count {
        0 => "no GPU".to_owned(),
        1 => "one GPU, cuda:0".to_owned(),
        _ => format!("cuda:0 to cuda:{}", count - 1),
    }
}

impl GpuFacts {
    /// Queries the driver, which must have been initialised.
    ///
    /// # Errors
    /// The GPU does not exist or does not respond.
    pub fn read(driver: &mut dyn Driver, ordinal: u32) -> Result<Self, GpuError> {
        let broken = |error| GpuError::Broken { ordinal, error };
        let count = count(driver)?;
        if ordinal >= count {
            return Err(GpuError::NoSuch { ordinal, count });
        }
        let device = driver.device(ordinal as i32).map_err(broken)?;
        Self::read_device(driver, ordinal, device).map_err(broken)
    }

    fn read_device(
        driver: &mut dyn Driver,
        ordinal: u32,
        device: Device,
    ) -> Result<Self, CudaError> {
        let version = driver.version()?;
        let name = driver.device_name(device)?;
        let uuid = uuid(&name, driver.device_uuid(device)?);
        let memory_bytes = driver.device_memory(device)?;
        let mut ask = |attribute: A| -> Result<u32, CudaError> {
            Ok(u32::try_from(driver.device_attribute(device, attribute)?).unwrap_or(0))
        };
        let capability = (
            ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let sm_count = ask(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let max_threads = ask(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let shared_bytes_optin = ask(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let shared_bytes_per_sm = ask(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
        let registers_per_sm = ask(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?;
        let l2_bytes = u64::from(ask(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?);
        // Some drivers do not report these: an error or 0.
        let mut may = |attribute: A| ask(attribute).ok().filter(|value| *value > 0);
        Ok(Self {
            ordinal,
            name,
            uuid,
            capability,
            sm_count,
            memory_bytes,
            l2_bytes,
            shared_bytes_optin,
            shared_bytes_per_sm,
            registers_per_sm,
            max_threads,
            shared_bytes_reserved: may(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
                .unwrap_or(0),
            max_clock_mhz: may(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).map(mhz),
            memory_clock_mhz: may(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).map(mhz),
            memory_bus_bits: may(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            ecc: may(A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED).is_some(),
            watchdog: may(A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT).is_some(),
            cuda: cuda_version(version),
            driver: kernel_driver_version(),
        })
    }

    /// Returns the limits that expressions of a search space may use.
    #[must_use]
    pub fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            sm_count: self.sm_count,
            shared_bytes: self.shared_bytes_optin,
            cc: self.capability.0 * 10 + self.capability.1,
            max_threads: self.max_threads,
        }
    }

    /// Returns the compile target, such as `sm_90`.
    #[must_use]
    pub fn arch(&self) -> String {
        ComputeTarget::of_device(self.limits().cc).to_string()
    }

    /// Returns the peaks that the attributes imply.
    #[must_use]
    pub fn promise(&self) -> DatasheetPeaks {
        // Two transfers per clock, 8 bits per byte.
        let bandwidth = |(mhz, bits): (f64, u32)| 2.0 * mhz * 1e6 * f64::from(bits) / 8.0 / 1e9;
        DatasheetPeaks {
            sm_count: self.sm_count,
            capability: self.capability,
            max_clock_mhz: self.max_clock_mhz,
            dram_gb_s: self
                .memory_clock_mhz
                .zip(self.memory_bus_bits)
                .map(bandwidth),
            l2_bytes: self.l2_bytes,
        }
    }
}

/// Lists the GPUs of this machine.
///
/// # Errors
/// The driver is missing, does not start, or a GPU does not respond. A driver without a GPU yields
/// an empty list.
pub fn list() -> Result<Vec<GpuFacts>, GpuError> {
    let mut driver = super::open_driver()?;
    start(&mut *driver)?;
    (0..count(&mut *driver)?)
        .map(|ordinal| GpuFacts::read(&mut *driver, ordinal))
        .collect()
}

/// Returns the GPU with that ordinal.
///
/// # Errors
/// See [`GpuError`].
pub fn find(ordinal: u32) -> Result<GpuFacts, GpuError> {
    let mut driver = super::open_driver()?;
    start(&mut *driver)?;
    GpuFacts::read(&mut *driver, ordinal)
}

/// Initialises the driver.
///
/// # Errors
/// [`GpuError::Start`]; a machine without a GPU is not an error.
pub fn start(driver: &mut dyn Driver) -> Result<(), GpuError> {
    match driver.init() {
        Err(error) if error.code != code::NO_DEVICE => Err(GpuError::Start(error)),
        _ => Ok(()),
    }
}

fn count(driver: &mut dyn Driver) -> Result<u32, GpuError> {
    match driver.device_count() {
        Ok(count) => Ok(u32::try_from(count).unwrap_or(0)),
        // Without a GPU, some drivers fail to initialise.
        Err(error) if matches!(error.code, code::NO_DEVICE | code::NOT_INITIALIZED) => Ok(0),
        Err(error) => Err(GpuError::Start(error)),
    }
}

fn mhz(khz: u32) -> f64 {
    f64::from(khz) / 1e3
}

/// Splits a version number: 12040 is CUDA 12.4.
fn cuda_version(number: i32) -> (u32, u32) {
    let number = u32::try_from(number).unwrap_or(0);
    (number / 1000, number % 1000 / 10)
}

/// Formats a UUID like `nvidia-smi -L`. A MIG instance is recognised by its name: `NVIDIA
/// A100-SXM4-40GB MIG 1g.5gb`.
fn uuid(name: &str, bytes: [u8; 16]) -> String {
    let kind = if is_mig(name) { "MIG" } else { "GPU" };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{kind}-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Reports whether the device of that name is a MIG instance.
#[must_use]
pub fn is_mig(name: &str) -> bool {
    name.split_whitespace().any(|word| word == "MIG")
}

/// Returns the word with digits and dots on the first line of the driver's `/proc` file.
fn kernel_driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    version_in(&text)
}

fn version_in(text: &str) -> Option<String> {
    text.lines()
        .next()?
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
