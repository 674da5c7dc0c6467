//! State of a capture, as both interfaces return it.

use std::ffi::{c_int, c_void};

use super::capture::{captured, status, with_branch};
use crate::abi::store;
use crate::errors::Code;
use crate::memory::{pointer_to, stream_of};

/// Destinations of the state of a capture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaptureInfo {
    /// 0, 1 or 2: none, active, invalidated.
    pub status: *mut c_int,
    /// Number of the capture.
    pub id: *mut u64,
    /// Its graph.
    pub graph: *mut *mut c_void,
    /// Nodes that the next one depends on.
    pub dependencies: *mut *const *mut c_void,
    /// Their edges.
    pub edges: *mut *const c_void,
    /// Number of the dependencies.
    pub count: *mut usize,
}

impl CaptureInfo {
    /// Asks for these two.
    pub(crate) fn new(status: *mut c_int, id: *mut u64) -> Self {
        Self {
            status,
            id,
            graph: std::ptr::null_mut(),
            dependencies: std::ptr::null_mut(),
            edges: std::ptr::null_mut(),
            count: std::ptr::null_mut(),
        }
    }

    /// Stores the state of a stream's capture; all but the status are optional.
    ///
    /// # Safety
    /// The pointers are null or writable.
    pub(crate) unsafe fn fill(&self, stream: *mut c_void) -> Result<(), Code> {
        let captured = captured(stream_of(stream));
        // SAFETY: the caller's promise.
        unsafe {
            store(self.status, status(stream_of(stream)))?;
            // The number of a capture is that of its graph, of which it is the only one.
            let _ = store(self.id, captured.unwrap_or(0));
            let _ = store(self.graph, pointer_to(captured.unwrap_or(0)));
            let (tips, count) = with_branch(stream_of(stream), |branch| {
                branch.told.clone_from(&branch.tips);
                (
                    branch.told.as_ptr().cast::<*mut c_void>(),
                    branch.told.len(),
                )
            })
            .unwrap_or((std::ptr::null(), 0));
            let _ = store(self.dependencies, tips);
            let _ = store(self.edges, std::ptr::null());
            let _ = store(self.count, count);
        }
        Ok(())
    }
}
