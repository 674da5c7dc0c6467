//! Nodes of any type, conditions, and memory of graphs.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::errors::{self, Code};
use crate::graph::{self, AllocationNode, AnyNode, Handles, KernelNode, Layouts, Node, add};
use crate::memory::address_of;
use crate::runtime::copies::{Copy3d, volume_copy};
use crate::runtime::device::check_device;

/// `cudaMemcpyNodeParams`.
#[repr(C)]
#[derive(Debug)]
struct CopyNode {
    flags: c_int,
    reserved: [c_int; 3],
    copy: Copy3d,
}

/// Parameters of `cudaGraphNodeParams` whose layout is the runtime's own.
pub(super) const LAYOUTS: Layouts = Layouts {
    // SAFETY: the promise of `AnyNode::create`.
    kernel: |parameters| unsafe { (*parameters.cast::<KernelNode>()).node() },
    // SAFETY: the same.
    copy: |parameters| unsafe {
        let copy = &(*parameters.cast::<CopyNode>()).copy;
        Ok(Node::Copy(volume_copy(copy, 0)?))
    },
};

/// Adds a node of any type and stores its handle.
///
/// # Safety
/// `node` is null or holds the parameters of its type, and `handle` is null or writable.
unsafe fn add_any(
    graph: *mut c_void,
    handle: *mut *mut c_void,
    dependencies: Handles,
    node: *mut AnyNode,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe { add(graph, handle, dependencies, AnyNode::create(node, LAYOUTS)?) }
}

runtime! {
    /// Adds a node of any type.
    fn cudaGraphAddNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        fourth: *const c_void,
        fifth: *mut c_void,
        sixth: *mut AnyNode,
    ) {
        // The version 12 function has no edges: the number and the parameters are one place earlier.
        let (count, node) = match crate::runtime::VERSION < 13 {
            true => (fourth.addr(), fifth.cast::<AnyNode>()),
            false => (fifth.addr(), sixth),
        };
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe { add_any(graph, handle, Handles { list: dependencies, count }, node) }
    }

    /// Adds a node of any type.
    fn cudaGraphAddNode_v2(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        _edges: *const c_void,
        count: usize,
        node: *mut AnyNode,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe { add_any(graph, handle, Handles { list: dependencies, count }, node) }
    }

    /// Creates the variable of conditional nodes.
    fn cudaGraphConditionalHandleCreate(
        handle: *mut u64,
        graph: *mut c_void,
        initial: c_uint,
        flags: c_uint,
    ) {
        let created = graph::create_condition(address_of(graph), initial, flags)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(handle, created) }
    }

    /// Creates the variable of conditional nodes.
    fn cudaGraphConditionalHandleCreate_v2(
        handle: *mut u64,
        graph: *mut c_void,
        _context: *mut c_void,
        initial: c_uint,
        flags: c_uint,
    ) {
        let created = graph::create_condition(address_of(graph), initial, flags)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(handle, created) }
    }

    /// Adds an allocation. The memory exists from now on, at one address for all launches.
    fn cudaGraphAddMemAllocNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *mut AllocationNode,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            let node = node.as_mut().ok_or(errors::INVALID_VALUE)?.create()?;
            add(graph, handle, Handles { list: dependencies, count }, node)
        }
    }

    /// Adds the end of an allocation of a graph, which the next launch uses again.
    fn cudaGraphAddMemFreeNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        pointer: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Free(address_of(pointer))) }
    }

    /// Returns an attribute of the memory of graphs.
    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: *mut u64) {
        check_device(device)?;
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { store(value, graph::attribute(attribute)?) }
    }

    /// Resets a high-water mark of the memory of graphs.
    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: *const u64) {
        check_device(device)?;
        // SAFETY: the program passes the value or null.
        let value = unsafe { value.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_attribute(attribute, *value)
    }

    /// Releases memory of graphs that is not in use.
    fn cudaDeviceGraphMemTrim(device: c_int) {
        check_device(device)?;
        graph::trim();
        Ok(())
    }
}
