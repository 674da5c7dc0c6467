//! Functions that the constructors of a program call: its images, kernels and variables.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::{runtime, runtime_after_fault, store, text};
use crate::errors::{self, Code};
use crate::images::wrapped_bytes;
use crate::kernels::{Dim3, Image, Kernel, Variable, find_kernel, registry, share_variable};
use crate::memory::{address_of, pointer_to};
use crate::say::say_once;
use crate::system::find_symbol;

/// Registers an image; its code is loaded when the program first uses it.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: the compiler passes its own wrapper.
    let bytes = unsafe { wrapped_bytes(wrapper) };
    if bytes.is_none() {
        say_once(
            "the program registers an image that is not a fat binary; its kernels are missing",
        );
    }
    let image = Arc::new(Image::new(bytes.unwrap_or_default()));
    Box::into_raw(Box::new(image)).cast()
}

/// The image of a handle.
///
/// # Safety
/// The handle is one of `__cudaRegisterFatBinary`.
unsafe fn image(handle: *mut *mut c_void) -> Arc<Image> {
    // SAFETY: the caller's promise; handles are never freed.
    unsafe { (*handle.cast::<Arc<Image>>()).clone() }
}

/// A managed variable.
struct Managed {
    image: Arc<Image>,
    name: String,
    /// Address of the program's pointer to the variable.
    pointer: u64,
}

/// Managed variables that wait for the end of the registration of their image.
static PENDING: Mutex<Vec<Managed>> = Mutex::new(Vec::new());
/// Those of complete images.
static COMPLETE: Mutex<Vec<Managed>> = Mutex::new(Vec::new());

/// Ends the registration of an image.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {
    let pending = std::mem::take(&mut *PENDING.lock().unwrap_or_else(PoisonError::into_inner));
    set_all(&pending);
    let mut complete = COMPLETE.lock().unwrap_or_else(PoisonError::into_inner);
    complete.extend(pending);
}

/// Sets the pointers to all managed variables again: a reset of the device ended their memory.
pub(super) fn set_again() {
    set_all(&COMPLETE.lock().unwrap_or_else(PoisonError::into_inner));
}

fn set_all(variables: &[Managed]) {
    for variable in variables {
        if set_managed(variable).is_err() {
            say_once(&format!(
                "the managed variable `{}` is not available",
                variable.name
            ));
        }
    }
}

fn set_managed(variable: &Managed) -> Result<(), Code> {
    let span = share_variable(variable.image.module()?, &variable.name)?;
    let pointer = pointer_to(variable.pointer).cast::<*mut c_void>();
    // SAFETY: the compiler registered the address of a pointer variable.
    unsafe { store(pointer, pointer_to(span.address)) }
}

/// Ends the life of an image: a library was closed, or the process ends, and the device with it.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) {
    // SAFETY: the compiler passes its own handle.
    let image = unsafe { image(handle) };
    let mut complete = COMPLETE.lock().unwrap_or_else(PoisonError::into_inner);
    // The program's pointers to the variables are gone.
    complete.retain(|variable| !Arc::ptr_eq(&variable.image, &image));
}

/// Loads an image; variables are in place afterwards.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaInitModule(_handle: *mut *mut c_void) -> c_char {
    1
}

/// Registers a kernel by the address of its host function.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host_function: *const c_void,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _thread_limit: c_int,
    _thread_id: *mut c_void,
    _block_id: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp_size: *mut c_int,
) {
    // SAFETY: the compiler passes the handle and a name that it generated.
    let (image, name) = unsafe { (image(handle), text(device_name)) };
    let kernel = Kernel::new(image, name.unwrap_or_default().to_owned());
    let kernel: &'static Kernel = Box::leak(Box::new(kernel));
    let mut registry = registry();
    registry.handles.insert(address_of(kernel), kernel);
    registry.kernels.insert(address_of(host_function), kernel);
}

/// Registers a variable of device or constant memory.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host_variable: *mut c_char,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the compiler passes the handle and a name that it generated.
    let (image, name) = unsafe { (image(handle), text(device_name)) };
    let variable = Variable {
        image,
        name: name.unwrap_or_default().to_owned(),
    };
    registry()
        .variables
        .insert(address_of(host_variable), variable);
}

/// Registers a managed variable: the program's pointer to it is set when its image is complete.
///
/// # Safety
/// As of the compiler that generates the call.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    host_pointer: *mut *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the compiler passes the handle and a name that it generated.
    let (image, name) = unsafe { (image(handle), text(device_name)) };
    let name = name.unwrap_or_default().to_owned();
    let variable = Variable {
        image: image.clone(),
        name: name.clone(),
    };
    registry()
        .variables
        .insert(address_of(host_pointer), variable);
    let pending = Managed {
        image,
        name,
        pointer: address_of(host_pointer),
    };
    PENDING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(pending);
}

/// A launch configuration of `<<<…>>>` that waits for its kernel.
#[derive(Debug, Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: u64,
}

thread_local! {
    // Never dropped, since destructors of the thread may launch kernels as well.
    static CONFIGURATIONS: RefCell<ManuallyDrop<Vec<Configuration>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Keeps a launch configuration for the kernel's host function.
///
/// # Safety
/// Safe with any values.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: *mut c_void,
) -> u32 {
    let stream = address_of(stream);
    let configuration = Configuration {
        grid,
        block,
        shared_bytes,
        stream,
    };
    CONFIGURATIONS.with_borrow_mut(|kept| kept.push(configuration));
    0
}

/// `__cudaTunerFunctionHandle` of the driver library.
type FunctionHandle = unsafe extern "C" fn(*mut *mut c_void, u64, *const c_char) -> Code;

runtime_after_fault! {
    /// Takes the launch configuration that was kept last.
    fn __cudaPopCallConfiguration(
        grid: *mut Dim3,
        block: *mut Dim3,
        shared_bytes: *mut usize,
        stream: *mut *mut c_void,
    ) {
        let kept = CONFIGURATIONS.with_borrow_mut(|kept| kept.pop());
        let kept = kept.ok_or(errors::MISSING_CONFIGURATION)?;
        // SAFETY: the compiler passes addresses of its own variables.
        unsafe {
            store(grid, kept.grid)?;
            store(block, kept.block)?;
            store(shared_bytes, kept.shared_bytes)?;
            store(stream, pointer_to(kept.stream))
        }
    }

    /// Returns the handle of a kernel.
    fn __cudaGetKernel(handle: *mut *const c_void, function: *const c_void) {
        let kernel = find_kernel(function)?;
        // SAFETY: the program passes where the handle goes, or null.
        unsafe { store(handle, std::ptr::from_ref(kernel).cast::<c_void>()) }
    }
}

runtime! {
    /// Returns the handle of a kernel.
    fn cudaGetKernel(handle: *mut *const c_void, function: *const c_void) {
        let kernel = find_kernel(function)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(handle, std::ptr::from_ref(kernel).cast::<c_void>()) }
    }

    /// Returns the handle of a kernel in the driver interface.
    fn cudaGetFuncBySymbol(handle: *mut *mut c_void, function: *const c_void) {
        let kernel = find_kernel(function)?;
        let found = find_symbol(c"libcuda.so.1", c"__cudaTunerFunctionHandle");
        if found.is_null() {
            return Err(errors::NOT_SUPPORTED);
        }
        let name = CString::new(kernel.name.as_str()).map_err(|_| errors::INVALID_VALUE)?;
        // SAFETY: the symbol is the function of that name in `driver`, of this type; the name ends in
        // a zero byte, and the program passes where the handle goes.
        unsafe {
            let find = std::mem::transmute::<*mut c_void, FunctionHandle>(found);
            match find(handle, kernel.module()?, name.as_ptr()) {
                errors::SUCCESS => Ok(()),
                code => Err(code),
            }
        }
    }
}
