//! Nodes of any type, which both interfaces describe by the type and then its parameters.

use std::ffi::{c_int, c_void};

use super::{AllocationNode, ConditionalNode, FillNode, HostNode, Node, child_node};
use crate::errors::{self, Code};
use crate::memory::{address_of, pointer_to};

/// `CUgraphNodeParams` and `cudaGraphNodeParams`.
#[repr(C)]
#[derive(Debug)]
pub struct AnyNode {
    type_number: c_int,
    reserved: [c_int; 3],
    parameters: [u64; 29],
}

/// `cudaGraphChildGraphOwnershipMove`: the node takes the graph over, with its memory.
const MOVED: u32 = 1;

/// Reads the parameters of one type as an interface lays them out.
type Read = unsafe fn(*mut c_void) -> Result<Node, Code>;

/// Parameters whose layout is the interface's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layouts {
    /// Of a kernel.
    pub kernel: Read,
    /// Of a copy.
    pub copy: Read,
}

impl AnyNode {
    /// The node of the stated type.
    ///
    /// # Safety
    /// `any` is null or has the parameters of its type in these layouts, with as many arguments as a kernel
    /// has.
    pub(crate) unsafe fn create(any: *mut AnyNode, layouts: Layouts) -> Result<Node, Code> {
        // SAFETY: the caller's promise; the parameters are larger than each of these structures, and aligned.
        unsafe {
            let any = any.as_mut().ok_or(errors::INVALID_VALUE)?;
            let parameters = (&raw mut any.parameters).cast::<c_void>();
            let first = pointer_to(any.parameters.first().copied().unwrap_or(0));
            Ok(match any.type_number {
                0 => (layouts.kernel)(parameters)?,
                1 => (layouts.copy)(parameters)?,
                2 => Node::Fill((*parameters.cast::<FillNode>()).fill()?),
                3 => Node::Host((*parameters.cast::<HostNode>()).call()?),
                4 => match any.parameters.get(1).map(|word| *word as u32) {
                    Some(MOVED) => Node::Child(address_of(first)),
                    _ => child_node(address_of(first))?,
                },
                5 => Node::Empty,
                6 => Node::Wait(address_of(first)),
                7 => Node::Record(address_of(first)),
                10 => (*parameters.cast::<AllocationNode>()).create()?,
                11 => Node::Free(address_of(first)),
                13 => Node::Conditional((*parameters.cast::<ConditionalNode>()).create()?),
                other => {
                    let what = format!("a graph node of type {other}");
                    crate::connection::report_missing(&what);
                    return Err(errors::NOT_SUPPORTED);
                }
            })
        }
    }
}
