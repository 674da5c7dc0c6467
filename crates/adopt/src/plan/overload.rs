//! Kernels of one name with different parameters.

use super::deduced::declared;
use crate::host::Host;
use crate::kernel::{is_overload, plain, types};
use crate::tree;
use crate::unit::{Item, Kind, Unit, node_of};
use tuner_core::element::Element;

/// Returns the kernels of this name that the compiler tells apart from `item` by their parameters.
fn others<'u>(unit: &'u Unit, item: usize, name: &str) -> impl Iterator<Item = (usize, &'u Item)> {
    let own = unit.item(item);
    unit.items.iter().enumerate().filter(move |(_, other)| {
        let named = other.names.last().is_some_and(|known| known == name);
        let is_kernel = other.kind == Kind::Kernel && named;
        is_kernel
            && !own.excludes(other)
            && is_overload(unit, own, other)
            && node_of(unit, other).is_some_and(|(_, node)| tree::body(node).is_some())
    })
}

/// Returns the kernel with the highest score among `item` and its overloads, `item` among equals.
fn best<S: PartialOrd>(unit: &Unit, item: usize, name: &str, score: impl Fn(&Item) -> S) -> usize {
    let first = (score(unit.item(item)), item);
    let scored = others(unit, item, name).map(|(at, other)| (score(other), at));
    let best = scored.fold(
        first,
        |best, other| if other.0 > best.0 { other } else { best },
    );
    best.1
}

/// Returns the overload of a kernel that has the parameters of a demangled signature.
pub(crate) fn with_signature(unit: &Unit, item: usize, name: &str, signature: &str) -> usize {
    let wanted: Vec<_> = parameters(signature).iter().map(|ty| plain(ty)).collect();
    let same = |(one, other): (&(String, usize), &(String, usize))| {
        let element = Element::from_cpp(&one.0);
        let alike = one.0 == other.0 || element.is_some() && element == Element::from_cpp(&other.0);
        alike && one.1 == other.1
    };
    let score = |item: &Item| {
        let own = types(unit, item).unwrap_or_default();
        let fits = own.len() == wanted.len();
        fits.then(|| own.iter().zip(&wanted).filter(|pair| same(*pair)).count())
    };
    best(unit, item, name, score)
}

/// Returns the types of the parameters of a demangled signature.
fn parameters(signature: &str) -> Vec<&str> {
    let Some(text) = signature.trim_end().strip_suffix(')') else {
        return Vec::new();
    };
    let mut depth = 0;
    let mut end = text.len();
    let mut found = Vec::new();
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | '>' => depth += 1,
            '(' if depth == 0 => {
                found.extend(text.get(at + 1..end));
                break;
            }
            '(' | '<' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(text.get(at + 1..end));
                end = at;
            }
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Returns the overload of a kernel whose parameters have the types of the variables that a launch passes.
pub(crate) fn launched(unit: &Unit, item: usize, name: &str) -> usize {
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
    best(unit, item, name, score)
}
