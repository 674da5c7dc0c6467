//! Numbers of the `CUresult`s that the tuner distinguishes.

use super::Blame;
use cudarc::driver::sys::CUresult as R;
use tuner_core::record::Verdict;

const DEVICE: Blame = Blame::Device;
const CRASHED: Blame = Blame::Candidate(Verdict::Crashed);
const REFUSED: Blame = Blame::Candidate(Verdict::LaunchFailed);
macro_rules! codes {
    ($($name:ident = $result:ident, $blame:expr, $meaning:literal;)*) => {
        $(#[doc = concat!("`", stringify!($result), "`: ", $meaning, ".")]
        pub const $name: u32 = R::$result as u32;)*
        /// All distinguished codes: number, the driver's name, meaning, cause.
        pub const ALL: &[(u32, &str, &str, Blame)] = &[
            $(($name, stringify!($result), $meaning, $blame),)*
        ];
    };
}
codes! {
    INVALID_VALUE = CUDA_ERROR_INVALID_VALUE, REFUSED, "an argument is over a limit of the device";
    OUT_OF_MEMORY = CUDA_ERROR_OUT_OF_MEMORY, Blame::Candidate(Verdict::OutOfMemory), "the GPU's memory is full";
    NOT_INITIALIZED = CUDA_ERROR_NOT_INITIALIZED, DEVICE, "the driver is not initialised";
    DEINITIALIZED = CUDA_ERROR_DEINITIALIZED, DEVICE, "the driver is shutting down";
    STUB_LIBRARY = CUDA_ERROR_STUB_LIBRARY, DEVICE, "libcuda is the toolkit's stub, not the driver";
    DEVICE_UNAVAILABLE = CUDA_ERROR_DEVICE_UNAVAILABLE, DEVICE, "the GPU is held by another process";
    NO_DEVICE = CUDA_ERROR_NO_DEVICE, DEVICE, "the driver sees no GPU";
    INVALID_DEVICE = CUDA_ERROR_INVALID_DEVICE, DEVICE, "no such GPU";
    DEVICE_NOT_LICENSED = CUDA_ERROR_DEVICE_NOT_LICENSED, DEVICE, "the GPU has no licence";
    INVALID_IMAGE = CUDA_ERROR_INVALID_IMAGE, REFUSED, "the driver cannot read the machine code";
    INVALID_CONTEXT = CUDA_ERROR_INVALID_CONTEXT, DEVICE, "the context is gone";
    NO_BINARY_FOR_GPU = CUDA_ERROR_NO_BINARY_FOR_GPU, REFUSED, "the machine code is for another GPU";
    ECC_UNCORRECTABLE = CUDA_ERROR_ECC_UNCORRECTABLE, DEVICE, "the GPU's memory has an uncorrectable error";
    INVALID_PTX = CUDA_ERROR_INVALID_PTX, REFUSED, "the driver's compiler refuses the PTX";
    NVLINK_UNCORRECTABLE = CUDA_ERROR_NVLINK_UNCORRECTABLE, DEVICE, "an uncorrectable NVLink error";
    JIT_COMPILER_NOT_FOUND = CUDA_ERROR_JIT_COMPILER_NOT_FOUND, REFUSED, "the driver's PTX compiler is missing";
    UNSUPPORTED_PTX_VERSION = CUDA_ERROR_UNSUPPORTED_PTX_VERSION, REFUSED, "the code is of a newer CUDA than the driver";
    OPERATING_SYSTEM = CUDA_ERROR_OPERATING_SYSTEM, DEVICE, "the operating system refused";
    INVALID_HANDLE = CUDA_ERROR_INVALID_HANDLE, REFUSED, "a handle that is no more";
    ILLEGAL_STATE = CUDA_ERROR_ILLEGAL_STATE, REFUSED, "not possible in this state";
    NOT_FOUND = CUDA_ERROR_NOT_FOUND, REFUSED, "the code has no such kernel";
    NOT_READY = CUDA_ERROR_NOT_READY, REFUSED, "not finished";
    ILLEGAL_ADDRESS = CUDA_ERROR_ILLEGAL_ADDRESS, Blame::Candidate(Verdict::OutOfBounds), "the kernel used an address outside any allocation";
    LAUNCH_OUT_OF_RESOURCES = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, REFUSED, "too many registers or threads for a block";
    LAUNCH_TIMEOUT = CUDA_ERROR_LAUNCH_TIMEOUT, Blame::Candidate(Verdict::Timeout), "the display watchdog ended the kernel";
    CONTEXT_IS_DESTROYED = CUDA_ERROR_CONTEXT_IS_DESTROYED, DEVICE, "the context is gone";
    ASSERT = CUDA_ERROR_ASSERT, CRASHED, "a device-side assert";
    HARDWARE_STACK_ERROR = CUDA_ERROR_HARDWARE_STACK_ERROR, CRASHED, "the kernel broke its call stack";
    ILLEGAL_INSTRUCTION = CUDA_ERROR_ILLEGAL_INSTRUCTION, CRASHED, "an illegal instruction (a trap)";
    MISALIGNED_ADDRESS = CUDA_ERROR_MISALIGNED_ADDRESS, Blame::Candidate(Verdict::Misaligned), "an access not aligned to its size";
    INVALID_ADDRESS_SPACE = CUDA_ERROR_INVALID_ADDRESS_SPACE, CRASHED, "an instruction on the wrong address space";
    INVALID_PC = CUDA_ERROR_INVALID_PC, CRASHED, "the program counter left the code";
    LAUNCH_FAILED = CUDA_ERROR_LAUNCH_FAILED, CRASHED, "the kernel failed";
    COOPERATIVE_LAUNCH_TOO_LARGE = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, REFUSED, "more blocks than fit at once";
    NOT_PERMITTED = CUDA_ERROR_NOT_PERMITTED, REFUSED, "not permitted";
    NOT_SUPPORTED = CUDA_ERROR_NOT_SUPPORTED, REFUSED, "not supported by this GPU or driver";
    SYSTEM_NOT_READY = CUDA_ERROR_SYSTEM_NOT_READY, DEVICE, "the system is not ready (is the fabric manager running?)";
    SYSTEM_DRIVER_MISMATCH = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, DEVICE, "kernel module and library are of different drivers; reboot after the update";
    COMPAT_NOT_SUPPORTED = CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, DEVICE, "the compatibility library does not support this GPU";
    MPS_CONNECTION_FAILED = CUDA_ERROR_MPS_CONNECTION_FAILED, DEVICE, "no connection to the MPS server";
    MPS_RPC_FAILURE = CUDA_ERROR_MPS_RPC_FAILURE, DEVICE, "the MPS server fails";
    MPS_SERVER_NOT_READY = CUDA_ERROR_MPS_SERVER_NOT_READY, DEVICE, "the MPS server is not ready";
    MPS_CLIENT_TERMINATED = CUDA_ERROR_MPS_CLIENT_TERMINATED, DEVICE, "the MPS server ended this client";
    STREAM_CAPTURE_INVALIDATED = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, REFUSED, "the recording of launches failed";
    TENSOR_MEMORY_LEAK = CUDA_ERROR_TENSOR_MEMORY_LEAK, CRASHED, "tensor memory was not freed";
    CONTAINED = CUDA_ERROR_CONTAINED, DEVICE, "an error was contained; the context is lost";
    EXTERNAL_DEVICE = CUDA_ERROR_EXTERNAL_DEVICE, DEVICE, "another device failed";
    UNKNOWN = CUDA_ERROR_UNKNOWN, DEVICE, "an unknown error of the driver";
}
