//! One GPU in this process: its context, one stream, the loaded code, and its corruption by a kernel.

use super::driver::{
    Answer, Blame, CudaError, Device, Driver, Function, FunctionAttribute, Module, Stream, code,
};
use super::facts::{self, GpuError, GpuFacts};
use crate::vgpu::other_size;
pub(super) use crate::vgpu::refused;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};
use tuner_core::judgement::Judgement;
use tuner_core::plan::Code;

/// Dynamic shared memory available without opt-in, bytes: CUDA C++ Programming Guide.
const SHARED_BYTES_DEFAULT: u64 = 48 << 10;

/// A GPU with a context.
pub struct Gpu {
    driver: Box<dyn Driver>,
    facts: GpuFacts,
    device: Device,
    stream: Stream,
    modules: HashMap<u64, Loaded>,
    /// The first error after which the context is unusable.
    corrupted: Option<CudaError>,
}

/// A loaded image. It stays loaded while another owner holds the image.
struct Loaded {
    image: Arc<[u8]>,
    /// The same bytes of other owners: each message contains a separate copy.
    copies: Vec<Weak<[u8]>>,
    module: Module,
    functions: HashMap<String, Function>,
}

impl Loaded {
    /// Records another owner of the same bytes.
    fn shared_with(&mut self, image: &Arc<[u8]>) {
        let known = |copy: &Weak<[u8]>| std::ptr::addr_eq(copy.as_ptr(), Arc::as_ptr(image));
        if !Arc::ptr_eq(&self.image, image) && !self.copies.iter().any(known) {
            self.copies.retain(|copy| copy.strong_count() > 0);
            self.copies.push(Arc::downgrade(image));
        }
    }

    /// Reports whether another owner holds the image.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.image) > 1 || self.copies.iter().any(|copy| copy.strong_count() > 0)
    }
}

/// Facts that the driver reports about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct KernelFacts {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread (spills and arrays), bytes.
    pub local_bytes: u32,
    /// Static shared memory per block, bytes.
    pub static_shared_bytes: u32,
    /// Maximum number of threads in a block of it.
    pub max_threads: u32,
    /// Blocks that fit on a multiprocessor at once.
    pub blocks_per_sm: u32,
}

impl Gpu {
    /// Opens the GPU with that ordinal and creates a context on it.
    ///
    /// # Errors
    /// See [`GpuError`].
    pub fn open(mut driver: Box<dyn Driver>, ordinal: u32) -> Result<Self, GpuError> {
        facts::start(&mut *driver)?;
        let facts = GpuFacts::read(&mut *driver, ordinal)?;
        let broken = |error| GpuError::Broken { ordinal, error };
        let device = driver.device(ordinal as i32).map_err(broken)?;
        let context = driver.context_retain(device).map_err(broken)?;
        driver.context_set_current(context).map_err(broken)?;
        let stream = driver.stream_create().map_err(broken)?;
        Ok(Self {
            driver,
            facts,
            device,
            stream,
            modules: HashMap::new(),
            corrupted: None,
        })
    }

    /// Returns the facts that the driver reports.
    #[must_use]
    pub fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    /// Returns the error that corrupted the context, if any: this process can no longer use the GPU.
    #[must_use]
    pub fn corrupted(&self) -> Option<&CudaError> {
        self.corrupted.as_ref()
    }

    /// Reports whether it was a device fault, so that the candidate gets another attempt.
    #[must_use]
    pub fn is_device_fault(&self) -> bool {
        self.corrupted
            .as_ref()
            .is_some_and(|error| error.blame() == Blame::Device)
    }

    /// Calls the driver; records an error, which becomes a fault of the candidate.
    ///
    /// # Errors
    /// The driver's error.
    pub(super) fn call<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Driver, Stream) -> Answer<T>,
    ) -> Result<T, Judgement> {
        if let Some(error) = &self.corrupted {
            return Err(error.clone().into());
        }
        work(&mut *self.driver, self.stream).map_err(|error| {
            if error.is_sticky() {
                self.corrupted = Some(error.clone());
            }
            error.into()
        })
    }

    /// Returns free and total memory, bytes.
    ///
    /// # Errors
    /// The driver's error.
    pub fn memory(&mut self) -> Result<(u64, u64), Judgement> {
        self.call(|driver, _| driver.memory_info())
    }

    /// Returns the kernel `entry` of the code, loading it if necessary.
    ///
    /// # Errors
    /// `launch_failed`: the driver refuses the code, or it has no such kernel.
    pub(super) fn function(&mut self, code: &Code, entry: &str) -> Result<Function, Judgement> {
        let key = self.load(&code.cubin)?;
        let loaded = self.modules.get(&key).map(|loaded| {
            let known = loaded.functions.get(entry).copied();
            (loaded.module, known)
        });
        let Some((module, known)) = loaded else {
            return Err(refused("the code is not loaded"));
        };
        if let Some(function) = known {
            return Ok(function);
        }
        let function = self.call(|driver, _| driver.function(module, entry))?;
        if let Some(loaded) = self.modules.get_mut(&key) {
            loaded.functions.insert(entry.to_owned(), function);
        }
        Ok(function)
    }

    /// Sets a variable of the code, loading the code if necessary. Returns whether the code has a variable
    /// of that name.
    ///
    /// # Errors
    /// `launch_failed`: the variable has a different size; the driver's error.
    pub(super) fn set_variable(
        &mut self,
        code: &Code,
        name: &str,
        bytes: &[u8],
    ) -> Result<bool, Judgement> {
        let key = self.load(&code.cubin)?;
        let Some(module) = self.modules.get(&key).map(|loaded| loaded.module) else {
            return Err(refused("the code is not loaded"));
        };
        let found = self.call(|driver, _| match driver.variable(module, name) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code == code::NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        })?;
        let Some((at, size)) = found else {
            return Ok(false);
        };
        if size != bytes.len() as u64 {
            return Err(other_size(name, bytes.len() as u64, size));
        }
        self.call(|driver, stream| {
            driver.stream_synchronize(stream)?;
            driver.copy_to_device(at, bytes)
        })?;
        Ok(true)
    }

    fn load(&mut self, image: &Arc<[u8]>) -> Result<u64, Judgement> {
        let mut hasher = DefaultHasher::new();
        image.hash(&mut hasher);
        let key = hasher.finish();
        match self.modules.get_mut(&key) {
            Some(loaded) if loaded.image == *image => {
                loaded.shared_with(image);
                return Ok(key);
            }
            // Two images with one hash: the later one wins.
            Some(_) => self.unload(key)?,
            None => {}
        }
        if image.is_empty() {
            return Err(refused(
                "there is no machine code: it was compiled to PTX only",
            ));
        }
        let module = self.call(|driver, _| driver.module_load(image))?;
        self.modules.insert(
            key,
            Loaded {
                image: Arc::clone(image),
                copies: Vec::new(),
                module,
                functions: HashMap::new(),
            },
        );
        Ok(key)
    }

    /// Loads the code and replaces its image by the loaded one, which keeps that loaded.
    ///
    /// # Errors
    /// The driver rejects the code.
    pub(super) fn adopt(&mut self, code: &mut Code) -> Result<(), Judgement> {
        let key = self.load(&code.cubin)?;
        if let Some(loaded) = self.modules.get(&key) {
            code.cubin = Arc::clone(&loaded.image);
        }
        Ok(())
    }

    fn unload(&mut self, key: u64) -> Result<(), Judgement> {
        match self.modules.remove(&key) {
            Some(loaded) => self.call(|driver, _| driver.module_unload(loaded.module)),
            None => Ok(()),
        }
    }

    /// Unloads code without other owners.
    ///
    /// # Errors
    /// The driver's error.
    pub(super) fn forget_unused(&mut self) -> Result<(), Judgement> {
        let unused = |(key, loaded): (&u64, &Loaded)| (!loaded.in_use()).then_some(*key);
        let unused: Vec<u64> = self.modules.iter().filter_map(unused).collect();
        unused.into_iter().try_for_each(|key| self.unload(key))
    }

    /// Opts a kernel in to its dynamic shared memory.
    ///
    /// # Errors
    /// `launch_failed`: more than the limit of the device per block.
    pub(super) fn opt_in(
        &mut self,
        function: Function,
        shared_bytes: u64,
    ) -> Result<(), Judgement> {
        if shared_bytes == 0 {
            return Ok(());
        }
        let fixed = self.attribute(
            function,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        )?;
        let most = u64::from(self.facts.shared_bytes_optin).max(SHARED_BYTES_DEFAULT);
        let wanted = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
        // The driver's error would not include the limit.
        if shared_bytes + u64::from(fixed) > most {
            return Err(refused(format!(
                "a block requests {} bytes of shared memory ({fixed} static), the GPU has {most}; use \
                 smaller tiles or fewer stages",
                shared_bytes + u64::from(fixed)
            )));
        }
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.call(|driver, _| driver.function_set_attribute(function, attribute, wanted))
    }

    fn attribute(&mut self, function: Function, what: FunctionAttribute) -> Result<u32, Judgement> {
        let value = self.call(|driver, _| driver.function_attribute(function, what))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Returns the driver's facts about a kernel in a block of this shape.
    ///
    /// # Errors
    /// The driver's error.
    pub fn kernel_facts(
        &mut self,
        code: &Code,
        entry: &str,
        threads: u64,
        shared_bytes: u64,
    ) -> Result<KernelFacts, Judgement> {
        use FunctionAttribute as F;
        let function = self.function(code, entry)?;
        self.opt_in(function, shared_bytes)?;
        let threads = i32::try_from(threads).unwrap_or(i32::MAX);
        let blocks = self.call(|driver, _| driver.occupancy(function, threads, shared_bytes))?;
        Ok(KernelFacts {
            registers: self.attribute(function, F::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: self.attribute(function, F::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: self
                .attribute(function, F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: self.attribute(function, F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            blocks_per_sm: u32::try_from(blocks).unwrap_or(0),
        })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // The end of the process also frees everything; a corrupted context does not respond.
        if self.corrupted.is_none() {
            let _ = self.driver.stream_destroy(self.stream);
            let _ = self.driver.context_release(self.device);
        }
    }
}
