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

/// Default limit of lane instructions executed to find the accesses of launches captured on a GPU: some
/// minutes.
const REPEATED_WORK: u64 = 20_000_000_000;

/// A device that runs programs.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Virtual GPU that runs the launches, or repeats captured ones.
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
    /// UUID of the GPU, if it is not the first one.
    visible: Option<String>,
}

impl Target {
    /// Finds the device of a selector.
    ///
    /// # Errors
    /// A device that cannot run programs; a GPU that does not exist, or is used without `--capture`.
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
                // By UUID: the order of GPU numbers depends on CUDA_DEVICE_ORDER in the program's
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

    /// Returns the name of the device in a capture.
    pub(super) fn name(&self, device: &DeviceSelector) -> String {
        match &self.gpu {
            Some(gpu) => gpu.name.clone(),
            None => device.to_string(),
        }
    }

    /// Returns the limit of lane instructions, considering the user's limit.
    pub(super) fn lane_budget(&self, stated: Option<u64>) -> Option<u64> {
        stated.or_else(|| self.gpu.is_some().then_some(REPEATED_WORK))
    }

    /// Returns the folder of the libraries that precede all others, below the folder of all libraries.
    pub(super) fn library_folder(&self, libraries: PathBuf) -> PathBuf {
        match self.gpu {
            Some(_) => libraries.join(FORWARD),
            None => libraries,
        }
    }

    /// Returns the environment of a program.
    pub(super) fn environment(&self, socket: &Path) -> Vec<(&'static str, OsString)> {
        let Some(gpu) = &self.gpu else {
            return vec![(SOCKET_VARIABLE, socket.into())];
        };
        let mut variables = vec![
            (CAPTURE_VARIABLE, socket.into()),
            // The interposed library has the driver's file name and cannot find the driver by it.
            (DRIVER_VARIABLE, gpu.driver.clone().into()),
        ];
        if let Some(visible) = &gpu.visible {
            variables.push(("CUDA_VISIBLE_DEVICES", visible.into()));
        }
        variables
    }
}

/// Returns the virtual GPU that matches a GPU best: of the same name, or the newest that is not newer.
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

/// Returns the file of the driver that this process has loaded.
fn loaded_driver() -> Option<PathBuf> {
    // The dynamic loader has already found it: its path is in the process's memory map.
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let mut drivers = paths.filter(|path| {
        let name = Path::new(path).file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libcuda.so")
    });
    drivers.next().map(PathBuf::from)
}
