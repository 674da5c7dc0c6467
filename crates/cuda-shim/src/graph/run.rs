//! Launches of graphs: nodes that no dependency orders are in streams of their own, so that hazards between them
//! are seen.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::memory::begin_launch;
use super::{
    Graph, Node, child_node, conditional, copy, destroy, is_capturing, submit, with_graph,
};
use crate::client;
use crate::connection;
use crate::errors::{self, Code};
use crate::state::state;
use crate::values;

/// `cudaStreamNonBlocking`: a stream that the default stream does not order.
const NON_BLOCKING: u32 = 1;
/// `cudaEventDisableTiming`.
const NO_TIMING: u32 = 2;

/// End of the last launch of an executable graph: launches do not overlap, also in different streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastLaunch {
    event: u64,
    stream: u64,
    /// Resets of the device before the launch: a later one ends the event.
    resets: u64,
}

impl LastLaunch {
    /// Destroys the event, which may be gone with a reset.
    pub(super) fn end(self) {
        if self.resets == resets() {
            let _ = client::destroy_event(self.event);
        }
    }
}

fn resets() -> u64 {
    state().resets.load(Ordering::Relaxed)
}

/// Orders a stream after a launch.
fn follow(last: Option<LastLaunch>, stream: u64) -> Result<(), Code> {
    match last.filter(|last| last.resets == resets() && last.stream != stream) {
        Some(last) => client::wait_event(stream, last.event),
        None => Ok(()),
    }
}

/// Notes the end of a launch, in place of the one before.
fn note_launch(last: Option<LastLaunch>, stream: u64) -> Result<LastLaunch, Code> {
    let resets = resets();
    let event = match last.filter(|last| last.resets == resets) {
        Some(last) => last.event,
        None => client::create_event(NO_TIMING)?,
    };
    client::record_event(event, stream)?;
    Ok(LastLaunch {
        event,
        stream,
        resets,
    })
}

/// Runs a graph on a stream, or adds its nodes to the graph that the stream captures.
pub(crate) fn launch(handle: u64, stream: u64) -> Result<(), Code> {
    if is_capturing(stream) {
        return submit(stream, child_node(handle)?);
    }
    if values::is_held(stream) {
        return submit(stream, Node::Waited(copy(handle)?));
    }
    // A fault of earlier work is the result of this call, and one of its own work that of a later call.
    client::describe_stream(stream)?;
    match run_ordered(handle, stream) {
        Err(code) if errors::is_sticky(code) => {
            // The device keeps the fault and returns it to the next request.
            connection::clear_sticky();
            Ok(())
        }
        ran => ran,
    }
}

/// Runs the copy of a graph whose launch has waited, and ends it.
pub(super) fn run_waited(copy: u64, stream: u64) -> Result<(), Code> {
    let graph = with_graph(copy, |graph| graph.clone())?;
    let assigned = conditional::assign_initial(&graph, stream);
    let ran = assigned.and_then(|()| graph.run(stream));
    ran.and(destroy(copy))
}

/// Runs a graph after its last launch.
fn run_ordered(handle: u64, stream: u64) -> Result<(), Code> {
    // The copy runs without the lock, because functions of the program may use graphs.
    let graph = with_graph(handle, |graph| graph.clone())?;
    begin_launch(handle, graph.flags)?;
    follow(graph.last_launch, stream)?;
    conditional::assign_initial(&graph, stream)?;
    graph.run(stream)?;
    let last = note_launch(graph.last_launch, stream)?;
    with_graph(handle, |graph| graph.last_launch = Some(last))
}

/// One launch of a graph.
struct Run<'g> {
    graph: &'g Graph,
    /// Streams that run nodes one after another; the first is that of the launch.
    lanes: Vec<u64>,
    /// Event after each node that a node of another lane waits for.
    events: Vec<Option<u64>>,
    /// Event before all nodes; other lanes begin there.
    start: Option<u64>,
}

impl Graph {
    /// Runs the nodes on a stream.
    ///
    /// # Errors
    /// Circular dependencies, and those of the nodes.
    pub(super) fn run(&self, stream: u64) -> Result<(), Code> {
        let order = self.order().ok_or(errors::INVALID_VALUE)?;
        let mut run = Run {
            graph: self,
            lanes: vec![stream],
            events: vec![None; self.nodes.len()],
            start: None,
        };
        let ran = run.run_nodes(&order);
        // Nothing else ends the streams and events of lanes, so that an error must not skip it.
        let joined = run.join();
        ran.and(joined)
    }

    /// Returns the places of the nodes that a node depends on.
    pub(super) fn before(&self, node: usize) -> &[usize] {
        self.before.get(node).map_or(&[], Vec::as_slice)
    }
}

/// Returns the lane of each node, numbered as lanes begin, and the nodes that nodes of other lanes wait for.
fn assign(graph: &Graph, order: &[usize]) -> (Vec<usize>, BTreeSet<usize>) {
    let mut last: Vec<Option<usize>> = vec![None];
    let mut lane_of = vec![0; graph.nodes.len()];
    let mut waited = BTreeSet::new();
    for node in order {
        let before = graph.before(*node);
        let continues = |last: &Option<usize>| match last {
            Some(last) => before.contains(last),
            // The stream of the launch, before its first node.
            None => before.is_empty(),
        };
        let lane = last.iter().position(continues).unwrap_or(last.len());
        if lane == last.len() {
            last.push(None);
        }
        waited.extend(before.iter().filter(|other| lane_of[**other] != lane));
        (lane_of[*node], last[lane]) = (lane, Some(*node));
    }
    (lane_of, waited)
}

impl Run<'_> {
    fn run_nodes(&mut self, order: &[usize]) -> Result<(), Code> {
        let (lane_of, waited) = assign(self.graph, order);
        if lane_of.iter().any(|lane| *lane > 0) {
            self.start = Some(record(self.lanes[0])?);
        }
        for node in order.iter().copied() {
            let stream = self.stream(lane_of[node])?;
            for other in self.graph.before(node) {
                if lane_of[*other] != lane_of[node]
                    && let Some(event) = self.events[*other]
                {
                    client::wait_event(stream, event)?;
                }
            }
            if !self.graph.disabled.contains(&node) {
                self.graph.nodes[node].run(stream)?;
            }
            if waited.contains(&node) {
                self.events[node] = Some(record(stream)?);
            }
        }
        Ok(())
    }

    /// Returns the stream of a lane. A new lane begins where the launch does.
    fn stream(&mut self, lane: usize) -> Result<u64, Code> {
        if let Some(stream) = self.lanes.get(lane) {
            return Ok(*stream);
        }
        let stream = client::create_stream(NON_BLOCKING, 0)?;
        self.lanes.push(stream);
        if let Some(start) = self.start {
            client::wait_event(stream, start)?;
        }
        Ok(stream)
    }

    /// Lets the stream of the launch wait for all lanes.
    fn join(&mut self) -> Result<(), Code> {
        let mut ended = Ok(());
        for stream in self.lanes.drain(1..).collect::<Vec<_>>() {
            let joined = record(stream).and_then(|event| {
                let waited = client::wait_event(self.lanes[0], event);
                waited.and(client::destroy_event(event))
            });
            ended = ended.and(joined).and(client::end_stream(stream));
        }
        let events = self.events.drain(..).chain([self.start.take()]);
        for event in events.flatten() {
            ended = ended.and(client::destroy_event(event));
        }
        ended
    }
}

/// Records a new event on a stream.
fn record(stream: u64) -> Result<u64, Code> {
    let event = client::create_event(NO_TIMING)?;
    client::record_event(event, stream).map(|()| event)
}
