//! Memory that graphs allocate, and its attributes.
//!
//! The memory of a node exists from its creation on, at one address for all launches, until the last graph that
//! has it is destroyed or the device is reset. The attributes follow what NVIDIA's sample `graphMemoryFootprint`
//! states of a driver: a launch takes the memory that its graph needs at a time, later launches take it again, and
//! a trim returns what is freed.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

use super::{FREE_ON_LAUNCH, Node, embedded, is_capturing, submit, with_graph, with_node};
use crate::client;
use crate::errors::{self, Code};
use crate::memory::{Place, address_of, allocate_from, pointer_to};
use crate::protocol::{CURRENT_POOL, NO_STREAM, kind};
use crate::state::{lock, state};
use crate::values;

/// `cudaMemAllocNodeParams`, the same in the driver interface: properties of a pool, then the size and the
/// result.
#[repr(C)]
#[derive(Debug)]
pub struct AllocationNode {
    pool: [u64; 11],
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    pointer: *mut c_void,
}

impl AllocationNode {
    /// The node with its memory, whose address the program gets.
    pub(crate) fn create(&mut self) -> Result<Node, Code> {
        if self.bytes == 0 {
            return Err(errors::INVALID_VALUE);
        }
        let address = allocate_for_graph(self.bytes as u64)?;
        self.pointer = pointer_to(address);
        Ok(Node::Allocate(address))
    }
}

impl AllocationNode {
    /// The parameters of a node.
    pub(crate) fn of_node(node: u64) -> Result<AllocationNode, Code> {
        let address = with_node(node, |node| node.allocated())?.ok_or(errors::INVALID_VALUE)?;
        let bytes = with_state(|state| state.sizes.get(&address).copied());
        Ok(AllocationNode {
            // Type of the allocation: pinned; location: a device.
            pool: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            access: std::ptr::null(),
            access_count: 0,
            bytes: bytes.unwrap_or(0) as usize,
            pointer: pointer_to(address),
        })
    }
}

impl Node {
    /// Returns the memory that the node allocates.
    pub(super) fn allocated(&self) -> Option<u64> {
        match self {
            Node::Allocate(address) => Some(*address),
            _ => None,
        }
    }
}

/// Returns the memory whose use a node ends.
pub(crate) fn freed_by(node: u64) -> Result<u64, Code> {
    with_node(node, |node| match node {
        Node::Free(address) => Ok(*address),
        _ => Err(errors::INVALID_VALUE),
    })?
}

/// Sizes and counts of bytes of the memory of graphs.
#[derive(Debug)]
pub(crate) struct GraphMemory {
    /// Size of each allocation, by address.
    sizes: BTreeMap<u64, u64>,
    /// Allocations that a launch made and nothing freed yet.
    live: BTreeMap<u64, u64>,
    /// Bytes of the live allocations.
    live_bytes: u64,
    /// Bytes that the device has for graphs: the most that were live since the last trim.
    held: u64,
    /// Most bytes that were held since the last reset of the mark of used memory.
    used_high: u64,
    /// The same of reserved memory.
    reserved_high: u64,
}

impl GraphMemory {
    pub(crate) const fn new() -> GraphMemory {
        GraphMemory {
            sizes: BTreeMap::new(),
            live: BTreeMap::new(),
            live_bytes: 0,
            held: 0,
            used_high: 0,
            reserved_high: 0,
        }
    }
}

/// Forgets all memory of graphs: the device was reset, and hands out its addresses again.
pub(crate) fn forget_memory() {
    with_state(|state| *state = GraphMemory::new());
}

fn with_state<T>(body: impl FnOnce(&mut GraphMemory) -> T) -> T {
    body(&mut lock(&state().graph_memory))
}

/// Checks whether a graph allocates the memory at an address.
pub(crate) fn owns(address: u64) -> bool {
    with_state(|state| state.sizes.contains_key(&address))
}

/// Reports whether a launch allocated the memory and nothing freed it yet.
fn is_in_use(address: u64) -> bool {
    with_state(|state| state.live.contains_key(&address))
}

/// Allocates memory for the launches of a graph.
pub(crate) fn allocate_for_graph(bytes: u64) -> Result<u64, Code> {
    let address = crate::memory::allocate(bytes, kind::DEVICE)?;
    with_state(|state| state.sizes.insert(address, bytes));
    Ok(address)
}

/// Marks the allocation of a node as in use: a launch has reached the node.
pub(crate) fn begin_use(address: u64) {
    with_state(|state| {
        let bytes = state.sizes.get(&address).copied().unwrap_or(0);
        // A launch that finds its allocation still in use reuses it.
        if state.live.insert(address, bytes).is_none() {
            state.live_bytes += bytes;
        }
        state.held = state.held.max(state.live_bytes);
        state.used_high = state.used_high.max(state.held);
        state.reserved_high = state.reserved_high.max(state.held);
    });
}

/// Marks an allocation as free. Its bytes are held until a trim, and its address while a graph has it.
pub(super) fn end_use(address: u64) {
    with_state(|state| {
        let bytes = state.live.remove(&address).unwrap_or(0);
        state.live_bytes -= bytes;
    });
    end_unused(address);
}

/// Frees memory outside of graphs, until the next launch of its graph.
///
/// # Errors
/// Memory that is not in use: no launch has allocated it, or it is freed.
pub(crate) fn free(address: u64) -> Result<(), Code> {
    // The launch that allocates it may be among the operations that wait.
    if !is_in_use(address) && !state().holds.load(Ordering::Relaxed) {
        return Err(errors::INVALID_VALUE);
    }
    end_use(address);
    Ok(())
}

/// Frees memory of graphs that are all destroyed, unless a launch left it in use.
pub(super) fn end_unused(address: u64) {
    if !is_in_use(address) && owns(address) && !super::is_allocated_by_graph(address) {
        with_state(|state| state.sizes.remove(&address));
        // The device may have lost its memory to a fault.
        let _ = crate::memory::end_in_order(address, NO_STREAM);
    }
}

/// Returns the nodes that allocate or free memory, of a graph and of those that belong to its nodes.
fn memory_nodes(graph: u64) -> Result<Vec<Node>, Code> {
    let is_memory = |node: &&Node| matches!(node, Node::Allocate(_) | Node::Free(_));
    let (mut found, nested) = with_graph(graph, |graph| {
        let own: Vec<Node> = graph.nodes.iter().filter(is_memory).cloned().collect();
        (own, embedded::nested(graph))
    })?;
    for graph in nested {
        found.extend(memory_nodes(graph)?);
    }
    Ok(found)
}

fn has_memory(graph: u64) -> Result<bool, Code> {
    Ok(!memory_nodes(graph)?.is_empty())
}

/// Refuses what CUDA does not permit for graphs that allocate or free memory: copies, and fewer nodes or edges.
pub(super) fn refuse_memory(graph: u64) -> Result<(), Code> {
    match has_memory(graph)? {
        true => Err(errors::INVALID_VALUE),
        false => Ok(()),
    }
}

/// A node with a copy of another graph, which may have no conditional nodes and no memory, as on a GPU.
pub(crate) fn child_node(child: u64) -> Result<Node, Code> {
    refuse_memory(child)?;
    embedded::refuse_moved(child)?;
    let is_conditional = |node: &Node| matches!(node, Node::Conditional(_));
    match with_graph(child, |graph| graph.nodes.iter().any(is_conditional))? {
        true => Err(errors::NOT_SUPPORTED),
        false => Ok(Node::Child(embedded::copied(child)?)),
    }
}

/// Refuses a second executable copy of such a graph.
pub(super) fn refuse_second(graph: u64) -> Result<(), Code> {
    let is_copied = || {
        let graphs = lock(&state().graphs);
        graphs.values().any(|other| other.source == graph)
    };
    match has_memory(graph)? && is_copied() {
        true => Err(errors::INVALID_VALUE),
        false => Ok(()),
    }
}

/// Refuses a node that frees other memory than that of graphs, or memory that the graph frees already.
pub(super) fn check_free(graph: u64, address: u64) -> Result<(), Code> {
    let is_it = |node: &Node| matches!(node, Node::Free(other) if *other == address);
    embedded::refuse_memory_node(graph)?;
    let freed = memory_nodes(graph)?.iter().any(is_it);
    match owns(address) && !freed {
        true => Ok(()),
        false => Err(errors::INVALID_VALUE),
    }
}

/// Refuses a launch while memory of the one before is in use, or frees it.
pub(super) fn begin_launch(graph: u64, flags: u64) -> Result<(), Code> {
    let nodes = memory_nodes(graph)?;
    let addresses = nodes.iter().filter_map(Node::allocated);
    for address in addresses.filter(|address| is_in_use(*address)) {
        match flags & FREE_ON_LAUNCH != 0 {
            true => end_use(address),
            false => return Err(errors::INVALID_VALUE),
        }
    }
    Ok(())
}

/// Returns memory that is not in use.
pub(crate) fn trim() {
    with_state(|state| state.held = state.live_bytes);
}

/// Returns an attribute (`cudaGraphMemAttributeType`, the same in the driver interface), bytes.
pub(crate) fn attribute(number: u32) -> Result<u64, Code> {
    with_state(|state| {
        Ok(match number {
            0 | 2 => state.held,
            1 => state.used_high,
            3 => state.reserved_high,
            _ => return Err(errors::INVALID_VALUE),
        })
    })
}

/// Resets a high-water mark, which can be set to 0 only.
pub(crate) fn set_attribute(number: u32, value: u64) -> Result<(), Code> {
    with_state(|state| match (number, value) {
        (1, 0) => {
            state.used_high = 0;
            Ok(())
        }
        (3, 0) => {
            state.reserved_high = 0;
            Ok(())
        }
        _ => Err(errors::INVALID_VALUE),
    })
}

/// Allocates memory in the order of a stream, which may capture: of a pool, or of the selected one.
pub(crate) fn allocate_in_order(
    bytes: u64,
    stream: u64,
    pool: Option<*mut c_void>,
) -> Result<u64, Code> {
    if !is_capturing(stream) {
        let (pool, kind) = match pool {
            Some(pool) => (address_of(pool), crate::pools::kind_of(pool)?),
            None => (CURRENT_POOL, kind::DEVICE),
        };
        client::describe_stream(stream)?;
        let address = allocate_from(pool, bytes, kind)?;
        if let Err(code) = submit(stream, Node::Begin(Place::linear(address, bytes))) {
            let _ = crate::memory::release(address);
            return Err(code);
        }
        return Ok(address);
    }
    let address = allocate_for_graph(bytes)?;
    if let Err(code) = submit(stream, Node::Allocate(address)) {
        end_unused(address);
        return Err(code);
    }
    Ok(address)
}

/// Frees memory in the order of a stream, which may capture.
pub(crate) fn release_in_order(address: u64, stream: u64) -> Result<(), Code> {
    if address == 0 {
        return Ok(());
    }
    match (is_capturing(stream), owns(address)) {
        (true, true) => submit(stream, Node::Free(address)),
        // A graph frees only what graphs allocate.
        (true, false) => Err(errors::INVALID_VALUE),
        // The launch that allocates it may be before it in the stream.
        (false, true) if values::is_held(stream) => submit(stream, Node::Free(address)),
        (false, true) => crate::memory::release(address),
        (false, false) => submit(stream, Node::End(address)),
    }
}
