//! Dependencies of graphs.

use std::ffi::c_void;

use crate::abi::initialized;
use crate::graph::{Question, Wanted, change_edges, list_edges, list_related, remove};
use crate::memory::address_of;

initialized! {
    /// Adds dependencies.
    fn cuGraphAddDependencies(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { change_edges(graph, [from, to], count, true) }
    }

    /// The same with data of edges.
    fn cuGraphAddDependencies_v2(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, _data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { change_edges(graph, [from, to], count, true) }
    }

    /// Removes dependencies.
    fn cuGraphRemoveDependencies(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { change_edges(graph, [from, to], count, false) }
    }

    /// The same with data of edges.
    fn cuGraphRemoveDependencies_v2(
        graph: *mut c_void, from: *const *mut c_void, to: *const *mut c_void, _data: *const c_void, count: usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { change_edges(graph, [from, to], count, false) }
    }

    /// Returns the nodes that depend on nothing.
    fn cuGraphGetRootNodes(
        graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_related(graph, Question::Roots, Wanted::handles(nodes, count)) }
    }

    /// Returns the nodes that a node depends on.
    fn cuGraphNodeGetDependencies(
        node: *mut c_void, nodes: *mut *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_related(node, Question::Before, Wanted::handles(nodes, count)) }
    }

    /// The same with data of edges.
    fn cuGraphNodeGetDependencies_v2(
        node: *mut c_void, nodes: *mut *mut c_void, edges: *mut u64, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_related(node, Question::Before, Wanted { list: nodes, edges, count }) }
    }

    /// Returns the nodes that depend on a node.
    fn cuGraphNodeGetDependentNodes(
        node: *mut c_void, nodes: *mut *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_related(node, Question::After, Wanted::handles(nodes, count)) }
    }

    /// The same with data of edges.
    fn cuGraphNodeGetDependentNodes_v2(
        node: *mut c_void, nodes: *mut *mut c_void, edges: *mut u64, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_related(node, Question::After, Wanted { list: nodes, edges, count }) }
    }

    /// Returns all dependencies.
    fn cuGraphGetEdges(
        graph: *mut c_void, from: *mut *mut c_void, to: *mut *mut c_void, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_edges(graph, from, Wanted::handles(to, count)) }
    }

    /// The same with data of edges.
    fn cuGraphGetEdges_v2(
        graph: *mut c_void, from: *mut *mut c_void, to: *mut *mut c_void, edges: *mut u64, count: *mut usize,
    ) {
        // SAFETY: the program states how many handles there are, and passes where results go.
        unsafe { list_edges(graph, from, Wanted { list: to, edges, count }) }
    }

    /// Removes the operation of a node. Its handle keeps its place, without an effect.
    fn cuGraphDestroyNode(
        node: *mut c_void,
    ) {
        remove(address_of(node))
    }
}
