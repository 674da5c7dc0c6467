//! Changes of graphs and of executable graphs.

use std::ffi::{c_int, c_void};

use crate::abi::{runtime, store};
use crate::errors;
use crate::graph::{
    self, AnyNode, FillNode, Handles, HostNode, InstantiateParameters, Node, add, replace,
};
use crate::memory::{Copy, Direction, address_of, pointer_to};
use crate::runtime::copies::{Copy3d, volume_copy};
use crate::runtime::graph_nodes::LAYOUTS;
use crate::runtime::graphs::KernelNode;

/// A contiguous copy between two places of the program.
fn linear_copy(
    destination: *mut c_void,
    source: *const c_void,
    bytes: usize,
    kind: c_int,
) -> Result<Node, errors::Code> {
    let direction = Direction::from_number(kind)?;
    let (to, from) = (address_of(destination), address_of(source));
    Ok(Node::Copy(Copy::linear(
        to,
        from,
        bytes as u64,
        direction,
        0,
    )))
}

runtime! {
    /// Makes an executable copy of a graph.
    fn cudaGraphInstantiateWithParams(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        parameters: *mut InstantiateParameters,
    ) {
        // SAFETY: the program passes the structure or null, and where the handle goes.
        unsafe {
            parameters.as_mut().ok_or(errors::INVALID_VALUE)?.succeed();
            store(executable, pointer_to(graph::instantiate(address_of(graph))?))
        }
    }

    /// Returns the flags of an executable graph.
    fn cudaGraphExecGetFlags(_executable: *mut c_void, flags: *mut u64) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, 0) }
    }

    /// Returns the type of a node.
    fn cudaGraphNodeGetType(node: *mut c_void, number: *mut c_int) {
        let found = graph::with_node(address_of(node), |node| node.type_number())?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, found) }
    }

    /// Returns the node of a copy of a graph that a node of the graph became.
    fn cudaGraphNodeFindInClone(found: *mut *mut c_void, node: *mut c_void, clone: *mut c_void) {
        let handle = graph::find_in_clone(address_of(node), address_of(clone))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(found, pointer_to(handle)) }
    }

    /// Removes the operation of a node. Its handle keeps its place, without an effect.
    fn cudaGraphDestroyNode(node: *mut c_void) {
        graph::remove(address_of(node))
    }

    /// Adds the record of an event.
    fn cudaGraphAddEventRecordNode(
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
    fn cudaGraphAddEventWaitNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        event: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Wait(address_of(event))) }
    }

    /// Replaces a kernel of a graph.
    fn cudaGraphKernelNodeSetParams(node: *mut c_void, parameters: *const KernelNode) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe { parameters.as_ref().ok_or(errors::INVALID_VALUE)?.node()? };
        graph::set_node(address_of(node), launch)
    }

    /// Replaces a kernel of an executable graph.
    fn cudaGraphExecKernelNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const KernelNode,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe { parameters.as_ref().ok_or(errors::INVALID_VALUE)?.node()? };
        replace(address_of(executable), address_of(node), launch)
    }

    /// Replaces a copy of a graph.
    fn cudaGraphMemcpyNodeSetParams(node: *mut c_void, parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        let copy = Node::Copy(volume_copy(parameters, 0)?);
        graph::set_node(address_of(node), copy)
    }

    /// Replaces a copy of a graph.
    fn cudaGraphMemcpyNodeSetParams1D(
        node: *mut c_void,
        destination: *mut c_void,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
    ) {
        let copy = linear_copy(destination, source, bytes, kind)?;
        graph::set_node(address_of(node), copy)
    }

    /// Replaces a copy of an executable graph.
    fn cudaGraphExecMemcpyNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const Copy3d,
    ) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        let copy = Node::Copy(volume_copy(parameters, 0)?);
        replace(address_of(executable), address_of(node), copy)
    }

    /// Replaces a copy of an executable graph.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: *mut c_void,
        node: *mut c_void,
        destination: *mut c_void,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
    ) {
        let copy = linear_copy(destination, source, bytes, kind)?;
        replace(address_of(executable), address_of(node), copy)
    }

    /// Replaces a fill of a graph.
    fn cudaGraphMemsetNodeSetParams(node: *mut c_void, parameters: *const FillNode) {
        // SAFETY: the program passes the structure or null.
        let fill = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.fill();
        graph::set_node(address_of(node), Node::Fill(fill))
    }

    /// Replaces a fill of an executable graph.
    fn cudaGraphExecMemsetNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const FillNode,
    ) {
        // SAFETY: the program passes the structure or null.
        let fill = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.fill();
        replace(address_of(executable), address_of(node), Node::Fill(fill))
    }

    /// Replaces a function of a graph.
    fn cudaGraphHostNodeSetParams(node: *mut c_void, parameters: *const HostNode) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call();
        graph::set_node(address_of(node), Node::Host(call))
    }

    /// Replaces a function of an executable graph.
    fn cudaGraphExecHostNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const HostNode,
    ) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call();
        replace(address_of(executable), address_of(node), Node::Host(call))
    }

    /// Replaces the nodes of a child graph in an executable graph.
    fn cudaGraphExecChildGraphNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        child: *mut c_void,
    ) {
        let child = graph::child_node(address_of(child))?;
        replace(address_of(executable), address_of(node), child)
    }

    /// Replaces a node of any type of a graph.
    fn cudaGraphNodeSetParams(node: *mut c_void, parameters: *mut AnyNode) {
        // SAFETY: the program passes the structure of the stated type or null.
        let with = unsafe { AnyNode::create(parameters, LAYOUTS)? };
        graph::set_node(address_of(node), with)
    }

    /// Replaces a node of any type of an executable graph.
    fn cudaGraphExecNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *mut AnyNode,
    ) {
        // SAFETY: the program passes the structure of the stated type or null.
        let with = unsafe { AnyNode::create(parameters, LAYOUTS)? };
        replace(address_of(executable), address_of(node), with)
    }
}
