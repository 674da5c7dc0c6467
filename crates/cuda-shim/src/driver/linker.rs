//! The linker of the driver: one image passes through. The virtual GPU links no PTX.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{in_context, store, text};
use crate::connection::report_missing;
use crate::driver::modules::JitOptions;
use crate::errors::{self, Code};
use crate::memory::{address_of, pointer_to};

/// Inputs of one link: images, without the libraries of the toolkit.
static LINKS: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// Distance between handles.
const HANDLE_STEP: u64 = 16;
/// `CU_JIT_INPUT_PTX`.
const PTX: c_uint = 1;
/// `CU_JIT_INPUT_LIBRARY`.
const LIBRARY: c_uint = 4;

fn links() -> MutexGuard<'static, BTreeMap<u64, Vec<u8>>> {
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(state: *mut c_void, kind: c_uint, bytes: &[u8]) -> Result<(), Code> {
    let mut links = links();
    let link = links.get_mut(&address_of(state));
    let link = link.ok_or(errors::INVALID_HANDLE)?;
    if kind == LIBRARY {
        // Such as libcudadevrt.a, whose functions are built in.
        return Ok(());
    }
    if !link.is_empty() {
        report_missing("cuLinkAddData with a second image");
        return Err(errors::NOT_SUPPORTED);
    }
    link.extend_from_slice(bytes);
    if kind == PTX && link.last() != Some(&0) {
        link.push(0);
    }
    Ok(())
}

in_context! {
    /// Begins a link.
    fn cuLinkCreate_v2(
        count: c_uint,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        state: *mut *mut c_void,
    ) {
        let mut links = links();
        let last = links.keys().next_back().copied();
        let handle = last.unwrap_or(0x3000_0000) + HANDLE_STEP;
        // SAFETY: the program passes the options of the header, which live until the end of the link,
        // and where the handle goes.
        unsafe {
            JitOptions { count, numbers, values }.write_logs("");
            store(state, pointer_to(handle))?;
        }
        links.insert(handle, Vec::new());
        Ok(())
    }

    /// Adds an image.
    fn cuLinkAddData_v2(
        state: *mut c_void,
        kind: c_uint,
        data: *const c_void,
        bytes: usize,
        _name: *const c_char,
        _count: c_uint,
        _numbers: *const c_uint,
        _values: *mut *mut c_void,
    ) {
        if data.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program states the size of the image.
        add(state, kind, unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) })
    }

    /// Adds a file.
    fn cuLinkAddFile_v2(
        state: *mut c_void,
        kind: c_uint,
        path: *const c_char,
        _count: c_uint,
        _numbers: *const c_uint,
        _values: *mut *mut c_void,
    ) {
        // SAFETY: the program passes a path.
        let path = unsafe { text(path)? };
        add(state, kind, &std::fs::read(path).map_err(|_| errors::FILE_NOT_FOUND)?)
    }

    /// Returns the linked image, which lives as long as the link.
    fn cuLinkComplete(state: *mut c_void, image: *mut *const c_void, bytes: *mut usize) {
        let links = links();
        let link = links.get(&address_of(state)).ok_or(errors::INVALID_HANDLE)?;
        if link.is_empty() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the results go; the size is optional.
        unsafe {
            if !bytes.is_null() {
                store(bytes, link.len())?;
            }
            store(image, link.as_ptr().cast())
        }
    }

    /// Ends a link.
    fn cuLinkDestroy(state: *mut c_void) {
        links().remove(&address_of(state)).map(drop).ok_or(errors::INVALID_HANDLE)
    }
}
