//! State of the process that both interfaces share.
//!
//! A program may use the runtime and the driver library on the same streams and graphs. Each library has a copy of
//! these sources with its own statics. The driver's library therefore holds the state, and the runtime's libraries,
//! which load it as those of NVIDIA do, use it through a pointer. Its layout is the same in libraries of the same
//! sources, and others do not share it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::advice::Advice;
use crate::client::{AttributeValue, FunctionAttribute};
use crate::connection::Connection;
use crate::errors::Code;
use crate::graph::{Captures, Graph, GraphMemory, NodeArguments, NodeAttribute, UserObject};
use crate::kernels::Signature;
use crate::memory::Mapping;
use crate::registered::Range;
use crate::system::find_symbol;
use crate::values::Held;

/// State of the process.
#[derive(Debug)]
pub(crate) struct State {
    /// The connection to the device, opened at the first request.
    pub(crate) connection: OnceLock<Result<Mutex<Connection>, Code>>,
    /// The runtime has used the device, which makes the primary context current.
    pub(crate) runtime_is_active: AtomicBool,
    /// Text of device `printf` that the program has not seen: it appears when the program synchronizes.
    pub(crate) printed: Mutex<Vec<u8>>,
    /// A fault of a kernel, which stays until a reset.
    pub(crate) sticky: AtomicI32,
    /// The cache hint that the program set.
    pub(crate) cache_config: AtomicU32,
    /// Messages that were printed.
    pub(crate) said: Mutex<BTreeSet<String>>,
    /// Limits that the program set, by their number in `cudaLimit`.
    pub(crate) limits: Mutex<BTreeMap<u32, u64>>,
    /// Mappings of shared memory by the address of their first byte.
    pub(crate) mappings: Mutex<BTreeMap<u64, Mapping>>,
    /// Registered host memory by the address of its first byte.
    pub(crate) registered: Mutex<BTreeMap<u64, Range>>,
    /// Tells whether registered memory has a view: most programs have none.
    pub(crate) has_views: AtomicBool,
    /// Advice by the address of the allocation. Ranges within one are not distinguished.
    pub(crate) advice: Mutex<BTreeMap<u64, Advice>>,
    /// Signatures by the numbers of the kernels on the device.
    pub(crate) signatures: Mutex<BTreeMap<u64, Signature>>,
    /// Attributes of kernels that the program set.
    pub(crate) function_attributes: Mutex<BTreeMap<FunctionAttribute, i32>>,
    /// Graphs by handle.
    pub(crate) graphs: Mutex<BTreeMap<u64, Graph>>,
    pub(crate) next_graph: AtomicU64,
    /// By node: the arguments that the program was told last, which stay until it asks again.
    pub(crate) node_arguments: Mutex<BTreeMap<u64, NodeArguments>>,
    /// Attributes of nodes that change nothing here.
    pub(crate) node_attributes: Mutex<BTreeMap<NodeAttribute, AttributeValue>>,
    /// Objects of the program that graphs keep alive, by handle.
    pub(crate) user_objects: Mutex<BTreeMap<u64, UserObject>>,
    pub(crate) next_user_object: AtomicU64,
    pub(crate) captures: Mutex<Captures>,
    /// Capturing streams: most programs have none and pay one load.
    pub(crate) capturing: AtomicUsize,
    pub(crate) graph_memory: Mutex<GraphMemory>,
    /// Operations that wait for a value, by stream.
    pub(crate) held: Mutex<Held>,
    /// Some stream has such operations: in most programs none ever does.
    pub(crate) holds: AtomicBool,
    pub(crate) next_held: AtomicU64,
    /// Times that the program has reset the device.
    pub(crate) resets: AtomicU64,
    /// Streams of threads that have ended, which the next request ends.
    pub(crate) ended_streams: Mutex<Vec<OwnStream>>,
    /// Number of the next thread.
    pub(crate) next_thread: AtomicU64,
    /// Contexts of the streams and of the memory of the driver's interface, by handle and address, where not the
    /// primary one.
    pub(crate) contexts_of: Mutex<BTreeMap<u64, u64>>,
    /// Returns the state of the calling thread.
    thread: extern "C" fn() -> *const ThreadState,
}

/// The stream that a thread has without creating it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnStream {
    /// 0 before its first use.
    pub(crate) handle: u64,
    /// Resets of the device before its creation: each ends it.
    pub(crate) resets: u64,
}

/// State of a thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    /// Mode of captures (`cudaStreamCaptureMode`), which programs exchange.
    pub(crate) capture_mode: Cell<u32>,
    /// The stream in whose order the thread runs a function of the program.
    pub(crate) host_function_of: Cell<Option<u64>>,
    /// The next call means the stream of the thread by the default stream.
    pub(crate) next_means_own: Cell<bool>,
    /// The same of the call that runs.
    pub(crate) means_own: Cell<bool>,
    /// Calls of the runtime by the thread.
    pub(crate) runtime_calls: Cell<u64>,
    /// Stream of the thread.
    pub(crate) own_stream: Cell<OwnStream>,
    /// Number of the thread, which no other one has; 0 before it is asked for.
    pub(crate) number: Cell<u64>,
}

static OWN: State = State {
    connection: OnceLock::new(),
    runtime_is_active: AtomicBool::new(false),
    printed: Mutex::new(Vec::new()),
    sticky: AtomicI32::new(0),
    cache_config: AtomicU32::new(0),
    said: Mutex::new(BTreeSet::new()),
    limits: Mutex::new(BTreeMap::new()),
    mappings: Mutex::new(BTreeMap::new()),
    registered: Mutex::new(BTreeMap::new()),
    has_views: AtomicBool::new(false),
    advice: Mutex::new(BTreeMap::new()),
    signatures: Mutex::new(BTreeMap::new()),
    function_attributes: Mutex::new(BTreeMap::new()),
    graphs: Mutex::new(BTreeMap::new()),
    next_graph: AtomicU64::new(0x4000),
    node_arguments: Mutex::new(BTreeMap::new()),
    node_attributes: Mutex::new(BTreeMap::new()),
    user_objects: Mutex::new(BTreeMap::new()),
    next_user_object: AtomicU64::new(0x2000_0000),
    captures: Mutex::new(Captures::new()),
    capturing: AtomicUsize::new(0),
    graph_memory: Mutex::new(GraphMemory::new()),
    held: Mutex::new(Held::new()),
    holds: AtomicBool::new(false),
    next_held: AtomicU64::new(0),
    resets: AtomicU64::new(0),
    ended_streams: Mutex::new(Vec::new()),
    next_thread: AtomicU64::new(1),
    contexts_of: Mutex::new(BTreeMap::new()),
    thread: own_thread,
};

thread_local! {
    static THREAD: ThreadState = const { ThreadState {
        capture_mode: Cell::new(0),
        host_function_of: Cell::new(None),
        next_means_own: Cell::new(false),
        means_own: Cell::new(false),
        runtime_calls: Cell::new(0),
        own_stream: Cell::new(OwnStream { handle: 0, resets: 0 }),
        number: Cell::new(0),
    } };
}

extern "C" fn own_thread() -> *const ThreadState {
    THREAD.with(std::ptr::from_ref)
}

/// This is a library of the runtime.
pub(crate) const IS_RUNTIME: bool = cfg!(any(shim = "cudart12", shim = "cudart13"));

/// Returns a number of the sources that this library was built from.
fn sources() -> u64 {
    let number = option_env!("CUDA_SHIM_SOURCES");
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the state that this library holds, to one that was built from the same sources.
pub(crate) fn own(other_sources: u64) -> Option<&'static State> {
    (other_sources == sources()).then_some(&OWN)
}

/// Returns the state of the process.
pub(crate) fn state() -> &'static State {
    if !IS_RUNTIME {
        return &OWN;
    }
    static SHARED: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
    let mut shared = SHARED.load(Ordering::Acquire);
    if shared.is_null() {
        shared = find_shared();
        SHARED.store(shared, Ordering::Release);
    }
    // SAFETY: a static of this library or of that of the driver, which stays loaded.
    unsafe { &*shared }
}

/// Finds the state that the driver's library holds.
fn find_shared() -> *mut State {
    type Get = unsafe extern "C" fn(u64) -> *const c_void;
    let own = std::ptr::from_ref(&OWN).cast_mut();
    let found = find_symbol(c"libcuda.so.1", c"__cudaTunerState");
    if found.is_null() {
        // The library of another driver.
        return own;
    }
    // SAFETY: the symbol is the function of that name in `driver`, of this type.
    let shared = unsafe { std::mem::transmute::<*mut c_void, Get>(found)(sources()) };
    match shared.is_null() {
        // The state of other sources has another layout.
        true => own,
        false => shared.cast_mut().cast(),
    }
}

/// Returns the state of this thread.
pub(crate) fn thread_state<T>(body: impl FnOnce(&ThreadState) -> T) -> T {
    let thread = (state().thread)();
    // SAFETY: of this thread, which does not end meanwhile.
    body(unsafe { &*thread })
}

/// Locks a part of the state, whoever panicked while holding the lock.
pub(crate) fn lock<T>(part: &'static Mutex<T>) -> MutexGuard<'static, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a thread of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread(u64);

impl Thread {
    /// The calling thread. The system gives the identifier of one that has ended to another, so that it does not serve.
    pub(crate) fn current() -> Thread {
        Thread(thread_state(|thread| {
            if thread.number.get() == 0 {
                let number = state().next_thread.fetch_add(1, Ordering::Relaxed);
                thread.number.set(number);
            }
            thread.number.get()
        }))
    }
}
