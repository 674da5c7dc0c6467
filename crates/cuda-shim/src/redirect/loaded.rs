//! Files that the dynamic linker has loaded.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A loaded file.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) path: PathBuf,
    /// Difference between addresses of the process and of the file.
    pub(super) base: usize,
    /// Addresses of the process that hold code.
    pub(super) code: Vec<Range<usize>>,
}

/// `dl_phdr_info` of `<link.h>`, up to the fields in use.
#[repr(C)]
struct Info {
    base: usize,
    name: *const c_char,
    headers: *const Header,
    count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_bytes: u64,
    memory_bytes: u64,
    align: u64,
}

const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;

unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: extern "C" fn(*const Info, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Lists the loaded files; the first is the program.
pub(super) fn list() -> Vec<Object> {
    let mut objects = Vec::new();
    // SAFETY: `add` gets the list that outlives the call.
    unsafe { dl_iterate_phdr(add, (&raw mut objects).cast()) };
    objects
}

extern "C" fn add(info: *const Info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the linker passes a valid entry, and `list` its own vector.
    let (info, objects) = unsafe { (&*info, &mut *data.cast::<Vec<Object>>()) };
    // SAFETY: the name ends in zero, and is empty for the program.
    let name = unsafe { CStr::from_ptr(info.name) };
    let path = match name.is_empty() {
        true => PathBuf::from("/proc/self/exe"),
        false => PathBuf::from(OsStr::from_bytes(name.to_bytes())),
    };
    // SAFETY: `count` headers are there.
    let headers = unsafe { std::slice::from_raw_parts(info.headers, info.count.into()) };
    let code = headers
        .iter()
        .filter(|header| header.kind == PT_LOAD && header.flags & PF_X != 0)
        .map(|header| {
            let start = info.base.wrapping_add(header.address as usize);
            start..start.wrapping_add(header.memory_bytes as usize)
        });
    let code = code.collect();
    objects.push(Object {
        path,
        base: info.base,
        code,
    });
    0
}
