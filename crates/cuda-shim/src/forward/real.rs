//! The functions of the machine's driver.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use crate::driver::launches::LaunchConfig;
use crate::errors::{self, Code};
use crate::say::say_once;
use crate::system::find_symbol;

/// Environment variable with the path of the driver's library.
pub const DRIVER_VARIABLE: &str = "TUNER_EXEC_DRIVER";

/// The path of the driver's library.
fn path() -> Option<&'static CStr> {
    static PATH: OnceLock<Option<CString>> = OnceLock::new();
    let read = || {
        let path = std::env::var_os(DRIVER_VARIABLE);
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            say_once(&format!(
                "{DRIVER_VARIABLE} is not set: this library works under `tuner exec --capture`"
            ));
            return None;
        };
        CString::new(path.into_encoded_bytes()).ok()
    };
    PATH.get_or_init(read).as_deref()
}

/// The address of a function of the driver; that of a function that fails where the driver does not have it.
#[must_use]
pub fn address_of_name(name: &CStr) -> *const c_void {
    let found = path().map(|path| find_symbol(path, name).cast_const());
    match found.filter(|found| !found.is_null()) {
        Some(found) => found,
        None => absent as *const c_void,
    }
}

extern "C" fn absent() -> Code {
    errors::NOT_FOUND
}

/// Defines functions that call those of the driver with the same name; several names may share their arguments.
macro_rules! real {
    ($(fn [$($name:ident),+] $arguments:tt;)+) => {
        $($(real! { @one $name $arguments })+)+
    };
    (@one $name:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        /// The driver's function of this name.
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            static ADDRESS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let mut address = ADDRESS.load(Relaxed);
            if address.is_null() {
                let name = CString::new(stringify!($name)).unwrap_or_default();
                address = address_of_name(&name).cast_mut();
                ADDRESS.store(address, Relaxed);
            }
            // SAFETY: a function of the type that the driver's header declares, or one that reads no argument.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(address)
            };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    };
}

type Pointers = *mut *mut c_void;

real! {
    fn [cuLaunchKernel, cuLaunchKernel_ptsz] (
        function: *mut c_void, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: *mut c_void, values: Pointers, extra: Pointers,
    );
    fn [cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz] (
        function: *mut c_void, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: *mut c_void, values: Pointers,
    );
    fn [cuLaunchKernelEx, cuLaunchKernelEx_ptsz] (
        config: *const LaunchConfig, function: *mut c_void, values: Pointers, extra: Pointers,
    );
    fn [cuModuleLoad] (module: Pointers, path: *const c_char);
    fn [cuModuleLoadData, cuModuleLoadFatBinary] (module: Pointers, image: *const c_void);
    fn [cuModuleLoadDataEx] (
        module: Pointers, image: *const c_void, count: c_uint, options: *mut c_uint, values: Pointers,
    );
    fn [cuLibraryLoadData] (
        library: Pointers, code: *const c_void, jit_options: *mut c_uint, jit_values: Pointers,
        jit_count: c_uint, options: *mut c_uint, values: Pointers, count: c_uint,
    );
    fn [cuLibraryLoadFromFile] (
        library: Pointers, path: *const c_char, jit_options: *mut c_uint, jit_values: Pointers,
        jit_count: c_uint, options: *mut c_uint, values: Pointers, count: c_uint,
    );
    fn [cuLinkAddData_v2] (
        state: *mut c_void, kind: c_uint, data: *mut c_void, bytes: usize, name: *const c_char,
        count: c_uint, options: *mut c_uint, values: Pointers,
    );
    fn [cuGetProcAddress] (symbol: *const c_char, function: Pointers, version: c_int, flags: u64);
    fn [cuGetProcAddress_v2] (
        symbol: *const c_char, function: Pointers, version: c_int, flags: u64, status: *mut c_int,
    );
    fn [cuCtxSynchronize] ();
    fn [cuFuncGetModule] (module: Pointers, function: *mut c_void);
    fn [cuFuncGetName] (name: *mut *const c_char, function: *mut c_void);
    fn [cuKernelGetFunction] (function: Pointers, kernel: *mut c_void);
    fn [cuKernelGetName] (name: *mut *const c_char, kernel: *mut c_void);
    fn [cuMemcpyDtoH_v2] (host: *mut c_void, address: u64, bytes: usize);
    fn [cuModuleGetGlobal_v2] (
        address: *mut u64, bytes: *mut usize, module: *mut c_void, name: *const c_char,
    );
    fn [cuPointerGetAttribute] (value: *mut c_void, number: c_uint, address: u64);
    fn [cuStreamIsCapturing, cuStreamIsCapturing_ptsz] (stream: *mut c_void, status: *mut c_int);
}
