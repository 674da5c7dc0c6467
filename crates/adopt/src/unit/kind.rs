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
    /// `#pragma`, which may change the layout of later types or the value of later macros.
    Pragma,
    /// `using namespace`.
    Using,
    /// An include outside the project.
    Include,
    /// An include of a project file, whose items follow; its name is the path.
    Header,
}

impl Kind {
    /// Reports whether it is a preprocessor directive.
    pub(super) fn is_directive(self) -> bool {
        use Kind::{Header, Include, Macro, Pragma, Undefine};
        matches!(self, Macro | Undefine | Pragma | Include | Header)
    }
}

/// Classifies a directive that is neither a definition, an include nor a condition.
pub(super) fn directive(text: &str) -> Option<(Kind, Vec<String>)> {
    let text = text.trim_start_matches('#').trim();
    if let Some(rest) = text.strip_prefix("undef") {
        return Some((Kind::Undefine, vec![rest.trim().to_owned()]));
    }
    let name = words(text.strip_prefix("pragma")?).first().copied();
    // A template is not included.
    (name != Some("once")).then(|| (Kind::Pragma, Vec::new()))
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
