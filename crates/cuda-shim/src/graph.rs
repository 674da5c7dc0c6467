//! Graphs: recorded operations, by capture of a stream or built node by node.
//!
//! A graph keeps its nodes in the order of their creation, which satisfies every dependency, and runs
//! them in that order on the stream of its launch.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::client;
use crate::errors::{self, Code};
use crate::kernels::Launch;
use crate::memory::{Copy, Fill};

/// A function of the program with its argument.
#[derive(Debug, Clone, Copy)]
pub struct HostCall {
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
    /// A node that only orders others.
    Empty,
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
                unsafe { (call.function)(crate::memory::pointer_to(call.argument)) };
                Ok(())
            }
            Node::Record(event) => client::record_event(*event, stream),
            Node::Wait(event) => client::wait_event(stream, *event),
            Node::Empty => Ok(()),
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
