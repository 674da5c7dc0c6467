//! The device of one process: its memory, modules, streams and errors.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::FunctionInfo;
use vgpu::{Arch, GlobalMemory};

use crate::images::Arrays;
use crate::mappings::Mappings;
use crate::memory::Allocations;
use crate::mirror::Mirror;
use crate::modules::LoadedModule;
use crate::names::{plain_name, shortened};
use crate::pools::Pools;
use crate::predicted::{PredictedTimes, Prediction};
use crate::streams::Streams;
use crate::summary::Summary;

/// First address and end of device memory: the range of [`GlobalMemory`].
pub(crate) const ADDRESSES: std::ops::Range<u64> = 0x10_0000_0000..1 << 46;

/// Stack of a thread if the program sets no limit, bytes.
const DEFAULT_STACK_BYTES: u32 = 1024;

/// How programs run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The GPU.
    pub arch: &'static Arch,
    /// Detect races and unwritten memory; faults are always detected.
    pub hazards: bool,
    /// Kernels that are checked, by a part of their name; empty for all. Others run unchecked.
    pub kernels: Vec<String>,
    /// Lane instructions after which a launch is stopped; `None` for no limit.
    pub lane_budget: Option<u64>,
    /// Host threads; 0 is one per core.
    pub threads: usize,
    /// Folder of files that the process and the device share.
    pub folder: PathBuf,
    /// Time after which a running launch is reported on standard error.
    pub progress: Option<Duration>,
    /// Times of launches.
    pub prediction: Prediction,
    /// Writer of captured launches.
    pub capture: Option<Arc<capture::Writer>>,
}

/// A kernel that the process uses.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) name: String,
    /// Name as in the source.
    pub(crate) plain_name: String,
    /// Name in messages.
    pub(crate) shown_name: String,
    pub(crate) info: FunctionInfo,
    /// Maximum dynamic shared memory, bytes.
    pub(crate) dynamic_limit: u64,
    /// Clusters may exceed the size that every device allows.
    pub(crate) non_portable_cluster: bool,
}

/// Summary of a process up to the running launch.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) summary: Summary,
    /// Name of the kernel that runs.
    pub(crate) running: String,
}

/// The device of one process.
#[derive(Debug)]
pub struct Device {
    pub(crate) options: Options,
    pub(crate) memory: GlobalMemory,
    pub(crate) allocations: Allocations,
    pub(crate) pools: Pools,
    pub(crate) arrays: Arrays,
    pub(crate) mappings: Mappings,
    pub(crate) mirror: Mirror,
    pub(crate) modules: Vec<Option<LoadedModule>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) streams: Streams,
    pub(crate) summary: Summary,
    pub(crate) predicted: PredictedTimes,
    /// The summary during a launch, for the case that the process ends meanwhile.
    pub(crate) published: Arc<Mutex<Published>>,
    /// A fault of a kernel: every request fails with it until a reset.
    pub(crate) sticky: Code,
    /// `cudaLimitStackSize`, bytes.
    pub(crate) stack_bytes: u32,
    pub(crate) started: Instant,
    /// Message for the program about the failed request.
    pub(crate) failure: String,
}

impl Device {
    /// Creates a device without allocations and modules.
    #[must_use]
    pub fn new(options: Options) -> Device {
        Device {
            memory: GlobalMemory::new(options.arch.memory_bytes),
            allocations: Allocations::default(),
            pools: Pools::default(),
            arrays: Arrays::default(),
            mappings: Mappings::default(),
            mirror: Mirror::default(),
            modules: Vec::new(),
            functions: Vec::new(),
            streams: Streams::default(),
            summary: Summary::default(),
            predicted: PredictedTimes::default(),
            published: Arc::default(),
            sticky: errors::SUCCESS,
            stack_bytes: DEFAULT_STACK_BYTES,
            started: Instant::now(),
            failure: String::new(),
            options,
        }
    }

    /// Ends the device; returns the summary of the process.
    #[must_use]
    pub fn into_summary(mut self) -> Summary {
        self.summary.time_us = self.streams.now_us();
        self.summary
    }

    /// Runs long work, the run of a kernel, that does not use the summary: the server has it meanwhile,
    /// since the process may end before the run does.
    pub(crate) fn publish_during<T>(
        &mut self,
        kernel: &str,
        run: impl FnOnce(&mut Device) -> T,
    ) -> T {
        let published = Arc::clone(&self.published);
        let lock = || published.lock().unwrap_or_else(PoisonError::into_inner);
        self.summary.time_us = self.streams.now_us();
        *lock() = Published {
            summary: std::mem::take(&mut self.summary),
            running: kernel.to_owned(),
        };
        let result = run(self);
        self.summary = std::mem::take(&mut *lock()).summary;
        result
    }

    /// Fails with the sticky error.
    pub(crate) fn check(&self) -> Result<(), Code> {
        match self.sticky {
            errors::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// Frees everything and clears the sticky error. Modules are loaded again on their next use.
    pub(crate) fn reset(&mut self) {
        self.memory = GlobalMemory::new(self.options.arch.memory_bytes);
        self.allocations = Allocations::default();
        self.pools = Pools::default();
        self.arrays.clear();
        self.mappings = Mappings::default();
        self.sticky = errors::SUCCESS;
        self.stack_bytes = DEFAULT_STACK_BYTES;
        self.streams = Streams::default();
        for module in self.modules.iter_mut().flatten() {
            if let Err(failure) = module.place_again(&mut self.memory) {
                self.summary.add_note(failure.text);
            }
        }
    }

    /// Sets a limit; only those of the stack and of the kernels' heap have an effect.
    pub(crate) fn set_limit(&mut self, limit: u32, value: u64) -> Result<(), Code> {
        const STACK: u32 = 0;
        const MALLOC_HEAP: u32 = 2;
        if limit == STACK {
            let bytes = u32::try_from(value).ok();
            let bytes = bytes.filter(|bytes| *bytes <= vgpu::arch::LOCAL_BYTES);
            self.stack_bytes = bytes.ok_or(errors::INVALID_VALUE)?;
        }
        if limit != MALLOC_HEAP || value == self.memory.heap_bytes() {
            return Ok(());
        }
        let [free, _] = self.memory_info();
        if value > free {
            return Err(errors::OUT_OF_MEMORY);
        }
        // The size is fixed from the first launch of a kernel that may allocate.
        match self.memory.set_heap_bytes(value) {
            true => Ok(()),
            false => Err(errors::INVALID_VALUE),
        }
    }

    /// Loads an image; returns the module's number.
    pub(crate) fn load_module(&mut self, image: &[u8]) -> Result<u64, Code> {
        self.check()?;
        match LoadedModule::load(image, self.options.arch, &mut self.memory) {
            Ok(module) => {
                self.modules.push(Some(module));
                Ok(self.modules.len() as u64)
            }
            Err(failure) => {
                self.summary.add_note(failure.text.clone());
                self.failure = failure.text;
                Err(failure.code)
            }
        }
    }

    /// Unloads a module.
    pub(crate) fn unload_module(&mut self, number: u64) -> Result<(), Code> {
        let slot = slot(number).and_then(|index| self.modules.get_mut(index));
        let module = slot.and_then(Option::take).ok_or(errors::INVALID_HANDLE)?;
        for (_, variable) in module.variables() {
            self.memory.free(variable);
        }
        Ok(())
    }

    /// Returns the module with this number.
    pub(crate) fn module(&self, number: u64) -> Result<&LoadedModule, Code> {
        let module = slot(number).and_then(|index| self.modules.get(index)?.as_ref());
        module.ok_or(errors::INVALID_HANDLE)
    }

    /// Finds a kernel; returns its description.
    pub(crate) fn get_function(&mut self, number: u64, name: &str) -> Result<FunctionInfo, Code> {
        self.module(number)?;
        // Both interfaces of a program set the attributes of one kernel.
        let is_same = |known: &&Function| known.module == number && known.name == name;
        if let Some(known) = self.functions.iter().find(is_same) {
            return Ok(known.info.clone());
        }
        let id = self.functions.len() as u64 + 1;
        let arch = self.options.arch;
        let module = self.module(number)?;
        let info = module.describe(name, id, arch).ok_or(errors::NOT_FOUND)?;
        let default = u64::from(crate::attributes::DEFAULT_SHARED_BYTES);
        self.functions.push(Function {
            module: number,
            name: name.to_owned(),
            shown_name: shortened(&plain_name(name)),
            plain_name: plain_name(name),
            dynamic_limit: default.saturating_sub(info.static_shared_bytes),
            non_portable_cluster: false,
            info: info.clone(),
        });
        Ok(info)
    }

    /// Returns the kernel with this number.
    pub(crate) fn function(&self, id: u64) -> Result<&Function, Code> {
        let found = slot(id).and_then(|index| self.functions.get(index));
        found.ok_or(errors::INVALID_HANDLE)
    }

    /// Sets an attribute of a kernel.
    pub(crate) fn set_attribute(
        &mut self,
        id: u64,
        attribute: u32,
        value: i32,
    ) -> Result<(), Code> {
        const MAX_DYNAMIC_SHARED: u32 = 8;
        const CARVEOUT: u32 = 9;
        const NON_PORTABLE_CLUSTER: u32 = 14;
        const LAST: u32 = 15;
        let optin = u64::from(self.options.arch.shared_bytes_optin);
        let found = slot(id).and_then(|index| self.functions.get_mut(index));
        let function = found.ok_or(errors::INVALID_HANDLE)?;
        // Earlier attributes are those of the code, and a carveout is a percentage, -1 for the default.
        let known = (MAX_DYNAMIC_SHARED..=LAST).contains(&attribute);
        if !known || attribute == CARVEOUT && !(-1..=100).contains(&value) {
            return Err(errors::INVALID_VALUE);
        }
        if attribute == NON_PORTABLE_CLUSTER {
            function.non_portable_cluster = value != 0;
        }
        if attribute != MAX_DYNAMIC_SHARED {
            return Ok(());
        }
        let wanted = u64::try_from(value).map_err(|_| errors::INVALID_VALUE)?;
        if wanted + function.info.static_shared_bytes > optin {
            return Err(errors::INVALID_VALUE);
        }
        let default = u64::from(crate::attributes::DEFAULT_SHARED_BYTES);
        let without = default.saturating_sub(function.info.static_shared_bytes);
        function.dynamic_limit = wanted.max(without);
        Ok(())
    }

    /// Returns the blocks of a kernel that fit on a multiprocessor.
    pub(crate) fn occupancy(&self, id: u64, threads: u32, shared_bytes: u64) -> Result<u32, Code> {
        let function = self.function(id)?;
        if threads > function.info.max_threads {
            return Ok(0);
        }
        let shared = shared_bytes + function.info.static_shared_bytes;
        let registers = function.info.registers;
        Ok(gpu_model::resident_blocks(
            self.options.arch,
            threads,
            registers,
            shared,
        ))
    }
}

/// Returns the index of a number that counts from 1.
fn slot(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}
