//! Slots: addresses of the functions of the runtime libraries, as in a table of procedure linkage.
//!
//! The initializer cannot load a library: the C library is not initialized before it. So a slot first leads to
//! `__tuner_first`, which asks [`__tuner_resolve`] for the function, and continues in it.

use super::symbols::Runtime;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;
use tables::{NAMES, slots, thunks};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// Returns the address of a function's thunk; `None` for a function or a version that no library has.
pub(super) fn thunk(runtime: Runtime, name: &str) -> Option<usize> {
    let [old, new] = NAMES;
    let (names, before) = match runtime {
        Runtime::Older => return None,
        Runtime::Cuda12 => (old, 0),
        Runtime::Cuda13 => (new, old.len()),
    };
    let known = |other: &&CStr| other.to_bytes().cmp(name.as_bytes());
    let index = before + names.binary_search_by(known).ok()?;
    thunks().get(index).copied()
}

/// Looks a slot's function up and fills the slot. A library that cannot be loaded ends the program.
#[cfg_attr(shim, unsafe(no_mangle))]
pub extern "C" fn __tuner_resolve(index: usize) -> usize {
    let [old, new] = NAMES;
    let (name, library) = match index.checked_sub(old.len()) {
        None => (old.get(index), c"libcudart.so.12"),
        Some(index) => (new.get(index), c"libcudart.so.13"),
    };
    // SAFETY: the name ends in zero.
    let handle = unsafe { dlopen(library.as_ptr(), RTLD_NOW) };
    // SAFETY: the name ends in zero; without a library the program is searched, which exports no such function.
    let found = name.map(|name| unsafe { dlsym(handle, name.as_ptr()) });
    match (found.filter(|found| !found.is_null()), slots().get(index)) {
        (Some(found), Some(slot)) => {
            slot.store(found.expose_provenance(), Relaxed);
            found.addr()
        }
        _ => {
            eprintln!("tuner exec: {library:?} has no {name:?}");
            std::process::abort();
        }
    }
}

// Registers of arguments survive the lookup; no function of the runtime takes a floating-point number.
#[cfg(all(shim, target_arch = "x86_64"))]
core::arch::global_asm!(
    ".globl __tuner_first",
    ".hidden __tuner_first",
    "__tuner_first:",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push r8",
    "push r9",
    "mov rdi, [rsp + 48]",
    "call __tuner_resolve@PLT",
    "pop r9",
    "pop r8",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "add rsp, 8",
    "jmp rax",
);
#[cfg(all(shim, not(target_arch = "x86_64")))]
core::arch::global_asm!(
    ".globl __tuner_first",
    ".hidden __tuner_first",
    "__tuner_first:",
    "stp x29, x30, [sp, #-96]!",
    "stp x0, x1, [sp, #16]",
    "stp x2, x3, [sp, #32]",
    "stp x4, x5, [sp, #48]",
    "stp x6, x7, [sp, #64]",
    "str x8, [sp, #80]",
    "mov x0, x17",
    "bl __tuner_resolve",
    "mov x16, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x2, x3, [sp, #32]",
    "ldp x4, x5, [sp, #48]",
    "ldp x6, x7, [sp, #64]",
    "ldr x8, [sp, #80]",
    "ldp x29, x30, [sp], #96",
    "br x16",
);

/// The generated tables.
#[cfg(shim)]
mod tables {
    use std::sync::atomic::AtomicUsize;

    // `COUNT` and `NAMES`: the functions of CUDA 12 and of CUDA 13, in the order of the slots.
    include!(env!("CUDA_SHIM_STUBS"));

    unsafe extern "C" {
        static __tuner_slots: [AtomicUsize; COUNT];
        static __tuner_thunks: [usize; COUNT];
    }

    pub(super) fn slots() -> &'static [AtomicUsize] {
        // SAFETY: the build script generates the table.
        unsafe { &__tuner_slots }
    }

    pub(super) fn thunks() -> &'static [usize] {
        // SAFETY: the build script generates the table, which nothing changes.
        unsafe { &__tuner_thunks }
    }
}

/// Empty tables where the build script of `virtual-driver` does not compile these sources.
#[cfg(not(shim))]
mod tables {
    use std::ffi::CStr;
    use std::sync::atomic::AtomicUsize;

    pub(super) const NAMES: [&[&CStr]; 2] = [&[], &[]];

    pub(super) fn slots() -> &'static [AtomicUsize] {
        &[]
    }

    pub(super) fn thunks() -> &'static [usize] {
        &[]
    }
}
