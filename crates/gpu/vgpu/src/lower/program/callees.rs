//! Functions that a kernel calls, and the calls.

use std::ops::Range;

use super::Program;

/// A function that the CUDA runtime provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routine {
    /// `vprintf(format, arguments)`.
    Print,
    /// `__assertfail(message, file, line, function, size of a character)`.
    FailAssertion,
    /// `malloc(bytes)`.
    Allocate,
    /// `__nv_aligned_device_malloc(bytes, alignment)`.
    AllocateAligned,
    /// `free(address)`.
    Free,
    /// `cudaGraphSetConditional(handle, value)`, where the handle is the address of the value.
    SetCondition,
    /// A function of the device runtime, of kernels that launch kernels.
    Runtime(RuntimeCall),
}

/// A function of the device runtime (`cuda_device_runtime_api.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeCall {
    /// `GetParameterBufferV2(kernel, grid, block, shared bytes)`.
    ParameterBuffer,
    /// `LaunchDeviceV2(buffer, stream)`.
    Launch,
    /// `MemcpyAsync(to, from, bytes, kind, stream)`.
    Copy,
    /// `MemsetAsync(to, value, bytes, stream)`.
    Fill,
    /// `GetLastError()`.
    LastError,
    /// `PeekAtLastError()`.
    PeekError,
    /// `GetErrorString(error)`.
    ErrorText,
    /// `GetErrorName(error)`.
    ErrorName,
    /// `StreamCreateWithFlags(to, flags)`, `EventCreateWithFlags(to, flags)`.
    CreateHandle,
    /// Calls about streams and events that change nothing, because operations run in the order of their calls.
    KeepOrder,
    /// `Malloc(to, bytes)`.
    Allocate,
    /// `Free(address)`.
    Free,
    /// `GetDevice(to)`: device 0.
    Device,
    /// `GetDeviceCount(to)`: 1.
    DeviceCount,
}

/// A call of such a function: each argument and the result as its offset among the call parameters
/// and its size, bytes.
#[derive(Debug, Clone)]
pub(crate) struct External {
    pub(crate) routine: Routine,
    pub(crate) arguments: Vec<(u32, u32)>,
    pub(crate) result: Option<(u32, u32)>,
}

/// A call of a function with parameter bytes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Index in [`Program::functions`].
    pub(crate) function: u32,
    /// Copies of parameter memory before the call: from, to, bytes.
    pub(crate) arguments: Vec<(u32, u32, u32)>,
    /// The same after the return.
    pub(crate) results: Vec<(u32, u32, u32)>,
    /// The calling function where its state must be saved because the call may enter it again, or
    /// `NONE`.
    pub(crate) caller: u32,
}

/// A call through a pointer.
#[derive(Debug, Clone)]
pub(crate) struct CallPointer {
    /// Row of the address.
    pub(crate) address: u32,
    /// Offset and size of the variables that hold the arguments and get the results.
    pub(crate) arguments: Vec<(u32, u32)>,
    pub(crate) results: Vec<(u32, u32)>,
    /// As in [`Call`].
    pub(crate) caller: u32,
}

/// Counters of what the functions lowered so far have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    pub(crate) rows32: u32,
    pub(crate) rows64: u32,
    pub(crate) preds: u32,
    pub(crate) params: u32,
    pub(crate) watched: u32,
}

/// A function that is called.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) start: u32,
    /// Offset and size of its parameters and results among the call parameters.
    pub(crate) params: Vec<(u32, u32)>,
    pub(crate) returns: Vec<(u32, u32)>,
    /// Row of the address of its frame on the stack; `NONE` where it has none, because it cannot be
    /// entered again before it returns.
    pub(crate) frame_row: u32,
    pub(crate) frame_bytes: u32,
    /// Its registers, and the parameters of calls in it.
    pub(crate) own: Range<Extents>,
    /// Where its parameters and results are among the call parameters.
    pub(crate) formals: Range<u32>,
}

impl Program {
    /// The counters of what there is so far.
    pub(crate) fn extent(&self) -> Extents {
        Extents {
            rows32: self.rows32,
            rows64: self.rows64,
            preds: self.preds,
            params: self.param_bytes,
            watched: self.watched,
        }
    }
}
