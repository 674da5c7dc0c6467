//! Functions by name: `cuGetProcAddress` and export tables.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::abi::{PER_THREAD, driver, meant_flags, store, text};
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::properties::DRIVER_VERSION;
use crate::system::find_symbol;

/// Functions with the versions of CUDA that brought their variants (`cudaTypedefs.h` of CUDA 13.0): the plain
/// name first, then `_v2` and so on.
const VERSIONS: &str = include_str!("../../symbols/libcuda-versions.txt");

/// Returns the versions of the variants of a function; `None` for one that is not listed.
fn versions(name: &str) -> Option<Vec<c_int>> {
    let mut lines = VERSIONS.lines();
    lines.find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix(' ')?;
        Some(rest.split(' ').filter_map(|it| it.parse().ok()).collect())
    })
}

/// Version of CUDA since which `cuGraphInstantiate` is `cuGraphInstantiateWithFlags`.
const INSTANTIATE_WITH_FLAGS: c_int = 12_000;

/// The name of the variant that a version of CUDA means; `None` before the first.
fn variant(name: &str, version: c_int) -> Option<String> {
    if name == "cuGraphInstantiate" && version >= INSTANTIATE_WITH_FLAGS {
        return Some("cuGraphInstantiateWithFlags".to_owned());
    }
    let Some(versions) = versions(name) else {
        return Some(name.to_owned());
    };
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
    let flags = meant_flags(flags);
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
        assert_eq!(variant("cuMemAllocAsync", 11_010), None);
        assert_eq!(
            variant("cuMemAllocAsync", 11_020).as_deref(),
            Some("cuMemAllocAsync")
        );
        let instantiate = variant("cuGraphInstantiate", 12_000);
        assert_eq!(instantiate.as_deref(), Some("cuGraphInstantiateWithFlags"));
    }

    #[test]
    fn each_function_has_versions_in_order() {
        for line in VERSIONS.lines() {
            let name = line.split(' ').next().unwrap_or_default();
            let found = versions(name).unwrap_or_default();
            assert!(!found.is_empty() && found.is_sorted(), "{line}");
        }
    }
}
