//! Graphs: recorded operations, by capture of a stream or built node by node.
//!
//! A graph keeps its nodes in the order of their creation with the nodes that each depends on. A launch runs
//! them in an order that satisfies the dependencies; what these leave unordered is unordered for hazards.

mod any;
mod capture;
mod capture_info;
mod conditional;
mod describe;
mod disabled;
mod dot;
mod edges;
mod embedded;
mod host_call;
mod memory;
mod parameters;
mod run;
mod update;
mod user_objects;

pub(crate) use any::{AnyNode, Layouts};
pub(crate) use capture::{
    Beginning, Captures, abandon_capture, abandon_captures, begin_capture, captured, change_tips,
    end_capture, exchange_mode, is_capturing, refuse_captured_event, refuse_in_capture,
    refuse_unsafe, status,
};
use capture::{join_capture, with_branch};
pub(crate) use capture_info::CaptureInfo;
pub(crate) use conditional::{ConditionalNode, create_condition};
pub(crate) use describe::{
    KernelNode, NodeArguments, NodeAttribute, child_graph, copy_attributes, describe_copy,
    describe_kernel, event_of, get_attribute, set_attribute as set_node_attribute,
};
pub(crate) use disabled::{enable, is_enabled};
pub(crate) use dot::write_dot;
pub(crate) use edges::{
    Handles, Question, Wanted, add, change_edges, list_edges, list_related, remove,
};
pub(crate) use embedded::destroy_own;
pub(crate) use host_call::{HostCall, host_function_of, in_host_function};
pub(crate) use memory::{
    AllocationNode, GraphMemory, allocate_in_order, attribute, child_node, forget_memory, free,
    freed_by, owns, release_in_order, set_attribute, trim,
};
pub(crate) use parameters::{FillNode, HostNode, InstantiateParameters};
pub(crate) use run::launch;
pub(crate) use update::{UpdateResult, update};
pub(crate) use user_objects::{
    UserObject, create_object, release_from_graph, release_object, retain_for_graph, retain_object,
};

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::client;
use crate::errors::{self, Code};
use crate::kernels::Launch;
use crate::memory::{Copy, Fill, Place};
use crate::state::{lock, state};
use crate::values::{self, StreamValue};
use conditional::Conditional;
use embedded::Embedded;

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
    /// The nodes of a graph with this handle, which belongs to the node.
    Child(u64),
    /// A launch of an executable graph that waits: a copy, which ends with it.
    Waited(u64),
    /// A node that only orders others.
    Empty,
    /// The beginning of the use of memory that the graph allocates.
    Allocate(u64),
    /// Its end.
    Free(u64),
    /// The beginning of memory of a pool, outside of graphs.
    Begin(Place),
    /// Its end.
    End(u64),
    /// A write of a word, or a wait for its value.
    Value(StreamValue),
    /// Bodies that run depending on a value.
    Conditional(Conditional),
    /// A node that the program destroyed: the others keep their places.
    Removed,
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
                call.run(stream);
                Ok(())
            }
            Node::Record(event) => client::record_event(*event, stream),
            Node::Wait(event) => client::wait_event(stream, *event),
            Node::Child(graph) => with_graph(*graph, |graph| graph.clone())?.run(stream),
            Node::Waited(graph) => run::run_waited(*graph, stream),
            Node::Empty | Node::Removed => Ok(()),
            Node::Allocate(address) => {
                memory::begin_use(*address);
                Ok(())
            }
            Node::Free(address) => {
                memory::end_use(*address);
                Ok(())
            }
            Node::Begin(place) => {
                // The program may have freed the memory while the stream waited.
                let _ = crate::memory::note_access(stream, "allocation", place, true);
                Ok(())
            }
            Node::End(address) => crate::memory::end_in_order(*address, stream),
            // A launch of a graph runs whole: a wait in it finds the word or has failed.
            Node::Value(value) => match value.run(stream)? {
                true => Ok(()),
                false => Err(errors::NOT_SUPPORTED),
            },
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
            Node::Child(_) | Node::Waited(_) => 4,
            Node::Empty | Node::Removed | Node::Begin(_) | Node::End(_) => 5,
            Node::Wait(_) => 6,
            Node::Record(_) => 7,
            Node::Allocate(_) => 10,
            Node::Free(_) => 11,
            Node::Value(_) => 12,
            Node::Conditional(_) => 13,
        }
    }

    /// Handles of the graphs that belong to the node.
    fn nested(&self) -> &[u64] {
        match self {
            Node::Child(graph) | Node::Waited(graph) => std::slice::from_ref(graph),
            Node::Conditional(conditional) => conditional.bodies(),
            _ => &[],
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
    /// Handle of the graph that it is a copy of, whose nodes stand for its own; 0 for none.
    source: u64,
    /// Places of the nodes that launches leave out.
    disabled: BTreeSet<usize>,
    /// References to objects of the program.
    objects: Vec<u64>,
    /// Flags of `cudaGraphInstantiate`, of an executable graph.
    flags: u64,
    /// It belongs to a node.
    embedded: Option<Embedded>,
    /// The last launch, after which the next one runs.
    last_launch: Option<run::LastLaunch>,
}

/// Runs an operation, or adds it to the graph of a capturing stream.
pub(crate) fn submit(stream: u64, node: Node) -> Result<(), Code> {
    if let Node::Wait(event) = node {
        join_capture(stream, event);
    }
    let Some(graph) = captured(stream) else {
        capture::refuse_implicit(stream)?;
        if let Node::Record(event) = node {
            capture::forget_record(event);
        }
        return values::submit(stream, node);
    };
    capture::refuse_invalid(graph)?;
    match node {
        Node::Record(event) => {
            let branch = with_branch(stream, |branch| branch.clone()).unwrap_or_default();
            capture::record(event, branch);
            Ok(())
        }
        // The dependencies of the nodes hold what events inside a capture order.
        Node::Wait(_) => Ok(()),
        node => append(graph, stream, node),
    }
}

/// Adds a node after those of a capturing stream.
fn append(graph: u64, stream: u64, node: Node) -> Result<(), Code> {
    let tips = with_branch(stream, |branch| branch.tips.clone()).unwrap_or_default();
    let added = add_node(graph, node, &tips)?;
    with_branch(stream, |branch| branch.tips = vec![added]);
    Ok(())
}

/// `cudaEventRecordExternal` and `cudaEventWaitExternal`.
const EXTERNAL: u32 = 1;

/// Records or awaits an event with flags: an external one is a node of the graph of a capture.
pub(crate) fn submit_event(stream: u64, node: Node, flags: u32) -> Result<(), Code> {
    match (flags, captured(stream)) {
        (EXTERNAL, Some(graph)) => {
            capture::refuse_invalid(graph)?;
            append(graph, stream, node)
        }
        (0 | EXTERNAL, _) => submit(stream, node),
        _ => Err(errors::INVALID_VALUE),
    }
}

/// In place of a stream: the default stream that the call means, for a call that waits for its copy.
pub(crate) const AWAITED: u64 = 3;

/// Performs a copy in its stream, or adds it to the graph that the stream captures. The host waits for it where
/// CUDA says so ("API synchronization behavior").
pub(crate) fn submit_copy(copy: Copy) -> Result<(), Code> {
    submit_transfer(copy.stream, |stream, waits| {
        let awaited = copy.is_awaited(waits);
        (Node::Copy(Copy { stream, ..copy }), awaited)
    })
}

/// Performs a fill in its stream, or adds it to the graph that the stream captures. The host waits as for a copy.
pub(crate) fn submit_fill(fill: Fill) -> Result<(), Code> {
    submit_transfer(fill.stream, |stream, waits| {
        let awaited = waits && fill.is_awaited();
        (Node::Fill(Fill { stream, ..fill }), awaited)
    })
}

/// Submits the node that `node` makes of its stream and of whether the call waits, and waits where that says so.
fn submit_transfer(stream: u64, node: impl FnOnce(u64, bool) -> (Node, bool)) -> Result<(), Code> {
    let waits = stream == AWAITED;
    let stream = if waits {
        let meant = client::resolve_stream(0);
        refuse_in_capture(meant)?;
        meant
    } else {
        stream
    };
    let runs = !is_capturing(stream);
    let (node, awaited) = node(stream, waits);
    submit(stream, node)?;
    match runs && awaited {
        true => client::join(stream),
        false => Ok(()),
    }
}

/// Runs a kernel in its stream, or adds it to the graph that the stream captures.
pub(crate) fn submit_launch(launch: Launch) -> Result<(), Code> {
    submit(launch.stream, Node::Launch(launch))
}

/// Distance between handles: a program that dereferences one faults at once.
const HANDLE_STEP: u64 = 16;

/// Keeps a graph; returns its handle.
pub(crate) fn keep(graph: Graph) -> u64 {
    let handle = state().next_graph.fetch_add(HANDLE_STEP, Ordering::Relaxed);
    lock(&state().graphs).insert(handle, graph);
    handle
}

/// Uses a graph.
pub(crate) fn with_graph<T>(handle: u64, body: impl FnOnce(&mut Graph) -> T) -> Result<T, Code> {
    let mut graphs = lock(&state().graphs);
    graphs
        .get_mut(&handle)
        .map(body)
        .ok_or(errors::INVALID_VALUE)
}

/// Destroys a graph with the bodies of its conditional nodes.
pub(crate) fn destroy(handle: u64) -> Result<(), Code> {
    // The lock ends here, because functions that destroy objects may use graphs.
    let graph = {
        let mut graphs = lock(&state().graphs);
        graphs.remove(&handle).ok_or(errors::INVALID_VALUE)?
    };
    for nested in graph.nodes.iter().flat_map(Node::nested) {
        // A body that the program has destroyed is gone already.
        let _ = destroy(*nested);
    }
    let allocated = graph.nodes.iter().filter_map(Node::allocated);
    allocated.for_each(memory::end_unused);
    user_objects::release_all(&graph.objects);
    graph.last_launch.into_iter().for_each(run::LastLaunch::end);
    Ok(())
}

/// Reports whether a graph has a node that allocates the memory at an address.
fn is_allocated_by_graph(address: u64) -> bool {
    let is_it = |node: &Node| node.allocated() == Some(address);
    let graphs = lock(&state().graphs);
    graphs.values().any(|graph| graph.nodes.iter().any(is_it))
}

/// Bits of a node's handle that hold its number in the graph; the graph's handle is above them.
const NODE_BITS: u32 = 24;

/// Adds a node that depends on others; returns its handle: the graph's with the node's number.
pub(crate) fn add_node(graph: u64, node: Node, dependencies: &[u64]) -> Result<u64, Code> {
    match &node {
        Node::Launch(launch) => launch.check()?,
        Node::Allocate(_) => embedded::refuse_memory_node(graph)?,
        Node::Free(address) => memory::check_free(graph, *address)?,
        Node::Child(child) => embedded::check_child(graph, *child)?,
        _ => {}
    }
    let child = node.child();
    let places = dependencies
        .iter()
        .map(|other| edges::place_of_node(graph, *other));
    let mut before = places.collect::<Result<Vec<_>, _>>()?;
    before.sort_unstable();
    if before.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(errors::INVALID_VALUE);
    }
    let number = with_graph(graph, |graph| {
        let known = before.iter().all(|place| *place < graph.nodes.len());
        known.then(|| {
            graph.nodes.push(node);
            graph.before.push(before);
            graph.nodes.len() as u64
        })
    })?;
    let number = number.ok_or(errors::INVALID_VALUE)?;
    child.into_iter().for_each(embedded::note_child);
    Ok((graph << NODE_BITS) | number)
}

/// Copies a graph with those that belong to its nodes.
fn duplicate(source: u64) -> Result<Graph, Code> {
    let graph = with_graph(source, |graph| graph.clone())?;
    let mut graph = Graph {
        source,
        last_launch: None,
        embedded: None,
        ..graph
    };
    for node in &mut graph.nodes {
        match node {
            Node::Conditional(conditional) => *conditional = conditional.duplicate()?,
            Node::Child(child) => *child = embedded::copied(*child)?,
            _ => {}
        }
    }
    user_objects::retain_all(&graph.objects);
    Ok(graph)
}

/// Copies a graph for the program, which may not copy one with memory.
pub(crate) fn clone_graph(graph: u64) -> Result<u64, Code> {
    memory::refuse_memory(graph)?;
    copy(graph)
}

/// Copies a graph; returns the handle of the copy.
fn copy(graph: u64) -> Result<u64, Code> {
    Ok(keep(duplicate(graph)?))
}

/// All flags of `cudaGraphInstantiate`.
const INSTANTIATE_FLAGS: u64 = 15;
/// `cudaGraphInstantiateFlagAutoFreeOnLaunch`.
const FREE_ON_LAUNCH: u64 = 1;
/// `cudaGraphInstantiateFlagUpload`.
const UPLOAD: u64 = 2;

/// Makes an executable copy of a graph; returns its handle.
pub(crate) fn instantiate(graph: u64, flags: u64) -> Result<u64, Code> {
    if flags > INSTANTIATE_FLAGS {
        return Err(errors::INVALID_VALUE);
    }
    let order = with_graph(graph, |graph| graph.order())?;
    order.ok_or(errors::INVALID_VALUE)?;
    embedded::refuse_moved(graph)?;
    memory::refuse_second(graph)?;
    let executable = copy(graph)?;
    with_graph(executable, |graph| {
        graph.flags = flags & !UPLOAD;
    })?;
    Ok(executable)
}

/// Returns the flags of an executable graph that have an effect on it.
pub(crate) fn flags(executable: u64) -> Result<u64, Code> {
    with_graph(executable, |graph| graph.flags)
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
    match &with {
        Node::Launch(launch) => launch.check()?,
        Node::Child(child) => embedded::check_child(executable, *child)?,
        _ => {}
    }
    let child = with.child();
    let replaced = with_node_of(executable, node, |node| {
        let same = node.type_number() == with.type_number();
        same.then(|| std::mem::replace(node, with))
    })?;
    let replaced = replaced.ok_or(errors::INVALID_VALUE)?;
    child.into_iter().for_each(embedded::note_child);
    for nested in replaced.nested() {
        destroy(*nested)?;
    }
    Ok(())
}

/// Returns the handle of the node of a copy that a node of the graph became.
pub(crate) fn find_in_clone(node: u64, clone: u64) -> Result<u64, Code> {
    with_node_of(clone, node, |_| ())?;
    Ok((clone << NODE_BITS) | (node & ((1 << NODE_BITS) - 1)))
}

/// Returns the handle of the graph that has a node: this one if the node is its own or that of its source, or one
/// that belongs to its nodes.
fn holder(graph: u64, node: u64) -> Option<u64> {
    let of = node >> NODE_BITS;
    let (source, nested) =
        with_graph(graph, |graph| (graph.source, embedded::nested(graph))).ok()?;
    match of == graph || of == source {
        true => Some(graph),
        false => nested.into_iter().find_map(|nested| holder(nested, node)),
    }
}

/// Uses a node of a graph, named by its own handle or by that of the graph that it is a copy of.
pub(crate) fn with_node_of<T>(
    graph: u64,
    node: u64,
    body: impl FnOnce(&mut Node) -> T,
) -> Result<T, Code> {
    let number = usize::try_from(node & ((1 << NODE_BITS) - 1)).unwrap_or(0);
    let graph = holder(graph, node).ok_or(errors::INVALID_VALUE)?;
    with_graph(graph, |graph| {
        let node = graph.nodes.get_mut(number.checked_sub(1)?);
        node.filter(|node| !matches!(node, Node::Removed)).map(body)
    })?
    .ok_or(errors::INVALID_VALUE)
}

/// Returns the handles of all nodes of a graph.
pub(crate) fn nodes(graph: u64) -> Result<Vec<u64>, Code> {
    with_graph(graph, |found| {
        let places = found.present();
        places.map(|place| edges::handle(graph, place)).collect()
    })
}
