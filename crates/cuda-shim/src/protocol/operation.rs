//! Operations of the device: a request names one by its number.

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        /// An operation of the device.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Op { $($(#[$doc])* $name = $value,)+ }

        impl Op {
            /// The operation of that number.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Op> {
                match number { $($value => Some(Op::$name),)+ _ => None }
            }
        }
    };
}

operations! {
    /// `pid: u32, interface: str` → device description.
    Hello = 1,
    /// `bulk: image` → `module: u64`; a failure has the reason as bulk data.
    LoadModule = 2,
    /// `module: u64`.
    UnloadModule = 3,
    /// `module: u64, name: str` → `FunctionInfo`.
    GetFunction = 4,
    /// `module: u64` → `count: u32, names: str…`.
    ListFunctions = 5,
    /// `module: u64, name: str` → `address: u64, bytes: u64`.
    GetVariable = 6,
    /// `module: u64, name: str` → `address: u64, bytes: u64, path: str`: a variable as shared memory.
    ShareVariable = 7,
    /// `bytes: u64, kind: u32, pool: u64` → `address: u64, path: str`; `NO_POOL`, `CURRENT_POOL` or a handle.
    Allocate = 8,
    /// `address: u64`.
    Free = 9,
    /// `address: u64` → `base: u64, bytes: u64, kind: u32, pool: u64`.
    Find = 10,
    /// `stream: u64, destination: u64, shape, bulk`.
    WriteMemory = 11,
    /// `stream: u64, source: u64, shape` → bulk.
    ReadMemory = 12,
    /// `stream: u64, destination: u64, source: u64, two shapes`.
    CopyMemory = 13,
    /// `stream: u64, destination: u64, value: u32, element bytes: u32, shape`.
    FillMemory = 14,
    /// `stream: u64, function: u64, grid, block, shared: u32, flags: u32, cluster, caller: u64, bulk: parameters`.
    Launch = 15,
    /// `flags: u32, priority: i32` → `stream: u64`.
    CreateStream = 16,
    /// `stream: u64`.
    DestroyStream = 17,
    /// `stream: u64`; `ALL_STREAMS` waits for the device.
    Synchronize = 18,
    /// `stream: u64, event: u64`.
    WaitEvent = 19,
    /// `flags: u32` → `event: u64`.
    CreateEvent = 20,
    /// `event: u64`.
    DestroyEvent = 21,
    /// `event: u64, stream: u64`.
    RecordEvent = 22,
    /// `event: u64`.
    SynchronizeEvent = 23,
    /// `start: u64, end: u64` → `milliseconds: f64`.
    ElapsedTime = 24,
    /// `function: u64, threads: u32, shared: u64` → `blocks: u32`.
    Occupancy = 25,
    /// `function: u64, attribute: u32, value: i32`.
    SetFunctionAttribute = 26,
    /// → `free: u64, total: u64`.
    MemoryInfo = 27,
    /// Frees everything of the process and clears its sticky error.
    Reset = 28,
    /// → the sticky error as the reply's code.
    Status = 29,
    /// `limit: u32, value: u64`.
    SetLimit = 30,
    /// `stream: u64`: a host function runs after the work of the stream.
    HostFunction = 31,
    /// `text: str`: a message for the user, such as a function that is not supported.
    Report = 32,
    /// `shape` of a CUDA array → `handle: u64`.
    CreateArray = 33,
    /// `handle: u64`.
    DestroyArray = 34,
    /// `handle: u64` → `shape`.
    DescribeArray = 35,
    /// `resource, sampling` → `handle: u64`.
    CreateTexture = 36,
    /// `array: u64` → `handle: u64`.
    CreateSurface = 37,
    /// `handle: u64` of a texture or surface object.
    DestroyObject = 38,
    /// `kind: u32` → `pool: u64`.
    CreatePool = 39,
    /// `pool: u64`.
    DestroyPool = 40,
    /// `kind: u32, default: u32` → `pool: u64`: the selected one, or the one from the start.
    FindPool = 41,
    /// `pool: u64, kind: u32`: memory of the kind comes from the pool.
    SelectPool = 42,
    /// `pool: u64` → `kind: u32`.
    DescribePool = 43,
    /// `pool: u64, attribute: u32` → `value: u64`.
    GetPoolAttribute = 44,
    /// `pool: u64, attribute: u32, value: u64`.
    SetPoolAttribute = 45,
    /// `stream: u64` → `flags: u32, priority: i32`.
    DescribeStream = 46,
    /// `stream: u64, attribute: u32` → bulk: the value.
    GetStreamAttribute = 47,
    /// `stream: u64, attribute: u32, bulk: the value`.
    SetStreamAttribute = 48,
    /// `to: u64, from: u64`.
    CopyStreamAttributes = 49,
    /// `bytes: u64, alignment: u64` → `address: u64`.
    ReserveAddresses = 50,
    /// `address: u64, bytes: u64`.
    FreeAddresses = 51,
    /// `bytes: u64` → `handle: u64` of memory without an address.
    CreateMemory = 52,
    /// `handle: u64`.
    ReleaseMemory = 53,
    /// `address: u64, bytes: u64, handle: u64`.
    MapMemory = 54,
    /// `address: u64, bytes: u64`.
    UnmapMemory = 55,
    /// `address: u64, bytes: u64, flags: u32`.
    SetMemoryAccess = 56,
    /// `address: u64` → `flags: u32`.
    GetMemoryAccess = 57,
    /// `address: u64` → `handle: u64`, which the program must release.
    RetainMemory = 58,
    /// `stream: u64, address: u64, value: u64, bytes: u32`.
    WriteValue = 59,
    /// The same, `condition: u32` → `met: u32`: the stream follows the writes of the word.
    WaitValue = 60,
    /// `bulk: image`: code that the driver of a GPU loaded.
    OfferImage = 61,
    /// `name: str, grid, block, shared: u32` → `wanted: u32`; where it is 1, `room: u64, FunctionInfo, count: u32,
    /// names of variables: str…`.
    WantLaunch = 62,
    /// The head of [`Op::Launch`], `number: u64, parameter bytes: u32, count: u32`, then for each memory `address: u64,
    /// bytes: u64, variable: str`; `bulk`: parameters and contents.
    BeginLaunch = 63,
    /// `bulk`: contents after the launch of [`Op::BeginLaunch`], as there.
    EndLaunch = 64,
    /// `name: str, bytes: u64, reason: str`: a launch that was wanted is not captured; an empty reason stands for its
    /// bytes.
    SkipLaunch = 65,
    /// `stream: u64, address: u64, writes: u32, shape, name: str`: an operation of the stream accesses shared memory
    /// on the host.
    NoteAccess = 66,
    /// `address: u64, stream: u64`: frees memory of a pool after the work of a stream; `NO_STREAM` has no order.
    FreeInOrder = 67,
    /// `event: u64`: fails where there is none.
    FindEvent = 68,
}
