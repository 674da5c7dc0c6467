//! Helpers of the exported functions.

use std::ffi::{CStr, c_char};

use crate::connection::keep_last;
use crate::errors::{self, Code};
use crate::state::thread_state;

/// Exports functions of the runtime interface: each body is a `Result<(), Code>`, whose error is kept
/// for `cudaGetLastError`. After a fault of a kernel they return it.
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $crate::abi::runtime_after_fault! {
            $($(#[$meta])*
            fn $name($($argument: $type),*) {
                $crate::connection::check_fault()?;
                $body
            })+
        }
    };
}

/// The same, but a fault has no effect on them: they use no context, or end it.
macro_rules! runtime_after_fault {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($(#[$meta])*
        #[cfg_attr(any(shim = "cudart12", shim = "cudart13"), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::errors::Code {
            let body = || -> Result<(), $crate::errors::Code> { $body };
            $crate::abi::finish_runtime($crate::abi::enter(body))
        })+
    };
}

/// Exports functions of the driver interface on which a fault of a kernel has no effect.
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($(#[$meta])*
        #[cfg_attr(shim = "cuda", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::errors::Code {
            let body = || -> Result<(), $crate::errors::Code> { $body };
            $crate::abi::finish_driver($crate::abi::enter(body))
        })+
    };
}

/// Exports functions of the driver interface that need a current context, and return its fault.
macro_rules! in_context {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $crate::abi::driver! {
            $($(#[$meta])*
            fn $name($($argument: $type),*) {
                $crate::driver::contexts::current()?;
                $crate::connection::check_fault()?;
                $body
            })+
        }
    };
}

/// Exports functions of the driver interface that need `cuInit`, and return a fault of a kernel.
macro_rules! initialized {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $crate::abi::driver! {
            $($(#[$meta])*
            fn $name($($argument: $type),*) {
                $crate::driver::contexts::check_initialized()?;
                $crate::connection::check_fault()?;
                $body
            })+
        }
    };
}

/// Exports functions of the driver interface on a stream, the named argument. A stream that the program created has its
/// context; the others are those of the current one.
macro_rules! on_stream {
    ($stream:ident; $($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $crate::abi::driver! {
            $($(#[$meta])*
            fn $name($($argument: $type),*) {
                $crate::driver::contexts::check_stream($stream)?;
                $crate::connection::check_fault()?;
                $body
            })+
        }
    };
}

/// Exports functions of both interfaces, `fn NAME_OF_DRIVER | NAME_OF_RUNTIME`, which need a current context in
/// that of the driver.
macro_rules! both {
    ($($functions:tt)+) => { $crate::abi::both_as! { in_context, $($functions)+ } };
}

/// The same, but they need no context.
macro_rules! both_initialized {
    ($($functions:tt)+) => { $crate::abi::both_as! { initialized, $($functions)+ } };
}

/// The same, on a stream.
macro_rules! both_on_stream {
    ($stream:ident; $($functions:tt)+) => { $crate::abi::both_as! { on_stream ($stream;), $($functions)+ } };
}

/// The same, with the macro that exports functions of the driver interface and what it takes before them.
macro_rules! both_as {
    ($macro:ident $(($($before:tt)+))?, $($(#[$meta:meta])* fn $driver:ident | $runtime:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $crate::abi::$macro! {
            $($($before)+)?
            $($(#[$meta])*
            fn $driver($($argument: $type),*) $body)+
        }
        $crate::abi::runtime! {
            $($(#[$meta])*
            fn $runtime($($argument: $type),*) $body)+
        }
    };
}

pub(crate) use {
    both, both_as, both_initialized, both_on_stream, driver, in_context, initialized, on_stream,
    runtime, runtime_after_fault,
};

/// Lets the next call of this thread mean the stream of the thread by the default stream. The functions for programs
/// that are compiled so (`_ptsz`, `_ptds`) call it and continue in the plain ones.
#[cfg_attr(shim, unsafe(no_mangle))]
pub(crate) extern "C" fn __tuner_mean_own_stream() {
    thread_state(|thread| thread.next_means_own.set(true));
}

/// Reports whether the call that runs means the stream of the thread by the default stream.
pub(crate) fn means_own_stream() -> bool {
    thread_state(|thread| thread.means_own.get())
}

/// Flag of `cuGetProcAddress` and `cudaGetDriverEntryPoint`: functions of the default stream of a thread are preferred.
pub(crate) const PER_THREAD: u64 = 2;

/// Returns the flags that a search for a function means: a program that is compiled so means the functions of the
/// stream of the thread where it states none.
pub(crate) fn meant_flags(stated: u64) -> u64 {
    match stated {
        0 if means_own_stream() => PER_THREAD,
        stated => stated,
    }
}

/// Runs the body of an exported function.
pub(crate) fn enter(body: impl FnOnce() -> Result<(), Code>) -> Result<(), Code> {
    let before = thread_state(|thread| {
        let own = thread.next_means_own.take();
        thread.means_own.replace(own)
    });
    let result = body();
    thread_state(|thread| thread.means_own.set(before));
    result
}

/// The code of a result.
pub(crate) fn finish(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(errors::SUCCESS)
}

/// The code of a result in the driver interface, which lacks some codes of the runtime.
pub(crate) fn finish_driver(result: Result<(), Code>) -> Code {
    match finish(result) {
        errors::INVALID_FUNCTION => errors::INVALID_HANDLE,
        errors::INVALID_CONFIGURATION
        | errors::INVALID_SYMBOL
        | errors::INVALID_DIRECTION
        | errors::INVALID_CHANNEL_DESCRIPTOR
        | errors::INVALID_FILTER_SETTING
        | errors::INVALID_NORM_SETTING => errors::INVALID_VALUE,
        code => code,
    }
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

/// Writes a text with its end into a buffer of the program; a buffer that is too small is an invalid
/// value.
///
/// # Safety
/// `to` is null, or so many bytes of it are writable.
pub(crate) unsafe fn store_text(to: *mut c_char, bytes: i32, text: &CStr) -> Result<(), Code> {
    let text = text.to_bytes_with_nul();
    if to.is_null() || usize::try_from(bytes).unwrap_or(0) < text.len() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), text.len()) };
    Ok(())
}

/// The result of a function that the device does not implement: it reports its name.
#[cfg_attr(
    not(shim),
    expect(dead_code, reason = "called by the generated functions")
)]
pub(crate) fn missing(function: &str) -> Code {
    crate::connection::report_missing(function);
    errors::NOT_SUPPORTED
}
