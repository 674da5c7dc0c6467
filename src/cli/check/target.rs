//! Check target: a virtual or real GPU, or a compile target alone.

use crate::cli::{CliError, space, usage};
use tuner_device::{DeviceSelector, limits};
use tuner_space::DeviceLimits;

/// Limits for constraints, the compile target, and the device that runs the kernels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    /// Name in the output: `vgpu:h100`, or `sm_90` without runs.
    pub(super) device: String,
    /// `sm_90`, `sm_90a`.
    pub(super) arch: String,
    /// Limits of the device, or of a GPU of this architecture.
    pub(super) limits: DeviceLimits,
    /// Device that runs the kernels, a virtual GPU or a real one; `None` stops after the compile.
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
                return Ok(Self {
                    device: arch.to_owned(),
                    arch: arch.to_owned(),
                    limits: limits_of(arch)?,
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
        if let Some(arch) = arch {
            limits_of(arch)?;
        }
        Ok(Self {
            device,
            arch: arch.map_or_else(|| format!("sm_{}", limits.cc), str::to_owned),
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

    /// Refuses a target that this NVRTC does not support, before every candidate fails.
    pub(super) fn require(&self, architectures: &[String]) -> Result<(), CliError> {
        let known = |arch: &str| architectures.iter().any(|known| known == arch);
        let base = self.arch.trim_end_matches(['a', 'f']);
        if architectures.is_empty() || known(&self.arch) || known(base) {
            return Ok(());
        }
        Err(usage(format!(
            "this NVRTC does not compile for {}; it knows {}",
            self.arch,
            architectures.join(", ")
        )))
    }
}

/// Returns the limits of a GPU of this target, preferably one known by name.
fn limits_of(arch: &str) -> Result<DeviceLimits, CliError> {
    let digits = arch
        .strip_prefix("sm_")
        .map(|rest| rest.trim_end_matches(['a', 'f']));
    let Some(cc) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
        refuse!("`{arch}` is not a compile target; type --arch sm_90 (or sm_80, sm_89, …)");
    };
    let names = limits::names();
    let named = names
        .split(", ")
        .filter_map(limits::by_name)
        .find(|limits| limits.cc == cc);
    Ok(named.unwrap_or(DeviceLimits {
        sm_count: 1,
        shared_bytes: limits::shared_bytes(cc),
        cc,
        max_threads: 1024,
    }))
}

#[cfg(test)]
mod tests;
