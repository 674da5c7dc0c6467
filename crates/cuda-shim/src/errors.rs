//! Error codes of CUDA with their names and texts, equal in both interfaces but for the names.

use std::ffi::{CStr, c_char};

/// A result of either interface: `cudaError_t` or `CUresult`.
pub type Code = i32;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        $($(#[$doc])* pub const $name: Code = $value;)+
    };
}

codes! {
    /// No error.
    SUCCESS = 0,
    /// An argument is invalid.
    INVALID_VALUE = 1,
    /// Device memory is exhausted.
    OUT_OF_MEMORY = 2,
    /// No connection to the device, or a context from before a fork.
    INITIALIZATION = 3,
    /// A grid, block or shared memory size that the device refuses.
    INVALID_CONFIGURATION = 9,
    /// A symbol that the program did not register.
    INVALID_SYMBOL = 13,
    /// A format of texels that does not exist.
    INVALID_CHANNEL_DESCRIPTOR = 20,
    /// A linear filter of integers.
    INVALID_FILTER_SETTING = 26,
    /// Integers of 32 bits as normalized floats.
    INVALID_NORM_SETTING = 27,
    /// A copy direction that contradicts its pointers.
    INVALID_DIRECTION = 21,
    /// A kernel launched without a configuration.
    MISSING_CONFIGURATION = 52,
    /// A function that the module does not hold.
    INVALID_FUNCTION = 98,
    /// No device.
    NO_DEVICE = 100,
    /// A device number out of range.
    INVALID_DEVICE = 101,
    /// An image that is not a fat binary, PTX or a cubin.
    INVALID_IMAGE = 200,
    /// No current context.
    INVALID_CONTEXT = 201,
    /// No code for this GPU.
    NO_BINARY = 209,
    /// A limit that does not exist.
    UNSUPPORTED_LIMIT = 215,
    /// PTX that cannot be read.
    INVALID_PTX = 218,
    /// PTX of a version that the driver does not read.
    UNSUPPORTED_PTX_VERSION = 222,
    /// A file that does not exist.
    FILE_NOT_FOUND = 301,
    /// A failed call of the operating system.
    OPERATING_SYSTEM = 304,
    /// A handle that is not of this context.
    INVALID_HANDLE = 400,
    /// An operation that the state of its object does not permit.
    ILLEGAL_STATE = 401,
    /// A name that the module does not hold.
    NOT_FOUND = 500,
    /// Work is not complete.
    NOT_READY = 600,
    /// An access outside every allocation.
    ILLEGAL_ADDRESS = 700,
    /// More registers or threads than a block may have.
    OUT_OF_RESOURCES = 701,
    /// A launch that was stopped by its limit.
    LAUNCH_TIMEOUT = 702,
    /// The end of an access to another device that the program did not enable.
    PEER_NOT_ENABLED = 705,
    /// Host memory that was registered before.
    ALREADY_REGISTERED = 712,
    /// Host memory that is not registered.
    NOT_REGISTERED = 713,
    /// A current context that was destroyed.
    CONTEXT_IS_DESTROYED = 709,
    /// A failed `assert` of device code.
    ASSERT = 710,
    /// A stack beyond its limit.
    HARDWARE_STACK_ERROR = 714,
    /// An invalid instruction.
    ILLEGAL_INSTRUCTION = 715,
    /// An address that is not a multiple of the access size.
    MISALIGNED_ADDRESS = 716,
    /// Another fault of a kernel.
    LAUNCH_FAILURE = 719,
    /// A cooperative grid that the device cannot hold at once.
    COOPERATIVE_TOO_LARGE = 720,
    /// A call of CUDA by a function that runs in the order of a stream.
    NOT_PERMITTED = 800,
    /// A function that this device does not implement.
    NOT_SUPPORTED = 801,
    /// A cluster that the device or the grid does not allow.
    INVALID_CLUSTER_SIZE = 912,
    /// An operation that a capturing stream does not permit.
    CAPTURE_UNSUPPORTED = 900,
    /// An operation of a capture that an earlier error ended.
    CAPTURE_INVALIDATED = 901,
    /// An unmatched end of a capture.
    CAPTURE_UNMATCHED = 903,
    /// A capture ends before streams that it forked have joined it.
    CAPTURE_UNJOINED = 904,
    /// An operation of the legacy default stream, which would wait for a capturing stream.
    CAPTURE_IMPLICIT = 906,
    /// An event that was recorded last in a capture.
    CAPTURED_EVENT = 907,
    /// An end of a capture by another thread than the one that began it.
    CAPTURE_WRONG_THREAD = 908,
    /// An update of an executable graph by one of another form.
    GRAPH_UPDATE_FAILURE = 910,
    /// Unknown.
    UNKNOWN = 999,
}

/// Reports whether the error stays until the context is destroyed: faults of kernels.
#[must_use]
pub fn is_sticky(code: Code) -> bool {
    (ILLEGAL_ADDRESS..=LAUNCH_FAILURE).contains(&code)
        && !matches!(
            code,
            OUT_OF_RESOURCES
                | CONTEXT_IS_DESTROYED
                | ALREADY_REGISTERED
                | NOT_REGISTERED
                | 704
                | 705
                | 708
        )
}

/// The name in the runtime interface, such as `cudaErrorInvalidValue`.
#[must_use]
pub fn runtime_name(code: Code) -> &'static CStr {
    find(code).map_or(c"unrecognized error code", |entry| entry.runtime)
}

/// The name in the driver interface, such as `CUDA_ERROR_INVALID_VALUE`; `None` for unknown codes.
#[must_use]
pub fn driver_name(code: Code) -> Option<&'static CStr> {
    find(code)
        .map(|entry| entry.driver)
        .filter(|name| !name.is_empty())
}

/// The text, such as `invalid argument`.
#[must_use]
pub fn text(code: Code) -> &'static CStr {
    find(code).map_or(c"unrecognized error code", |entry| entry.text)
}

/// A pointer for C that stays valid.
pub(crate) fn pointer(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}

struct Entry {
    code: Code,
    runtime: &'static CStr,
    driver: &'static CStr,
    text: &'static CStr,
}

fn find(code: Code) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.code == code)
}

macro_rules! entries {
    ($(($code:literal, $runtime:literal, $driver:literal, $text:literal),)+) => {
        /// As the runtime library 13.0 returns them (`cudaGetErrorName`, `cudaGetErrorString`).
        const ENTRIES: &[Entry] = &[$(Entry {
            code: $code, runtime: $runtime, driver: $driver, text: $text,
        },)+];
    };
}

entries! {
    (0, c"cudaSuccess", c"CUDA_SUCCESS", c"no error"),
    (1, c"cudaErrorInvalidValue", c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"cudaErrorMemoryAllocation", c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"cudaErrorInitializationError", c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"cudaErrorCudartUnloading", c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (5, c"cudaErrorProfilerDisabled", c"CUDA_ERROR_PROFILER_DISABLED", c"profiler disabled while using external profiling tool"),
    (6, c"cudaErrorProfilerNotInitialized", c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"profiler not initialized: call cudaProfilerInitialize()"),
    (7, c"cudaErrorProfilerAlreadyStarted", c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"profiler already started"),
    (8, c"cudaErrorProfilerAlreadyStopped", c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"profiler already stopped"),
    (9, c"cudaErrorInvalidConfiguration", c"", c"invalid configuration argument"),
    (12, c"cudaErrorInvalidPitchValue", c"", c"invalid pitch argument"),
    (13, c"cudaErrorInvalidSymbol", c"", c"invalid device symbol"),
    (16, c"cudaErrorInvalidHostPointer", c"", c"invalid host pointer"),
    (17, c"cudaErrorInvalidDevicePointer", c"", c"invalid device pointer"),
    (18, c"cudaErrorInvalidTexture", c"", c"invalid texture reference"),
    (19, c"cudaErrorInvalidTextureBinding", c"", c"texture is not bound to a pointer"),
    (20, c"cudaErrorInvalidChannelDescriptor", c"", c"invalid channel descriptor"),
    (21, c"cudaErrorInvalidMemcpyDirection", c"", c"invalid copy direction for memcpy"),
    (22, c"cudaErrorAddressOfConstant", c"", c"invalid address of constant"),
    (23, c"cudaErrorTextureFetchFailed", c"", c"fetch from texture failed"),
    (24, c"cudaErrorTextureNotBound", c"", c"cannot fetch from a texture that is not bound"),
    (25, c"cudaErrorSynchronizationError", c"", c"incorrect use of __syncthreads()"),
    (26, c"cudaErrorInvalidFilterSetting", c"", c"linear filtering not supported for non-float type"),
    (27, c"cudaErrorInvalidNormSetting", c"", c"read as normalized float not supported for data type"),
    (28, c"cudaErrorMixedDeviceExecution", c"", c"device emulation mode and device execution mode cannot be mixed"),
    (31, c"cudaErrorNotYetImplemented", c"", c"feature not yet implemented"),
    (32, c"cudaErrorMemoryValueTooLarge", c"", c"memory size or pointer value too large to fit in 32 bit"),
    (34, c"cudaErrorStubLibrary", c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
    (35, c"cudaErrorInsufficientDriver", c"", c"CUDA driver version is insufficient for CUDA runtime version"),
    (36, c"cudaErrorCallRequiresNewerDriver", c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", c"API call is not supported in the installed CUDA driver"),
    (37, c"cudaErrorInvalidSurface", c"", c"invalid surface reference"),
    (43, c"cudaErrorDuplicateVariableName", c"", c"duplicate global variable looked up by string name"),
    (44, c"cudaErrorDuplicateTextureName", c"", c"duplicate texture looked up by string name"),
    (45, c"cudaErrorDuplicateSurfaceName", c"", c"duplicate surface looked up by string name"),
    (46, c"cudaErrorDevicesUnavailable", c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable"),
    (49, c"cudaErrorIncompatibleDriverContext", c"", c"incompatible driver context"),
    (52, c"cudaErrorMissingConfiguration", c"", c"__global__ function call is not configured"),
    (53, c"cudaErrorPriorLaunchFailure", c"", c"unspecified launch failure in prior launch"),
    (65, c"cudaErrorLaunchMaxDepthExceeded", c"", c"launch would exceed maximum depth of nested launches"),
    (66, c"cudaErrorLaunchFileScopedTex", c"", c"launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)"),
    (67, c"cudaErrorLaunchFileScopedSurf", c"", c"launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)"),
    (68, c"cudaErrorSyncDepthExceeded", c"", c"cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth"),
    (69, c"cudaErrorLaunchPendingCountExceeded", c"", c"launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    (98, c"cudaErrorInvalidDeviceFunction", c"", c"invalid device function"),
    (100, c"cudaErrorNoDevice", c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (101, c"cudaErrorInvalidDevice", c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (102, c"cudaErrorDeviceNotLicensed", c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"device doesn't have valid Grid license"),
    (103, c"cudaErrorSoftwareValidityNotEstablished", c"", c"integrity checks failed"),
    (127, c"cudaErrorStartupFailure", c"", c"startup failure in cuda runtime"),
    (200, c"cudaErrorInvalidKernelImage", c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    (201, c"cudaErrorDeviceUninitialized", c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (205, c"cudaErrorMapBufferObjectFailed", c"CUDA_ERROR_MAP_FAILED", c"mapping of buffer object failed"),
    (206, c"cudaErrorUnmapBufferObjectFailed", c"CUDA_ERROR_UNMAP_FAILED", c"unmapping of buffer object failed"),
    (207, c"cudaErrorArrayIsMapped", c"CUDA_ERROR_ARRAY_IS_MAPPED", c"array is mapped"),
    (208, c"cudaErrorAlreadyMapped", c"CUDA_ERROR_ALREADY_MAPPED", c"resource already mapped"),
    (209, c"cudaErrorNoKernelImageForDevice", c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
    (210, c"cudaErrorAlreadyAcquired", c"CUDA_ERROR_ALREADY_ACQUIRED", c"resource already acquired"),
    (211, c"cudaErrorNotMapped", c"CUDA_ERROR_NOT_MAPPED", c"resource not mapped"),
    (212, c"cudaErrorNotMappedAsArray", c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"resource not mapped as array"),
    (213, c"cudaErrorNotMappedAsPointer", c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"resource not mapped as pointer"),
    (214, c"cudaErrorECCUncorrectable", c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
    (215, c"cudaErrorUnsupportedLimit", c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"limit is not supported on this architecture"),
    (216, c"cudaErrorDeviceAlreadyInUse", c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"exclusive-thread device already in use by a different thread"),
    (217, c"cudaErrorPeerAccessUnsupported", c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these two devices"),
    (218, c"cudaErrorInvalidPtx", c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    (219, c"cudaErrorInvalidGraphicsContext", c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid OpenGL or DirectX context"),
    (220, c"cudaErrorNvlinkUncorrectable", c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"uncorrectable NVLink error detected during the execution"),
    (221, c"cudaErrorJitCompilerNotFound", c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"PTX JIT compiler library not found"),
    (222, c"cudaErrorUnsupportedPtxVersion", c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain."),
    (223, c"cudaErrorJitCompilationDisabled", c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"PTX JIT compilation was disabled"),
    (224, c"cudaErrorUnsupportedExecAffinity", c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the provided execution affinity is not supported"),
    (225, c"cudaErrorUnsupportedDevSideSync", c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    (226, c"cudaErrorContained", c"CUDA_ERROR_CONTAINED", c"Invalid access of peer GPU memory over nvlink or a hardware error"),
    (300, c"cudaErrorInvalidSource", c"CUDA_ERROR_INVALID_SOURCE", c"device kernel image is invalid"),
    (301, c"cudaErrorFileNotFound", c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    (302, c"cudaErrorSharedObjectSymbolNotFound", c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"shared object symbol not found"),
    (303, c"cudaErrorSharedObjectInitFailed", c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"shared object initialization failed"),
    (304, c"cudaErrorOperatingSystem", c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
    (400, c"cudaErrorInvalidResourceHandle", c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (401, c"cudaErrorIllegalState", c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state"),
    (402, c"cudaErrorLossyQuery", c"CUDA_ERROR_LOSSY_QUERY", c"attempted introspection would be semantically lossy"),
    (500, c"cudaErrorSymbolNotFound", c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (600, c"cudaErrorNotReady", c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (700, c"cudaErrorIllegalAddress", c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (701, c"cudaErrorLaunchOutOfResources", c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
    (702, c"cudaErrorLaunchTimeout", c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the launch timed out and was terminated"),
    (703, c"cudaErrorLaunchIncompatibleTexturing", c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"launch uses incompatible texturing mode"),
    (704, c"cudaErrorPeerAccessAlreadyEnabled", c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
    (705, c"cudaErrorPeerAccessNotEnabled", c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled"),
    (708, c"cudaErrorSetOnActiveProcess", c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"cannot set while device is active in this process"),
    (709, c"cudaErrorContextIsDestroyed", c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
    (710, c"cudaErrorAssert", c"CUDA_ERROR_ASSERT", c"device-side assert triggered"),
    (711, c"cudaErrorTooManyPeers", c"CUDA_ERROR_TOO_MANY_PEERS", c"peer mapping resources exhausted"),
    (712, c"cudaErrorHostMemoryAlreadyRegistered", c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"part or all of the requested memory range is already mapped"),
    (713, c"cudaErrorHostMemoryNotRegistered", c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"pointer does not correspond to a registered memory region"),
    (714, c"cudaErrorHardwareStackError", c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"hardware stack error"),
    (715, c"cudaErrorIllegalInstruction", c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction was encountered"),
    (716, c"cudaErrorMisalignedAddress", c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address"),
    (717, c"cudaErrorInvalidAddressSpace", c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"operation not supported on global/shared address space"),
    (718, c"cudaErrorInvalidPc", c"CUDA_ERROR_INVALID_PC", c"invalid program counter"),
    (719, c"cudaErrorLaunchFailure", c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (720, c"cudaErrorCooperativeLaunchTooLarge", c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"too many blocks in cooperative launch"),
    (721, c"cudaErrorTensorMemoryLeak", c"CUDA_ERROR_TENSOR_MEMORY_LEAK", c"tensor memory not completely freed"),
    (800, c"cudaErrorNotPermitted", c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
    (801, c"cudaErrorNotSupported", c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (802, c"cudaErrorSystemNotReady", c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
    (803, c"cudaErrorSystemDriverMismatch", c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"system has unsupported display driver / cuda driver combination"),
    (804, c"cudaErrorCompatNotSupportedOnDevice", c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"forward compatibility was attempted on non supported HW"),
    (805, c"cudaErrorMpsConnectionFailed", c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"MPS client failed to connect to the MPS control daemon or the MPS server"),
    (806, c"cudaErrorMpsRpcFailure", c"CUDA_ERROR_MPS_RPC_FAILURE", c"the remote procedural call between the MPS server and the MPS client failed"),
    (807, c"cudaErrorMpsServerNotReady", c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"MPS server is not ready to accept new MPS client requests"),
    (808, c"cudaErrorMpsMaxClientsReached", c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"the hardware resources required to create MPS client have been exhausted"),
    (809, c"cudaErrorMpsMaxConnectionsReached", c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"the hardware resources required to support device connections have been exhausted"),
    (810, c"cudaErrorMpsClientTerminated", c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"the MPS client has been terminated by the server"),
    (811, c"cudaErrorCdpNotSupported", c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
    (812, c"cudaErrorCdpVersionMismatch", c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    (900, c"cudaErrorStreamCaptureUnsupported", c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing"),
    (901, c"cudaErrorStreamCaptureInvalidated", c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture"),
    (902, c"cudaErrorStreamCaptureMerge", c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"operation would result in a merge of separate capture sequences"),
    (903, c"cudaErrorStreamCaptureUnmatched", c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"capture was not ended in the same stream as it began"),
    (904, c"cudaErrorStreamCaptureUnjoined", c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"capturing stream has unjoined work"),
    (905, c"cudaErrorStreamCaptureIsolation", c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"dependency created on uncaptured work in another stream"),
    (906, c"cudaErrorStreamCaptureImplicit", c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"operation would make the legacy stream depend on a capturing blocking stream"),
    (907, c"cudaErrorCapturedEvent", c"CUDA_ERROR_CAPTURED_EVENT", c"operation not permitted on an event last recorded in a capturing stream"),
    (908, c"cudaErrorStreamCaptureWrongThread", c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"attempt to terminate a thread-local capture sequence from another thread"),
    (909, c"cudaErrorTimeout", c"CUDA_ERROR_TIMEOUT", c"wait operation timed out"),
    (910, c"cudaErrorGraphExecUpdateFailure", c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
    (911, c"cudaErrorExternalDevice", c"CUDA_ERROR_EXTERNAL_DEVICE", c"an async error has occured in external entity outside of CUDA"),
    (912, c"cudaErrorInvalidClusterSize", c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"a kernel launch error has occurred due to cluster misconfiguration"),
    (913, c"cudaErrorFunctionNotLoaded", c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"the function handle is not loaded when calling an API that requires a loaded function"),
    (914, c"cudaErrorInvalidResourceType", c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"one or more resources passed in are not valid resource types for the operation"),
    (915, c"cudaErrorInvalidResourceConfiguration", c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"one or more resources are insufficient or non-applicable for the operation"),
    (999, c"cudaErrorUnknown", c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    (10000, c"cudaErrorApiFailureBase", c"", c"api failure base"),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_both_interfaces() {
        assert_eq!(runtime_name(INVALID_VALUE), c"cudaErrorInvalidValue");
        assert_eq!(
            driver_name(OUT_OF_MEMORY),
            Some(c"CUDA_ERROR_OUT_OF_MEMORY")
        );
        assert_eq!(text(LAUNCH_FAILURE), c"unspecified launch failure");
        assert_eq!(runtime_name(-7), c"unrecognized error code");
    }

    #[test]
    fn faults_of_kernels_are_sticky_and_refusals_are_not() {
        assert!(is_sticky(ILLEGAL_ADDRESS) && is_sticky(ASSERT) && is_sticky(LAUNCH_FAILURE));
        assert!(!is_sticky(INVALID_CONFIGURATION) && !is_sticky(OUT_OF_RESOURCES));
    }
}
