//! Fields of structs.

use super::{MAX_WRITTEN, OWN, TypeDescription, WHOLE, describe_number};
use crate::expr::Expr;
use crate::host::Host;
use crate::tree::{self, Node, Source, visit};
use crate::unit::Unit;
use std::fmt::Write as _;
use tuner_core::plan::Role;

/// A field in a struct declaration.
pub(super) struct Field {
    pub(super) name: String,
    ty: String,
    pointer: bool,
    extents: Vec<String>,
}

impl Field {
    /// Returns its type and a guessed value in YAML.
    pub(super) fn described(
        &self,
        unit: &Unit,
        made: &mut TypeDescription,
    ) -> Result<(String, String), String> {
        // A search space cannot describe nested structs, which may be recursive.
        let inner = describe_number(unit, &self.ty, Role::Input).ok();
        if self.pointer {
            if !self.extents.is_empty() {
                return Err(format!("its field `{}` is an array of pointers", self.name));
            }
            let inner =
                inner.ok_or_else(|| format!("its field `{}` points to a struct", self.name))?;
            made.add_field(8, 8);
            made.pointers
                .push((self.name.clone(), inner.yaml, inner.bytes));
            return Ok(("pointer".to_owned(), format!("{OWN}_{}", self.name)));
        }
        let inner = inner.ok_or_else(|| {
            format!(
                "its field `{}` is `{}`, no number",
                self.name,
                self.ty.trim()
            )
        })?;
        let mut count = 1_i64;
        for extent in &self.extents {
            let known = Host::new(unit).of_text(None, extent);
            let known = known.as_ref().and_then(Expr::number).filter(|n| *n > 0);
            count = count.saturating_mul(
                known.ok_or_else(|| format!("the extent `{extent}` is not known"))?,
            );
        }
        // CUDA aligns vectors of three like one lane, others to their size, at most 16 bytes.
        let lane = inner.bytes / i64::from(inner.lanes.max(1));
        let align = if inner.lanes == 3 { lane } else { inner.bytes };
        made.add_field(inner.bytes.saturating_mul(count), align.clamp(1, 16));
        let numbers = count.saturating_mul(i64::from(inner.lanes));
        let mut ty = inner.yaml;
        if self.extents.is_empty() && WHOLE.contains(&ty.as_str()) {
            made.whole.push(self.name.clone());
            return Ok((ty, format!("{OWN}_{}", self.name)));
        }
        if !self.extents.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(ty, "[{count}]");
            // Brackets are YAML syntax.
            ty = format!("\"{ty}\"");
        }
        let value = match numbers {
            1 if self.extents.is_empty() => "1".to_owned(),
            2..=MAX_WRITTEN | 1 => {
                let ones: Vec<&str> = (0..numbers).map(|_| "1").collect();
                format!("[{}]", ones.join(", "))
            }
            _ => return Err(format!("its field `{}` is a long array", self.name)),
        };
        Ok((ty, value))
    }
}

/// Returns the fields of a declaration in a struct; functions and static members are skipped.
pub(super) fn fields(source: &Source, node: Node<'_>) -> Result<Vec<Field>, String> {
    let text = source.node_text(node);
    if tree::words(text).contains(&"static") {
        return Ok(Vec::new());
    }
    let mut cursor = node.walk();
    if node
        .named_children(&mut cursor)
        .any(|child| child.kind() == "bitfield_clause")
    {
        return Err("it has bit fields".to_owned());
    }
    let ty = node
        .child_by_field_name("type")
        .map(|ty| source.node_text(ty).to_owned())
        .unwrap_or_default();
    if ty.contains('{') {
        return Err("it has a type in it".to_owned());
    }
    let mut found = Vec::new();
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        let (mut pointer, mut method, mut extents) = (false, false, Vec::new());
        visit(declarator, &mut |node| {
            match node.kind() {
                "pointer_declarator" => pointer = true,
                "function_declarator" => method = true,
                "array_declarator" => extents.extend(
                    node.child_by_field_name("size")
                        .map(|size| source.node_text(size).to_owned()),
                ),
                _ => {}
            }
            true
        });
        let name = tree::declared_name(source, declarator);
        if let Some(name) = name.last().filter(|_| !method) {
            found.push(Field {
                name: (*name).to_owned(),
                ty: ty.clone(),
                pointer,
                extents,
            });
        }
    }
    Ok(found)
}
