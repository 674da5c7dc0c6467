//! Graphs: recorded operations, by capture of a stream or built node by node.
//!
//! A graph keeps its nodes in the order of their creation, which satisfies every dependency, and runs
//! them in that order on the stream of its launch.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::store;
use crate::client;
use crate::errors::{self, Code};
use crate::kernels::Launch;
use crate::memory::{Copy, Fill, Place, address_of, pointer_to};
use crate::protocol::{Shape, kind};

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
    Child(Vec<Node>),
    /// A node that only orders others.
    Empty,
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
            Node::Child(nodes) => nodes.iter().try_for_each(|node| node.run(stream)),
            Node::Empty => Ok(()),
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
        }
    }
}

/// A graph, or an executable copy of one.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Operations in order.
    pub(crate) nodes: Vec<Node>,
}

type Shared = Arc<Mutex<Graph>>;

struct Captures {
    /// The graph that each capturing stream adds to.
    streams: BTreeMap<u64, Shared>,
    /// The graph in which an event was recorded.
    events: BTreeMap<u64, Shared>,
}

static CAPTURES: Mutex<Captures> = Mutex::new(Captures {
    streams: BTreeMap::new(),
    events: BTreeMap::new(),
});

/// Capturing streams: most programs have none and pay one load.
static CAPTURING: AtomicUsize = AtomicUsize::new(0);

fn captured(stream: u64) -> Option<Shared> {
    if CAPTURING.load(Ordering::Acquire) == 0 {
        return None;
    }
    let captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures.streams.get(&stream).cloned()
}

/// Runs an operation, or adds it to the graph of a capturing stream.
pub(crate) fn submit(stream: u64, node: Node) -> Result<(), Code> {
    if let Node::Wait(event) = node {
        join_capture(stream, event);
    }
    let Some(graph) = captured(stream) else {
        return node.run(stream);
    };
    if let Node::Record(event) = node {
        let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
        captures.events.insert(event, graph.clone());
    }
    let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
    // The order of the nodes holds what events inside a capture order.
    if !matches!(node, Node::Record(_) | Node::Wait(_)) {
        graph.nodes.push(node);
    }
    Ok(())
}

/// Runs a kernel in its stream, or adds it to the graph that the stream captures.
pub(crate) fn submit_launch(launch: Launch) -> Result<(), Code> {
    submit(launch.stream, Node::Launch(launch))
}

/// A stream that waits for an event of a capture takes part in it.
fn join_capture(stream: u64, event: u64) {
    if CAPTURING.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(graph) = captures.events.get(&event).cloned()
        && captures.streams.insert(stream, graph).is_none()
    {
        CAPTURING.fetch_add(1, Ordering::Release);
    }
}

/// Whether operations of the stream are recorded.
pub(crate) fn is_capturing(stream: u64) -> bool {
    captured(stream).is_some()
}

/// Memory that graphs allocate, by address. Each launch of a graph uses it again at the same address, also
/// where the program has freed it after the launch before: it exists until the device is reset.
static GRAPH_MEMORY: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Checks whether a graph allocates the memory at an address.
pub(crate) fn owns(address: u64) -> bool {
    let owned = GRAPH_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    owned.contains(&address)
}

/// Allocates memory for the launches of a graph.
pub(crate) fn allocate_for_graph(bytes: u64) -> Result<u64, Code> {
    let address = crate::memory::allocate(bytes, kind::DEVICE)?;
    let mut owned = GRAPH_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    owned.insert(address);
    Ok(address)
}

/// Allocates memory in the order of a stream, which may capture.
pub(crate) fn allocate_in_order(bytes: u64, stream: u64) -> Result<u64, Code> {
    match is_capturing(stream) {
        true => allocate_for_graph(bytes),
        false => crate::memory::allocate(bytes, kind::DEVICE),
    }
}

/// Frees memory in the order of a stream, which may capture.
pub(crate) fn release_in_order(address: u64, stream: u64) -> Result<(), Code> {
    match is_capturing(stream) {
        true => submit(stream, Node::Empty),
        false => crate::memory::release(address),
    }
}

/// Refuses an operation that would have to wait for a capturing stream.
pub(crate) fn refuse_in_capture(stream: u64) -> Result<(), Code> {
    match is_capturing(stream) {
        true => Err(errors::CAPTURE_UNSUPPORTED),
        false => Ok(()),
    }
}

/// Begins a capture.
pub(crate) fn begin_capture(stream: u64) -> Result<(), Code> {
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    if captures.streams.contains_key(&stream) {
        return Err(errors::CAPTURE_UNSUPPORTED);
    }
    captures.streams.insert(stream, Shared::default());
    CAPTURING.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Ends a capture; returns the handle of its graph.
pub(crate) fn end_capture(stream: u64) -> Result<u64, Code> {
    let graph = {
        let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = captures.streams.remove(&stream);
        let graph = graph.ok_or(errors::CAPTURE_UNMATCHED)?;
        let before = captures.streams.len() + 1;
        captures
            .streams
            .retain(|_, other| !Arc::ptr_eq(other, &graph));
        captures
            .events
            .retain(|_, other| !Arc::ptr_eq(other, &graph));
        CAPTURING.fetch_sub(before - captures.streams.len(), Ordering::Release);
        graph
    };
    let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(keep(std::mem::take(&mut *graph)))
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

/// Destroys a graph.
pub(crate) fn destroy(handle: u64) -> Result<(), Code> {
    let mut graphs = GRAPHS.lock().unwrap_or_else(PoisonError::into_inner);
    graphs
        .remove(&handle)
        .map(drop)
        .ok_or(errors::INVALID_VALUE)
}

/// Runs a graph on a stream, or adds its nodes to the graph that the stream captures.
pub(crate) fn launch(handle: u64, stream: u64) -> Result<(), Code> {
    let nodes = with_graph(handle, |graph| graph.nodes.clone())?;
    nodes.into_iter().try_for_each(|node| submit(stream, node))
}

/// Bits of a node's handle that hold its number in the graph; the graph's handle is above them.
const NODE_BITS: u32 = 24;

/// Adds a node; returns its handle: the graph's with the node's number.
pub(crate) fn add_node(graph: u64, node: Node) -> Result<u64, Code> {
    let number = with_graph(graph, |graph| {
        graph.nodes.push(node);
        graph.nodes.len() as u64
    })?;
    Ok((graph << NODE_BITS) | number)
}

/// A node with the operations of another graph.
pub(crate) fn child_node(child: u64) -> Result<Node, Code> {
    with_graph(child, |child| Node::Child(child.nodes.clone()))
}

/// Copies a graph; returns the handle of the copy.
pub(crate) fn copy(graph: u64) -> Result<u64, Code> {
    let nodes = with_graph(graph, |graph| graph.nodes.clone())?;
    Ok(keep(Graph { nodes }))
}

/// Replaces the nodes of an executable graph by those of a graph.
pub(crate) fn replace_nodes(executable: u64, graph: u64) -> Result<(), Code> {
    let nodes = with_graph(graph, |graph| graph.nodes.clone())?;
    with_graph(executable, |executable| executable.nodes = nodes)
}

/// Uses a node of the graph that made it.
pub(crate) fn with_node<T>(node: u64, body: impl FnOnce(&mut Node) -> T) -> Result<T, Code> {
    with_node_of(node >> NODE_BITS, node, body)
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

/// Stores the number of nodes; their handles too, where there is room for them.
///
/// # Safety
/// `nodes` is null, or as many handles as `count` states are writable.
pub(crate) unsafe fn list_nodes(
    graph: u64,
    nodes: *mut *mut c_void,
    count: *mut usize,
) -> Result<(), Code> {
    let present = with_graph(graph, |graph| graph.nodes.len())?;
    // SAFETY: the caller's promise.
    unsafe {
        if !nodes.is_null() && !count.is_null() {
            for index in 0..present.min(*count) {
                let handle = (graph << NODE_BITS) | (index as u64 + 1);
                store(nodes.add(index), pointer_to(handle))?;
            }
        }
        store(count, present)
    }
}

/// Fails for dependencies that the order of creation does not satisfy.
///
/// # Safety
/// As many handles as stated are readable in both lists.
pub(crate) unsafe fn check_dependencies(
    from: *const *mut c_void,
    to: *const *mut c_void,
    count: usize,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let backwards = unsafe {
        (0..count).any(|index| address_of(*from.add(index)) > address_of(*to.add(index)))
    };
    match backwards {
        true => {
            crate::connection::report_missing("a dependency of an earlier on a later graph node");
            Err(errors::NOT_SUPPORTED)
        }
        false => Ok(()),
    }
}
