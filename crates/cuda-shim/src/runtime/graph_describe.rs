//! Parameters of nodes whose layout is the runtime's own, and copies of variables.

use std::ffi::{c_int, c_void};

use crate::abi::{runtime, store};
use crate::errors::Code;
use crate::graph::{self, Handles, KernelNode, Node, add, replace};
use crate::kernels::host_function;
use crate::memory::{Copy, Direction, address_of, pointer_to};
use crate::runtime::copies::{Copy3d, variable_range};

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
        let copy = graph::describe_copy(address_of(node))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, Copy3d::describe(&copy)?) }
    }

    /// Returns the memory whose use a node ends.
    fn cudaGraphMemFreeNodeGetParams(node: *mut c_void, pointer: *mut *mut c_void) {
        let found = graph::freed_by(address_of(node))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(pointer, pointer_to(found)) }
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

}
