//! Device of a program: the virtual GPU, or a GPU whose launches are captured.

use super::super::CliError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tuner_device::DeviceSelector;
use tuner_device::gpu::{self, GpuFacts};
use vgpu::Arch;
use vgpu::arch::{by_device_name, list_gpus};
use virtual_driver::libraries::FORWARD;
use virtual_driver::{CAPTURE_VARIABLE, DRIVER_VARIABLE, SOCKET_VARIABLE};

/// Lane instructions that are executed to find the accesses of a GPU's launches, where the user states no number:
/// some minutes.
const REPEATED_WORK: u64 = 20_000_000_000;

/// A device that runs programs.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The virtual GPU that runs the launches, or repeats them.
    pub(super) arch: &'static Arch,
    /// The GPU that runs the launches.
    gpu: Option<Gpu>,
}

/// A GPU with its driver.
#[derive(Debug, Clone)]
struct Gpu {
    name: String,
    /// The driver's library.
    driver: PathBuf,
    /// The GPU's identity, where it is not the first.
    visible: Option<String>,
}

impl Target {
    /// Finds the device of a selector.
    ///
    /// # Errors
    /// A device that cannot run programs; a GPU without `--capture`, or that is not there.
    pub(super) fn find(device: &DeviceSelector, captures: bool) -> Result<Target, CliError> {
        let ordinal = match device {
            DeviceSelector::Vgpu(name) => match Arch::by_name(name) {
                Some(arch) => return Ok(Target { arch, gpu: None }),
                None => refuse!("no virtual GPU is called `{name}`"),
            },
            DeviceSelector::Cuda(ordinal) => *ordinal,
            _ => refuse!(
                "`exec` runs programs on a virtual GPU or captures those of one GPU, and {device} is neither; use \
                 --device vgpu:a100, or --device cuda:0 --capture DIR"
            ),
        };
        if !captures {
            refuse!(
                "on a GPU, `exec` captures launches: add --capture DIR, or use --device vgpu:a100 to look for hazards"
            );
        }
        let facts = gpu::find(ordinal)
            .map_err(|error| super::super::usage(format!("--device {device}: {error}")))?;
        let Some(driver) = loaded_driver() else {
            refuse!(
                "--device {device}: the driver's library libcuda.so.1 is not among the loaded files"
            );
        };
        Ok(Target {
            arch: nearest(&facts)?,
            gpu: Some(Gpu {
                // By identity: the order of numbers depends on CUDA_DEVICE_ORDER in the program's
                // environment.
                visible: (ordinal > 0).then(|| facts.uuid.clone()),
                name: facts.name,
                driver,
            }),
        })
    }

    /// Reports whether launches run on the virtual GPU alone.
    pub(super) fn is_virtual(&self) -> bool {
        self.gpu.is_none()
    }

    /// The name of the device in a capture.
    pub(super) fn name(&self, device: &DeviceSelector) -> String {
        match &self.gpu {
            Some(gpu) => gpu.name.clone(),
            None => device.to_string(),
        }
    }

    /// Limit of lane instructions, by the user's own limit.
    pub(super) fn lane_budget(&self, stated: Option<u64>) -> Option<u64> {
        stated.or_else(|| self.gpu.is_some().then_some(REPEATED_WORK))
    }

    /// The folder whose libraries stand in front of all others, below that of all libraries.
    pub(super) fn library_folder(&self, libraries: PathBuf) -> PathBuf {
        match self.gpu {
            Some(_) => libraries.join(FORWARD),
            None => libraries,
        }
    }

    /// The environment of a program.
    pub(super) fn environment(&self, socket: &Path) -> Vec<(&'static str, OsString)> {
        let Some(gpu) = &self.gpu else {
            return vec![(SOCKET_VARIABLE, socket.into())];
        };
        let mut variables = vec![
            (CAPTURE_VARIABLE, socket.into()),
            // The library in front has the driver's name and cannot find the driver by it.
            (DRIVER_VARIABLE, gpu.driver.clone().into()),
        ];
        if let Some(visible) = &gpu.visible {
            variables.push(("CUDA_VISIBLE_DEVICES", visible.into()));
        }
        variables
    }
}

/// The virtual GPU that is most like a GPU: of its name, or the newest that is not newer.
fn nearest(facts: &GpuFacts) -> Result<&'static Arch, CliError> {
    if let Some(arch) = by_device_name(&facts.name) {
        return Ok(arch);
    }
    let (major, minor) = facts.capability;
    let known = list_gpus()
        .iter()
        .filter(|arch| arch.cc <= major * 10 + minor);
    match known.max_by_key(|arch| arch.cc) {
        Some(arch) => Ok(arch),
        None => refuse!(
            "the {} has compute capability {major}.{minor}; virtual GPUs, which find out what a launch read and wrote, \
             begin at 7.5",
            facts.name
        ),
    }
}

/// The file of the driver that this process has loaded.
fn loaded_driver() -> Option<PathBuf> {
    // The dynamic loader has searched for it already: its file is where this process has it.
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let mut drivers = paths.filter(|path| {
        let name = Path::new(path).file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libcuda.so")
    });
    drivers.next().map(PathBuf::from)
}
