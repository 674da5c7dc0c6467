//! Parameters of nodes and of instantiations, the same in both interfaces.

use std::ffi::c_void;

use super::HostCall;
use crate::errors::{self, Code};
use crate::memory::{Fill, Place, address_of};
use crate::protocol::Shape;

/// `cudaMemsetParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug)]
pub struct FillNode {
    pub(super) destination: *mut c_void,
    pub(super) pitch: usize,
    pub(super) value: u32,
    pub(super) element_bytes: u32,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl FillNode {
    /// Returns the operation; an error for an element that no fill has.
    pub(crate) fn fill(&self) -> Result<Fill, Code> {
        let element_bytes = u64::from(self.element_bytes);
        let width = (self.width as u64).checked_mul(element_bytes);
        let width = width.ok_or(errors::INVALID_VALUE)?;
        // The pitch of a single row has no meaning, and programs leave any value there.
        let pitch = match self.height {
            0 | 1 => width,
            _ => self.pitch as u64,
        };
        let aligned = matches!(element_bytes, 1 | 2 | 4)
            && address_of(self.destination).is_multiple_of(element_bytes);
        if !aligned || pitch < width {
            return Err(errors::INVALID_VALUE);
        }
        Ok(Fill {
            place: Place {
                address: address_of(self.destination),
                shape: Shape::rows(width, self.height as u64, pitch),
            },
            value: self.value,
            element_bytes: self.element_bytes,
            stream: 0,
        })
    }
}

/// `cudaHostNodeParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug)]
pub struct HostNode {
    pub(super) function: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) argument: *mut c_void,
}

impl HostNode {
    /// Returns the operation; an error for a null function.
    pub(crate) fn call(&self) -> Result<HostCall, Code> {
        Ok(HostCall {
            function: self.function.ok_or(errors::INVALID_VALUE)?,
            argument: address_of(self.argument),
        })
    }
}

/// `cudaGraphInstantiateParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InstantiateParameters {
    pub(crate) flags: u64,
    upload_stream: *mut c_void,
    error_node: *mut c_void,
    result: i32,
}

impl InstantiateParameters {
    /// Stores the outcome of an instantiation that succeeds.
    pub(crate) fn succeed(&mut self) {
        self.error_node = std::ptr::null_mut();
        self.result = 0;
    }
}
