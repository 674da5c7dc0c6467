//! Types of parameters, which tell overloads apart.

use super::parameters;
use crate::tree::words;
use crate::unit::{Item, Unit, node_of};

/// Words of a declaration that are not part of its type.
pub(crate) const QUALIFIERS: [&str; 6] = [
    "const",
    "volatile",
    "static",
    "__restrict__",
    "__restrict",
    "restrict",
];

/// Returns the types of the parameters of a kernel that is not a template.
pub(crate) fn types(unit: &Unit, item: &Item) -> Option<Vec<(String, usize)>> {
    let (source, node) = node_of(unit, item)?;
    let is_template = node.kind() == "template_declaration";
    let parameters = parameters(source, node).into_iter();
    (!is_template).then(|| parameters.map(|each| plain(&each.ty)).collect())
}

/// Reports whether two kernels of one name are overloads: the compiler cannot tell them apart by the name.
pub(crate) fn is_overload(unit: &Unit, one: &Item, other: &Item) -> bool {
    // Under other conditions it may be the same kernel in another build.
    let is_together = one.around == other.around;
    let (one, other) = (types(unit, one), types(unit, other));
    is_together && one.is_some() && other.is_some() && one != other
}

/// Splits a type into its name and the number of its pointers.
pub(crate) fn plain(ty: &str) -> (String, usize) {
    let name = words(ty)
        .into_iter()
        .filter(|word| !QUALIFIERS.contains(word));
    let name: Vec<&str> = name.collect();
    let scoped = if ty.contains("::") { "::" } else { " " };
    (name.join(scoped), ty.matches('*').count())
}
