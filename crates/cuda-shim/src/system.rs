//! The few functions of the C library that the standard library does not offer.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    fn mmap(
        address: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, bytes: usize) -> c_int;
    fn fwrite(data: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
    fn fflush(stream: *mut c_void) -> c_int;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    static stdout: *mut c_void;
}

const READ_WRITE: c_int = 3;
const SHARED: c_int = 1;
/// Refuses an address that is taken, instead of replacing the mapping there.
const FIXED_NO_REPLACE: c_int = 0x10_0000;
const LAZY: c_int = 1;
/// Size of a page: the unit of mappings.
pub(crate) const PAGE: u64 = 4096;

/// Maps a shared file at a given address, a multiple of the page size.
///
/// # Errors
/// That of the system, also where the address is taken.
pub(crate) fn map_file(file: &File, address: u64, bytes: u64) -> io::Result<()> {
    // SAFETY: the address range was free (or the call fails), so no memory of Rust or of the program
    // is replaced; the mapping lives until `unmap`, which only its owner calls.
    let mapped = unsafe {
        mmap(
            std::ptr::with_exposed_provenance_mut(address as usize),
            bytes as usize,
            READ_WRITE,
            SHARED | FIXED_NO_REPLACE,
            file.as_raw_fd(),
            0,
        )
    };
    match mapped.addr() {
        usize::MAX => Err(io::Error::last_os_error()),
        at if at as u64 == address => Ok(()),
        // A kernel before 4.17 takes the address for a hint.
        at => {
            unmap(at as u64, bytes);
            Err(io::ErrorKind::AddrInUse.into())
        }
    }
}

/// Ends a mapping of [`map_file`].
pub(crate) fn unmap(address: u64, bytes: u64) {
    // SAFETY: the range is one that `map_file` made; the program gave it back by freeing it.
    unsafe {
        munmap(
            std::ptr::with_exposed_provenance_mut(address as usize),
            bytes as usize,
        );
    }
}

/// Reports whether the calling thread is the first one of its process, which ends with the process.
pub(crate) fn is_first_thread() -> bool {
    // `PROCESS/task/THREAD`
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let names: Vec<_> = link.iter().collect();
    names.first() == names.last()
}

/// Writes to the program's C stream `stdout`, so that the order with its own `printf` stays.
pub(crate) fn print(text: &[u8]) {
    // SAFETY: `stdout` is the C library's, valid for the life of the process; the bytes outlive the
    // call.
    unsafe {
        fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
        fflush(stdout);
    }
}

/// The address of a symbol of a library that is found as the dynamic linker finds it; null where there
/// is none.
pub(crate) fn find_symbol(library: &CStr, name: &CStr) -> *mut c_void {
    // SAFETY: both names end in a zero byte; the handle is only used where it is not null.
    unsafe {
        let library = dlopen(library.as_ptr(), LAZY);
        if library.is_null() {
            return std::ptr::null_mut();
        }
        dlsym(library, name.as_ptr())
    }
}
