//! Kernels of one name with different parameters.

use super::deduced::{declared, plain};
use crate::host::Host;
use crate::kernel;
use crate::tree;
use crate::unit::{Item, Kind, Unit, node_of};

/// Returns the types of the parameters of a kernel that is not a template.
fn types(unit: &Unit, item: &Item) -> Option<Vec<(String, usize)>> {
    let (source, node) = node_of(unit, item)?;
    let is_template = node.kind() == "template_declaration";
    let parameters = kernel::parameters(source, node).into_iter();
    (!is_template).then(|| parameters.map(|each| plain(&each.ty)).collect())
}

/// Reports whether two kernels of one name are overloads: the compiler cannot tell them apart by the name.
pub(crate) fn is_overload(unit: &Unit, one: &Item, other: &Item) -> bool {
    // Under other conditions it may be the same kernel in another build.
    let is_together = one.around == other.around;
    let (one, other) = (types(unit, one), types(unit, other));
    is_together && one.is_some() && other.is_some() && one != other
}

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
