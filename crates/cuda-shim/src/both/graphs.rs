//! Graphs: functions that differ by name only in the two interfaces.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{both_initialized, store, text};
use crate::client::AttributeValue;
use crate::errors;
use crate::graph::{
    self, AllocationNode, FillNode, Graph, Handles, HostCall, HostNode, Node, NodeAttribute,
    UpdateResult, Wanted, add, replace,
};
use crate::memory::{address_of, pointer_to, stream_of};

fn attribute(node: *mut c_void, number: c_uint) -> NodeAttribute {
    NodeAttribute {
        node: address_of(node),
        number,
    }
}

both_initialized! {
    /// Creates an empty graph.
    fn cuGraphCreate | cudaGraphCreate(graph: *mut *mut c_void, flags: c_uint) {
        if flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(graph, pointer_to(graph::keep(Graph::default()))) }
    }

    /// Copies a graph.
    fn cuGraphClone | cudaGraphClone(clone: *mut *mut c_void, graph: *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(clone, pointer_to(graph::clone_graph(address_of(graph))?)) }
    }

    /// Destroys a graph.
    fn cuGraphDestroy | cudaGraphDestroy(graph: *mut c_void) { graph::destroy_own(address_of(graph)) }

    /// Replaces the nodes of an executable graph by those of a graph of the same form.
    fn cuGraphExecUpdate_v2 | cudaGraphExecUpdate(
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
    fn cuGraphLaunch | cudaGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        graph::launch(address_of(executable), stream_of(stream))
    }

    /// Uploads a graph: no effect.
    fn cuGraphUpload | cudaGraphUpload(_executable: *mut c_void, _stream: *mut c_void) { Ok(()) }

    /// Destroys an executable graph.
    fn cuGraphExecDestroy | cudaGraphExecDestroy(executable: *mut c_void) { graph::destroy(address_of(executable)) }

    /// Returns the flags of an executable graph.
    fn cuGraphExecGetFlags | cudaGraphExecGetFlags(executable: *mut c_void, flags: *mut u64) {
        let found = graph::flags(address_of(executable))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, found) }
    }

    /// Returns the number of nodes; the handles where there is room for them.
    fn cuGraphGetNodes | cudaGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) {
        // SAFETY: the program states how many handles fit.
        unsafe { Wanted::handles(nodes, count).answer(&graph::nodes(address_of(graph))?) }
    }

    /// Returns the type of a node.
    fn cuGraphNodeGetType | cudaGraphNodeGetType(node: *mut c_void, number: *mut c_int) {
        let found = graph::with_node(address_of(node), |node| node.type_number())?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, found) }
    }

    /// Adds a node that only orders others.
    fn cuGraphAddEmptyNode | cudaGraphAddEmptyNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Empty) }
    }

    /// Adds the nodes of another graph.
    fn cuGraphAddChildGraphNode | cudaGraphAddChildGraphNode(
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
    fn cuGraphAddEventRecordNode | cudaGraphAddEventRecordNode(
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
    fn cuGraphAddEventWaitNode | cudaGraphAddEventWaitNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        event: *mut c_void,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, Node::Wait(address_of(event))) }
    }

    /// Returns the parameters of a fill.
    fn cuGraphMemsetNodeGetParams | cudaGraphMemsetNodeGetParams(node: *mut c_void, parameters: *mut FillNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, FillNode::of_node(address_of(node))?) }
    }

    /// Returns the function of a node and its argument.
    fn cuGraphHostNodeGetParams | cudaGraphHostNodeGetParams(node: *mut c_void, parameters: *mut HostNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, HostNode::of_node(address_of(node))?) }
    }

    /// Returns the graph of a node.
    fn cuGraphChildGraphNodeGetGraph | cudaGraphChildGraphNodeGetGraph(node: *mut c_void, to: *mut *mut c_void) {
        let found = graph::child_graph(address_of(node))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(to, pointer_to(found)) }
    }

    /// Returns the event that a node records.
    fn cuGraphEventRecordNodeGetEvent | cudaGraphEventRecordNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), false)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Returns the event that a node waits for.
    fn cuGraphEventWaitNodeGetEvent | cudaGraphEventWaitNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), true)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Replaces the event that a node records.
    fn cuGraphEventRecordNodeSetEvent | cudaGraphEventRecordNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node waits for.
    fn cuGraphEventWaitNodeSetEvent | cudaGraphEventWaitNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Wait(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph records.
    fn cuGraphExecEventRecordNodeSetEvent | cudaGraphExecEventRecordNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph waits for.
    fn cuGraphExecEventWaitNodeSetEvent | cudaGraphExecEventWaitNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Wait(address_of(event)))
    }

    /// Returns the parameters of an allocation.
    fn cuGraphMemAllocNodeGetParams | cudaGraphMemAllocNodeGetParams(node: *mut c_void, parameters: *mut AllocationNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, AllocationNode::of_node(address_of(node))?) }
    }

    /// Selects whether launches of an executable graph run a node.
    fn cuGraphNodeSetEnabled | cudaGraphNodeSetEnabled(executable: *mut c_void, node: *mut c_void, enabled: c_uint) {
        graph::enable(address_of(executable), address_of(node), enabled != 0)
    }

    /// Returns whether launches of an executable graph run a node.
    fn cuGraphNodeGetEnabled | cudaGraphNodeGetEnabled(
        executable: *mut c_void,
        node: *mut c_void,
        enabled: *mut c_uint,
    ) {
        let found = graph::is_enabled(address_of(executable), address_of(node))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(enabled, found.into()) }
    }

    /// Sets an attribute of a kernel.
    fn cuGraphKernelNodeSetAttribute | cudaGraphKernelNodeSetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes the value or null.
        let value = unsafe { value.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_node_attribute(attribute(node, number), *value)
    }

    /// Returns an attribute of a kernel.
    fn cuGraphKernelNodeGetAttribute | cudaGraphKernelNodeGetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *mut AttributeValue,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, graph::get_attribute(attribute(node, number))?) }
    }

    /// Copies the attributes of a kernel; the interface names the source first.
    fn cuGraphKernelNodeCopyAttributes | cudaGraphKernelNodeCopyAttributes(from: *mut c_void, to: *mut c_void) {
        graph::copy_attributes(address_of(to), address_of(from))
    }

    /// Writes a graph as text into a file.
    fn cuGraphDebugDotPrint | cudaGraphDebugDotPrint(graph: *mut c_void, path: *const c_char, _flags: c_uint) {
        // SAFETY: the program passes a text or null.
        graph::write_dot(address_of(graph), unsafe { text(path)? })
    }

    /// Creates an object that graphs keep alive.
    fn cuUserObjectCreate | cudaUserObjectCreate(
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
    fn cuUserObjectRetain | cudaUserObjectRetain(object: *mut c_void, count: c_uint) {
        graph::retain_object(address_of(object), count)
    }

    /// Releases references to an object.
    fn cuUserObjectRelease | cudaUserObjectRelease(object: *mut c_void, count: c_uint) {
        graph::release_object(address_of(object), count)
    }

    /// Adds references of a graph to an object.
    fn cuGraphRetainUserObject | cudaGraphRetainUserObject(
        graph: *mut c_void,
        object: *mut c_void,
        count: c_uint,
        flags: c_uint,
    ) {
        graph::retain_for_graph(address_of(graph), address_of(object), count, flags)
    }

    /// Releases references of a graph to an object.
    fn cuGraphReleaseUserObject | cudaGraphReleaseUserObject(graph: *mut c_void, object: *mut c_void, count: c_uint) {
        graph::release_from_graph(address_of(graph), address_of(object), count)
    }

    /// Replaces a fill of a graph.
    fn cuGraphMemsetNodeSetParams | cudaGraphMemsetNodeSetParams(node: *mut c_void, parameters: *const FillNode) {
        // SAFETY: the program passes the structure or null.
        let fill = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.fill()?;
        graph::set_node(address_of(node), Node::Fill(fill))
    }

    /// Replaces a function of a graph.
    fn cuGraphHostNodeSetParams | cudaGraphHostNodeSetParams(node: *mut c_void, parameters: *const HostNode) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call()?;
        graph::set_node(address_of(node), Node::Host(call))
    }

    /// Replaces a function of an executable graph.
    fn cuGraphExecHostNodeSetParams | cudaGraphExecHostNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const HostNode,
    ) {
        // SAFETY: the program passes the structure or null.
        let call = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.call()?;
        replace(address_of(executable), address_of(node), Node::Host(call))
    }

    /// Replaces the nodes of a child graph in an executable graph.
    fn cuGraphExecChildGraphNodeSetParams | cudaGraphExecChildGraphNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        child: *mut c_void,
    ) {
        let child = graph::child_node(address_of(child))?;
        replace(address_of(executable), address_of(node), child)
    }

    /// Returns the node of a copy of a graph that a node of the graph became.
    fn cuGraphNodeFindInClone | cudaGraphNodeFindInClone(found: *mut *mut c_void, node: *mut c_void, clone: *mut c_void) {
        let handle = graph::find_in_clone(address_of(node), address_of(clone))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(found, pointer_to(handle)) }
    }
}
