//! Graphs.

use std::ffi::c_void;

use crate::abi::{initialized, store};
use crate::driver::copies::Copy3d;
use crate::driver::functions::find_function;
use crate::driver::launches::{Arguments, prepare};
use crate::errors::{self, Code};
use crate::graph::{
    self, FillNode, Handles, HostNode, InstantiateParameters, KernelNode, Node, add, replace,
};
use crate::kernels::Launch;
use crate::memory::{address_of, pointer_to};

/// `CUDA_KERNEL_NODE_PARAMS` of version 2, and of the nodes of any type; version 1 is its beginning.
#[repr(C)]
#[derive(Debug)]
pub struct KernelNode2 {
    pub(super) first: KernelNode,
    pub(super) kernel: *mut c_void,
    context: *mut c_void,
}

impl KernelNode {
    /// The launch of the node; `kernel` stands in for a null function.
    ///
    /// # Safety
    /// As many arguments as the kernel has parameters.
    pub(super) unsafe fn driver_node(&self, kernel: *mut c_void) -> Result<Node, Code> {
        let handle = match self.function.is_null() {
            true => kernel,
            false => self.function,
        };
        let function = find_function(handle)?;
        let arguments = Arguments {
            values: self.arguments,
            extra: self.extra,
        };
        let extents = [self.grid, self.block];
        let stream = std::ptr::null_mut();
        // SAFETY: the caller's promise.
        let launch = unsafe { prepare(&function, extents, arguments, self.shared_bytes, stream)? };
        Ok(Node::Launch(launch))
    }
}

impl KernelNode2 {
    /// The parameters of a launch.
    pub(super) fn describe(
        launch: &Launch,
        function: *mut c_void,
        arguments: *mut *mut c_void,
    ) -> KernelNode2 {
        KernelNode2 {
            first: KernelNode::describe(launch, function, arguments),
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        }
    }
}

/// Makes an executable copy and stores its handle.
///
/// # Safety
/// `executable` is null or writable.
unsafe fn instantiate(
    executable: *mut *mut c_void,
    graph: *mut c_void,
    flags: u64,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        store(
            executable,
            pointer_to(graph::instantiate(address_of(graph), flags)?),
        )
    }
}

initialized! {
    /// Makes an executable copy of a graph.
    fn cuGraphInstantiate_v2(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        _error_node: *mut *mut c_void,
        _log: *mut c_void,
        _log_bytes: usize,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { instantiate(executable, graph, 0) }
    }

    /// Makes an executable copy of a graph.
    fn cuGraphInstantiateWithFlags(executable: *mut *mut c_void, graph: *mut c_void, flags: u64) {
        // SAFETY: the program passes where the handle goes.
        unsafe { instantiate(executable, graph, flags) }
    }

    /// Makes an executable copy of a graph.
    fn cuGraphInstantiateWithParams(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        parameters: *mut InstantiateParameters,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            let parameters = parameters.as_mut().ok_or(errors::INVALID_VALUE)?;
            parameters.succeed();
            instantiate(executable, graph, parameters.flags)
        }
    }

    /// Adds a kernel.
    fn cuGraphAddKernelNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const KernelNode,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        unsafe {
            let node = node.as_ref().ok_or(errors::INVALID_VALUE)?;
            add(graph, handle, Handles { list: dependencies, count }, node.driver_node(std::ptr::null_mut())?)
        }
    }

    /// Adds a kernel.
    fn cuGraphAddKernelNode_v2(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const KernelNode2,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        unsafe {
            let node = node.as_ref().ok_or(errors::INVALID_VALUE)?;
            add(graph, handle, Handles { list: dependencies, count }, node.first.driver_node(node.kernel)?)
        }
    }

    /// Replaces a kernel of a graph.
    fn cuGraphKernelNodeSetParams_v2(node: *mut c_void, parameters: *const KernelNode2) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            let parameters = parameters.as_ref().ok_or(errors::INVALID_VALUE)?;
            parameters.first.driver_node(parameters.kernel)?
        };
        graph::set_node(address_of(node), launch)
    }

    /// Replaces a kernel of an executable graph.
    fn cuGraphExecKernelNodeSetParams_v2(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const KernelNode2,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            let parameters = parameters.as_ref().ok_or(errors::INVALID_VALUE)?;
            parameters.first.driver_node(parameters.kernel)?
        };
        replace(address_of(executable), address_of(node), launch)
    }

    /// Adds a copy.
    fn cuGraphAddMemcpyNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        parameters: *const Copy3d,
        _context: *mut c_void,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            let parameters = parameters.as_ref().ok_or(errors::INVALID_VALUE)?;
            add(graph, handle, Handles { list: dependencies, count }, Node::Copy(parameters.copy(0)?))
        }
    }

    /// Replaces a copy of an executable graph.
    fn cuGraphExecMemcpyNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const Copy3d,
        _context: *mut c_void,
    ) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        replace(address_of(executable), address_of(node), Node::Copy(parameters.copy(0)?))
    }

    /// Adds a fill.
    fn cuGraphAddMemsetNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const FillNode,
        _context: *mut c_void,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            let node = node.as_ref().ok_or(errors::INVALID_VALUE)?;
            add(graph, handle, Handles { list: dependencies, count }, Node::Fill(node.fill()?))
        }
    }

    /// Replaces a fill of an executable graph.
    fn cuGraphExecMemsetNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const FillNode,
        _context: *mut c_void,
    ) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        replace(address_of(executable), address_of(node), Node::Fill(parameters.fill()?))
    }

    /// Adds a function of the program.
    fn cuGraphAddHostNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        node: *const HostNode,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            let node = node.as_ref().ok_or(errors::INVALID_VALUE)?;
            add(graph, handle, Handles { list: dependencies, count }, Node::Host(node.call()?))
        }
    }

}
