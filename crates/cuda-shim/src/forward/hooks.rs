//! Functions that do more than to call the driver's.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::call::Call;
use super::launch::{around, offer, offer_bytes, offer_file};
use super::real;
use crate::abi::PER_THREAD;
use crate::driver::launches::{Arguments, LaunchConfig};
use crate::errors::{self, Code};
use crate::kernels::Dim3;
use crate::protocol::COOPERATIVE;

/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_uint = 1;

type Pointers = *mut *mut c_void;

/// Exports functions.
macro_rules! hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $(
        /// The driver's function of this name, with more around it.
        #[cfg_attr(shim = "forward", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> Code $body
        )+
    };
}

/// Exports launches with extents as arguments, each on the default stream of the process and on that of the thread.
macro_rules! launches {
    ($($name:ident, $cooperative:expr, ($($extra:ident)?), $per_thread:expr;)+) => {
        hooks! { $(
            fn $name(
                function: *mut c_void,
                grid_x: c_uint,
                grid_y: c_uint,
                grid_z: c_uint,
                block_x: c_uint,
                block_y: c_uint,
                block_z: c_uint,
                shared_bytes: c_uint,
                stream: *mut c_void,
                values: Pointers,
                $($extra: Pointers)?
            ) {
                // Cooperative launches have one form of arguments.
                let packed: &[Pointers] = &[$($extra)?];
                let packed = packed.first().copied().unwrap_or(std::ptr::null_mut());
                let call = Call {
                    function,
                    extents: [
                        Dim3 { x: grid_x, y: grid_y, z: grid_z },
                        Dim3 { x: block_x, y: block_y, z: block_z },
                    ],
                    shared_bytes,
                    stream,
                    flags: $cooperative,
                    config: std::ptr::null(),
                    per_thread: $per_thread,
                    arguments: Arguments { values, extra: packed },
                };
                // SAFETY: the program's arguments, as it passed them.
                let launch = || unsafe {
                    real::$name(
                        function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                        values, $($extra)?
                    )
                };
                // SAFETY: the program passes as many arguments as the kernel has parameters.
                unsafe { around(&call, launch) }
            }
        )+ }
    };
}

launches! {
    cuLaunchKernel, 0, (extra), false;
    cuLaunchKernel_ptsz, 0, (extra), true;
    cuLaunchCooperativeKernel, COOPERATIVE, (), false;
    cuLaunchCooperativeKernel_ptsz, COOPERATIVE, (), true;
}

/// Exports launches with a configuration.
macro_rules! configured {
    ($($name:ident, $per_thread:expr;)+) => {
        hooks! { $(
            fn $name(
                config: *const LaunchConfig,
                function: *mut c_void,
                values: Pointers,
                extra: Pointers,
            ) {
                // SAFETY: the program's arguments, as it passed them.
                let launch = || unsafe { real::$name(config, function, values, extra) };
                // SAFETY: the program passes a configuration or null.
                let Some(stated) = (unsafe { config.as_ref() }) else {
                    return launch();
                };
                let call = Call {
                    function,
                    extents: stated.extents(),
                    shared_bytes: stated.shared_bytes(),
                    stream: stated.stream(),
                    flags: 0,
                    config,
                    per_thread: $per_thread,
                    arguments: Arguments { values, extra },
                };
                // SAFETY: the program passes as many arguments as the kernel has parameters.
                unsafe { around(&call, launch) }
            }
        )+ }
    };
}

configured! {
    cuLaunchKernelEx, false;
    cuLaunchKernelEx_ptsz, true;
}

/// Exports functions that load code; what the driver has loaded is offered to the tuner.
macro_rules! loads {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $offer:ident($code:ident);)+) => {
        hooks! { $(
            fn $name($($argument: $type),*) {
                // SAFETY: the program's arguments, as it passed them.
                let code = unsafe { real::$name($($argument),*) };
                // SAFETY: the driver has read the image, or the path of its file.
                unsafe { $offer(code, $code) }
            }
        )+ }
    };
}

loads! {
    fn cuModuleLoad(module: Pointers, path: *const c_char) offer_file(path);
    fn cuModuleLoadData(module: Pointers, image: *const c_void) offer(image);
    fn cuModuleLoadDataEx(
        module: Pointers, image: *const c_void, count: c_uint, options: *mut c_uint, values: Pointers,
    ) offer(image);
    fn cuModuleLoadFatBinary(module: Pointers, image: *const c_void) offer(image);
    fn cuLibraryLoadData(
        library: Pointers, image: *const c_void, jit_options: *mut c_uint, jit_values: Pointers,
        jit_count: c_uint, options: *mut c_uint, values: Pointers, count: c_uint,
    ) offer(image);
    fn cuLibraryLoadFromFile(
        library: Pointers, path: *const c_char, jit_options: *mut c_uint, jit_values: Pointers,
        jit_count: c_uint, options: *mut c_uint, values: Pointers, count: c_uint,
    ) offer_file(path);
}

hooks! {
    fn cuLinkAddData_v2(
        state: *mut c_void,
        kind: c_uint,
        data: *mut c_void,
        bytes: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut c_uint,
        values: Pointers,
    ) {
        // SAFETY: the program's arguments, as it passed them.
        let code = unsafe {
            real::cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values)
        };
        // The linked machine code has no PTX: hazards and accesses need the text.
        if code == errors::SUCCESS && kind == INPUT_PTX && !data.is_null() {
            // SAFETY: the driver has read so many bytes.
            offer_bytes(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) });
        }
        code
    }

    fn cuGetProcAddress(symbol: *const c_char, function: Pointers, version: c_int, flags: u64) {
        // SAFETY: the program's arguments, as it passed them.
        let code = unsafe { real::cuGetProcAddress(symbol, function, version, flags) };
        // SAFETY: the driver has read the name and written the result.
        unsafe { replace(code, symbol, function, flags) }
    }

    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        function: Pointers,
        version: c_int,
        flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program's arguments, as it passed them.
        let code = unsafe { real::cuGetProcAddress_v2(symbol, function, version, flags, status) };
        // SAFETY: the driver has read the name and written the result.
        unsafe { replace(code, symbol, function, flags) }
    }
}

/// Replaces a function that the driver found by the one of this library.
///
/// # Safety
/// After success, `symbol` ends in a zero byte and `function` is writable.
unsafe fn replace(code: Code, symbol: *const c_char, function: Pointers, flags: u64) -> Code {
    // SAFETY: the caller's promise.
    let found = code == errors::SUCCESS && unsafe { !function.is_null() && !(*function).is_null() };
    if !found {
        return code;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(symbol) }.to_bytes();
    let either = |plain: *const c_void, per_thread: *const c_void| match flags & PER_THREAD {
        0 => plain,
        _ => per_thread,
    };
    let own = match name {
        b"cuLaunchKernel" => either(cuLaunchKernel as _, cuLaunchKernel_ptsz as _),
        b"cuLaunchKernelEx" => either(cuLaunchKernelEx as _, cuLaunchKernelEx_ptsz as _),
        b"cuLaunchCooperativeKernel" => either(
            cuLaunchCooperativeKernel as _,
            cuLaunchCooperativeKernel_ptsz as _,
        ),
        b"cuModuleLoad" => cuModuleLoad as _,
        b"cuModuleLoadData" => cuModuleLoadData as _,
        b"cuModuleLoadDataEx" => cuModuleLoadDataEx as _,
        b"cuModuleLoadFatBinary" => cuModuleLoadFatBinary as _,
        b"cuLibraryLoadData" => cuLibraryLoadData as _,
        b"cuLibraryLoadFromFile" => cuLibraryLoadFromFile as _,
        b"cuLinkAddData" => cuLinkAddData_v2 as _,
        // The newer form writes a fifth argument: what the program asked for is told by what it got.
        b"cuGetProcAddress" => {
            // SAFETY: the caller's promise.
            let got = unsafe { *function }.cast_const();
            match got == real::address_of_name(c"cuGetProcAddress") {
                true => cuGetProcAddress as _,
                false => cuGetProcAddress_v2 as _,
            }
        }
        _ => return code,
    };
    // SAFETY: the caller's promise.
    unsafe { *function = own.cast_mut() };
    code
}
