//! Graphs.

use std::ffi::{c_int, c_void};

use crate::abi::{runtime, store};
use crate::errors::{self, Code};
use crate::graph::{self, FillNode, Handles, HostNode, KernelNode, Node, add};
use crate::memory::{Copy, Direction, Place, address_of, pointer_to};
use crate::runtime::copies::{Copy3d, volume_copy};
use crate::runtime::launches::prepare;

impl KernelNode {
    /// The launch of the node.
    ///
    /// # Safety
    /// As many arguments as the kernel has parameters.
    pub(crate) unsafe fn node(&self) -> Result<Node, Code> {
        let kernel = crate::kernels::find_kernel(self.function)?;
        let extents = [self.grid, self.block];
        let shared = self.shared_bytes as usize;
        let stream = std::ptr::null_mut();
        // SAFETY: the caller's promise.
        let launch = unsafe { prepare(kernel, extents, self.arguments, shared, stream)? };
        Ok(Node::Launch(launch))
    }
}

runtime! {
    /// Makes an executable copy of a graph.
    fn cudaGraphInstantiate(executable: *mut *mut c_void, graph: *mut c_void, flags: u64) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(executable, pointer_to(graph::instantiate(address_of(graph), flags)?)) }
    }

    /// The same.
    fn cudaGraphInstantiateWithFlags(executable: *mut *mut c_void, graph: *mut c_void, flags: u64) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(executable, pointer_to(graph::instantiate(address_of(graph), flags)?)) }
    }

    /// Adds a kernel.
    fn cudaGraphAddKernelNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const KernelNode,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        unsafe {
            let node = node.as_ref().ok_or(errors::INVALID_VALUE)?.node()?;
            add(graph, handle, Handles { list: dependencies, count }, node)
        }
    }

    /// Adds a contiguous copy.
    fn cudaGraphAddMemcpyNode1D(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        destination: *mut c_void,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
    ) {
        let copy = Copy {
            destination: Place::linear(address_of(destination), bytes as u64),
            source: Place::linear(address_of(source), bytes as u64),
            direction: Direction::from_number(kind)?,
            stream: 0,
        };
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Copy(copy)) }
    }

    /// Adds a copy of slices of rows.
    fn cudaGraphAddMemcpyNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        parameters: *const Copy3d,
    ) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        let copy = volume_copy(parameters, 0)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Copy(copy)) }
    }

    /// Adds a fill.
    fn cudaGraphAddMemsetNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const FillNode,
    ) {
        if node.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe {
            add(graph, handle, Handles { list: dependencies, count }, Node::Fill((*node).fill()?))
        }
    }

    /// Adds a function of the program.
    fn cudaGraphAddHostNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const HostNode,
    ) {
        if node.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe {
            add(graph, handle, Handles { list: dependencies, count }, Node::Host((*node).call()?))
        }
    }

}
