//! What a program asks about the nodes of its graphs.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{runtime, store, text};
use crate::client::AttributeValue;
use crate::errors::{self, Code};
use crate::graph::{
    self, AllocationNode, FillNode, Handles, HostCall, HostNode, Node, NodeAttribute, add, replace,
};
use crate::kernels::host_function;
use crate::memory::{Copy, Direction, address_of, pointer_to};
use crate::runtime::copies::{Copy3d, variable_range};
use crate::runtime::graphs::KernelNode;

/// A copy between memory and a variable of the program.
fn symbol_copy(
    symbol: *const c_void,
    memory: *const c_void,
    [bytes, offset]: [usize; 2],
    kind: c_int,
    to_symbol: bool,
) -> Result<Node, Code> {
    let variable = variable_range(symbol, offset, bytes)?;
    let (to, from) = match to_symbol {
        true => (variable, address_of(memory)),
        false => (address_of(memory), variable),
    };
    let direction = Direction::from_number(kind)?;
    Ok(Node::Copy(Copy::linear(
        to,
        from,
        bytes as u64,
        direction,
        0,
    )))
}

fn attribute(node: *mut c_void, number: c_uint) -> NodeAttribute {
    NodeAttribute {
        node: address_of(node),
        number,
    }
}

runtime! {
    /// Returns the parameters of a kernel.
    fn cudaGraphKernelNodeGetParams(node: *mut c_void, parameters: *mut KernelNode) {
        let (launch, arguments) = graph::describe_kernel(address_of(node))?;
        let function = pointer_to(host_function(launch.function)?);
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, KernelNode::describe(&launch, function, arguments)) }
    }

    /// Returns the parameters of a copy of memory.
    fn cudaGraphMemcpyNodeGetParams(node: *mut c_void, parameters: *mut Copy3d) {
        let copy = graph::with_node(address_of(node), |node| match node {
            Node::Copy(copy) => Ok(*copy),
            _ => Err(errors::INVALID_VALUE),
        })??;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, Copy3d::describe(&copy)?) }
    }

    /// Returns the parameters of a fill.
    fn cudaGraphMemsetNodeGetParams(node: *mut c_void, parameters: *mut FillNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, FillNode::of_node(address_of(node))?) }
    }

    /// Returns the function of a node and its argument.
    fn cudaGraphHostNodeGetParams(node: *mut c_void, parameters: *mut HostNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, HostNode::of_node(address_of(node))?) }
    }

    /// Returns the graph of a node.
    fn cudaGraphChildGraphNodeGetGraph(node: *mut c_void, to: *mut *mut c_void) {
        let found = graph::child_graph(address_of(node))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(to, pointer_to(found)) }
    }

    /// Returns the event that a node records.
    fn cudaGraphEventRecordNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), false)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Returns the event that a node waits for.
    fn cudaGraphEventWaitNodeGetEvent(node: *mut c_void, event: *mut *mut c_void) {
        let found = graph::event_of(address_of(node), true)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(found)) }
    }

    /// Replaces the event that a node records.
    fn cudaGraphEventRecordNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node waits for.
    fn cudaGraphEventWaitNodeSetEvent(node: *mut c_void, event: *mut c_void) {
        graph::set_node(address_of(node), Node::Wait(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph records.
    fn cudaGraphExecEventRecordNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Record(address_of(event)))
    }

    /// Replaces the event that a node of an executable graph waits for.
    fn cudaGraphExecEventWaitNodeSetEvent(
        executable: *mut c_void,
        node: *mut c_void,
        event: *mut c_void,
    ) {
        replace(address_of(executable), address_of(node), Node::Wait(address_of(event)))
    }

    /// Returns the parameters of an allocation.
    fn cudaGraphMemAllocNodeGetParams(node: *mut c_void, parameters: *mut AllocationNode) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, AllocationNode::of_node(address_of(node))?) }
    }

    /// Returns the memory whose use a node ends.
    fn cudaGraphMemFreeNodeGetParams(node: *mut c_void, pointer: *mut *mut c_void) {
        let found = graph::freed_by(address_of(node))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(pointer, pointer_to(found)) }
    }

    /// Selects whether launches of an executable graph run a node.
    fn cudaGraphNodeSetEnabled(executable: *mut c_void, node: *mut c_void, enabled: c_uint) {
        graph::enable(address_of(executable), address_of(node), enabled != 0)
    }

    /// Returns whether launches of an executable graph run a node.
    fn cudaGraphNodeGetEnabled(
        executable: *mut c_void,
        node: *mut c_void,
        enabled: *mut c_uint,
    ) {
        let found = graph::is_enabled(address_of(executable), address_of(node))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(enabled, found.into()) }
    }

    /// Sets an attribute of a kernel.
    fn cudaGraphKernelNodeSetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes the value or null.
        let value = unsafe { value.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_node_attribute(attribute(node, number), *value)
    }

    /// Returns an attribute of a kernel.
    fn cudaGraphKernelNodeGetAttribute(
        node: *mut c_void,
        number: c_uint,
        value: *mut AttributeValue,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, graph::get_attribute(attribute(node, number))?) }
    }

    /// Copies the attributes of a kernel; the interface names the source first.
    fn cudaGraphKernelNodeCopyAttributes(from: *mut c_void, to: *mut c_void) {
        graph::copy_attributes(address_of(to), address_of(from))
    }

    /// Writes a graph as text into a file.
    fn cudaGraphDebugDotPrint(graph: *mut c_void, path: *const c_char, _flags: c_uint) {
        // SAFETY: the program passes a text or null.
        graph::write_dot(address_of(graph), unsafe { text(path)? })
    }

    /// Adds a copy to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        symbol: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, source, [bytes, offset], kind, true)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, copy) }
    }

    /// Adds a copy from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        count: usize,
        destination: *mut c_void,
        symbol: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, destination, [bytes, offset], kind, false)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Handles { list: dependencies, count }, copy) }
    }

    /// Replaces a copy of a graph by one to a variable.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: *mut c_void,
        symbol: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, source, [bytes, offset], kind, true)?;
        graph::set_node(address_of(node), copy)
    }

    /// Replaces a copy of a graph by one from a variable.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: *mut c_void,
        destination: *mut c_void,
        symbol: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, destination, [bytes, offset], kind, false)?;
        graph::set_node(address_of(node), copy)
    }

    /// Replaces a copy of an executable graph by one to a variable.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        executable: *mut c_void,
        node: *mut c_void,
        symbol: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, source, [bytes, offset], kind, true)?;
        replace(address_of(executable), address_of(node), copy)
    }

    /// Replaces a copy of an executable graph by one from a variable.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        executable: *mut c_void,
        node: *mut c_void,
        destination: *mut c_void,
        symbol: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let copy = symbol_copy(symbol, destination, [bytes, offset], kind, false)?;
        replace(address_of(executable), address_of(node), copy)
    }

    /// Creates an object that graphs keep alive.
    fn cudaUserObjectCreate(
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
    fn cudaUserObjectRetain(object: *mut c_void, count: c_uint) {
        graph::retain_object(address_of(object), count)
    }

    /// Releases references to an object.
    fn cudaUserObjectRelease(object: *mut c_void, count: c_uint) {
        graph::release_object(address_of(object), count)
    }

    /// Adds references of a graph to an object.
    fn cudaGraphRetainUserObject(
        graph: *mut c_void,
        object: *mut c_void,
        count: c_uint,
        flags: c_uint,
    ) {
        graph::retain_for_graph(address_of(graph), address_of(object), count, flags)
    }

    /// Releases references of a graph to an object.
    fn cudaGraphReleaseUserObject(graph: *mut c_void, object: *mut c_void, count: c_uint) {
        graph::release_from_graph(address_of(graph), address_of(object), count)
    }
}
