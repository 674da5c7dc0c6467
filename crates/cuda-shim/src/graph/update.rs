//! Updates of executable graphs by the nodes of another graph.

use std::ffi::{c_int, c_void};

use super::{Graph, Node, edges, with_graph};
use crate::errors::{self, Code};
use crate::memory::pointer_to;

const TOPOLOGY_CHANGED: c_int = 2;
const NODE_TYPE_CHANGED: c_int = 3;

/// `cudaGraphExecUpdateResultInfo`, the same in the driver interface.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct UpdateResult {
    result: c_int,
    node: *mut c_void,
    from: *mut c_void,
}

impl UpdateResult {
    fn new(result: c_int, node: u64) -> UpdateResult {
        UpdateResult {
            result,
            node: pointer_to(node),
            from: std::ptr::null_mut(),
        }
    }

    /// The error of the call.
    pub(crate) fn code(&self) -> Result<(), Code> {
        match self.result {
            0 => Ok(()),
            _ => Err(errors::GRAPH_UPDATE_FAILURE),
        }
    }
}

/// Replaces the nodes of an executable graph by those of a graph of the same form; returns why it cannot.
pub(crate) fn update(executable: u64, graph: u64) -> Result<UpdateResult, Code> {
    // All nodes are compared first, so that a refusal leaves the executable graph as it was.
    super::embedded::refuse_moved(graph)?;
    let result = compare(executable, graph)?;
    if result.result == 0 {
        assign(executable, graph)?;
    }
    Ok(result)
}

/// Dependencies of each node, in one order.
fn dependencies(graph: &Graph) -> Vec<Vec<usize>> {
    let mut before = graph.before.clone();
    before.iter_mut().for_each(|places| places.sort_unstable());
    before
}

fn compare(executable: u64, graph: u64) -> Result<UpdateResult, Code> {
    let old = with_graph(executable, |graph| graph.clone())?;
    let new = with_graph(graph, |graph| graph.clone())?;
    if dependencies(&old) != dependencies(&new) {
        return Ok(UpdateResult::new(TOPOLOGY_CHANGED, 0));
    }
    for (place, (old, new)) in old.nodes.iter().zip(&new.nodes).enumerate() {
        let (old_graphs, new_graphs) = (old.nested(), new.nested());
        if old.type_number() != new.type_number() || old_graphs.len() != new_graphs.len() {
            return Ok(UpdateResult::new(
                NODE_TYPE_CHANGED,
                edges::handle(graph, place),
            ));
        }
        for (old, new) in old_graphs.iter().zip(new_graphs) {
            let nested = compare(*old, *new)?;
            if nested.result != 0 {
                return Ok(nested);
            }
        }
    }
    Ok(UpdateResult::new(0, 0))
}

/// Takes over the operations, so that handles of nodes keep their meaning for the executable graph.
fn assign(executable: u64, graph: u64) -> Result<(), Code> {
    let new = with_graph(graph, |graph| graph.clone())?;
    for (place, new) in new.nodes.into_iter().enumerate() {
        let old = with_graph(executable, |graph| graph.nodes.get(place).cloned())?;
        let old = old.ok_or(errors::INVALID_VALUE)?;
        match new.nested() {
            [] => {
                with_graph(executable, |graph| replace_at(graph, place, new))?;
                if let Some(address) = old.allocated() {
                    super::memory::end_unused(address);
                }
            }
            graphs => {
                for (old, new) in old.nested().iter().zip(graphs) {
                    assign(*old, *new)?;
                }
            }
        }
    }
    with_graph(executable, |graph| graph.conditions = new.conditions)
}

fn replace_at(graph: &mut Graph, place: usize, node: Node) {
    if let Some(old) = graph.nodes.get_mut(place) {
        *old = node;
    }
}
