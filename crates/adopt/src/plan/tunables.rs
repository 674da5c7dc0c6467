//! Constants that look like tile sizes.

use super::MAX_PARAMETERS;
use crate::cut::{self, Definition, Tunable, looks_like_tiling};
use crate::tree::{self, visit};
use crate::unit::node_of;
use crate::unit::{Around, Kind, Unit};

/// Finds constants in the reachable code that look like tile sizes.
pub(super) fn tunables(unit: &Unit, kernel: usize) -> Vec<Tunable> {
    let kept = cut::reach(unit, kernel, &std::collections::BTreeSet::new());
    let given = cut::given_names(unit, &kept);
    let mut found: Vec<Tunable> = Vec::new();
    for at in &kept {
        let item = unit.item(*at);
        let conditional = item.around.iter().any(|around| match around {
            // `#ifndef NAME`, `#define NAME …`: a default.
            Around::Condition(branch) => {
                let name = branch.undefined();
                item.kind != Kind::Macro
                    || name.is_none_or(|name| item.names.first().is_none_or(|own| own != name))
            }
            _ => false,
        });
        if conditional || found.len() >= MAX_PARAMETERS {
            continue;
        }
        let Some((source, node)) = node_of(unit, item) else {
            continue;
        };
        let mut add = |name: &str, text: &str, definition: Definition, uses: usize| {
            let value: Option<i64> = text.trim().trim_matches(['(', ')']).parse().ok();
            if let Some(value) = value.filter(|value| looks_like_tiling(name, *value))
                // A macro of this name would also replace a local variable or parameter of the name.
                && given.get(name).copied().unwrap_or(0) <= uses
                && found.iter().all(|known| known.name != name)
                && !cut::is_pushed(unit, name)
            {
                found.push(Tunable {
                    name: name.to_owned(),
                    value,
                    item: *at,
                    definition,
                });
            }
        };
        match item.kind {
            Kind::Macro if node.kind() == "preproc_def" => {
                if let (Some(name), Some(value)) = (
                    node.child_by_field_name("name"),
                    node.child_by_field_name("value"),
                ) {
                    let text = source
                        .node_text(value)
                        .split("//")
                        .next()
                        .unwrap_or_default();
                    add(source.node_text(name), text, Definition::Macro, 0);
                }
            }
            Kind::Declaration | Kind::Kernel => constants(source, node, item.kind, &mut add),
            _ => {}
        }
    }
    found
}

/// Finds separately declared constants, at file scope or in a kernel.
fn constants(
    source: &tree::Source,
    node: tree::Node<'_>,
    kind: Kind,
    add: &mut dyn FnMut(&str, &str, Definition, usize),
) {
    let outer = node;
    visit(node, &mut |node| {
        if node.kind() != "declaration" {
            return true;
        }
        let text = source.node_text(node);
        let mut cursor = node.walk();
        let all: Vec<tree::Node<'_>> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        let head = tree::words(text);
        let constant = head.contains(&"const") || head.contains(&"constexpr");
        let whole = head.contains(&"int")
            || head.contains(&"unsigned")
            || head.contains(&"uint")
            || head.contains(&"size_t");
        if let [only] = all.as_slice()
            && only.kind() == "init_declarator"
            && constant
            && whole
            && let (Some(name), Some(value)) = (
                only.child_by_field_name("declarator"),
                only.child_by_field_name("value"),
            )
            && name.kind() == "identifier"
        {
            let definition = if node == outer {
                Definition::Constant
            } else {
                Definition::Local(node.byte_range())
            };
            if matches!(definition, Definition::Local(_)) == (kind == Kind::Kernel) {
                add(
                    source.node_text(name),
                    source.node_text(value),
                    definition,
                    1,
                );
            }
        }
        true
    });
}
