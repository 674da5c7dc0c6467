//! What is checked for: a GPU, virtual or real, or a compile target alone.

use crate::cli::{CliError, usage};
use anyhow::Context as _;
use tuner_device::{DeviceSelector, gpu, limits};
use tuner_engine::job;
use tuner_space::DeviceLimits;

/// The limits that constraints see, the target of the compile, and whether the result is run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    /// The name in the answer: `vgpu:h100`, or `sm_90` where nothing is run.
    pub(super) device: String,
    /// `sm_90`, `sm_90a`.
    pub(super) arch: String,
    /// Limits of the device, or of a GPU of that target.
    pub(super) limits: DeviceLimits,
    /// What runs the kernels, a virtual GPU or a real one; `None` stops after the compile.
    pub(super) runner: Option<DeviceSelector>,
}

impl Target {
    /// From `--device` and `--arch`, of which either may be missing.
    pub(super) fn choose(
        device: Option<&DeviceSelector>,
        arch: Option<&str>,
    ) -> Result<Self, CliError> {
        let name = match (device, arch) {
            (None, Some(arch)) => {
                return Ok(Self {
                    device: arch.to_owned(),
                    arch: arch.to_owned(),
                    limits: limits_of(arch)?,
                    runner: None,
                });
            }
            (None | Some(DeviceSelector::Auto), _) => limits::DEFAULT,
            (Some(DeviceSelector::Vgpu(name)), _) => name,
            (Some(selector @ DeviceSelector::Cuda(ordinal)), arch) => {
                return Self::cuda(selector, *ordinal, arch);
            }
            (Some(other), _) => {
                refuse!(
                    "`check` runs on a virtual GPU or a real one, not on {other}; type \
                     --device vgpu:NAME (one of: {}) or --device cuda:N",
                    limits::names()
                );
            }
        };
        // The selector names one that there is.
        let limits = limits::by_name(name).context("no such virtual GPU")?;
        if let Some(arch) = arch {
            limits_of(arch)?;
        }
        Ok(Self {
            device: format!("vgpu:{name}"),
            arch: arch.map_or_else(|| format!("sm_{}", limits.cc), str::to_owned),
            limits,
            runner: Some(DeviceSelector::Vgpu(name.to_owned())),
        })
    }

    fn cuda(selector: &DeviceSelector, ordinal: u32, arch: Option<&str>) -> Result<Self, CliError> {
        let gpu = gpu::find(ordinal).map_err(|error| job::absent(selector, &error))?;
        if let Some(arch) = arch {
            limits_of(arch)?;
        }
        Ok(Self {
            device: gpu.name.clone(),
            arch: arch.map_or_else(|| gpu.arch(), str::to_owned),
            limits: gpu.limits(),
            runner: Some(selector.clone()),
        })
    }

    /// The virtual GPU that runs the kernels, if one does.
    pub(super) fn vgpu(&self) -> Option<&str> {
        match &self.runner {
            Some(DeviceSelector::Vgpu(name)) => Some(name),
            _ => None,
        }
    }

    /// Refuses a target that this NVRTC does not compile for, before every candidate fails by it.
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

/// The limits of a GPU of that target: one that is known by name where there is one.
fn limits_of(arch: &str) -> Result<DeviceLimits, CliError> {
    let digits = arch
        .strip_prefix("sm_")
        .map(|rest| rest.trim_end_matches(['a', 'f']));
    let Some(cc) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
        refuse!("`{arch}` is no compile target; type --arch sm_90 (or sm_80, sm_89, …)");
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
