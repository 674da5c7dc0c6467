//! Graphs that belong to a node of another one: copies, and graphs that the program moved there.

use super::{Graph, Node, copy, destroy, with_graph};
use crate::errors::{self, Code};

/// Origin of a graph that belongs to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Embedded {
    /// The node has a copy of the program's graph.
    Copied,
    /// The node took the graph over (`cudaGraphChildGraphOwnershipMove`).
    Moved,
}

fn origin(graph: u64) -> Result<Option<Embedded>, Code> {
    with_graph(graph, |graph| graph.embedded)
}

/// Refuses what CUDA does not permit for a graph that was moved: an executable copy, another parent, and its use in an
/// update.
pub(super) fn refuse_moved(graph: u64) -> Result<(), Code> {
    match origin(graph)? {
        Some(Embedded::Moved) => Err(errors::INVALID_VALUE),
        _ => Ok(()),
    }
}

/// Refuses a node that allocates or frees memory in a graph that belongs to a node.
pub(super) fn refuse_memory_node(graph: u64) -> Result<(), Code> {
    match origin(graph)? {
        Some(_) => Err(errors::INVALID_VALUE),
        None => Ok(()),
    }
}

impl Node {
    /// Returns the handle of the graph of a child node.
    pub(super) fn child(&self) -> Option<u64> {
        match self {
            Node::Child(graph) => Some(*graph),
            _ => None,
        }
    }
}

/// Refuses a child that has another parent, or that the graph is part of: a graph in itself would have no end.
pub(super) fn check_child(graph: u64, child: u64) -> Result<(), Code> {
    match origin(child)? == Some(Embedded::Moved) || is_part(graph, child) {
        true => Err(errors::INVALID_VALUE),
        false => Ok(()),
    }
}

fn is_part(graph: u64, of: u64) -> bool {
    let nested = with_graph(of, |of| nested(of)).unwrap_or_default();
    graph == of || nested.into_iter().any(|nested| is_part(graph, nested))
}

/// Returns the handles of the graphs that belong to nodes of a graph.
pub(super) fn nested(graph: &Graph) -> Vec<u64> {
    let nested = graph.nodes.iter().flat_map(Node::nested);
    nested.copied().collect()
}

/// Copies a graph for a node, to which the copy belongs.
pub(super) fn copied(graph: u64) -> Result<u64, Code> {
    let copied = copy(graph)?;
    with_graph(copied, |graph| graph.embedded = Some(Embedded::Copied))?;
    Ok(copied)
}

/// Keeps that a graph belongs to a node from now on.
pub(super) fn note_child(child: u64) {
    // A copy was noted when it was made.
    let _ = with_graph(child, |child| {
        child.embedded.get_or_insert(Embedded::Moved);
    });
}

/// Destroys a graph for the program. One of a node ends with the node.
pub(crate) fn destroy_own(graph: u64) -> Result<(), Code> {
    match origin(graph)? {
        Some(_) => Err(errors::INVALID_VALUE),
        None => destroy(graph),
    }
}
