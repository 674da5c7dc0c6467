//! Kinds of items.

use crate::tree::{self, Node, words};

/// Kind of an item, which determines whether it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `__global__`.
    Kernel,
    /// A function that device code may call.
    Device,
    /// A host function, or one without annotation.
    Host,
    /// A type, a constant, a device variable, an alias.
    Declaration,
    /// A use of a macro that defines device functions, types or variables.
    Expansion,
    /// A host variable.
    HostVariable,
    /// `#define`.
    Macro,
    /// `#undef`.
    Undefine,
    /// `using namespace`.
    Using,
    /// An include outside the project.
    Include,
    /// An include of a project file, whose items follow; its name is the path.
    Header,
}

/// Classifies a function or declaration by the words before its body.
pub(super) fn kind_of(text: &str, node: Node<'_>) -> Kind {
    let body = tree::body(node).map_or(text.len(), |body| {
        body.start_byte().saturating_sub(node.start_byte())
    });
    let head = text.get(..body).unwrap_or(text);
    let has = |word: &str| words(head).contains(&word);
    if has("__global__") {
        return Kind::Kernel;
    }
    if has("__device__") || has("__constant__") || has("__shared__") {
        return if tree::is_function(node) {
            Kind::Device
        } else {
            Kind::Declaration
        };
    }
    if tree::is_function(node) {
        return Kind::Host;
    }
    let constant =
        has("constexpr") || has("const") || has("using") || has("typedef") || has("extern");
    let inner = tree::inner(node).kind();
    if inner == "declaration" && !constant {
        // `struct S { … } s;` also declares a type.
        if text.contains('{') && (has("struct") || has("enum") || has("class") || has("union")) {
            return Kind::Declaration;
        }
        return Kind::HostVariable;
    }
    if inner == "expression_statement" {
        return Kind::HostVariable;
    }
    Kind::Declaration
}
