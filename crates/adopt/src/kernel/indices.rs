//! Parameters whose elements decide addresses.

use super::{parameters, pointer};
use crate::tree::{self, visit};
use crate::unit::{Item, Unit, node_of};
use std::collections::BTreeSet;

/// Returns the pointers of a kernel whose elements, also through variables, are in indices or in arguments of
/// functions: with other contents the kernel accesses other memory.
pub(crate) fn indices(unit: &Unit, item: &Item) -> BTreeSet<String> {
    let Some((source, node)) = node_of(unit, item) else {
        return BTreeSet::new();
    };
    let Some(body) = tree::body(node) else {
        return BTreeSet::new();
    };
    // Names that an assignment computes from others, and names in indices.
    let mut flows: Vec<(String, Vec<String>)> = Vec::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    // Fields, as in `threadIdx.x`, are no names of variables.
    let names = |node: tree::Node<'_>| -> Vec<String> {
        let mut found = Vec::new();
        visit(node, &mut |node| {
            if node.kind() == "identifier" {
                found.push(source.node_text(node).to_owned());
            }
            true
        });
        found
    };
    visit(body, &mut |node| {
        let (to, from) = match node.kind() {
            "init_declarator" => ("declarator", "value"),
            "assignment_expression" => ("left", "right"),
            "subscript_expression" => {
                used.extend(
                    node.child_by_field_name("indices")
                        .into_iter()
                        .flat_map(names),
                );
                return true;
            }
            "pointer_expression" => {
                // `*(p + i)`
                let inner = node.child_by_field_name("argument");
                let inner = inner.filter(|it| it.kind() == "parenthesized_expression");
                used.extend(inner.into_iter().flat_map(names));
                return true;
            }
            "call_expression" => {
                used.extend(
                    node.child_by_field_name("arguments")
                        .into_iter()
                        .flat_map(names),
                );
                return true;
            }
            _ => return true,
        };
        if let (Some(to), Some(from)) =
            (node.child_by_field_name(to), node.child_by_field_name(from))
        {
            let to = tree::declared_name(source, to)
                .first()
                .map(|name| (*name).to_owned());
            flows.extend(to.map(|to| (to, names(from))));
        }
        true
    });
    loop {
        let before = used.len();
        for (to, from) in &flows {
            if used.contains(to) {
                used.extend(from.iter().cloned());
            }
        }
        if used.len() == before {
            break;
        }
    }
    let all = parameters(source, node).into_iter();
    let pointers = all.filter(|each| pointer(&each.ty).0 && used.contains(&each.name));
    pointers.map(|each| each.name).collect()
}
