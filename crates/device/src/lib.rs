//! Devices that run candidates.
//!
//! A device is chosen by a selector (`--device`) and described by [`DeviceFacts`]. The engine's `Evaluator`
//! trait prepares and evaluates candidates on it.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod limits;
pub mod replay;
pub mod step;
pub mod cuda;
pub mod gpu;
pub mod vgpu;
pub mod worker;

use ::vgpu::Arch;
use ::vgpu::arch::ClockError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use tuner_core::record::DeviceKind;
use tuner_space::DeviceLimits;

/// Facts about a device, known before any launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name under which results are stored, such as `NVIDIA H200`, `vgpu:h100`, or the device of a recorded
    /// file.
    pub name: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Limits that a search space may refer to; `None` for recorded data.
    pub limits: Option<DeviceLimits>,
    /// Compile target, such as `sm_90`; empty for recorded data.
    pub arch: String,
    /// Driver version, on real devices.
    pub driver: Option<String>,
}

/// A device as `--device` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelector {
    /// The first CUDA GPU, or `vgpu:h100` if there is none.
    Auto,
    /// The CUDA GPU with that ordinal.
    Cuda(u32),
    /// Several CUDA GPUs of one model that share the work.
    CudaSeveral(Vec<u32>),
    /// A virtual GPU, by its name in [`limits`], optionally with a clock.
    Vgpu(String),
    /// A file of recorded measurements.
    Replay(PathBuf),
}

/// Errors in a `--device` selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Unknown form.
    #[error(
        "invalid device `{0}`; use auto, cuda, cuda:N, vgpu:NAME (one of: {names}) or replay:FILE",
        names = limits::names()
    )]
    Unknown(String),
    /// `vgpu:` with a name that is not in the table.
    #[error("unknown virtual GPU `{0}`; choose one of: {names}", names = limits::names())]
    UnknownVgpu(String),
    /// `vgpu:NAME@` with an invalid clock.
    #[error(transparent)]
    BadClock(ClockError),
    /// `cuda:` without a number.
    #[error("invalid GPU number `{0}`; use cuda:0 for the first GPU, cuda:0,1 for two")]
    BadOrdinal(String),
    /// `replay:` without a file.
    #[error("replay needs a file: replay:FILE.json.gz")]
    NoFile,
}

impl DeviceSelector {
    /// Returns the ordinals of the selected real GPUs.
    #[must_use]
    pub fn gpus(&self) -> &[u32] {
        match self {
            Self::Cuda(ordinal) => std::slice::from_ref(ordinal),
            Self::CudaSeveral(all) => all,
            Self::Auto | Self::Vgpu(_) | Self::Replay(_) => &[],
        }
    }
}

impl FromStr for DeviceSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(Self::Auto),
                "cuda" => Ok(Self::Cuda(0)),
                "vgpu" => Ok(Self::Vgpu(limits::DEFAULT.to_owned())),
                "replay" => Err(SelectorError::NoFile),
                _ => Err(SelectorError::Unknown(text.to_owned())),
            },
            Some(("cuda", numbers)) => {
                let number = |text: &str| {
                    text.parse::<u32>()
                        .map_err(|_| SelectorError::BadOrdinal(text.to_owned()))
                };
                let mut all: Vec<u32> = numbers.split(',').map(number).collect::<Result<_, _>>()?;
                // A GPU that is named twice would share work with itself.
                all.sort_unstable();
                all.dedup();
                Ok(match all.as_slice() {
                    [one] => Self::Cuda(*one),
                    _ => Self::CudaSeveral(all),
                })
            }
            Some(("vgpu", name)) => {
                let name = name.to_ascii_lowercase();
                match Arch::find(&name) {
                    Ok(arch) => Ok(Self::Vgpu(arch.name.to_owned())),
                    Err(ClockError::UnknownGpu(name)) => Err(SelectorError::UnknownVgpu(name)),
                    Err(why) => Err(SelectorError::BadClock(why)),
                }
            }
            Some(("replay", "")) => Err(SelectorError::NoFile),
            Some(("replay", file)) => Ok(Self::Replay(PathBuf::from(file))),
            Some(_) => Err(SelectorError::Unknown(text.to_owned())),
        }
    }
}

impl std::fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::CudaSeveral(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                write!(f, "cuda:{}", numbers.join(","))
            }
            Self::Vgpu(name) => write!(f, "vgpu:{name}"),
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
