//! Graphs.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{in_context, store};
use crate::driver::copies::Copy3d;
use crate::driver::functions::find_function;
use crate::driver::launches::{Arguments, prepare};
use crate::errors::{self, Code};
use crate::graph::{
    self, FillNode, Graph, Handles, HostNode, InstantiateParameters, Node, UpdateResult, Wanted,
    add, replace,
};
use crate::kernels::{Dim3, Launch};
use crate::memory::{address_of, pointer_to};

/// `CUDA_KERNEL_NODE_PARAMS` of version 2 as far as it is read; version 1 ends with `extra`.
#[repr(C)]
#[derive(Debug)]
pub struct KernelNode {
    function: *mut c_void,
    grid: Dim3,
    block: Dim3,
    shared_bytes: c_uint,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// The end of the same structure in version 2, and in the nodes of any type.
#[repr(C)]
#[derive(Debug)]
pub struct KernelNode2 {
    pub(super) first: KernelNode,
    pub(super) kernel: *mut c_void,
    context: *mut c_void,
}

impl KernelNode {
    /// The parameters of a launch.
    pub(super) fn describe(
        launch: &Launch,
        function: *mut c_void,
        arguments: *mut *mut c_void,
    ) -> KernelNode {
        KernelNode {
            function,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes as c_uint,
            arguments,
            extra: std::ptr::null_mut(),
        }
    }

    /// The launch of the node; `kernel` stands in for a null function.
    ///
    /// # Safety
    /// As many arguments as the kernel has parameters.
    pub(super) unsafe fn node(&self, kernel: *mut c_void) -> Result<Node, Code> {
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
unsafe fn instantiate(executable: *mut *mut c_void, graph: *mut c_void) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        store(
            executable,
            pointer_to(graph::instantiate(address_of(graph))?),
        )
    }
}

in_context! {
    /// Creates an empty graph.
    fn cuGraphCreate(graph: *mut *mut c_void, _flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(graph, pointer_to(graph::keep(Graph::default()))) }
    }

    /// Destroys a graph.
    fn cuGraphDestroy(graph: *mut c_void) { graph::destroy(address_of(graph)) }

    /// Copies a graph.
    fn cuGraphClone(clone: *mut *mut c_void, graph: *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { instantiate(clone, graph) }
    }

    /// Makes an executable copy of a graph.
    fn cuGraphInstantiate_v2(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        _error_node: *mut *mut c_void,
        _log: *mut c_void,
        _log_bytes: usize,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { instantiate(executable, graph) }
    }

    /// Makes an executable copy of a graph.
    fn cuGraphInstantiateWithFlags(executable: *mut *mut c_void, graph: *mut c_void, _flags: u64) {
        // SAFETY: the program passes where the handle goes.
        unsafe { instantiate(executable, graph) }
    }

    /// Makes an executable copy of a graph.
    fn cuGraphInstantiateWithParams(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        parameters: *mut InstantiateParameters,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            parameters.as_mut().ok_or(errors::INVALID_VALUE)?.succeed();
            instantiate(executable, graph)
        }
    }

    /// Replaces the nodes of an executable graph.
    fn cuGraphExecUpdate_v2(
        executable: *mut c_void,
        graph: *mut c_void,
        result: *mut UpdateResult,
    ) {
        let updated = graph::update(address_of(executable), address_of(graph))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(result, updated)? };
        updated.code()
    }

    /// Runs a graph.
    fn cuGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        graph::launch(address_of(executable), address_of(stream))
    }

    /// Uploads a graph: no effect.
    fn cuGraphUpload(_executable: *mut c_void, _stream: *mut c_void) { Ok(()) }

    /// Destroys an executable graph.
    fn cuGraphExecDestroy(executable: *mut c_void) { graph::destroy(address_of(executable)) }

    /// Returns the flags of an executable graph.
    fn cuGraphExecGetFlags(_executable: *mut c_void, flags: *mut u64) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, 0) }
    }

    /// Returns the number of nodes; the handles where there is room for them.
    fn cuGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) {
        // SAFETY: the program states how many handles fit.
        unsafe { Wanted::handles(nodes, count).answer(&graph::nodes(address_of(graph))?) }
    }

    /// Returns the type of a node.
    fn cuGraphNodeGetType(node: *mut c_void, number: *mut c_int) {
        let found = graph::with_node(address_of(node), |node| node.type_number())?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, found) }
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
            add(graph, handle, Handles { list: dependencies, count }, node.node(std::ptr::null_mut())?)
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
            add(graph, handle, Handles { list: dependencies, count }, node.first.node(node.kernel)?)
        }
    }

    /// Replaces a kernel of a graph.
    fn cuGraphKernelNodeSetParams_v2(node: *mut c_void, parameters: *const KernelNode2) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            let parameters = parameters.as_ref().ok_or(errors::INVALID_VALUE)?;
            parameters.first.node(parameters.kernel)?
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
            parameters.first.node(parameters.kernel)?
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
            add(graph, handle, Handles { list: dependencies, count }, Node::Fill(node.fill()))
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
        replace(address_of(executable), address_of(node), Node::Fill(parameters.fill()))
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
            add(graph, handle, Handles { list: dependencies, count }, Node::Host(node.call()))
        }
    }

    /// Adds a node that only orders others.
    fn cuGraphAddEmptyNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Empty) }
    }

    /// Adds the nodes of another graph.
    fn cuGraphAddChildGraphNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        child: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, graph::child_node(address_of(child))?) }
    }

    /// Adds the record of an event.
    fn cuGraphAddEventRecordNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        event: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Record(address_of(event))) }
    }

    /// Adds the wait for an event.
    fn cuGraphAddEventWaitNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        event: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Wait(address_of(event))) }
    }
}
