//! Handles of modules: their numbers at a distance, so that no handle of another kind passes for one.

use std::ffi::c_void;

use crate::errors::{self, Code};
use crate::memory::address_of;

/// Handle of a module without a number; the others follow at distance [`HANDLE_STEP`].
const FIRST_HANDLE: u64 = 0x2000_0000;
/// Distance between handles.
const HANDLE_STEP: u64 = 16;

/// The handle of a module's number.
pub(crate) fn module_handle(number: u64) -> u64 {
    FIRST_HANDLE + number * HANDLE_STEP
}

/// The number of a module's handle.
pub(crate) fn module_number(handle: *mut c_void) -> Result<u64, Code> {
    let offset = address_of(handle).checked_sub(FIRST_HANDLE);
    match offset.filter(|offset| offset % HANDLE_STEP == 0) {
        Some(offset) if offset > 0 => Ok(offset / HANDLE_STEP),
        _ => Err(errors::INVALID_HANDLE),
    }
}
