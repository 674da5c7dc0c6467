//! Kernels of one name with different parameters.

use super::deduced::declared;
use crate::host::Host;
use crate::kernel::{is_overload, types};
use crate::tree;
use crate::unit::{Item, Kind, Unit, node_of};

/// Returns the overload of a kernel whose parameters have the types of the variables that a launch passes.
pub(crate) fn launched(unit: &Unit, item: usize, name: &str) -> usize {
    let own = unit.item(item);
    let is_other = |other: &Item| {
        let named = other.names.last().is_some_and(|known| known == name);
        other.kind == Kind::Kernel && named && !own.excludes(other) && is_overload(unit, own, other)
    };
    let has_body =
        |item: &Item| node_of(unit, item).is_some_and(|(_, node)| tree::body(node).is_some());
    let others = unit.items.iter().enumerate();
    let others = others.filter(|(_, other)| is_other(other) && has_body(other));
    let launches = Host::new(unit).launches(name);
    let score = |item: &Item| {
        let types = types(unit, item).unwrap_or_default();
        let fits = launches.iter().map(|launch| {
            let scope = launch.scope;
            let arguments = launch.arguments.iter().zip(&types);
            arguments
                .filter(|(node, ty)| {
                    let name = tree::bare(**node).map(|node| scope.source.node_text(node));
                    let found = name.zip(scope.function);
                    found
                        .and_then(|(name, function)| declared(scope.source, function, name))
                        .as_ref()
                        == Some(*ty)
                })
                .count()
        });
        fits.max().unwrap_or(0)
    };
    let first = (score(own), item);
    let best = others.map(|(at, other)| (score(other), at));
    // The first one unless another fits better.
    best.fold(
        first,
        |best, other| if other.0 > best.0 { other } else { best },
    )
    .1
}
