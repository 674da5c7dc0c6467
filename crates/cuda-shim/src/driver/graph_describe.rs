//! What a program asks about the nodes of its graphs.

use std::ffi::{c_char, c_uint, c_void};

use crate::abi::{in_context, store, text};
use crate::client::AttributeValue;
use crate::driver::copies::Copy3d;
use crate::driver::functions::handle_of;
use crate::driver::graphs::{KernelNode, KernelNode2};
use crate::errors;
use crate::graph::{
    self, AllocationNode, FillNode, HostCall, HostNode, Node, NodeAttribute, replace,
};
use crate::memory::{address_of, pointer_to};

fn attribute(node: *mut c_void, number: c_uint) -> NodeAttribute {
    NodeAttribute {
        node: address_of(node),
        number,
    }
}

in_context! {
    /// Returns the parameters of a kernel.
    fn cuGraphKernelNodeGetParams(node: *mut c_void, parameters: *mut KernelNode) {
        let (launch, arguments) = graph::describe_kernel(address_of(node))?;
        let function = handle_of(launch.function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, KernelNode::describe(&launch, function, arguments)) }
    }

    /// Returns the parameters of a kernel.
    fn cuGraphKernelNodeGetParams_v2(node: *mut c_void, parameters: *mut KernelNode2) {
        let (launch, arguments) = graph::describe_kernel(address_of(node))?;
        let function = handle_of(launch.function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, KernelNode2::describe(&launch, function, arguments)) }
    }

    /// Returns the parameters of a copy of memory.
    fn cuGraphMemcpyNodeGetParams(node: *mut c_void, parameters: *mut Copy3d) {
        let copy = graph::with_node(address_of(node), |node| match node {
            Node::Copy(copy) => Ok(*copy),
            _ => Err(errors::INVALID_VALUE),
        })??;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, Copy3d::describe(&copy)?) }
    }

    /// Returns the parameters of a fill.
    fn cuGraphMemsetNodeGetParams(node: *mut c_void, parameters: *mut FillNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, FillNode::of_node(address_of(node))?) }
    }

    /// Returns the function of a node and its argument.
    fn cuGraphHostNodeGetParams(node: *mut c_void, parameters: *mut HostNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, HostNode::of_node(address_of(node))?) }
    }

    /// Returns the graph of a node.
    fn cuGraphChildGraphNodeGetGraph(node: *mut c_void, to: *mut *mut c_void) {
        let found = graph::child_graph(address_of(node))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(to, pointer_to(found)) }
    }

    /// Returns the event that a node records.
    fn cuGraphEventRecordNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), false)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Returns the event that a node waits for.
    fn cuGraphEventWaitNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), true)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Replaces the event that a node records.
    fn cuGraphEventRecordNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node waits for.
    fn cuGraphEventWaitNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Wait(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph records.
    fn cuGraphExecEventRecordNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph waits for.
    fn cuGraphExecEventWaitNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Wait(address_of(event)))
    }

    /// Returns the parameters of an allocation.
    fn cuGraphMemAllocNodeGetParams(node: *mut c_void, parameters: *mut AllocationNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, AllocationNode::of_node(address_of(node))?) }
    }

    /// Returns the memory whose use a node ends.
    fn cuGraphMemFreeNodeGetParams(node: *mut c_void, address: *mut u64) {
        let found = graph::freed_by(address_of(node))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(address, found) }
    }

    /// Selects whether launches of an executable graph run a node.
    fn cuGraphNodeSetEnabled(executable: *mut c_void, node: *mut c_void, enabled: c_uint) {
        graph::enable(address_of(executable), address_of(node), enabled != 0)
    }

    /// Returns whether launches of an executable graph run a node.
    fn cuGraphNodeGetEnabled(
        executable: *mut c_void,
        node: *mut c_void,
        enabled: *mut c_uint,
    ) {
        let found = graph::is_enabled(address_of(executable), address_of(node))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(enabled, found.into()) }
    }

    /// Sets an attribute of a kernel.
    fn cuGraphKernelNodeSetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes the value or null.
        let value = unsafe { value.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_node_attribute(attribute(node, number), *value)
    }

    /// Returns an attribute of a kernel.
    fn cuGraphKernelNodeGetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *mut AttributeValue,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, graph::get_attribute(attribute(node, number))?) }
    }

    /// Copies the attributes of a kernel; the interface names the source first.
    fn cuGraphKernelNodeCopyAttributes(from: *mut c_void, to: *mut c_void) {
        graph::copy_attributes(address_of(to), address_of(from))
    }

    /// Writes a graph as text into a file.
    fn cuGraphDebugDotPrint(graph: *mut c_void, path: *const c_char, _flags: c_uint) {
        // SAFETY: the program passes a text or null.
        graph::write_dot(address_of(graph), unsafe { text(path)? })
    }

    /// Creates an object that graphs keep alive.
    fn cuUserObjectCreate(
        object: *mut *mut c_void,
        argument: *mut c_void,
        destroy: Option<unsafe extern "C" fn(*mut c_void)>,
        references: c_uint,
        _flags: c_uint,
    ) {
        let destroy = HostCall {
            function: destroy.ok_or(errors::INVALID_VALUE)?,
            argument: address_of(argument),
        };
        let created = graph::create_object(destroy, references)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(object, pointer_to(created)) }
    }

    /// Adds references to an object.
    fn cuUserObjectRetain(object: *mut c_void, count: c_uint) {
        graph::retain_object(address_of(object), count)
    }

    /// Releases references to an object.
    fn cuUserObjectRelease(object: *mut c_void, count: c_uint) {
        graph::release_object(address_of(object), count)
    }

    /// Adds references of a graph to an object.
    fn cuGraphRetainUserObject(
        graph: *mut c_void,
        object: *mut c_void,
        count: c_uint,
        flags: c_uint,
    ) {
        graph::retain_for_graph(address_of(graph), address_of(object), count, flags)
    }

    /// Releases references of a graph to an object.
    fn cuGraphReleaseUserObject(graph: *mut c_void, object: *mut c_void, count: c_uint) {
        graph::release_from_graph(address_of(graph), address_of(object), count)
    }

    /// Replaces a kernel of a graph.
    fn cuGraphKernelNodeSetParams(node: *mut c_void, parameters: *const KernelNode) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            parameters.as_ref().ok_or(errors::INVALID_VALUE)?.node(std::ptr::null_mut())?
        };
        graph::set_node(address_of(node), launch)
    }

    /// Replaces a kernel of an executable graph.
    fn cuGraphExecKernelNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const KernelNode,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            parameters.as_ref().ok_or(errors::INVALID_VALUE)?.node(std::ptr::null_mut())?
        };
        replace(address_of(executable), address_of(node), launch)
    }

    /// Replaces a copy of a graph.
    fn cuGraphMemcpyNodeSetParams(node: *mut c_void, parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_node(address_of(node), Node::Copy(parameters.copy(0)?))
    }

    /// Replaces a fill of a graph.
    fn cuGraphMemsetNodeSetParams(node: *mut c_void, parameters: *const FillNode) {
        // SAFETY: the program passes the structure or null.
        let fill = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.fill();
        graph::set_node(address_of(node), Node::Fill(fill))
    }

    /// Replaces a function of a graph.
    fn cuGraphHostNodeSetParams(node: *mut c_void, parameters: *const HostNode) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call();
        graph::set_node(address_of(node), Node::Host(call))
    }

    /// Replaces a function of an executable graph.
    fn cuGraphExecHostNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const HostNode,
    ) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call();
        replace(address_of(executable), address_of(node), Node::Host(call))
    }

    /// Replaces the nodes of a child graph in an executable graph.
    fn cuGraphExecChildGraphNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        child: *mut c_void,
    ) {
        let child = graph::child_node(address_of(child))?;
        replace(address_of(executable), address_of(node), child)
    }

    /// Returns the node of a copy of a graph that a node of the graph became.
    fn cuGraphNodeFindInClone(found: *mut *mut c_void, node: *mut c_void, clone: *mut c_void) {
        let handle = graph::find_in_clone(address_of(node), address_of(clone))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(found, pointer_to(handle)) }
    }
}
