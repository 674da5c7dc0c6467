//! The driver's library and its live handles.

use super::PARAMETER_BYTES_MAX;
use super::functions::{DriverAbsent, Functions};
use crate::gpu::driver::*;
use cudarc::driver::sys::CUfunction;
use std::collections::{HashMap, HashSet};

/// Kind of a live handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Context,
    Module,
    Stream,
    Event,
    Graph,
    Exec,
}

/// The CUDA driver of this machine.
pub struct CudaDriver {
    pub(super) cuda: Functions,
    pub(super) living: HashSet<(Kind, u64)>,
    /// Live functions: their module, and the sizes of their parameters if the driver reports them.
    pub(super) kernels: HashMap<u64, (u64, Option<Vec<usize>>)>,
}

impl CudaDriver {
    /// Opens the driver library without calling it.
    ///
    /// # Errors
    /// [`DriverAbsent`].
    pub fn open() -> Result<Self, DriverAbsent> {
        // By its versioned name: the plain one may be the toolkit's stub.
        // SAFETY: loads the driver library, whose initialisers have no preconditions.
        let library = unsafe { libloading::Library::new("libcuda.so.1") }
            .map_err(|_| DriverAbsent::NoLibrary)?;
        let cuda = Functions::load(&library)?;
        // Never unloaded: the functions are called until the process ends.
        std::mem::forget(library);
        Ok(Self {
            cuda,
            living: HashSet::new(),
            kernels: HashMap::new(),
        })
    }

    /// Rejects a handle that is unknown or no longer live.
    pub(super) fn alive(&self, call: &'static str, kind: Kind, handle: u64) -> Answer<()> {
        if self.living.contains(&(kind, handle)) {
            Ok(())
        } else {
            Err(CudaError::new(call, code::INVALID_HANDLE))
        }
    }

    pub(super) fn kernel(&self, call: &'static str, function: Function) -> Answer<CUfunction> {
        if self.kernels.contains_key(&function.0) {
            Ok(function.0 as CUfunction)
        } else {
            Err(CudaError::new(call, code::INVALID_HANDLE))
        }
    }

    /// Returns the sizes of a kernel's parameters; `None` from drivers before CUDA 12.4.
    pub(super) fn parameter_sizes(&self, function: CUfunction) -> Option<Vec<usize>> {
        let info = self.cuda.cuFuncGetParamInfo?;
        let mut sizes = Vec::new();
        let (mut offset, mut size) = (0, 0);
        // Each parameter has at least one byte, so the loop ends even if the driver reports no end.
        while sizes.len() <= PARAMETER_BYTES_MAX {
            // SAFETY: the function is live; the call writes two integers.
            match unsafe { info(function, sizes.len(), &raw mut offset, &raw mut size) } {
                0 => sizes.push(size),
                // The index is past the last parameter.
                code::INVALID_VALUE => return Some(sizes),
                _ => return None,
            }
        }
        None
    }
}
