//! Use of the pointers of a braced list.

use super::pointer;
use crate::tree::{self, Node, Source, words};
use crate::unit::{Kind, Unit};

/// Object that a braced list initialises.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// A pointer or reference: its own uses count.
    Alias,
    /// Pointers, all to constant elements or none.
    Pointers { constant: bool },
    /// A structure without constructors: its fields, and whether each is a pointer to constant elements.
    Fields(Vec<(String, bool)>),
    /// Another one.
    Unknown,
}

impl Listed {
    pub(super) fn initialised_by(unit: &Unit, source: &Source, list: Node<'_>) -> Self {
        let of_type = |ty: Node<'_>| {
            let fields = fields(unit, source.node_text(ty));
            fields.map_or(Self::Unknown, Self::Fields)
        };
        let Some(parent) = list.parent() else {
            return Self::Unknown;
        };
        let ty = |node: Node<'_>| node.child_by_field_name("type").map(of_type);
        if parent.kind() == "compound_literal_expression" {
            return ty(parent).unwrap_or(Self::Unknown);
        }
        let declared = parent.child_by_field_name("declarator");
        let declaration = parent
            .parent()
            .filter(|_| parent.kind() == "init_declarator");
        let Some((declarator, declaration)) = declared.zip(declaration) else {
            return Self::Unknown;
        };
        let head = source.text(&(declaration.start_byte()..declarator.start_byte()));
        let several = source.node_text(declarator).contains('[');
        let kind = declarator.kind();
        let alias = kind.contains("pointer") || kind.contains("reference") || head.trim() == "auto";
        if alias && !several && single(list).is_some() {
            return Self::Alias;
        }
        if kind.contains("pointer") {
            let constant = words(head).contains(&"const");
            return Self::Pointers { constant };
        }
        if several || kind != "identifier" {
            return Self::Unknown;
        }
        ty(declaration).unwrap_or(Self::Unknown)
    }

    /// Reports whether the element of a list at this index, or for this field, is read-only.
    pub(super) fn is_constant(&self, at: usize, designator: Option<&str>) -> bool {
        match self {
            Self::Alias | Self::Unknown => false,
            Self::Pointers { constant } => *constant,
            Self::Fields(fields) => match designator {
                Some(name) => fields
                    .iter()
                    .any(|(known, constant)| known == name && *constant),
                None => fields.get(at).is_some_and(|(_, constant)| *constant),
            },
        }
    }
}

/// Returns the only value of a braced list.
pub(super) fn single(list: Node<'_>) -> Option<Node<'_>> {
    match tree::named(list).as_slice() {
        [only] if list.kind() == "initializer_list" => Some(*only),
        _ => None,
    }
}

/// Returns the fields of a structure in order; `None` if a list may not initialize them in this order.
fn fields(unit: &Unit, ty: &str) -> Option<Vec<(String, bool)>> {
    let plain = ty.split('<').next()?;
    let name = plain.rsplit("::").next()?.trim();
    let bodies = unit.declaring(name).filter_map(|(item, source, node)| {
        let node = tree::inner(node);
        let ty = node.child_by_field_name("type").unwrap_or(node);
        let is_record = item.kind == Kind::Declaration
            && matches!(ty.kind(), "struct_specifier" | "class_specifier");
        is_record.then(|| {
            ty.child_by_field_name("body")
                .map(|body| (source, ty, body))
        })?
    });
    // With specialisations of a template or branches for several builds, any of them may apply.
    let [(source, ty, body)] = bodies.collect::<Vec<_>>().try_into().ok()?;
    if tree::named(ty)
        .iter()
        .any(|part| part.kind() == "base_class_clause")
    {
        return None;
    }
    let mut found = Vec::new();
    for member in tree::named(body) {
        let text = source.node_text(member);
        match member.kind() {
            "field_declaration" if words(text).contains(&"static") => {}
            "field_declaration" => {
                let (is_pointer, constant) = pointer(text);
                let mut cursor = member.walk();
                for declarator in member.children_by_field_name("declarator", &mut cursor) {
                    let name = tree::declared_name(source, declarator).pop()?;
                    // A function is not a field.
                    if !source.node_text(declarator).contains('(') {
                        found.push((name.to_owned(), is_pointer && constant));
                    }
                }
            }
            _ if tree::declared(source, member)
                .iter()
                .any(|known| known == name) =>
            {
                return None;
            }
            _ => {}
        }
    }
    Some(found)
}
