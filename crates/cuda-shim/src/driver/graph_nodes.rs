//! Nodes of any type, conditions, and memory of graphs.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{initialized, store};
use crate::driver::copies::Copy3d;
use crate::driver::devices::check_device;
use crate::driver::graphs::KernelNode2;
use crate::errors::{self, Code};
use crate::graph::{self, AllocationNode, AnyNode, Handles, Layouts, Node, add};
use crate::memory::address_of;

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Debug)]
struct CopyNode {
    flags: c_int,
    reserved: c_int,
    context: *mut c_void,
    copy: Copy3d,
}

/// Parameters of `CUgraphNodeParams` whose layout is the driver's own.
const LAYOUTS: Layouts = Layouts {
    // SAFETY: the promise of `AnyNode::create`.
    kernel: |parameters| unsafe {
        let kernel = &*parameters.cast::<KernelNode2>();
        kernel.first.driver_node(kernel.kernel)
    },
    // SAFETY: the same.
    copy: |parameters| unsafe { Ok(Node::Copy((*parameters.cast::<CopyNode>()).copy.copy(0)?)) },
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

initialized! {
    /// Adds a node of any type.
    fn cuGraphAddNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *mut AnyNode,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe { add_any(graph, handle, Handles { list: dependencies, count }, node) }
    }

    /// Adds a node of any type.
    fn cuGraphAddNode_v2(
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
    fn cuGraphConditionalHandleCreate(
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
    fn cuGraphAddMemAllocNode(
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
    fn cuGraphAddMemFreeNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        address: u64,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Free(address)) }
    }

    /// Returns an attribute of the memory of graphs.
    fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: *mut u64) {
        check_device(device)?;
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { store(value, graph::attribute(attribute)?) }
    }

    /// Resets a high-water mark of the memory of graphs.
    fn cuDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: *const u64) {
        check_device(device)?;
        // SAFETY: the program passes the value or null.
        let value = unsafe { value.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_attribute(attribute, *value)
    }

    /// Releases memory of graphs that is not in use.
    fn cuDeviceGraphMemTrim(device: c_int) {
        check_device(device)?;
        graph::trim();
        Ok(())
    }
}
