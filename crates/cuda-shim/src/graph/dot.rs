//! Graphs as text in the DOT language.

use std::fmt::Write as _;

use super::{Graph, Node, with_graph};
use crate::errors::{self, Code};

impl Node {
    /// Its label.
    fn label(&self) -> String {
        match self {
            Node::Launch(launch) => {
                let [grid, block] =
                    [launch.grid, launch.block].map(|extent| [extent.x, extent.y, extent.z]);
                format!(
                    "KERNEL\\n{}\\ngrid {grid:?} block {block:?} shared {}",
                    crate::kernels::signature(launch.function).name,
                    launch.shared_bytes
                )
            }
            Node::Copy(copy) => format!(
                "MEMCPY\\n{:#x} to {:#x}, {} bytes",
                copy.source.address,
                copy.destination.address,
                copy.source.shape.bytes().unwrap_or(0)
            ),
            Node::Fill(fill) => format!(
                "MEMSET\\n{:#x}, value {:#x}, {} bytes",
                fill.place.address,
                fill.value,
                fill.place.shape.bytes().unwrap_or(0)
            ),
            Node::Host(call) => format!("HOST\\n{:p}", call.function),
            Node::Record(event) => format!("EVENT_RECORD\\n{event:#x}"),
            Node::Wait(event) => format!("EVENT_WAIT\\n{event:#x}"),
            Node::Child(graph) | Node::Waited(graph) => format!("GRAPH\\n{graph:#x}"),
            Node::Empty | Node::Removed | Node::Begin(_) | Node::End(_) => "EMPTY".to_owned(),
            Node::Allocate(address) => format!("MEM_ALLOC\\n{address:#x}"),
            Node::Free(address) => format!("MEM_FREE\\n{address:#x}"),
            Node::Value(value) => format!("BATCH_MEM_OP\\n{:#x}", value.address),
            Node::Conditional(_) => "CONDITIONAL".to_owned(),
        }
    }
}

fn write_cluster(text: &mut String, handle: u64, graph: &Graph) -> std::fmt::Result {
    writeln!(text, "subgraph cluster_{handle:x} {{")?;
    writeln!(text, "label=\"graph_{handle:x}\" graph[style=\"dashed\"];")?;
    let name = |place: usize| format!("\"graph_{handle:x}_node_{place}\"");
    for place in graph.present() {
        let label = graph.nodes.get(place).map(Node::label).unwrap_or_default();
        let style = "style=\"solid\" shape=\"rectangle\"";
        writeln!(
            text,
            "{}[{style} label=\"{place}\\n{label}\"];",
            name(place)
        )?;
        for before in graph.before(place) {
            writeln!(text, "{} -> {};", name(*before), name(place))?;
        }
    }
    writeln!(text, "}}")
}

fn write_graphs(text: &mut String, handle: u64) -> Result<(), Code> {
    let graph = with_graph(handle, |graph| graph.clone())?;
    write_cluster(text, handle, &graph).map_err(|_| errors::UNKNOWN)?;
    let nested = graph.nodes.iter().flat_map(Node::nested);
    nested
        .copied()
        .try_for_each(|graph| write_graphs(text, graph))
}

/// Writes a graph with those that belong to its nodes into a file.
pub(crate) fn write_dot(graph: u64, path: &str) -> Result<(), Code> {
    let mut text = "digraph dot {\n".to_owned();
    write_graphs(&mut text, graph)?;
    text.push_str("}\n");
    std::fs::write(path, text).map_err(|_| errors::OPERATING_SYSTEM)
}
