//! GPU health through NVML, if that library exists: clocks, temperature, other processes. Everything here
//! is optional: without NVML values are unknown, but nothing fails.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::{Device, Nvml};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// Monitors one GPU; by default none.
#[derive(Debug, Default)]
pub struct Monitor {
    nvml: Option<Nvml>,
    uuid: String,
    /// Energy counter that replaces NVML, if tests stand in for the GPU.
    pub counter: Option<Box<dyn EnergyCounter>>,
}

/// Energy counter of a device.
pub trait EnergyCounter: std::fmt::Debug {
    /// Returns the energy used since a fixed point in time, millijoules; `None` without a counter.
    fn energy_mj(&self) -> Option<u64>;
}

impl EnergyCounter for Monitor {
    /// Returns the count of NVML, available from Volta on. A MIG instance has no counter, and that
    /// of the whole GPU does not apply to it.
    fn energy_mj(&self) -> Option<u64> {
        if let Some(counter) = &self.counter {
            return counter.energy_mj();
        }
        let nvml = self.nvml.as_ref()?;
        let device = nvml.device_by_uuid(self.uuid.as_str()).ok()?;
        if device.mig_is_mig_device_handle().unwrap_or(false) {
            return None;
        }
        device.total_energy_consumption().ok()
    }
}

/// State of a GPU at one time; `None` for unavailable values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Clock of the multiprocessors, MHz.
    pub clock_mhz: Option<u32>,
    /// Maximum of that clock, MHz.
    pub max_clock_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip, °C.
    pub temperature_c: Option<u32>,
    /// Power drawn, W.
    pub power_w: Option<f64>,
    /// Power limit, W.
    #[serde(default)]
    pub power_limit_w: Option<f64>,
    /// The power limit is reached.
    #[serde(default)]
    pub power_capped: bool,
    /// Error correction is on.
    #[serde(default)]
    pub ecc: Option<bool>,
    /// The GPU is divided into instances (MIG).
    #[serde(default)]
    pub mig: Option<bool>,
    /// Reasons for reduced clocks, other than idleness and power limits.
    pub slowed: Vec<String>,
    /// Processes with a context on it.
    pub processes: Vec<Process>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process ID as the driver counts: in a container, the host's.
    pub pid: u32,
    /// Its program, if readable.
    pub name: Option<String>,
    /// GPU memory it uses, bytes.
    pub memory_bytes: Option<u64>,
}

impl Monitor {
    /// Monitors the GPU with that UUID.
    #[must_use]
    pub fn open(uuid: &str) -> Self {
        // The unversioned name is only installed by development packages.
        let names = ["libnvidia-ml.so.1", "libnvidia-ml.so"];
        let nvml = names
            .into_iter()
            .find_map(|name| Nvml::builder().lib_path(OsStr::new(name)).init().ok());
        Self {
            nvml,
            uuid: uuid.to_owned(),
            counter: None,
        }
    }

    /// Returns the GPU. For a MIG instance that is the whole GPU, which has the clocks, temperature
    /// and power.
    fn device(&self) -> Option<Device<'_>> {
        let nvml = self.nvml.as_ref()?;
        let device = nvml.device_by_uuid(self.uuid.as_str()).ok()?;
        match device.mig_is_mig_device_handle() {
            Ok(true) => device.mig_parent_device().ok(),
            _ => Some(device),
        }
    }

    /// Returns the current state of the GPU; `None` without NVML.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        let nvml = self.nvml.as_ref()?;
        let device = self.device()?;
        let process = |info: nvml_wrapper::struct_wrappers::device::ProcessInfo| Process {
            pid: info.pid,
            name: nvml.sys_process_name(info.pid, 64).ok(),
            memory_bytes: match info.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        };
        Some(Health {
            clock_mhz: device.clock_info(Clock::SM).ok(),
            max_clock_mhz: device.max_clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_w: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            power_limit_w: device
                .enforced_power_limit()
                .ok()
                .map(|mw| f64::from(mw) / 1e3),
            power_capped: device
                .current_throttle_reasons()
                .is_ok_and(|reasons| reasons.contains(ThrottleReasons::SW_POWER_CAP)),
            ecc: device
                .is_ecc_enabled()
                .ok()
                .map(|state| state.currently_enabled),
            mig: device.mig_mode().ok().map(|mode| mode.current != 0),
            slowed: self.slowed(),
            processes: device
                .running_compute_processes()
                .unwrap_or_default()
                .into_iter()
                .map(process)
                .collect(),
        })
    }

    /// Returns the current reasons for reduced clocks; empty without NVML.
    #[must_use]
    pub fn slowed(&self) -> Vec<String> {
        let reasons = self
            .device()
            .and_then(|device| device.current_throttle_reasons().ok());
        names(reasons.unwrap_or(ThrottleReasons::NONE))
    }
}

/// Names the reasons for times below the GPU's capability. Idleness, clocks set by an administrator and a
/// power limit are excluded: a card of 72 W is nearly always at its limit, and its speed there is its
/// capability.
fn names(reasons: ThrottleReasons) -> Vec<String> {
    [
        (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "heat"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "heat (hardware)"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake"),
        (ThrottleReasons::SYNC_BOOST, "sync boost group"),
    ]
    .into_iter()
    .filter(|(reason, _)| reasons.contains(*reason))
    .map(|(_, name)| name.to_owned())
    .collect()
}

impl Process {
    /// Formats as `pid 123 python3 (1024 MiB)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let name = self.name.as_deref().map(|name| format!(" {name}"));
        let memory = self
            .memory_bytes
            .map(|bytes| format!(" ({} MiB)", bytes >> 20));
        format!(
            "pid {}{}{}",
            self.pid,
            name.unwrap_or_default(),
            memory.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests;
