//! A kernel's signature and its accesses through pointers.

mod indices;
mod listed;
mod overload;

use super::tree::{self, Node, Source, visit};
use super::unit::{Item, Kind, Unit, node_of};
pub(crate) use indices::indices;
use listed::{Listed, single};
pub(crate) use overload::{QUALIFIERS, is_overload, plain, types};
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::plan::Role;

/// Maximum number of elements per index; a larger factor is an offset.
const MAX_MULTIPLIER: i64 = 16;

/// A parameter in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Name; empty if it has none.
    pub(crate) name: String,
    /// Text of the type without the name.
    pub(crate) ty: String,
    /// Text of the default value, if any.
    pub(crate) default: Option<String>,
}

/// A template parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateParameter {
    /// Its name.
    pub(crate) name: String,
    /// It is a type parameter.
    pub(crate) is_type: bool,
    /// Default argument.
    pub(crate) default: Option<String>,
}

/// Parses the parameters of a function.
pub(crate) fn parameters(source: &Source, node: Node<'_>) -> Vec<Parameter> {
    let Some(list) = tree::function(node).and_then(|f| f.child_by_field_name("parameters")) else {
        return Vec::new();
    };
    let mut cursor = list.walk();
    let mut found = Vec::new();
    for child in list.named_children(&mut cursor) {
        if !child.kind().contains("parameter_declaration") {
            continue;
        }
        let declarator = child.child_by_field_name("declarator");
        let names = declarator.map_or(Vec::new(), |it| tree::declared_name(source, it));
        let name = names.last().copied().unwrap_or_default();
        let whole = source
            .node_text(child)
            .split('=')
            .next()
            .unwrap_or_default();
        let ty = match (name, declarator) {
            ("", _) | (_, None) => whole.to_owned(),
            // The last occurrence: the type may also contain the name, as in `data_t *data`.
            (name, Some(_)) => match whole.rfind(name) {
                Some(at) => format!("{}{}", &whole[..at], &whole[at + name.len()..]),
                None => whole.to_owned(),
            },
        };
        if ty.trim() == "void" && name.is_empty() {
            continue;
        }
        found.push(Parameter {
            name: name.to_owned(),
            ty: ty.split_whitespace().collect::<Vec<_>>().join(" "),
            default: child
                .child_by_field_name("default_value")
                .map(|value| source.node_text(value).to_owned()),
        });
    }
    found
}

/// Parses the template parameters of a function.
pub(crate) fn template_parameters(source: &Source, node: Node<'_>) -> Vec<TemplateParameter> {
    let Some(list) = node
        .child_by_field_name("parameters")
        .filter(|_| node.kind() == "template_declaration")
    else {
        return Vec::new();
    };
    let all = tree::named(list).into_iter();
    all.map(|child| {
        let text = source.node_text(child);
        let (head, default) = match text.split_once('=') {
            Some((head, default)) => (head, Some(default.trim().to_owned())),
            None => (text, None),
        };
        TemplateParameter {
            name: tree::words(head).pop().unwrap_or_default().to_owned(),
            is_type: child.kind().contains("type_parameter") || is_constrained(source, head),
            default,
        }
    })
    .collect()
}

/// Reports whether a template parameter is a type with a concept: `Number T`, `std::integral T`.
fn is_constrained(source: &Source, head: &str) -> bool {
    let constraint = tree::words(head);
    let Some((_, constraint)) = constraint.split_last() else {
        return false;
    };
    let code = source.code(&(0..source.len()));
    let is_concept = |name: &&str| {
        let mut all = code.match_indices("concept ");
        all.any(|(at, word)| {
            let rest = code.get(at + word.len()..).unwrap_or_default();
            tree::words(rest.lines().next().unwrap_or_default()).first() == Some(name)
        })
    };
    let of_library = head.contains("std::") && !constraint.iter().any(|word| word.ends_with("_t"));
    of_library || constraint.iter().any(is_concept)
}

/// Reports whether a type is a pointer or array, and whether its target is const.
pub(crate) fn pointer(ty: &str) -> (bool, bool) {
    let is_pointer = ty.contains('*') || ty.contains('[');
    // Only a `const` before the `*` protects the target: `T *const p` may be written through.
    let before = ty.split(['*', '[']).next().unwrap_or_default();
    (is_pointer, tree::words(before).contains(&"const"))
}

/// Determines the role of each pointer: input, output, or both.
pub(crate) fn roles(unit: &Unit, item: &Item) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    let Some((source, node)) = node_of(unit, item) else {
        return roles;
    };
    let Some(body) = tree::body(node) else {
        return roles;
    };
    let pointers: Vec<Parameter> = parameters(source, node)
        .into_iter()
        .filter(|each| pointer(&each.ty).0)
        .collect();
    let mut access = Access {
        unit,
        source,
        of: pointers
            .iter()
            .map(|each| (each.name.clone(), each.name.clone()))
            .collect(),
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
    };
    access.aliases(body);
    access.uses(body);
    for each in pointers {
        let writes = access.writes.contains(&each.name);
        let role = match (
            pointer(&each.ty).1,
            writes,
            access.reads.contains(&each.name),
        ) {
            (true, ..) | (_, false, _) => Role::Input,
            (_, true, false) => Role::Output,
            (_, true, true) => Role::Inout,
        };
        roles.insert(each.name, role);
    }
    roles
}

/// Returns the constant factors of indices into each pointer, as in `boxes[4 * i + 3]`: the number of
/// elements per index. Pointers without a factor are omitted.
pub(crate) fn multipliers(unit: &Unit, item: &Item) -> BTreeMap<String, i64> {
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    let Some((source, node)) = node_of(unit, item) else {
        return found;
    };
    let names: Vec<String> = parameters(source, node)
        .into_iter()
        .filter(|each| pointer(&each.ty).0)
        .map(|each| each.name)
        .collect();
    let Some(body) = tree::body(node) else {
        return found;
    };
    visit(body, &mut |node| {
        // `p[4 * i]` and `p + 4 * i`.
        let index = match node.kind() {
            "subscript_expression" => node.child_by_field_name("indices"),
            "binary_expression" => node.child_by_field_name("right"),
            _ => None,
        };
        let of = node
            .child_by_field_name("argument")
            .or_else(|| node.child_by_field_name("left"));
        let Some((index, name)) = index.zip(of.map(|of| source.node_text(of))) else {
            return true;
        };
        if names.iter().any(|known| known == name) {
            visit(index, &mut |node| {
                let times = node
                    .child_by_field_name("operator")
                    .is_some_and(|it| source.node_text(it) == "*");
                let sides = ["left", "right"].map(|side| node.child_by_field_name(side));
                for side in sides.into_iter().flatten().filter(|_| times) {
                    let number = source.node_text(side).parse().ok();
                    if let Some(number) = number.filter(|it| (2..=MAX_MULTIPLIER).contains(it)) {
                        let most = found.entry(name.to_owned()).or_insert(number);
                        *most = number.max(*most);
                    }
                }
                true
            });
        }
        true
    });
    found
}

struct Access<'u> {
    unit: &'u Unit,
    source: &'u Source,
    /// Parameter that each pointer name is derived from.
    of: BTreeMap<String, String>,
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
}

impl<'u> Access<'u> {
    /// Records pointers derived from parameters.
    fn aliases(&mut self, body: Node<'u>) {
        for _ in 0..4 {
            let before = self.of.len();
            visit(body, &mut |node| {
                if node.kind() == "init_declarator"
                    && let Some(declarator) = node.child_by_field_name("declarator")
                    && let Some(value) = node.child_by_field_name("value")
                    && let value = single(value).unwrap_or(value)
                    // `T x = p[i]` copies an element, so `x` is not a pointer to the buffer.
                    && !matches!(value.kind(), "subscript_expression")
                    && let Some(base) = self.base(value)
                    && (declarator.kind().contains("pointer")
                        || declarator.kind().contains("reference")
                        || declarator.kind() == "identifier" && self.declares_pointer(node))
                    && let Some(name) = tree::declared_name(self.source, declarator).last()
                {
                    self.of.insert((*name).to_owned(), base);
                }
                true
            });
            if self.of.len() == before {
                break;
            }
        }
    }

    /// Reports whether a node declares `auto p = …` or a type alias that hides a pointer.
    fn declares_pointer(&self, node: Node<'u>) -> bool {
        node.parent()
            .is_some_and(|parent| self.source.node_text(parent).starts_with("auto"))
    }

    /// Returns the parameter whose memory an expression addresses.
    fn base(&self, node: Node<'u>) -> Option<String> {
        let mut at = node;
        loop {
            match at.kind() {
                "identifier" => return self.of.get(self.source.node_text(at)).cloned(),
                "subscript_expression" | "pointer_expression" | "field_expression" => {
                    at = at.child_by_field_name("argument")?;
                }
                "cast_expression" => at = at.child_by_field_name("value")?,
                "parenthesized_expression" => at = tree::first(at)?,
                "assignment_expression" => at = at.child_by_field_name("left")?,
                "binary_expression" => {
                    let left = at.child_by_field_name("left")?;
                    if let Some(found) = self.base(left) {
                        return Some(found);
                    }
                    at = at.child_by_field_name("right")?;
                }
                "conditional_expression" => at = at.child_by_field_name("consequence")?,
                "call_expression" => {
                    let function = at.child_by_field_name("function")?;
                    if !self.source.node_text(function).contains("_cast") {
                        return None;
                    }
                    at = tree::first(at.child_by_field_name("arguments")?)?;
                }
                _ => return None,
            }
        }
    }

    fn uses(&mut self, body: Node<'u>) {
        let mut nodes = Vec::new();
        visit(body, &mut |node| {
            nodes.push(node);
            true
        });
        for node in nodes {
            match node.kind() {
                "assignment_expression" => self.assignment(node),
                "update_expression" => {
                    if let Some(target) = node.child_by_field_name("argument")
                        && target.kind() != "identifier"
                        && let Some(base) = self.base(target)
                    {
                        self.reads.insert(base.clone());
                        self.writes.insert(base);
                    }
                }
                "call_expression" => self.call(node),
                "initializer_list" => self.kept(node),
                "gnu_asm_expression" => self.assembly(node),
                "subscript_expression" | "pointer_expression" if !self.is_target(node) => {
                    // `&p[i]` alone accesses no memory.
                    let address = self.source.node_text(node).starts_with('&')
                        || node.parent().is_some_and(|parent| {
                            parent.kind() == "pointer_expression"
                                && self.source.node_text(parent).starts_with('&')
                        });
                    if !address && let Some(base) = self.base(node) {
                        self.reads.insert(base);
                    }
                }
                _ => {}
            }
        }
    }

    /// Reports whether a location is only assigned to.
    fn is_target(&self, node: Node<'u>) -> bool {
        let mut at = node;
        while let Some(parent) = at.parent() {
            match parent.kind() {
                "assignment_expression" => {
                    let plain = parent
                        .child_by_field_name("operator")
                        .is_some_and(|operator| self.source.node_text(operator) == "=");
                    return plain && parent.child_by_field_name("left") == Some(at);
                }
                "field_expression"
                | "subscript_expression"
                | "pointer_expression"
                | "parenthesized_expression"
                    if parent.child_by_field_name("argument") == Some(at)
                        || parent.kind() == "parenthesized_expression" =>
                {
                    at = parent;
                }
                // A macro is the target of the assignment.
                "argument_list" | "call_expression" => at = parent,
                _ => return false,
            }
        }
        false
    }

    fn assignment(&mut self, node: Node<'u>) {
        let Some(left) = node.child_by_field_name("left") else {
            return;
        };
        // The assignment changes a pointer, not memory.
        if left.kind() == "identifier" {
            return;
        }
        if let Some(base) = self.base(left).or_else(|| self.through_macro(left)) {
            self.writes.insert(base.clone());
            let operator = node.child_by_field_name("operator");
            if operator.is_some_and(|operator| self.source.node_text(operator) != "=") {
                self.reads.insert(base);
            }
        }
    }

    /// Returns the parameter of a macro on the left of an assignment, as in `FLOAT4(y[i]) = v;`.
    fn through_macro(&self, target: Node<'u>) -> Option<String> {
        let call = tree::bare(target)?;
        let arguments = call.child_by_field_name("arguments")?;
        let mut all = tree::named(arguments).into_iter();
        all.find_map(|argument| self.base(argument))
    }

    /// Handles inline assembly that stores: every operand may be a target.
    fn assembly(&mut self, node: Node<'u>) {
        let text = self.source.node_text(node);
        if !["st.", "red.", "atom."].iter().any(|it| text.contains(it)) {
            return;
        }
        for word in tree::words(text) {
            if let Some(base) = self.of.get(word) {
                self.reads.insert(base.clone());
                self.writes.insert(base.clone());
            }
        }
    }

    fn call(&mut self, node: Node<'u>) {
        let (Some(function), Some(arguments)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            return;
        };
        let name = self.source.node_text(function);
        if name.contains("_cast") || name.contains("sizeof") {
            return;
        }
        let plain = name.split('<').next().unwrap_or(name);
        let plain = plain.rsplit("::").next().unwrap_or(plain).trim();
        for (at, argument) in tree::named(arguments).into_iter().enumerate() {
            let Some(base) = self.address(argument) else {
                continue;
            };
            let (reads, writes) = self.callee(plain, at);
            if reads {
                self.reads.insert(base.clone());
            }
            if writes {
                self.writes.insert(base);
            }
        }
    }

    /// Returns the parameter whose address an expression is.
    fn address(&self, node: Node<'u>) -> Option<String> {
        let is_element = node.kind() == "subscript_expression"
            || node.kind() == "pointer_expression" && self.source.node_text(node).starts_with('*');
        self.base(node).filter(|_| !is_element)
    }

    /// Records pointers passed to an object, `view y{p, n}`: its functions may read and write there.
    fn kept(&mut self, list: Node<'u>) {
        let made = Listed::initialised_by(self.unit, self.source, list);
        if made == Listed::Alias {
            return;
        }
        for (at, part) in tree::named(list).into_iter().enumerate() {
            // `{.first = p}`
            let designator = part.child_by_field_name("designator");
            let value = part
                .child_by_field_name("value")
                .filter(|_| designator.is_some());
            let value = value.unwrap_or(part);
            let name = designator.and_then(|it| tree::words(self.source.node_text(it)).pop());
            if let Some(base) = self.address(value) {
                self.reads.insert(base.clone());
                if !made.is_constant(at, name) {
                    self.writes.insert(base);
                }
            }
        }
    }

    /// Reports whether a function reads and writes the target of its argument.
    fn callee(&self, name: &str, at: usize) -> (bool, bool) {
        if name.starts_with("atomic") {
            return (true, true);
        }
        if name.starts_with("__ld") || name.starts_with("load_") {
            return (true, false);
        }
        if name.starts_with("__st") || name.starts_with("store_") || name == "memset" {
            return (false, true);
        }
        if matches!(
            name,
            "memcpy" | "__builtin_memcpy" | "memcpy_async" | "__pipeline_memcpy_async"
        ) {
            return (at != 0, at == 0);
        }
        let mut found = (false, false);
        let mut known = false;
        for (item, source, node) in self.unit.declaring(name) {
            if matches!(item.kind, Kind::Device | Kind::Host)
                && let Some(parameter) = parameters(source, node).get(at)
            {
                known = true;
                let (is_pointer, constant) = pointer(&parameter.ty);
                let reference = parameter.ty.contains('&');
                found.0 = true;
                found.1 |= (is_pointer || reference) && !constant;
            }
        }
        // An unnecessary `inout` costs a comparison; a missed write would leave a result unchecked.
        if known { found } else { (true, true) }
    }
}

#[cfg(test)]
mod tests;
