//! Dependencies of graphs. In version 12 the functions without `_v2` have no data of edges: what follows is one place
//! earlier.

use std::ffi::c_void;

use crate::abi::runtime;
use crate::graph::{
    Question, Wanted, change_edges as change, list_edges as edges, list_related as related,
};

/// The number in the place of the data in version 12, else the last one.
fn count_of(data: *const c_void, last: usize) -> usize {
    if crate::runtime::VERSION < 13 {
        data.addr()
    } else {
        last
    }
}

/// Returns the destinations of results in version 12 or 13.
fn wanted(list: *mut *mut c_void, data: *mut c_void, count: *mut usize) -> Wanted {
    if crate::runtime::VERSION < 13 {
        Wanted::handles(list, data.cast())
    } else {
        Wanted {
            list,
            edges: data.cast(),
            count,
        }
    }
}

runtime! {
    /// Adds dependencies.
    fn cudaGraphAddDependencies(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles both lists hold.
        unsafe { change(graph, [from, to], count_of(data, count), true) }
    }

    /// The same with data of edges.
    fn cudaGraphAddDependencies_v2(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, _data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles both lists hold.
        unsafe { change(graph, [from, to], count, true) }
    }

    /// Removes dependencies.
    fn cudaGraphRemoveDependencies(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles both lists hold.
        unsafe { change(graph, [from, to], count_of(data, count), false) }
    }

    /// The same with data of edges.
    fn cudaGraphRemoveDependencies_v2(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, _data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles both lists hold.
        unsafe { change(graph, [from, to], count, false) }
    }

    /// Returns the nodes that depend on nothing.
    fn cudaGraphGetRootNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) {
        // SAFETY: the program passes where the results go.
        unsafe { related(graph, Question::Roots, Wanted::handles(nodes, count)) }
    }

    /// Returns the nodes that a node depends on.
    fn cudaGraphNodeGetDependencies(
        node: *mut c_void, nodes: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { related(node, Question::Before, wanted(nodes, data, count)) }
    }

    /// The same with data of edges.
    fn cudaGraphNodeGetDependencies_v2(
        node: *mut c_void, nodes: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { related(node, Question::Before, Wanted { list: nodes, edges: data.cast(), count }) }
    }

    /// Returns the nodes that depend on a node.
    fn cudaGraphNodeGetDependentNodes(
        node: *mut c_void, nodes: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { related(node, Question::After, wanted(nodes, data, count)) }
    }

    /// The same with data of edges.
    fn cudaGraphNodeGetDependentNodes_v2(
        node: *mut c_void, nodes: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { related(node, Question::After, Wanted { list: nodes, edges: data.cast(), count }) }
    }

    /// Returns all dependencies.
    fn cudaGraphGetEdges(
        graph: *mut c_void, from: *mut *mut c_void, to: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { edges(graph, from, wanted(to, data, count)) }
    }

    /// The same with data of edges.
    fn cudaGraphGetEdges_v2(
        graph: *mut c_void, from: *mut *mut c_void, to: *mut *mut c_void, data: *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { edges(graph, from, Wanted { list: to, edges: data.cast(), count }) }
    }
}
