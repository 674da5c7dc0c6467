//! A launch as the program states it.

use std::ffi::{CStr, c_char, c_uint, c_void};

use super::real;
use crate::driver::launches::{Arguments, LaunchConfig};
use crate::errors;
use crate::kernels::Dim3;
use crate::protocol::Message;
use crate::say::say_once;

/// A launch as the program states it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) function: *mut c_void,
    /// Grid and block.
    pub(super) extents: [Dim3; 2],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: *mut c_void,
    pub(super) flags: u32,
    /// The configuration with attributes; null for other forms.
    pub(super) config: *const LaunchConfig,
    /// Null stands for the stream of the thread.
    pub(super) per_thread: bool,
    pub(super) arguments: Arguments,
}

impl Call {
    /// Appends grid, block and shared memory.
    pub(super) fn put_extents(&self, head: &mut Message) {
        for extent in self.extents {
            head.put_u32(extent.x).put_u32(extent.y).put_u32(extent.z);
        }
        head.put_u32(self.shared_bytes);
    }

    /// Reports whether the launch becomes part of a graph.
    pub(super) fn is_recorded(&self) -> bool {
        let mut status = 0;
        // SAFETY: the program's stream; writes one integer.
        let code = unsafe {
            match self.per_thread {
                true => real::cuStreamIsCapturing_ptsz(self.stream, &raw mut status),
                false => real::cuStreamIsCapturing(self.stream, &raw mut status),
            }
        };
        // Reading memory would end a recording, so that a state that is unknown counts as one.
        code != errors::SUCCESS || status != 0
    }

    /// The mangled name of the kernel, and its function where the program passes a handle of a library. `None` also for
    /// an invalid handle.
    pub(super) fn resolve(&self) -> Option<(String, *mut c_void)> {
        let (mut name, mut function) = (std::ptr::null::<c_char>(), self.function);
        // SAFETY: a handle of the program, which the driver checks; writes a pointer.
        unsafe {
            if real::cuFuncGetName(&raw mut name, function) != errors::SUCCESS || name.is_null() {
                let code = real::cuKernelGetName(&raw mut name, self.function);
                if code == errors::NOT_FOUND {
                    say_once(
                        "this driver does not name kernels, so no launch is captured: it needs CUDA 12.3 or newer",
                    );
                }
                if code != errors::SUCCESS || name.is_null() {
                    return None;
                }
            }
            let mut of_kernel = std::ptr::null_mut();
            if real::cuKernelGetFunction(&raw mut of_kernel, self.function) == errors::SUCCESS {
                function = of_kernel;
            }
        }
        // SAFETY: a text of the driver, which lives as long as the module.
        let name = unsafe { CStr::from_ptr(name) };
        Some((name.to_string_lossy().into_owned(), function))
    }
}
