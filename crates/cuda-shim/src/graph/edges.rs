//! Dependencies between the nodes of a graph: what a program adds, removes and asks for.

use std::ffi::c_void;

use super::{Graph, NODE_BITS, Node, add_node, with_graph};
use crate::abi::store;
use crate::errors::{self, Code};
use crate::memory::{address_of, pointer_to};

/// Handles of nodes as a program passes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) list: *const *mut c_void,
    pub(crate) count: usize,
}

impl Handles {
    /// Reads the handles.
    ///
    /// # Safety
    /// As many handles as stated are readable, or the list is null.
    pub(crate) unsafe fn read(self) -> Result<Vec<u64>, Code> {
        match (self.count, self.list.is_null()) {
            (0, _) => Ok(Vec::new()),
            (_, true) => Err(errors::INVALID_VALUE),
            // SAFETY: the caller's promise.
            (count, false) => Ok((0..count)
                .map(|index| address_of(unsafe { *self.list.add(index) }))
                .collect()),
        }
    }
}

/// Adds a node and stores its handle.
///
/// # Safety
/// `handle` is null or writable, and the dependencies are readable.
pub(crate) unsafe fn add(
    graph: *mut c_void,
    handle: *mut *mut c_void,
    dependencies: Handles,
    node: Node,
) -> Result<(), Code> {
    let allocated = node.allocated();
    // SAFETY: the caller's promise.
    let added = unsafe { dependencies.read() }
        .and_then(|dependencies| add_node(address_of(graph), node, &dependencies));
    if added.is_err() {
        allocated.into_iter().for_each(super::memory::end_unused);
    }
    // SAFETY: the caller's promise.
    unsafe { store(handle, pointer_to(added?)) }
}

/// Returns the place of a node in its graph; an error for a node of another graph.
pub(super) fn place_of_node(graph: u64, node: u64) -> Result<usize, Code> {
    let number = usize::try_from(node & ((1 << NODE_BITS) - 1)).unwrap_or(0);
    let place = number.checked_sub(1).filter(|_| node >> NODE_BITS == graph);
    place.ok_or(errors::INVALID_VALUE)
}

/// Returns the handle of the node at a place.
pub(super) fn handle(graph: u64, place: usize) -> u64 {
    (graph << NODE_BITS) | (place as u64 + 1)
}

/// Adds dependencies of `to` on `from`, or removes them.
///
/// # Errors
/// A node of another graph, a dependency to add that is there, or one to remove that is not.
fn change(graph: u64, from: &[u64], to: &[u64], adds: bool) -> Result<(), Code> {
    for (from, to) in from.iter().zip(to) {
        let (from, to) = (place_of_node(graph, *from)?, place_of_node(graph, *to)?);
        let done = with_graph(graph, |graph| {
            let known = from < graph.nodes.len() && from != to;
            let before = graph.before.get_mut(to).filter(|_| known)?;
            let there = before.iter().position(|other| *other == from);
            match (adds, there) {
                (true, Some(_)) => return None,
                (true, None) => before.push(from),
                (false, Some(at)) => drop(before.remove(at)),
                (false, None) => return None,
            }
            Some(())
        })?;
        done.ok_or(errors::INVALID_VALUE)?;
    }
    Ok(())
}

/// Removes a node and its dependencies; the others keep their places.
pub(crate) fn remove(node: u64) -> Result<(), Code> {
    let graph = node >> NODE_BITS;
    let place = place_of_node(graph, node)?;
    super::memory::refuse_memory(graph)?;
    let removed = with_graph(graph, |graph| {
        let removed = std::mem::replace(graph.nodes.get_mut(place)?, Node::Removed);
        graph
            .before
            .iter_mut()
            .for_each(|before| before.retain(|other| *other != place));
        graph.before.get_mut(place)?.clear();
        Some(removed)
    })?;
    for nested in removed.ok_or(errors::INVALID_VALUE)?.nested() {
        // Nothing else has the graph of a node; a body that the program has destroyed is gone already.
        let _ = super::destroy(*nested);
    }
    Ok(())
}

/// Reports whether all nodes of `others` are among `tips` or come before one of them.
pub(super) fn are_joined(graph: u64, others: &[u64], tips: &[u64]) -> Result<bool, Code> {
    let places = |nodes: &[u64]| {
        nodes
            .iter()
            .map(|node| place_of_node(graph, *node))
            .collect()
    };
    let (others, tips): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (places(others), places(tips));
    let (others, tips) = (others?, tips?);
    with_graph(graph, |graph| {
        others.iter().all(|other| graph.precedes(*other, &tips))
    })
}

/// A question of a program about the dependencies of a graph or a node.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question {
    /// Nodes that depend on nothing, of a graph.
    Roots,
    /// Nodes that a node depends on.
    Before,
    /// Nodes that depend on a node.
    After,
}

/// Returns the handles of the nodes in question; `of`: a graph or a node.
fn related(of: u64, question: Question) -> Result<Vec<u64>, Code> {
    let graph = match question {
        Question::Roots => of,
        _ => of >> NODE_BITS,
    };
    let node = match question {
        Question::Roots => None,
        _ => Some(place_of_node(graph, of)?),
    };
    let found = with_graph(graph, |graph| {
        let places = |chosen: &dyn Fn(&usize) -> bool| graph.present().filter(chosen).collect();
        let before = |at: &usize| graph.before(*at);
        match (question, node) {
            (Question::Before, Some(node)) => before(&node).to_vec(),
            (Question::After, Some(node)) => places(&|at| before(at).contains(&node)),
            _ => places(&|at| before(at).is_empty()),
        }
    })?;
    Ok(found.into_iter().map(|at| handle(graph, at)).collect())
}

/// Returns all dependencies of a graph: node and node that depends on it.
fn all_edges(graph: u64) -> Result<(Vec<u64>, Vec<u64>), Code> {
    let pairs = with_graph(graph, |graph| {
        let nodes = graph.before.iter().enumerate();
        let pairs = nodes.flat_map(|(to, before)| before.iter().map(move |from| (*from, to)));
        pairs.collect::<Vec<_>>()
    })?;
    Ok(pairs
        .into_iter()
        .map(|(from, to)| (handle(graph, from), handle(graph, to)))
        .unzip())
}

/// Destinations of handles, and of the data of their edges (`cudaGraphEdgeData`, 8 bytes); each may be null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) list: *mut *mut c_void,
    pub(crate) edges: *mut u64,
    /// Room, and then the number of all.
    pub(crate) count: *mut usize,
}

impl Wanted {
    /// Handles alone.
    pub(crate) fn handles(list: *mut *mut c_void, count: *mut usize) -> Self {
        Self {
            list,
            edges: std::ptr::null_mut(),
            count,
        }
    }

    /// Stores handles where there is room for them, without the number.
    ///
    /// # Safety
    /// Each pointer is null or writable, lists as far as the number states.
    pub(crate) unsafe fn fill(&self, handles: &[u64]) -> Result<(), Code> {
        // SAFETY: the caller's promise.
        unsafe {
            let room = self.count.as_ref().copied().unwrap_or(0);
            for (index, handle) in handles.iter().take(room).enumerate() {
                if !self.list.is_null() {
                    store(self.list.add(index), pointer_to(*handle))?;
                }
                if !self.edges.is_null() {
                    store(self.edges.add(index), 0)?;
                }
            }
        }
        Ok(())
    }

    /// Stores handles where there is room for them; then the number of all.
    ///
    /// # Safety
    /// As for [`Wanted::fill`].
    pub(crate) unsafe fn answer(&self, handles: &[u64]) -> Result<(), Code> {
        // SAFETY: the caller's promise.
        unsafe {
            self.fill(handles)?;
            store(self.count, handles.len())
        }
    }
}

/// Adds or removes dependencies.
///
/// # Safety
/// Both lists hold as many handles as `count` states.
pub(crate) unsafe fn change_edges(
    graph: *mut c_void,
    [from, to]: [*const *mut c_void; 2],
    count: usize,
    adds: bool,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let [from, to] = [from, to].map(|list| unsafe { Handles { list, count }.read() });
    if !adds {
        super::memory::refuse_memory(address_of(graph))?;
    }
    change(address_of(graph), &from?, &to?, adds)
}

/// Answers a question about a node.
///
/// # Safety
/// The places are null or writable.
pub(crate) unsafe fn list_related(
    node: *mut c_void,
    question: Question,
    wanted: Wanted,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe { wanted.answer(&related(address_of(node), question)?) }
}

/// Stores all dependencies of a graph.
///
/// # Safety
/// The places are null or writable.
pub(crate) unsafe fn list_edges(
    graph: *mut c_void,
    from: *mut *mut c_void,
    to: Wanted,
) -> Result<(), Code> {
    let (before, after) = all_edges(address_of(graph))?;
    // SAFETY: the caller's promise.
    unsafe {
        Wanted::handles(from, to.count).fill(&before)?;
        to.answer(&after)
    }
}

impl Graph {
    /// Returns the places of its nodes without those that the program destroyed.
    pub(super) fn present(&self) -> impl Iterator<Item = usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(place, node)| (!matches!(node, Node::Removed)).then_some(place))
    }

    /// Returns the places of the nodes in an order that satisfies all dependencies, by creation where several are
    /// possible; `None` if they are circular.
    pub(super) fn order(&self) -> Option<Vec<usize>> {
        let mut waits: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (to, before) in self.before.iter().enumerate() {
            for from in before {
                after.get_mut(*from)?.push(to);
            }
        }
        let ready = waits.iter().enumerate().filter(|(_, count)| **count == 0);
        let mut ready: std::collections::BTreeSet<usize> = ready.map(|(at, _)| at).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(at) = ready.pop_first() {
            order.push(at);
            for to in after.get(at)? {
                let left = waits.get_mut(*to)?;
                *left -= 1;
                if *left == 0 {
                    ready.insert(*to);
                }
            }
        }
        (order.len() == self.nodes.len()).then_some(order)
    }

    /// Reports whether a node is one of `of` or comes before one of them.
    pub(super) fn precedes(&self, node: usize, of: &[usize]) -> bool {
        let mut open = of.to_vec();
        let mut seen = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            if at == node {
                return true;
            }
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            open.extend(self.before(at));
        }
        false
    }
}
