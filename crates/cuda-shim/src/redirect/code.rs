//! Jumps over the first instructions of functions.

use std::ffi::{c_int, c_void};
use std::ops::Range;

/// A jump from a function to a thunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jump {
    /// Address of the function.
    pub(super) place: usize,
    /// Address of the thunk.
    pub(super) thunk: usize,
}

unsafe extern "C" {
    fn mprotect(address: *mut c_void, bytes: usize, access: c_int) -> c_int;
    fn sysconf(name: c_int) -> i64;
}

const READ: c_int = 1;
const WRITE: c_int = 2;
const EXECUTE: c_int = 4;
const SC_PAGESIZE: c_int = 30;

/// Instructions of a jump before the address of its target: `jmp [rip]`, and `ldr x16, #8; br x16`.
#[cfg(target_arch = "x86_64")]
const INSTRUCTIONS: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
#[cfg(not(target_arch = "x86_64"))]
const INSTRUCTIONS: [u8; 8] = [0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6];

/// Bytes of a jump; functions of NVIDIA's runtime start at multiples of 16 bytes.
pub(super) const JUMP_BYTES: usize = INSTRUCTIONS.len() + size_of::<usize>();

/// Writes jumps into ranges of code. A range that cannot be written keeps its functions.
pub(super) fn write(code: &[Range<usize>], jumps: &[Jump]) {
    // SAFETY: the name is the page size's.
    let page = unsafe { sysconf(SC_PAGESIZE) };
    let page = usize::try_from(page).unwrap_or(1 << 12).max(1);
    for range in code {
        let start = range.start / page * page;
        let bytes = range.end - start;
        let protect = |access| {
            // SAFETY: the range is that of a loaded file's code. No other thread runs it: the process initializes.
            unsafe { mprotect(std::ptr::without_provenance_mut(start), bytes, access) == 0 }
        };
        if !protect(READ | WRITE) {
            continue;
        }
        for jump in jumps {
            if range.contains(&jump.place) && range.end - jump.place >= JUMP_BYTES {
                write_jump(*jump);
            }
        }
        protect(READ | EXECUTE);
        clear_cache(range);
    }
}

fn write_jump(jump: Jump) {
    let mut bytes = [0; JUMP_BYTES];
    let (instructions, thunk) = bytes.split_at_mut(INSTRUCTIONS.len());
    instructions.copy_from_slice(&INSTRUCTIONS);
    thunk.copy_from_slice(&jump.thunk.to_le_bytes());
    let place = std::ptr::with_exposed_provenance_mut::<u8>(jump.place);
    // SAFETY: `write` checked that the bytes are in a range that it made writable.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, JUMP_BYTES) };
}

#[cfg(target_arch = "x86_64")]
fn clear_cache(_: &Range<usize>) {}

/// Makes instruction caches read new instructions.
#[cfg(not(target_arch = "x86_64"))]
fn clear_cache(code: &Range<usize>) {
    unsafe extern "C" {
        fn __clear_cache(start: *mut c_void, end: *mut c_void);
    }
    let [start, end] = [code.start, code.end].map(std::ptr::without_provenance_mut);
    // SAFETY: the range is mapped.
    unsafe { __clear_cache(start, end) };
}
