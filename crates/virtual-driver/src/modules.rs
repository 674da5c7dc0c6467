//! Loaded modules: code, kernels and variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_shim::errors;
use cuda_shim::protocol::{FunctionInfo, ParameterSpan};
use sass::Cubin;
use vgpu::{Arch, BufferId, GlobalMemory, Module};

use crate::fatbin::{ImageError, read_image};
use crate::ptx_target::{LoadFailure, check_header, check_instructions};
use crate::sass_only::{InitialPointer, PointerTarget, initial_pointers, outline};
use crate::target::{Features, Target};

/// Registers of a thread without machine code.
const UNKNOWN_REGISTERS: u32 = 32;
/// Threads of a block at most.
const MAX_THREADS: u32 = 1024;

/// Resources of a kernel from its machine code.
#[derive(Debug, Clone, Copy, Default)]
struct Resources {
    registers: u32,
    local_bytes: u64,
    shared_bytes: u64,
}

/// A module of the program.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    pub(crate) code: Arc<Module>,
    resources: BTreeMap<String, Resources>,
    /// Compute capability, times ten, of the PTX and of the machine code: the device's if the driver would
    /// translate PTX.
    versions: (u32, u32),
    /// Variables by name, after their placement.
    variables: BTreeMap<String, BufferId>,
    /// Machine code.
    pub(crate) cubin: Option<Arc<[u8]>>,
    /// There is no PTX, so the machine code is executed.
    pub(crate) sass_only: bool,
    /// Addresses in the initial values of variables of a module without PTX.
    pointers: Vec<InitialPointer>,
    /// File and line of each kernel in the source, where the PTX has line information.
    sources: BTreeMap<String, (String, u32)>,
}

impl LoadedModule {
    /// Loads an image and places its variables in memory.
    pub(crate) fn load(
        bytes: &[u8],
        arch: &Arch,
        memory: &mut GlobalMemory,
    ) -> Result<LoadedModule, LoadFailure> {
        let failed = |code, text: String| LoadFailure { code, text };
        let image = read_image(bytes, arch.cc).map_err(|error| {
            let code = match error {
                ImageError::NoCode { .. } => errors::NO_BINARY,
                ImageError::Format(_) => errors::INVALID_IMAGE,
                ImageError::Link(_) => errors::INVALID_PTX,
            };
            failed(code, explain(&error, bytes, arch))
        })?;
        let cubin = image
            .cubin
            .as_deref()
            .and_then(|bytes| Cubin::read(bytes).ok());
        let sass_only = image.ptx.is_none();
        let ptx = match (image.ptx, &cubin) {
            (Some(ptx), _) => ptx,
            (None, Some(cubin)) => outline(cubin),
            (None, None) => {
                let text = "a module has machine code that cannot be read";
                return Err(failed(errors::INVALID_IMAGE, text.to_owned()));
            }
        };
        match &cubin {
            // A fat binary names the machine code that the GPU runs; a single image may be for another GPU.
            Some(cubin) if !target_of(cubin).runs_on(arch.cc) => {
                let text = format!(
                    "machine code for sm_{} does not run on sm_{}",
                    cubin.sm, arch.cc
                );
                return Err(failed(errors::NO_BINARY, text));
            }
            _ if !sass_only => check_header(&ptx, arch.cc)?,
            _ => {}
        }
        let code = Module::load(&ptx)
            .map_err(|error| failed(errors::INVALID_PTX, format!("PTX cannot be read: {error}")))?;
        if !sass_only {
            check_instructions(&code)?;
        }
        let mut module = LoadedModule {
            versions: match &cubin {
                Some(cubin) => (cubin.sm, cubin.sm),
                None => (target_number(code.target()), arch.cc),
            },
            code: Arc::new(code),
            pointers: match &cubin {
                Some(cubin) if sass_only => initial_pointers(cubin),
                _ => Vec::new(),
            },
            resources: cubin.map(read_resources).unwrap_or_default(),
            variables: BTreeMap::new(),
            cubin: image.cubin.map(Arc::from),
            sass_only,
            sources: read_sources(&ptx),
        };
        module.place_again(memory)?;
        Ok(module)
    }

    /// Places the variables in a memory, with their initial values.
    pub(crate) fn place_again(&mut self, memory: &mut GlobalMemory) -> Result<(), LoadFailure> {
        let placed = self.code.named_variables(memory);
        let placed = placed.map_err(|error| LoadFailure {
            code: errors::OUT_OF_MEMORY,
            text: error.to_string(),
        })?;
        self.variables = placed
            .into_iter()
            .map(|(name, id)| (name.to_owned(), id))
            .collect();
        for id in self.variables.values() {
            // C++ initializes static variables with zeros: none is unwritten.
            let bytes = memory.read(*id);
            memory.write(*id, 0, &bytes);
        }
        for pointer in &self.pointers {
            let target = match &pointer.target {
                PointerTarget::Function(address) => Some(*address),
                PointerTarget::Variable(name) => self.variable(name).map(|id| memory.address(id)),
            };
            if let Some((target, id)) = target.zip(self.variable(&pointer.variable)) {
                let address = target.wrapping_add_signed(pointer.addend);
                memory.write(id, pointer.offset, &address.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Returns file and line of a kernel in the source.
    pub(crate) fn source(&self, entry: &str) -> Option<(&str, u32)> {
        let (file, line) = self.sources.get(entry)?;
        Some((file, *line))
    }

    /// Returns the variable of that name.
    pub(crate) fn variable(&self, name: &str) -> Option<BufferId> {
        self.variables.get(name).copied()
    }

    /// Buffers of all variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, BufferId)> {
        self.variables.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// Describes a kernel under the number `id`.
    pub(crate) fn describe(&self, name: &str, id: u64, arch: &Arch) -> Option<FunctionInfo> {
        let entry = self.code.entry(name)?;
        let resources = self.resources.get(name).copied().unwrap_or(Resources {
            registers: UNKNOWN_REGISTERS,
            local_bytes: 0,
            shared_bytes: entry.static_shared_bytes.into(),
        });
        let by_bounds = entry.max_threads.or(entry.required_threads);
        let by_bounds = by_bounds.map_or(MAX_THREADS, |extent| extent.iter().product());
        let spans = entry.params.iter().map(|parameter| ParameterSpan {
            offset: parameter.offset,
            bytes: parameter.bytes,
        });
        Some(FunctionInfo {
            id,
            parameters: spans.collect(),
            registers: resources.registers,
            static_shared_bytes: resources.shared_bytes.max(entry.static_shared_bytes.into()),
            local_bytes: resources.local_bytes,
            max_threads: by_bounds.min(threads_by_registers(arch, resources.registers)),
            ptx_version: self.versions.0,
            capability: self.versions.1,
        })
    }
}

/// Returns the message for an image that cannot be used; it names a GPU that could run it.
fn explain(error: &ImageError, bytes: &[u8], arch: &Arch) -> String {
    let fits = |gpu: &&Arch| read_image(bytes, gpu.cc).is_ok();
    let gpu = vgpu::arch::list_gpus()
        .iter()
        .filter(fits)
        .min_by_key(|gpu| gpu.cc);
    match (error, gpu) {
        (ImageError::NoCode { .. }, Some(gpu)) => format!(
            "{error}; compile with -arch=sm_{}, or choose --device vgpu:{}",
            arch.cc, gpu.name
        ),
        _ => error.to_string(),
    }
}

/// Returns the number in a target such as `sm_90a`; 0 if there is none.
fn target_number(target: &str) -> u32 {
    let digits = target.trim_matches(|c: char| !c.is_ascii_digit());
    digits.parse().unwrap_or(0)
}

/// Returns the target of machine code, whose features are ignored.
fn target_of(cubin: &Cubin) -> Target {
    Target {
        capability: cubin.sm,
        features: Features::Base,
    }
}

/// Returns the threads of a block that the registers allow, in whole warps.
fn threads_by_registers(arch: &Arch, registers: u32) -> u32 {
    // The register file is allocated to warps in units of 256 registers.
    let each_warp = (registers.max(1) * 32).next_multiple_of(256);
    (arch.registers_per_sm / each_warp * 32).min(MAX_THREADS)
}

/// Returns the positions of kernels in the source: the first `.loc` of each entry that is not of inlined
/// code.
fn read_sources(ptx: &str) -> BTreeMap<String, (String, u32)> {
    let mut files: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found: Vec<(&str, &str, u32)> = Vec::new();
    let mut entry = None;
    for line in ptx.lines().map(str::trim_start) {
        if let Some((_, name)) = line.split_once(".entry ") {
            entry = name.split(['(', ' ']).next();
        } else if line.contains(".func ") {
            entry = None;
        } else if let Some(rest) = line.strip_prefix(".file") {
            let number = rest.split_whitespace().next();
            files.extend(number.zip(rest.split('"').nth(1)));
        } else if let Some(rest) = line.strip_prefix(".loc")
            && !rest.contains("inlined_at")
            && let Some(name) = entry
        {
            let mut words = rest.split_whitespace();
            let line = words
                .next()
                .zip(words.next().and_then(|it| it.parse().ok()));
            if let Some((file, line)) = line {
                found.push((name, file, line));
                entry = None;
            }
        }
    }
    let places = found.into_iter().filter_map(|(name, file, line)| {
        let file = (*files.get(file)?).to_owned();
        Some((name.to_owned(), (file, line)))
    });
    places.collect()
}

fn read_resources(cubin: Cubin) -> BTreeMap<String, Resources> {
    let kernels = cubin.kernels.into_iter().map(|(name, kernel)| {
        let resources = Resources {
            registers: kernel.info.registers,
            local_bytes: kernel.info.stack.max(kernel.info.frame).into(),
            shared_bytes: kernel.shared,
        };
        (name, resources)
    });
    kernels.collect()
}
