//! Functions of the program that run in the order of a stream.

use std::ffi::c_void;

use crate::memory::pointer_to;
use crate::state::thread_state;

/// A function of the program with its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostCall {
    /// The function.
    pub function: unsafe extern "C" fn(*mut c_void),
    /// Its argument.
    pub argument: u64,
}

impl HostCall {
    /// Calls the function, which may not call CUDA.
    pub(crate) fn run(&self) {
        let before = thread_state(|thread| thread.in_host_function.replace(true));
        // SAFETY: the program gave the function with this argument for this call.
        unsafe { (self.function)(pointer_to(self.argument)) };
        thread_state(|thread| thread.in_host_function.set(before));
    }
}

/// Reports whether the thread runs a function of the program in the order of a stream.
pub(crate) fn in_host_function() -> bool {
    thread_state(|thread| thread.in_host_function.get())
}
