//! Functions by name: `cuGetProcAddress` and export tables.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::abi::{driver, store, text};
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::properties::DRIVER_VERSION;
use crate::system::find_symbol;

/// Functions with several variants, and the version of CUDA that brought each (`cudaTypedefs.h` of
/// CUDA 13.0): the plain name first, then `_v2` and so on.
const VARIANTS: &[(&str, &[c_int])] = &[
    ("cuArray3DCreate", &[2000, 3020]),
    ("cuArray3DGetDescriptor", &[2000, 3020]),
    ("cuArrayCreate", &[2000, 3020]),
    ("cuArrayGetDescriptor", &[2000, 3020]),
    ("cuCtxCreate", &[2000, 3020, 11040, 12050]),
    ("cuCtxDestroy", &[2000, 4000]),
    ("cuCtxGetDevice", &[2000, 13000]),
    ("cuCtxPopCurrent", &[2000, 4000]),
    ("cuCtxPushCurrent", &[2000, 4000]),
    ("cuCtxSynchronize", &[2000, 13000]),
    ("cuDeviceGetUuid", &[9020, 11040]),
    ("cuDevicePrimaryCtxRelease", &[7000, 11000]),
    ("cuDevicePrimaryCtxReset", &[7000, 11000]),
    ("cuDevicePrimaryCtxSetFlags", &[7000, 11000]),
    ("cuDeviceTotalMem", &[2000, 3020]),
    ("cuEventDestroy", &[2000, 4000]),
    ("cuEventElapsedTime", &[2000, 12080]),
    ("cuGetProcAddress", &[11030, 12000]),
    ("cuGraphAddDependencies", &[10000, 12030]),
    ("cuGraphAddKernelNode", &[10000, 12000]),
    ("cuGraphAddNode", &[12020, 12030]),
    ("cuGraphExecKernelNodeSetParams", &[10010, 12000]),
    ("cuGraphExecUpdate", &[10020, 12000]),
    ("cuGraphGetEdges", &[10000, 12030]),
    ("cuGraphInstantiate", &[10000, 11000]),
    ("cuGraphKernelNodeGetParams", &[10000, 12000]),
    ("cuGraphKernelNodeSetParams", &[10000, 12000]),
    ("cuGraphNodeGetDependencies", &[10000, 12030]),
    ("cuGraphNodeGetDependentNodes", &[10000, 12030]),
    ("cuGraphRemoveDependencies", &[10000, 12030]),
    ("cuGraphicsResourceGetMappedPointer", &[3000, 3020]),
    ("cuGraphicsResourceSetMapFlags", &[3000, 6050]),
    ("cuIpcOpenMemHandle", &[4010, 11000]),
    ("cuLinkAddData", &[5050, 6050]),
    ("cuLinkAddFile", &[5050, 6050]),
    ("cuLinkCreate", &[5050, 6050]),
    ("cuMemAdvise", &[8000, 12020]),
    ("cuMemAlloc", &[2000, 3020]),
    ("cuMemAllocHost", &[2000, 3020]),
    ("cuMemAllocPitch", &[2000, 3020]),
    ("cuMemFree", &[2000, 3020]),
    ("cuMemGetAddressRange", &[2000, 3020]),
    ("cuMemGetInfo", &[2000, 3020]),
    ("cuMemHostGetDevicePointer", &[2020, 3020]),
    ("cuMemHostRegister", &[4000, 6050]),
    ("cuMemPrefetchAsync", &[8000, 12020]),
    ("cuMemcpy2D", &[2000, 3020]),
    ("cuMemcpy2DAsync", &[2000, 3020]),
    ("cuMemcpy2DUnaligned", &[2000, 3020]),
    ("cuMemcpy3D", &[2000, 3020]),
    ("cuMemcpy3DAsync", &[2000, 3020]),
    ("cuMemcpy3DBatchAsync", &[12080, 13000]),
    ("cuMemcpyAtoA", &[2000, 3020]),
    ("cuMemcpyAtoD", &[2000, 3020]),
    ("cuMemcpyAtoH", &[2000, 3020]),
    ("cuMemcpyAtoHAsync", &[2000, 3020]),
    ("cuMemcpyBatchAsync", &[12080, 13000]),
    ("cuMemcpyDtoA", &[2000, 3020]),
    ("cuMemcpyDtoD", &[2000, 3020]),
    ("cuMemcpyDtoDAsync", &[3000, 3020]),
    ("cuMemcpyDtoH", &[2000, 3020]),
    ("cuMemcpyDtoHAsync", &[2000, 3020]),
    ("cuMemcpyHtoA", &[2000, 3020]),
    ("cuMemcpyHtoAAsync", &[2000, 3020]),
    ("cuMemcpyHtoD", &[2000, 3020]),
    ("cuMemcpyHtoDAsync", &[2000, 3020]),
    ("cuMemsetD16", &[2000, 3020]),
    ("cuMemsetD2D16", &[2000, 3020]),
    ("cuMemsetD2D32", &[2000, 3020]),
    ("cuMemsetD2D8", &[2000, 3020]),
    ("cuMemsetD32", &[2000, 3020]),
    ("cuMemsetD8", &[2000, 3020]),
    ("cuModuleGetGlobal", &[2000, 3020]),
    ("cuStreamBatchMemOp", &[8000, 11070]),
    ("cuStreamBeginCapture", &[10000, 10010]),
    ("cuStreamDestroy", &[2000, 4000]),
    ("cuStreamGetCaptureInfo", &[10010, 11030, 12030]),
    ("cuStreamGetCtx", &[9020, 12050]),
    ("cuStreamUpdateCaptureDependencies", &[11030, 12030]),
    ("cuStreamWaitValue32", &[8000, 11070]),
    ("cuStreamWaitValue64", &[9000, 11070]),
    ("cuStreamWriteValue32", &[8000, 11070]),
    ("cuStreamWriteValue64", &[9000, 11070]),
    ("cuTexRefGetAddress", &[2000, 3020]),
    ("cuTexRefSetAddress", &[2000, 3020]),
    ("cuTexRefSetAddress2D", &[2020, 3020, 4010]),
];

/// Version of CUDA since which `cuGraphInstantiate` is `cuGraphInstantiateWithFlags`.
const INSTANTIATE_WITH_FLAGS: c_int = 12_000;

/// Flag: functions of the default stream of a thread are preferred.
const PER_THREAD: u64 = 2;

/// The name of the variant that a version of CUDA means; `None` before the first.
fn variant(name: &str, version: c_int) -> Option<String> {
    if name == "cuGraphInstantiate" && version >= INSTANTIATE_WITH_FLAGS {
        return Some("cuGraphInstantiateWithFlags".to_owned());
    }
    let Ok(index) = VARIANTS.binary_search_by_key(&name, |(name, _)| name) else {
        return Some(name.to_owned());
    };
    let (_, versions) = VARIANTS.get(index)?;
    match versions.iter().filter(|first| **first <= version).count() {
        0 => None,
        1 => Some(name.to_owned()),
        number => Some(format!("{name}_v{number}")),
    }
}

fn find(name: &str, flags: u64) -> *mut c_void {
    let suffixes: &[&str] = match flags {
        PER_THREAD => &["_ptsz", "_ptds", ""],
        _ => &[""],
    };
    let found = suffixes.iter().find_map(|suffix| {
        let name = CString::new(format!("{name}{suffix}")).ok()?;
        let found = find_symbol(c"libcuda.so.1", &name);
        (!found.is_null()).then_some(found)
    });
    found.unwrap_or(std::ptr::null_mut())
}

const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;
const VERSION_NOT_SUFFICIENT: c_int = 2;

/// Stores the address of a function, or null; returns the status of the search.
///
/// # Safety
/// `symbol` ends in a zero byte; `function` is null or writable.
unsafe fn get(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Result<c_int, Code> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(symbol)? };
    // SAFETY: the caller's promise.
    unsafe { store(function, std::ptr::null_mut())? };
    if version > DRIVER_VERSION || flags > PER_THREAD {
        return Err(errors::INVALID_VALUE);
    }
    let Some(variant) = variant(name, version) else {
        return Ok(VERSION_NOT_SUFFICIENT);
    };
    let found = find(&variant, flags);
    // SAFETY: the caller's promise.
    unsafe { store(function, found)? };
    Ok(if found.is_null() { NOT_FOUND } else { FOUND })
}

driver! {
    /// Returns a function by its name.
    fn cuGetProcAddress(
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: u64,
    ) {
        // SAFETY: the program passes a name and where the result goes.
        match unsafe { get(symbol, function, version, flags)? } {
            FOUND => Ok(()),
            _ => Err(errors::NOT_FOUND),
        }
    }

    /// Returns a function by its name; a missing one is null and no error.
    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program passes a name and where the results go; the status is optional.
        unsafe {
            let found = get(symbol, function, version, flags)?;
            let _ = store(status, found);
        }
        Ok(())
    }

    /// Returns a table of functions without a documentation: none.
    fn cuGetExportTable(table: *mut *const c_void, id: *const [u8; 16]) {
        // SAFETY: the program passes where the result goes and 16 bytes, or null.
        unsafe {
            store(table, std::ptr::null())?;
            let id = id.as_ref().ok_or(errors::INVALID_VALUE)?;
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            report_missing(&format!("cuGetExportTable of {hex}"));
        }
        Err(errors::NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_the_variant_of_its_header() {
        assert_eq!(
            variant("cuMemAlloc", 3020).as_deref(),
            Some("cuMemAlloc_v2")
        );
        assert_eq!(
            variant("cuCtxCreate", 11_040).as_deref(),
            Some("cuCtxCreate_v3")
        );
        assert_eq!(
            variant("cuCtxGetDevice", 12_090).as_deref(),
            Some("cuCtxGetDevice")
        );
        assert_eq!(
            variant("cuMemAllocManaged", 6000).as_deref(),
            Some("cuMemAllocManaged")
        );
        assert_eq!(variant("cuDeviceGetUuid", 9000), None);
        let instantiate = variant("cuGraphInstantiate", 12_000);
        assert_eq!(instantiate.as_deref(), Some("cuGraphInstantiateWithFlags"));
    }

    #[test]
    fn variants_are_sorted_for_the_search() {
        assert!(VARIANTS.is_sorted_by_key(|(name, _)| name));
    }
}
