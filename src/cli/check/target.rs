//! Check target: a virtual or real GPU, or a compile target alone.

use crate::cli::{CliError, space, usage};
use tuner_core::target::ComputeTarget;
use tuner_device::{DeviceSelector, limits};
use tuner_space::DeviceLimits;

/// Limits for constraints, the compile target, and the device that runs the kernels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    /// Name in the output: `vgpu:h100`, or `sm_90` without runs.
    pub(super) device: String,
    /// `sm_90`, `sm_90a`; a search space may add features.
    pub(super) arch: ComputeTarget,
    /// Limits of the device, or of a GPU of this architecture.
    pub(super) limits: DeviceLimits,
    /// Device that runs the kernels, a virtual GPU or a real one; `None`: stop after the compilation.
    pub(super) runner: Option<DeviceSelector>,
}

impl Target {
    /// Combines `--device` and `--arch`, both optional.
    pub(super) fn choose(
        device: Option<&DeviceSelector>,
        arch: Option<&str>,
    ) -> Result<Self, CliError> {
        let runner = match (device, arch) {
            (None, Some(arch)) => {
                let target: ComputeTarget = arch.parse().map_err(usage)?;
                return Ok(Self {
                    device: arch.to_owned(),
                    arch: target,
                    limits: limits_of(target.cc),
                    runner: None,
                });
            }
            (None | Some(DeviceSelector::Auto), _) => {
                DeviceSelector::Vgpu(limits::DEFAULT.to_owned())
            }
            (Some(selector), _) => selector.clone(),
        };
        let Some((device, limits)) = space::limits_of(&runner)? else {
            refuse!(
                "`check` runs on a virtual GPU or a real one, not on {runner}; type \
                 --device vgpu:NAME (one of: {}) or --device cuda:N",
                limits::names()
            );
        };
        Ok(Self {
            device,
            arch: ComputeTarget::choose(limits.cc, arch).map_err(usage)?,
            limits,
            runner: Some(runner),
        })
    }

    /// Returns the virtual GPU that runs the kernels, if any.
    pub(super) fn vgpu(&self) -> Option<&str> {
        match &self.runner {
            Some(DeviceSelector::Vgpu(name)) => Some(name),
            _ => None,
        }
    }
}

/// Returns the limits of a GPU of this target, preferably one known by name.
fn limits_of(cc: u32) -> DeviceLimits {
    let names = limits::names();
    let named = names
        .split(", ")
        .filter_map(limits::by_name)
        .find(|limits| limits.cc == cc);
    named.unwrap_or(DeviceLimits {
        sm_count: 1,
        shared_bytes: limits::shared_bytes(cc),
        cc,
        max_threads: 1024,
    })
}

#[cfg(test)]
mod tests;
