//! Nodes that launches of an executable graph leave out.

use super::{NODE_BITS, edges, holder, with_graph, with_node_of};
use crate::errors::{self, Code};

/// Selects whether launches of an executable graph run a node: a kernel, a copy or a fill.
pub(crate) fn enable(executable: u64, node: u64, enabled: bool) -> Result<(), Code> {
    let switched = with_node_of(executable, node, |node| node.type_number() <= 2)?;
    let holder = holder(executable, node).filter(|_| switched);
    let place = edges::place_of_node(node >> NODE_BITS, node)?;
    with_graph(
        holder.ok_or(errors::INVALID_VALUE)?,
        |graph| match enabled {
            true => graph.disabled.remove(&place),
            false => graph.disabled.insert(place),
        },
    )
    .map(drop)
}

/// Reports whether launches of an executable graph run a node.
pub(crate) fn is_enabled(executable: u64, node: u64) -> Result<bool, Code> {
    with_node_of(executable, node, |_| ())?;
    let holder = holder(executable, node).ok_or(errors::INVALID_VALUE)?;
    let place = edges::place_of_node(node >> NODE_BITS, node)?;
    with_graph(holder, |graph| !graph.disabled.contains(&place))
}
