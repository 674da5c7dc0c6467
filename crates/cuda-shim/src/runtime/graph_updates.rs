//! Changes of graphs and of executable graphs.

use std::ffi::{c_int, c_void};

use crate::abi::{runtime, store};
use crate::errors;
use crate::graph::{self, AnyNode, FillNode, InstantiateParameters, KernelNode, Node, replace};
use crate::memory::{Copy, Direction, address_of, pointer_to};
use crate::runtime::copies::{Copy3d, volume_copy};
use crate::runtime::graph_nodes::LAYOUTS;

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
            let parameters = parameters.as_mut().ok_or(errors::INVALID_VALUE)?;
            let made = graph::instantiate(address_of(graph), parameters.flags)?;
            parameters.succeed();
            store(executable, pointer_to(made))
        }
    }

    /// Removes the operation of a node. Its handle keeps its place, without an effect.
    fn cudaGraphDestroyNode(node: *mut c_void) {
        graph::remove(address_of(node))
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

    /// Replaces a fill of an executable graph.
    fn cudaGraphExecMemsetNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const FillNode,
    ) {
        // SAFETY: the program passes the structure or null.
        let fill = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?.fill()?;
        replace(address_of(executable), address_of(node), Node::Fill(fill))
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
