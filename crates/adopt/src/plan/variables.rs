//! `__constant__` and `__device__` variables that the host writes.

use super::{Argument, KernelContext, Plan};
use crate::cut;
use crate::expr::Expr;
use crate::host::Host;
use crate::tree::{self, Node, Source, visit};
use crate::types::{self, OWN};
use crate::unit::node_of;
use crate::unit::{Item, Kind, Unit};
use std::collections::BTreeSet;
use tuner_core::plan::Role;

/// A declarator of a variable in the source.
struct Declared<'s> {
    item: &'s Item,
    name: &'s str,
    ty: &'s str,
    source: &'s Source,
    declarator: Node<'s>,
}

/// A variable of the search space.
#[derive(Debug)]
pub(crate) struct Variable {
    /// Name with namespaces.
    pub(crate) name: String,
    /// Type in the search space's spelling.
    pub(crate) ty: String,
    /// Its types in the branches of conditional compilation, in the same spelling.
    pub(crate) alternatives: Vec<String>,
    pub(crate) held: VariableContent,
}

/// Content of a variable.
#[derive(Debug)]
pub(crate) enum VariableContent {
    /// An array of these extents.
    Array(Vec<Expr>),
    /// One value.
    Value(String),
    /// The address of the argument of this name.
    Pointer(String),
}

impl Plan {
    /// Adds the variables that the kernel reaches and the host writes, or that launches are known to use.
    pub(super) fn hold<'u>(
        &mut self,
        known: &KernelContext<'u>,
        kernel: usize,
        used: &BTreeSet<String>,
        host: &mut Host<'u>,
    ) {
        let unit = known.unit;
        for at in cut::reach(unit, kernel, &BTreeSet::new()) {
            let item = unit.item(at);
            let constant = item.words.contains("__constant__");
            if item.kind != Kind::Declaration || !(constant || item.words.contains("__device__")) {
                continue;
            }
            let Some((source, node)) = node_of(unit, item) else {
                continue;
            };
            let node = tree::inner(node);
            let ty = node
                .child_by_field_name("type")
                .map(|ty| source.node_text(ty));
            let (Some(ty), "declaration") = (ty, node.kind()) else {
                continue;
            };
            let mut cursor = node.walk();
            for declarator in node.children_by_field_name("declarator", &mut cursor) {
                let names = tree::declared_name(source, declarator);
                // A variable with an initializer keeps it; other variables start as zeros.
                let Some(name) = names.last().filter(|name| {
                    let fresh = declarator.kind() != "init_declarator";
                    fresh && (constant || filled(unit, name) || used.contains(**name))
                }) else {
                    continue;
                };
                let declared = Declared {
                    item,
                    name,
                    ty,
                    source,
                    declarator,
                };
                self.variable(unit, &declared, host);
            }
        }
    }

    fn variable<'u>(&mut self, unit: &'u Unit, declared: &Declared<'_>, host: &mut Host<'u>) {
        let Declared {
            item,
            name,
            ty,
            source,
            declarator,
        } = *declared;
        let (mut pointer, mut extents) = (false, Vec::new());
        visit(declarator, &mut |node| {
            pointer |= node.kind() == "pointer_declarator";
            if node.kind() == "array_declarator" {
                extents.extend(
                    node.child_by_field_name("size")
                        .map(|it| source.node_text(it)),
                );
            }
            true
        });
        // The outermost declarator is the last extent.
        extents.reverse();
        let shape: Option<Vec<Expr>> = extents
            .iter()
            .map(|extent| host.of_text(None, extent))
            .collect();
        let role = if pointer || !extents.is_empty() {
            Role::Input
        } else {
            Role::Scalar
        };
        let described = types::describe(unit, ty, role, false);
        let (Some(shape), Ok(described)) = (shape, described) else {
            self.notes.push(format!(
                "the variable `{name}` of type `{ty}` is left as the file has it; write it under \
                 `variables` where the kernel needs more: docs/arguments.md"
            ));
            return;
        };
        let arguments = &mut self.arguments;
        let mut buffer = |name: String, ty: &str, bytes: i64| {
            arguments.push(Argument {
                ty: ty.to_owned(),
                bytes,
                ..Argument::new(&name, ty, Role::Inout)
            });
        };
        let held = if pointer {
            let data = format!("{name}_data");
            buffer(data.clone(), &described.yaml, described.bytes);
            VariableContent::Pointer(data)
        } else if shape.is_empty() {
            for (field, ty, bytes) in &described.pointers {
                buffer(format!("{name}_{field}"), ty, *bytes);
            }
            let whole = described.whole.iter();
            let new = whole.map(|field| (format!("{name}_{field}"), None));
            self.sizes.extend(new);
            let value = described.value.unwrap_or_else(|| "1".to_owned());
            VariableContent::Value(value.replace(OWN, name))
        } else {
            VariableContent::Array(shape)
        };
        self.variables.push(Variable {
            name: item.path(name),
            ty: described.yaml,
            alternatives: types::alternatives(unit, ty),
            held,
        });
    }
}

/// Reports whether host code copies to a variable.
fn filled(unit: &Unit, name: &str) -> bool {
    unit.files.iter().any(|file| {
        let code = file.code(&(0..file.len()));
        code.split("MemcpyToSymbol").skip(1).any(|rest| {
            let call = rest.split([',', ';']).next().unwrap_or_default();
            tree::words(call).contains(&name)
        })
    })
}
