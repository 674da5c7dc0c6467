//! The linker of the driver: one image passes through, several are linked by the device.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{in_context, store, text};
use crate::connection::take_failure;
use crate::driver::modules::JitOptions;
use crate::errors::{self, Code};
use crate::kernels::{load_module, unload_module};
use crate::memory::{address_of, pointer_to};
use crate::protocol::pack_images;

/// One link.
#[derive(Debug, Default)]
struct Link {
    /// Images, without the libraries of the toolkit.
    images: Vec<Vec<u8>>,
    /// The result.
    linked: Vec<u8>,
    /// Numbers of the options.
    numbers: Vec<c_uint>,
    /// Address of their values, with the buffers of the logs.
    values: u64,
}

static LINKS: Mutex<BTreeMap<u64, Link>> = Mutex::new(BTreeMap::new());

/// Distance between handles.
const HANDLE_STEP: u64 = 16;
/// `CU_JIT_INPUT_PTX`.
const PTX: c_uint = 1;
/// `CU_JIT_INPUT_LIBRARY`.
const LIBRARY: c_uint = 4;

fn links() -> MutexGuard<'static, BTreeMap<u64, Link>> {
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
    let mut image = bytes.to_vec();
    if kind == PTX && image.last() != Some(&0) {
        image.push(0);
    }
    link.images.push(image);
    Ok(())
}

impl Link {
    /// Makes the image, which the device tries where it links several.
    fn complete(&mut self) -> Result<(), Code> {
        let list = pack_images(&self.images.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // The device reports what none of the images defines.
        let loaded = load_module(&list).and_then(unload_module);
        self.linked = match self.images.as_slice() {
            [] => return Err(errors::INVALID_VALUE),
            [image] => image.clone(),
            _ => list,
        };
        let log = loaded.map_or_else(|_| take_failure(), |()| String::new());
        let options = JitOptions {
            count: self.numbers.len() as c_uint,
            numbers: self.numbers.as_ptr(),
            values: pointer_to(self.values).cast(),
        };
        // SAFETY: the values and their buffers live until the end of the link, as documented.
        unsafe { options.write_logs(&log) };
        loaded
    }
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
        let numbers = match numbers.is_null() {
            true => Vec::new(),
            // SAFETY: the program states how many options there are.
            false => unsafe { std::slice::from_raw_parts(numbers, count as usize).to_vec() },
        };
        // SAFETY: the program passes where the handle goes.
        unsafe { store(state, pointer_to(handle))? };
        let link = Link { numbers, values: address_of(values), ..Link::default() };
        links.insert(handle, link);
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
        let mut links = links();
        let link = links.get_mut(&address_of(state)).ok_or(errors::INVALID_HANDLE)?;
        link.complete()?;
        // SAFETY: the program passes where the results go; the size is optional.
        unsafe {
            if !bytes.is_null() {
                store(bytes, link.linked.len())?;
            }
            store(image, link.linked.as_ptr().cast())
        }
    }

    /// Ends a link.
    fn cuLinkDestroy(state: *mut c_void) {
        links().remove(&address_of(state)).map(drop).ok_or(errors::INVALID_HANDLE)
    }
}
