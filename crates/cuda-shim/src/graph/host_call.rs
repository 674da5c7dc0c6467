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
    /// Calls the function in the order of a stream. It may not call CUDA, except to ask whether work is complete.
    pub(crate) fn run(&self, stream: u64) {
        let before = thread_state(|thread| thread.host_function_of.replace(Some(stream)));
        // SAFETY: the program gave the function with this argument for this call.
        unsafe { (self.function)(pointer_to(self.argument)) };
        thread_state(|thread| thread.host_function_of.set(before));
    }
}

/// Returns the stream in whose order the thread runs a function of the program.
pub(crate) fn host_function_of() -> Option<u64> {
    thread_state(|thread| thread.host_function_of.get())
}

/// Reports whether the thread runs a function of the program in the order of a stream.
pub(crate) fn in_host_function() -> bool {
    host_function_of().is_some()
}
