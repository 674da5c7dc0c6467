//! Launches of graphs: nodes that no dependency orders are in streams of their own, so that hazards between them
//! are seen.

use std::collections::BTreeSet;

use super::Graph;
use crate::client;
use crate::errors::{self, Code};

/// `cudaStreamNonBlocking`: a stream that the default stream does not order.
const NON_BLOCKING: u32 = 1;
/// `cudaEventDisableTiming`.
const NO_TIMING: u32 = 2;

/// A stream that runs nodes one after another.
struct Lane {
    stream: u64,
    /// The node that it ran last.
    last: Option<usize>,
}

/// One launch of a graph.
struct Run<'g> {
    graph: &'g Graph,
    /// The first is the stream of the launch.
    lanes: Vec<Lane>,
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
            lanes: vec![Lane { stream, last: None }],
            events: vec![None; self.nodes.len()],
            start: None,
        };
        let ran = run.all(&order);
        let joined = run.join();
        ran.and(joined)
    }

    fn before(&self, node: usize) -> &[usize] {
        self.before.get(node).map_or(&[], Vec::as_slice)
    }
}

/// Nodes in the order of a run, each with its lane, and the nodes that others of other lanes wait for.
fn assign(graph: &Graph, order: &[usize]) -> (Vec<(usize, usize)>, BTreeSet<usize>) {
    let mut last: Vec<Option<usize>> = vec![None];
    let mut lane_of = vec![0; graph.nodes.len()];
    let (mut placed, mut waited) = (Vec::with_capacity(order.len()), BTreeSet::new());
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
        placed.push((*node, lane));
    }
    (placed, waited)
}

impl Run<'_> {
    fn all(&mut self, order: &[usize]) -> Result<(), Code> {
        let (placed, waited) = assign(self.graph, order);
        if placed.iter().any(|(_, lane)| *lane > 0) {
            self.start = Some(record(self.lanes[0].stream)?);
        }
        let mut lane_of = vec![0; self.graph.nodes.len()];
        for (node, lane) in placed {
            if lane == self.lanes.len() {
                let stream = client::create_stream(NON_BLOCKING, 0)?;
                self.lanes.push(Lane { stream, last: None });
            }
            lane_of[node] = lane;
            let Lane { stream, last } = self.lanes[lane];
            if last.is_none()
                && lane > 0
                && let Some(start) = self.start
            {
                client::wait_event(stream, start)?;
            }
            for other in self.graph.before(node) {
                if lane_of[*other] != lane
                    && let Some(event) = self.events[*other]
                {
                    client::wait_event(stream, event)?;
                }
            }
            self.graph.nodes[node].run(stream)?;
            self.lanes[lane].last = Some(node);
            if waited.contains(&node) {
                self.events[node] = Some(record(stream)?);
            }
        }
        Ok(())
    }

    /// Lets the stream of the launch wait for all lanes.
    fn join(&mut self) -> Result<(), Code> {
        let mut ended = Ok(());
        for lane in self.lanes.drain(1..).collect::<Vec<_>>() {
            let joined = record(lane.stream).and_then(|event| {
                let waited = client::wait_event(self.lanes[0].stream, event);
                waited.and(client::destroy_event(event))
            });
            ended = ended.and(joined).and(client::destroy_stream(lane.stream));
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
