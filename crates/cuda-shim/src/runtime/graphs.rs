//! Graphs.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::errors::{self, Code};
use crate::graph::{self, Graph, HostCall, Node};
use crate::kernels::Dim3;
use crate::memory::{Copy, Direction, Fill, Place, address_of, pointer_to};
use crate::protocol::Shape;
use crate::runtime::launches::prepare;

/// `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Debug)]
pub struct KernelNode {
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    shared_bytes: c_uint,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// `cudaMemsetParams`.
#[repr(C)]
#[derive(Debug)]
pub struct FillNode {
    destination: *mut c_void,
    pitch: usize,
    value: c_uint,
    element_bytes: c_uint,
    width: usize,
    height: usize,
}

/// `cudaHostNodeParams`.
#[repr(C)]
#[derive(Debug)]
pub struct HostNode {
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

/// Adds a node; its handle is the graph's with its number.
///
/// # Safety
/// `handle` is null or writable.
unsafe fn add(graph: *mut c_void, handle: *mut *mut c_void, node: Node) -> Result<(), Code> {
    let number = graph::with_graph(address_of(graph), |graph| {
        graph.nodes.push(node);
        graph.nodes.len() as u64
    })?;
    // SAFETY: the caller's promise.
    unsafe { store(handle, pointer_to((address_of(graph) << 24) | number)) }
}

runtime! {
    /// Creates an empty graph.
    fn cudaGraphCreate(graph: *mut *mut c_void, _flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(graph, pointer_to(graph::keep(Graph::default()))) }
    }

    /// Destroys a graph.
    fn cudaGraphDestroy(graph: *mut c_void) { graph::destroy(address_of(graph)) }

    /// Makes an executable copy of a graph.
    fn cudaGraphInstantiate(executable: *mut *mut c_void, graph: *mut c_void, _flags: u64) {
        let nodes = graph::with_graph(address_of(graph), |graph| graph.nodes.clone())?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(executable, pointer_to(graph::keep(Graph { nodes }))) }
    }

    /// The same.
    fn cudaGraphInstantiateWithFlags(executable: *mut *mut c_void, graph: *mut c_void, _flags: u64) {
        let nodes = graph::with_graph(address_of(graph), |graph| graph.nodes.clone())?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(executable, pointer_to(graph::keep(Graph { nodes }))) }
    }

    /// Replaces the nodes of an executable graph.
    fn cudaGraphExecUpdate(executable: *mut c_void, graph: *mut c_void, _result: *mut c_void) {
        let nodes = graph::with_graph(address_of(graph), |graph| graph.nodes.clone())?;
        graph::with_graph(address_of(executable), |executable| executable.nodes = nodes)
    }

    /// Runs a graph.
    fn cudaGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        graph::launch(address_of(executable), address_of(stream))
    }

    /// Uploads a graph: no effect.
    fn cudaGraphUpload(_executable: *mut c_void, _stream: *mut c_void) { Ok(()) }

    /// Destroys an executable graph.
    fn cudaGraphExecDestroy(executable: *mut c_void) { graph::destroy(address_of(executable)) }

    /// Returns the number of nodes; the handles where there is room for them.
    fn cudaGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) {
        let present = graph::with_graph(address_of(graph), |graph| graph.nodes.len())?;
        if !nodes.is_null() && !count.is_null() {
            // SAFETY: the program states how many handles fit.
            unsafe {
                for index in 0..present.min(*count) {
                    let handle = (address_of(graph) << 24) | (index as u64 + 1);
                    store(nodes.add(index), pointer_to(handle))?;
                }
            }
        }
        // SAFETY: the program passes where the number goes.
        unsafe { store(count, present) }
    }

    /// Adds a kernel.
    fn cudaGraphAddKernelNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
        node: *const KernelNode,
    ) {
        if node.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes the structure, and as many arguments as the kernel has.
        unsafe {
            let node = &*node;
            let kernel = crate::kernels::find_kernel(node.function)?;
            let shared = node.shared_bytes as usize;
            let extents = [node.grid, node.block];
            let launch = prepare(kernel, extents, node.arguments, shared, std::ptr::null_mut())?;
            add(graph, handle, Node::Launch(launch))
        }
    }

    /// Adds a contiguous copy.
    fn cudaGraphAddMemcpyNode1D(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
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
        unsafe { add(graph, handle, Node::Copy(copy)) }
    }

    /// Adds a fill.
    fn cudaGraphAddMemsetNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
        node: *const FillNode,
    ) {
        if node.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe {
            let node = &*node;
            let width = node.width as u64 * u64::from(node.element_bytes);
            let pitch = if node.height > 1 { node.pitch as u64 } else { width };
            let shape = Shape::rows(width, node.height as u64, pitch);
            let fill = Fill {
                place: Place { address: address_of(node.destination), shape },
                value: node.value,
                element_bytes: node.element_bytes,
                stream: 0,
            };
            add(graph, handle, Node::Fill(fill))
        }
    }

    /// Adds a function of the program.
    fn cudaGraphAddHostNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
        node: *const HostNode,
    ) {
        if node.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe {
            let call = HostCall {
                function: (*node).function,
                argument: address_of((*node).argument),
            };
            add(graph, handle, Node::Host(call))
        }
    }

    /// Adds a node that only orders others.
    fn cudaGraphAddEmptyNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { add(graph, handle, Node::Empty) }
    }

    /// Adds the nodes of another graph.
    fn cudaGraphAddChildGraphNode(
        handle: *mut *mut c_void,
        graph: *mut c_void,
        _dependencies: *const *mut c_void,
        _count: usize,
        child: *mut c_void,
    ) {
        let nodes = graph::with_graph(address_of(child), |child| child.nodes.clone())?;
        for node in nodes {
            // SAFETY: the program passes where the handle goes.
            unsafe { add(graph, handle, node)? };
        }
        Ok(())
    }

    /// Adds dependencies, which the order of creation satisfies already where they go forwards.
    fn cudaGraphAddDependencies(
        _graph: *mut c_void,
        from: *const *mut c_void,
        to: *const *mut c_void,
        _data: *const c_void,
        count: usize,
    ) {
        if count == 0 {
            return Ok(());
        }
        // The version 12 function has the count in the fourth place and no fifth.
        if crate::runtime::VERSION < 13 || from.is_null() || to.is_null() {
            return Ok(());
        }
        // SAFETY: the program states how many handles both lists hold.
        let backwards = unsafe {
            (0..count).any(|index| address_of(*from.add(index)) > address_of(*to.add(index)))
        };
        match backwards {
            true => {
                crate::say::report_missing("cudaGraphAddDependencies from a later to an earlier node");
                Err(errors::NOT_SUPPORTED)
            }
            false => Ok(()),
        }
    }
}
