//! Modules, kernels and variables that the program registered, and launches.

mod attributes;

pub(crate) use attributes::{LaunchAttribute, read_attributes};

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::connection::{call, device, keep_printed, send};
use crate::errors::{self, Code};
use crate::memory::map_shared;
use crate::protocol::{CHECK_ONLY, FunctionInfo, Message, Op, ParameterSpan, kind};
use crate::registered::exchanged;
use crate::state::{lock, state};

/// An image of code: loaded into the device at its first use.
#[derive(Debug)]
pub(crate) struct Image {
    bytes: &'static [u8],
    module: OnceLock<Result<u64, Code>>,
}

impl Image {
    /// An image in the program's own data, which lives as long as the process.
    pub(crate) fn new(bytes: &'static [u8]) -> Image {
        Image {
            bytes,
            module: OnceLock::new(),
        }
    }

    /// An image that is a module on the device.
    pub(crate) fn loaded(module: u64) -> Image {
        Image {
            bytes: &[],
            module: OnceLock::from(Ok(module)),
        }
    }

    /// The module on the device.
    pub(crate) fn module(&self) -> Result<u64, Code> {
        static LOADING: Mutex<()> = Mutex::new(());
        if let Some(known) = self.module.get() {
            return *known;
        }
        let _one = lock(&LOADING);
        keep(&self.module, || load_module(self.bytes)).copied()
    }
}

/// Returns what was found once, or finds it now and keeps it. An error that may end is not kept.
fn keep<T>(
    kept: &OnceLock<Result<T, Code>>,
    find: impl FnOnce() -> Result<T, Code>,
) -> Result<&T, Code> {
    let found = match kept.get() {
        Some(found) => found,
        None => match find() {
            Err(code) if !stays(code) => return Err(code),
            found => kept.get_or_init(|| found),
        },
    };
    found.as_ref().map_err(|code| *code)
}

/// Reports whether an error is one of the code: a fault ends with a reset, and a function of the host with its return.
fn stays(code: Code) -> bool {
    !errors::is_sticky(code) && code != errors::NOT_PERMITTED
}

/// Loads an image.
pub(crate) fn load_module(image: &[u8]) -> Result<u64, Code> {
    let reply = send(Op::LoadModule, &Message::new(), image)?;
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

/// The kernel of that name in a module.
pub(crate) fn get_function(module: u64, name: &str) -> Result<FunctionInfo, Code> {
    let mut head = Message::new();
    head.put_u64(module).put_str(name);
    let reply = call(Op::GetFunction, &head)?;
    let info = FunctionInfo::take(&mut reply.fields()).map_err(|_| errors::UNKNOWN)?;
    let signature = Signature {
        name: name.to_owned(),
        parameters: info.parameters.clone(),
    };
    let mut signatures = lock(&state().signatures);
    signatures.insert(info.id, signature);
    Ok(info)
}

/// Name and parameters of a kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature {
    /// Mangled name.
    pub(crate) name: String,
    /// Places in the parameter block.
    pub(crate) parameters: Vec<ParameterSpan>,
}

/// The signature of a kernel with this number.
pub(crate) fn signature(function: u64) -> Signature {
    let signatures = lock(&state().signatures);
    signatures.get(&function).cloned().unwrap_or_default()
}

/// A registered kernel. Its address is the handle that the program holds.
#[derive(Debug)]
pub(crate) struct Kernel {
    image: Arc<Image>,
    pub(crate) name: String,
    info: OnceLock<Result<FunctionInfo, Code>>,
}

impl Kernel {
    /// A kernel of an image that is not loaded yet.
    pub(crate) fn new(image: Arc<Image>, name: String) -> Kernel {
        Kernel {
            image,
            name,
            info: OnceLock::new(),
        }
    }

    /// The number of its module on the device.
    pub(crate) fn module(&self) -> Result<u64, Code> {
        self.image.module()
    }

    /// The kernel on the device.
    pub(crate) fn info(&self) -> Result<&FunctionInfo, Code> {
        keep(&self.info, || {
            get_function(self.image.module()?, &self.name)
        })
    }
}

/// A registered variable.
#[derive(Debug)]
pub(crate) struct Variable {
    /// The image that declares it.
    pub(crate) image: Arc<Image>,
    /// Its name in the image.
    pub(crate) name: String,
}

/// Address and size of a variable on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Address of the first byte.
    pub(crate) address: u64,
    /// Size, bytes.
    pub(crate) bytes: u64,
}

/// The variable of that name in a module.
pub(crate) fn get_variable(module: u64, name: &str) -> Result<Span, Code> {
    let mut head = Message::new();
    head.put_u64(module).put_str(name);
    let reply = call(Op::GetVariable, &head)?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    Ok(Span {
        address: fields.u64().map_err(broken)?,
        bytes: fields.u64().map_err(broken)?,
    })
}

/// Makes a variable memory that host and device share: a managed variable.
pub(crate) fn share_variable(module: u64, name: &str) -> Result<Span, Code> {
    let mut head = Message::new();
    head.put_u64(module).put_str(name);
    let reply = call(Op::ShareVariable, &head)?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    let span = Span {
        address: fields.u64().map_err(broken)?,
        bytes: fields.u64().map_err(broken)?,
    };
    let path = fields.str().map_err(broken)?;
    map_shared(span.address, span.bytes, kind::MANAGED, path)?;
    Ok(span)
}

/// Names of the kernels of a module.
pub(crate) fn list_functions(module: u64) -> Result<Vec<String>, Code> {
    let mut head = Message::new();
    head.put_u64(module);
    let reply = call(Op::ListFunctions, &head)?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    let count = fields.u32().map_err(broken)?;
    (0..count)
        .map(|_| Ok(fields.str().map_err(broken)?.to_owned()))
        .collect()
}

/// Unloads a module.
pub(crate) fn unload_module(module: u64) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(module);
    call(Op::UnloadModule, &head).map(drop)
}

impl Variable {
    /// Where it is on the device.
    pub(crate) fn span(&self) -> Result<Span, Code> {
        get_variable(self.image.module()?, &self.name)
    }
}

/// Everything that the program's constructors registered.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Kernels by the address of their host function.
    pub(crate) kernels: BTreeMap<u64, &'static Kernel>,
    /// The same by their own address: handles.
    pub(crate) handles: BTreeMap<u64, &'static Kernel>,
    /// Those of libraries that the program loaded.
    pub(crate) loaded: Vec<&'static Kernel>,
    /// Variables by the address of their host shadow.
    pub(crate) variables: BTreeMap<u64, Variable>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    kernels: BTreeMap::new(),
    handles: BTreeMap::new(),
    loaded: Vec::new(),
    variables: BTreeMap::new(),
});

/// The registry of this process.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets the kernels of a library.
pub(crate) fn forget_loaded(module: u64) {
    let is_of = |kernel: &Kernel| kernel.module() == Ok(module);
    let mut registry = registry();
    let Registry {
        handles, loaded, ..
    } = &mut *registry;
    handles.retain(|_, kernel| {
        !(is_of(kernel) && loaded.iter().any(|one| std::ptr::eq(*one, *kernel)))
    });
    loaded.retain(|kernel| !is_of(kernel));
}

/// The kernel of a host function or of a handle.
pub(crate) fn find_kernel(function: *const c_void) -> Result<&'static Kernel, Code> {
    let address = function.addr() as u64;
    let registry = registry();
    let found = registry
        .kernels
        .get(&address)
        .or(registry.handles.get(&address));
    found.copied().ok_or(errors::INVALID_FUNCTION)
}

/// The host function of a kernel with this number.
pub(crate) fn host_function(function: u64) -> Result<u64, Code> {
    let registry = registry();
    let mut kernels = registry.kernels.iter();
    let is_it = |kernel: &Kernel| match kernel.info.get() {
        Some(Ok(info)) => info.id == function,
        _ => false,
    };
    let found = kernels.find(|(_, kernel)| is_it(kernel));
    found
        .map(|(address, _)| *address)
        .ok_or(errors::INVALID_FUNCTION)
}

/// Extent in three dimensions, as `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim3 {
    /// Extent in x.
    pub x: u32,
    /// Extent in y.
    pub y: u32,
    /// Extent in z.
    pub z: u32,
}

/// A launch, its arguments packed.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) function: u64,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared_bytes: u64,
    pub(crate) stream: u64,
    pub(crate) flags: u32,
    pub(crate) cluster: Dim3,
    pub(crate) parameters: Vec<u8>,
}

/// Blocks of the largest cluster that every device with clusters can run, and of any.
const CLUSTER_BLOCKS: [u32; 2] = [8, 16];

impl Launch {
    /// Creates a launch without arguments, on the null stream.
    pub(crate) fn new(function: u64, [grid, block]: [Dim3; 2], shared_bytes: u64) -> Launch {
        Launch {
            function,
            grid,
            block,
            shared_bytes,
            stream: 0,
            flags: 0,
            cluster: NO_CLUSTER,
            parameters: Vec::new(),
        }
    }

    /// Returns the number of blocks that the device holds at once; none where it has no clusters.
    fn resident_blocks(&self) -> Result<u32, Code> {
        let Dim3 { x, y, z } = self.block;
        let threads = x.saturating_mul(y).saturating_mul(z);
        if threads == 0 || device()?.attribute(CLUSTER_LAUNCH) == 0 {
            return Ok(0);
        }
        let each = crate::client::occupancy(self.function, threads, self.shared_bytes)?;
        Ok(each * u32::try_from(device()?.attribute(MULTIPROCESSORS)).unwrap_or(0))
    }

    /// Returns the number of its clusters that the device holds at once. The groups of
    /// multiprocessors that a cluster must fit in are not known.
    pub(crate) fn active_clusters(&self) -> Result<u32, Code> {
        let Dim3 { x, y, z } = self.cluster;
        let blocks = x.saturating_mul(y).saturating_mul(z);
        Ok(self.resident_blocks()?.checked_div(blocks).unwrap_or(0))
    }

    /// Returns the blocks of the largest cluster that the device holds; `all` includes sizes that not
    /// every device can run.
    pub(crate) fn largest_cluster(&self, all: bool) -> Result<u32, Code> {
        let most = CLUSTER_BLOCKS[usize::from(all)];
        let fits = self.resident_blocks()?;
        Ok(if fits < most { 0 } else { most })
    }

    /// The head of a request for the launch: all but the arguments.
    pub(crate) fn head(&self) -> Result<Message, Code> {
        let shared = u32::try_from(self.shared_bytes).map_err(|_| errors::INVALID_VALUE)?;
        let mut head = Message::new();
        head.put_u64(self.stream).put_u64(self.function);
        for extent in [self.grid, self.block] {
            head.put_u32(extent.x).put_u32(extent.y).put_u32(extent.z);
        }
        head.put_u32(shared).put_u32(self.flags);
        let cluster = self.cluster;
        head.put_u32(cluster.x)
            .put_u32(cluster.y)
            .put_u32(cluster.z);
        Ok(head)
    }

    /// Fails where the device would refuse the launch, which does not run.
    pub(crate) fn check(&self) -> Result<(), Code> {
        let mut checked = self.clone();
        checked.flags |= CHECK_ONLY;
        // The stream of a capture or of a graph is not the one that runs it.
        checked.stream = 0;
        send(Op::Launch, &checked.head()?, &checked.parameters).map(drop)
    }

    /// Sends the launch. A fault of the kernel appears at the next request, as on a GPU.
    pub(crate) fn run(&self) -> Result<(), Code> {
        let head = self.head()?;
        let reply = exchanged(|| send(Op::Launch, &head, &self.parameters))?;
        if !reply.bulk.is_empty() {
            keep_printed(&reply.bulk);
        }
        Ok(())
    }
}

/// A launch without a cluster.
pub(crate) const NO_CLUSTER: Dim3 = Dim3 { x: 1, y: 1, z: 1 };

/// `cudaFuncAttributeMaxDynamicSharedMemorySize`.
pub(crate) const DYNAMIC_LIMIT: u32 = 8;
/// `cudaFuncAttributePreferredSharedMemoryCarveout`.
pub(crate) const CARVEOUT: u32 = 9;
/// `cudaFuncAttributeNonPortableClusterSizeAllowed`.
pub(crate) const NON_PORTABLE_CLUSTER: u32 = 14;

impl FunctionInfo {
    /// An attribute that a program sets, by its number in either interface.
    pub(crate) fn settable(&self, number: u32) -> i32 {
        let set = crate::client::function_attribute(self.id, number);
        set.unwrap_or(match number {
            DYNAMIC_LIMIT => DEFAULT_SHARED_BYTES.saturating_sub(self.static_shared_bytes) as i32,
            CARVEOUT => -1,
            _ => 0,
        })
    }
}
/// `cudaDevAttrClusterLaunch` and `cudaDevAttrMultiProcessorCount`.
const CLUSTER_LAUNCH: u32 = 120;
const MULTIPROCESSORS: u32 = 16;

/// Shared memory of a block without an opt-in, bytes.
pub(crate) const DEFAULT_SHARED_BYTES: u64 = 48 << 10;

/// Dynamic shared memory left for each of a number of resident blocks, bytes.
pub(crate) fn available_shared_bytes(info: &FunctionInfo, blocks: i32) -> Result<usize, Code> {
    let whole = device()?.attribute(81) as usize;
    let each = whole / usize::try_from(blocks.max(1)).unwrap_or(1);
    let reserved = device()?.attribute(111) as usize + info.static_shared_bytes as usize;
    Ok(each.saturating_sub(reserved))
}

/// Copies the arguments of a launch into a parameter block.
///
/// # Safety
/// `arguments` points to one readable pointer a parameter, each to a value of its size.
pub(crate) unsafe fn pack_arguments(
    info: &FunctionInfo,
    arguments: *mut *mut c_void,
) -> Result<Vec<u8>, Code> {
    let mut packed = vec![0; info.parameter_bytes()];
    if info.parameters.is_empty() {
        return Ok(packed);
    }
    if arguments.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    for (index, parameter) in info.parameters.iter().enumerate() {
        // SAFETY: the caller's promise: as many pointers as parameters.
        let argument = unsafe { *arguments.add(index) };
        if argument.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the caller's promise: a value of the parameter's size.
        let value = unsafe {
            std::slice::from_raw_parts(argument.cast::<u8>().cast_const(), parameter.bytes as usize)
        };
        let span = parameter.offset as usize..(parameter.offset + parameter.bytes) as usize;
        if let Some(slot) = packed.get_mut(span) {
            slot.copy_from_slice(value);
        }
    }
    Ok(packed)
}
