//! Helpers of the exported functions.

use std::ffi::{CStr, c_char};

use crate::connection::keep_last;
use crate::errors::{self, Code};

/// Exports functions of the runtime interface: each body is a `Result<(), Code>`, whose error is kept
/// for `cudaGetLastError`.
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($(#[$meta])*
        #[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::errors::Code {
            let body = || -> Result<(), $crate::errors::Code> { $body };
            $crate::abi::finish_runtime(body())
        })+
    };
}

/// Exports functions of the driver interface.
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($(#[$meta])*
        #[cfg_attr(shim = "cuda", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::errors::Code {
            let body = || -> Result<(), $crate::errors::Code> { $body };
            $crate::abi::finish(body())
        })+
    };
}

pub(crate) use {driver, runtime};

/// The code of a result.
pub(crate) fn finish(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(errors::SUCCESS)
}

/// The same, kept as the thread's last error.
pub(crate) fn finish_runtime(result: Result<(), Code>) -> Code {
    keep_last(finish(result))
}

/// Stores a result through a pointer of the program; a null pointer is an invalid value.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn store<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// A text of the program.
///
/// # Safety
/// `text` is null or ends in a zero byte.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Code> {
    if text.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| errors::INVALID_VALUE)
}

/// The result of a function that the device does not implement: it reports its name.
#[cfg_attr(
    not(shim),
    expect(dead_code, reason = "called by the generated functions")
)]
pub(crate) fn missing(function: &str) -> Code {
    crate::say::report_missing(function);
    errors::NOT_SUPPORTED
}
