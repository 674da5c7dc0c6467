//! Graphs: recorded operations, by capture of a stream or built node by node.
//!
//! A graph keeps its nodes in the order of their creation with the nodes that each depends on. A launch runs
//! them in an order that satisfies the dependencies; what these leave unordered is unordered for hazards.

mod any;
mod capture;
mod capture_info;
mod conditional;
mod edges;
mod memory;
mod run;

pub(crate) use any::{AnyNode, Layouts};
pub(crate) use capture::{
    begin_capture, captured, change_tips, end_capture, is_capturing, refuse_in_capture,
};
use capture::{join_capture, with_branch};
pub(crate) use capture_info::CaptureInfo;
pub(crate) use conditional::{ConditionalNode, create_condition};
pub(crate) use edges::{
    Handles, Question, Wanted, add, change_edges, list_edges, list_related, remove,
};
pub(crate) use memory::AllocationNode;
pub(crate) use memory::{
    allocate_in_order, attribute, end_use, owns, release_in_order, set_attribute, trim,
};

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::client;
use crate::errors::{self, Code};
use crate::kernels::Launch;
use crate::memory::{Copy, Fill, Place, address_of, pointer_to};
use crate::protocol::Shape;
use conditional::Conditional;

/// A function of the program with its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostCall {
    /// The function.
    pub function: unsafe extern "C" fn(*mut c_void),
    /// Its argument.
    pub argument: u64,
}

/// One operation of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A kernel.
    Launch(Launch),
    /// A copy.
    Copy(Copy),
    /// A fill.
    Fill(Fill),
    /// A function of the program.
    Host(HostCall),
    /// Record of an event.
    Record(u64),
    /// Wait for an event.
    Wait(u64),
    /// The nodes of another graph.
    Child(Box<Graph>),
    /// A node that only orders others.
    Empty,
    /// The beginning of the use of memory that the graph allocates.
    Allocate(u64),
    /// Its end.
    Free(u64),
    /// Bodies that run depending on a value.
    Conditional(Conditional),
}

/// `cudaMemsetParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug)]
pub struct FillNode {
    destination: *mut c_void,
    pitch: usize,
    value: u32,
    element_bytes: u32,
    width: usize,
    height: usize,
}

impl FillNode {
    /// The operation.
    pub(crate) fn fill(&self) -> Fill {
        let width = self.width as u64 * u64::from(self.element_bytes);
        let pitch = match self.height {
            0 | 1 => width,
            _ => self.pitch as u64,
        };
        Fill {
            place: Place {
                address: address_of(self.destination),
                shape: Shape::rows(width, self.height as u64, pitch),
            },
            value: self.value,
            element_bytes: self.element_bytes,
            stream: 0,
        }
    }
}

/// `cudaHostNodeParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug)]
pub struct HostNode {
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

impl HostNode {
    /// The operation.
    pub(crate) fn call(&self) -> HostCall {
        HostCall {
            function: self.function,
            argument: address_of(self.argument),
        }
    }
}

/// `cudaGraphInstantiateParams`, the same in the driver interface.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InstantiateParameters {
    flags: u64,
    upload_stream: *mut c_void,
    error_node: *mut c_void,
    result: i32,
}

impl InstantiateParameters {
    /// Stores the outcome of an instantiation that succeeds.
    pub(crate) fn succeed(&mut self) {
        self.error_node = std::ptr::null_mut();
        self.result = 0;
    }
}

impl Node {
    /// Runs the operation on a stream.
    pub(crate) fn run(&self, stream: u64) -> Result<(), Code> {
        match self {
            Node::Launch(launch) => Launch {
                stream,
                ..launch.clone()
            }
            .run(),
            Node::Copy(copy) => Copy { stream, ..*copy }.run(),
            Node::Fill(fill) => Fill { stream, ..*fill }.run(),
            Node::Host(call) => {
                client::order_host_function(stream)?;
                // SAFETY: the program gave the function with this argument for this call.
                unsafe { (call.function)(pointer_to(call.argument)) };
                Ok(())
            }
            Node::Record(event) => client::record_event(*event, stream),
            Node::Wait(event) => client::wait_event(stream, *event),
            Node::Child(graph) => graph.run(stream),
            Node::Empty => Ok(()),
            Node::Allocate(address) => {
                memory::begin_use(*address);
                Ok(())
            }
            Node::Free(address) => {
                end_use(*address);
                Ok(())
            }
            Node::Conditional(conditional) => conditional.run(stream),
        }
    }

    /// Its number in `CUgraphNodeType`.
    pub(crate) fn type_number(&self) -> i32 {
        match self {
            Node::Launch(_) => 0,
            Node::Copy(_) => 1,
            Node::Fill(_) => 2,
            Node::Host(_) => 3,
            Node::Child(_) => 4,
            Node::Empty => 5,
            Node::Wait(_) => 6,
            Node::Record(_) => 7,
            Node::Allocate(_) => 10,
            Node::Free(_) => 11,
            Node::Conditional(_) => 13,
        }
    }
}

/// A graph, or an executable copy of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    /// Operations in the order of their creation.
    nodes: Vec<Node>,
    /// Places of the nodes that each depends on.
    before: Vec<Vec<usize>>,
    /// Variables of its conditional nodes.
    conditions: Vec<conditional::Condition>,
}

/// Runs an operation, or adds it to the graph of a capturing stream.
pub(crate) fn submit(stream: u64, node: Node) -> Result<(), Code> {
    if let Node::Wait(event) = node {
        join_capture(stream, event);
    }
    let Some(graph) = captured(stream) else {
        return node.run(stream);
    };
    let branch = with_branch(stream, |branch| branch.clone()).unwrap_or_default();
    match node {
        Node::Record(event) => capture::record(event, branch),
        // The dependencies of the nodes hold what events inside a capture order.
        Node::Wait(_) => {}
        node => {
            let added = add_node(graph, node, &branch.tips)?;
            with_branch(stream, |branch| branch.tips = vec![added]);
        }
    }
    Ok(())
}

/// In place of a stream: the legacy default stream, for a call that waits for its copy.
pub(crate) const AWAITED: u64 = 3;

/// Performs a copy in its stream, or adds it to the graph that the stream captures. The host waits for it where
/// CUDA says so ("API synchronization behavior").
pub(crate) fn submit_copy(copy: Copy) -> Result<(), Code> {
    let waits = copy.stream == AWAITED;
    let stream = if waits { 0 } else { copy.stream };
    let copy = Copy { stream, ..copy };
    let runs = !is_capturing(stream);
    submit(stream, Node::Copy(copy))?;
    match runs && copy.is_awaited(waits) {
        true => client::join(stream),
        false => Ok(()),
    }
}

/// Runs a kernel in its stream, or adds it to the graph that the stream captures.
pub(crate) fn submit_launch(launch: Launch) -> Result<(), Code> {
    submit(launch.stream, Node::Launch(launch))
}

static GRAPHS: Mutex<BTreeMap<u64, Graph>> = Mutex::new(BTreeMap::new());

/// Distance between handles: a program that dereferences one faults at once.
const HANDLE_STEP: u64 = 16;

/// Keeps a graph; returns its handle.
pub(crate) fn keep(graph: Graph) -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0x4000);
    let handle = NEXT.fetch_add(HANDLE_STEP, Ordering::Relaxed);
    GRAPHS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, graph);
    handle
}

/// Uses a graph.
pub(crate) fn with_graph<T>(handle: u64, body: impl FnOnce(&mut Graph) -> T) -> Result<T, Code> {
    let mut graphs = GRAPHS.lock().unwrap_or_else(PoisonError::into_inner);
    graphs
        .get_mut(&handle)
        .map(body)
        .ok_or(errors::INVALID_VALUE)
}

/// Destroys a graph with the bodies of its conditional nodes.
pub(crate) fn destroy(handle: u64) -> Result<(), Code> {
    let graph = {
        let mut graphs = GRAPHS.lock().unwrap_or_else(PoisonError::into_inner);
        graphs.remove(&handle).ok_or(errors::INVALID_VALUE)?
    };
    for node in &graph.nodes {
        if let Node::Conditional(conditional) = node {
            conditional.destroy();
        }
    }
    Ok(())
}

/// Runs a graph on a stream, or adds its nodes to the graph that the stream captures.
pub(crate) fn launch(handle: u64, stream: u64) -> Result<(), Code> {
    if is_capturing(stream) {
        return submit(stream, child_node(handle)?);
    }
    conditional::assign_initial(handle, stream)?;
    with_graph(handle, |graph| graph.clone())?.run(stream)
}

/// Bits of a node's handle that hold its number in the graph; the graph's handle is above them.
const NODE_BITS: u32 = 24;

/// Adds a node that depends on others; returns its handle: the graph's with the node's number.
pub(crate) fn add_node(graph: u64, node: Node, dependencies: &[u64]) -> Result<u64, Code> {
    let places = dependencies
        .iter()
        .map(|other| edges::place_of_node(graph, *other));
    let mut before = places.collect::<Result<Vec<_>, _>>()?;
    before.sort_unstable();
    before.dedup();
    let number = with_graph(graph, |graph| {
        let known = before.iter().all(|place| *place < graph.nodes.len());
        known.then(|| {
            graph.nodes.push(node);
            graph.before.push(before);
            graph.nodes.len() as u64
        })
    })?;
    Ok((graph << NODE_BITS) | number.ok_or(errors::INVALID_VALUE)?)
}

/// A node with the operations of another graph, which may have no conditional nodes, as on a GPU.
pub(crate) fn child_node(child: u64) -> Result<Node, Code> {
    let graph = with_graph(child, |graph| graph.clone())?;
    let mut nodes = graph.nodes.iter();
    match nodes.any(|node| matches!(node, Node::Conditional(_))) {
        true => Err(errors::NOT_SUPPORTED),
        false => Ok(Node::Child(Box::new(graph))),
    }
}

/// Copies a graph with the bodies of its conditional nodes.
fn duplicate(graph: u64) -> Result<Graph, Code> {
    let mut graph = with_graph(graph, |graph| graph.clone())?;
    for node in &mut graph.nodes {
        if let Node::Conditional(conditional) = node {
            *conditional = conditional.duplicate()?;
        }
    }
    Ok(graph)
}

/// Copies a graph; returns the handle of the copy.
pub(crate) fn copy(graph: u64) -> Result<u64, Code> {
    Ok(keep(duplicate(graph)?))
}

/// Makes an executable copy of a graph; returns its handle.
pub(crate) fn instantiate(graph: u64) -> Result<u64, Code> {
    let order = with_graph(graph, |graph| graph.order())?;
    order.ok_or(errors::INVALID_VALUE)?;
    copy(graph)
}

/// Replaces the nodes of an executable graph by those of a graph.
pub(crate) fn replace_nodes(executable: u64, graph: u64) -> Result<(), Code> {
    let graph = duplicate(graph)?;
    with_graph(executable, |executable| *executable = graph)
}

/// Uses a node of the graph that made it.
pub(crate) fn with_node<T>(node: u64, body: impl FnOnce(&mut Node) -> T) -> Result<T, Code> {
    with_node_of(node >> NODE_BITS, node, body)
}

/// Replaces a node of the graph that made it, which must be of the same type.
pub(crate) fn set_node(node: u64, with: Node) -> Result<(), Code> {
    replace(node >> NODE_BITS, node, with)
}

/// Replaces a node of an executable graph, which must be of the same type.
pub(crate) fn replace(executable: u64, node: u64, with: Node) -> Result<(), Code> {
    let replaced = with_node_of(executable, node, |node| {
        let same = node.type_number() == with.type_number();
        if same {
            *node = with;
        }
        same
    })?;
    match replaced {
        true => Ok(()),
        false => Err(errors::INVALID_VALUE),
    }
}

/// Returns the handle of the node of a copy that a node of the graph became.
pub(crate) fn find_in_clone(node: u64, clone: u64) -> Result<u64, Code> {
    with_node_of(clone, node, |_| ())?;
    Ok((clone << NODE_BITS) | (node & ((1 << NODE_BITS) - 1)))
}

/// Uses a node of a copy of the graph that made it.
pub(crate) fn with_node_of<T>(
    graph: u64,
    node: u64,
    body: impl FnOnce(&mut Node) -> T,
) -> Result<T, Code> {
    let number = usize::try_from(node & ((1 << NODE_BITS) - 1)).unwrap_or(0);
    with_graph(graph, |graph| {
        let index = number.checked_sub(1)?;
        graph.nodes.get_mut(index).map(body)
    })?
    .ok_or(errors::INVALID_VALUE)
}

/// Returns the handles of all nodes of a graph.
pub(crate) fn nodes(graph: u64) -> Result<Vec<u64>, Code> {
    let present = with_graph(graph, |graph| graph.nodes.len())?;
    Ok((1..=present as u64)
        .map(|number| (graph << NODE_BITS) | number)
        .collect())
}
