//! Analysis of host code: a kernel's launches, sizes and buffers.

mod express;
mod launches;
mod memory;
mod values;

use super::expr::{Expr, not_reserved};
use super::kernel;
use super::macros::pieces;
use super::tree::{self, Node, Source, named, visit};
use super::unit::{Kind, Unit};
use launches::enclosing;
use std::collections::BTreeMap;
use std::rc::Rc;
use tuner_kernel::declarations;

pub(crate) use launches::{Branch, Launch, base_name};
pub(crate) use values::{initialised, sizeof};

/// Maximum number of steps from a name to its value, or from a function to its caller.
const MAX_DEPTH: usize = 12;

/// Scope of a name lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'u> {
    pub(crate) source: &'u Source,
    pub(crate) function: Option<Node<'u>>,
}

/// All calls of a unit by the callee's name.
type Calls<'u> = BTreeMap<String, Vec<(&'u Source, Node<'u>)>>;

/// Host code and the decisions about its names.
#[derive(Debug, Clone)]
pub(crate) struct Host<'u> {
    unit: &'u Unit,
    calls: Rc<Calls<'u>>,
    /// Local names that are sizes or parameters: file, start of the function, name.
    pub(crate) bound: BTreeMap<(String, usize, String), String>,
    /// Local names that are constants, such as template arguments.
    constants: BTreeMap<(String, usize, String), i64>,
    /// Structs passed at a launch, by the kernel's names for them.
    objects: BTreeMap<(String, usize, String), String>,
    /// Search space names of macros and file-scope constants.
    pub(crate) tunable: BTreeMap<String, i64>,
    /// Names without a known value may become sizes.
    pub(crate) invent: bool,
    /// Sizes created from host names.
    pub(crate) invented: Vec<(String, Option<i64>)>,
}

impl<'u> Host<'u> {
    pub(crate) fn new(unit: &'u Unit) -> Self {
        Self {
            unit,
            calls: Rc::new(calls(unit)),
            bound: BTreeMap::new(),
            constants: BTreeMap::new(),
            objects: BTreeMap::new(),
            tunable: BTreeMap::new(),
            invent: false,
            invented: Vec::new(),
        }
    }

    /// Clones the state for a trial.
    pub(crate) fn trial(&self) -> Self {
        Self {
            invent: true,
            invented: Vec::new(),
            ..self.clone()
        }
    }

    /// Reports whether the extents of a launch can be translated. The nodes must be of this unit.
    pub(crate) fn understands(&mut self, scope: Scope<'u>, node: Node<'u>) -> bool {
        self.extents(scope, node, 0).is_some()
    }

    /// Returns the plain names in the extents of a launch with their number of occurrences.
    pub(crate) fn parts(&self, scope: Scope<'u>, node: Node<'u>) -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        let node = match node.kind() {
            "identifier" => match self.initialiser(scope, scope.source.node_text(node)) {
                Some((_, value)) if is_dim3(scope.source, value) => value,
                _ => node,
            },
            _ => node,
        };
        visit(node, &mut |node| {
            if matches!(node.kind(), "identifier" | "type_identifier") {
                let name = scope.source.node_text(node);
                match found.iter_mut().find(|(known, _)| known == name) {
                    Some((_, times)) => *times += 1,
                    None if name == "dim3" => {}
                    None => found.push((name.to_owned(), 1)),
                }
            }
            !matches!(node.kind(), "call_expression" if !scope.source.node_text(node).starts_with("dim3"))
        });
        found
    }

    fn key(scope: Scope<'u>, name: &str) -> (String, usize, String) {
        let start = scope
            .function
            .map_or(usize::MAX, |function| function.start_byte());
        (scope.source.shown.clone(), start, name.to_owned())
    }

    /// Records the kernel's name for a host struct: its members become sizes of that name.
    pub(crate) fn passes(&mut self, scope: Scope<'u>, object: &str, name: &str) {
        self.objects
            .insert(Self::key(scope, object), name.to_owned());
    }

    /// Records that a local name is this constant and not a size.
    pub(crate) fn fix(&mut self, scope: Scope<'u>, name: &str, value: i64) {
        self.constants.insert(Self::key(scope, name), value);
    }

    /// Reports whether a local name is such a constant or computed from one.
    pub(crate) fn is_fixed(&self, scope: Scope<'u>, name: &str) -> bool {
        self.depends(scope, name, self.constants.keys().cloned())
    }

    /// Reports whether the meaning of a text depends on a local name.
    pub(crate) fn depends_on(&self, scope: Scope<'u>, text: &str, name: &str) -> bool {
        self.depends(scope, text, std::iter::once(Self::key(scope, name)))
    }

    fn depends(
        &self,
        scope: Scope<'u>,
        text: &str,
        on: impl Iterator<Item = (String, usize, String)>,
    ) -> bool {
        // No name of a source has this form.
        const MARK: &str = "?";
        let mut marked = self.clone();
        marked.bound.extend(on.map(|key| (key, MARK.to_owned())));
        let Some(meaning) = marked.of_text(Some(scope), text) else {
            // A condition on the marked name cannot be translated. If one on its value can, the text
            // depends on it.
            return self.clone().of_text(Some(scope), text).is_some();
        };
        let mut names = Vec::new();
        meaning.names(&mut names);
        names.iter().any(|name| name == MARK)
    }

    /// Returns the names in a text that are local to a function: variables, parameters and template
    /// parameters.
    pub(crate) fn local_names(&self, scope: Scope<'u>, text: &str) -> Vec<String> {
        let is_local = |name: &str| {
            self.bound.contains_key(&Self::key(scope, name))
                || self.initialiser(scope, name).is_some()
                || self.argument(scope, name).is_some()
                || self.template_argument(scope, name).is_some()
        };
        let mut found = Vec::new();
        let mut before = "";
        for piece in pieces(text)
            .into_iter()
            .filter(|_| scope.function.is_some())
        {
            let starts = piece.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if starts && !before.ends_with("::") && is_local(piece) {
                found.push(piece.to_owned());
            }
            before = piece;
        }
        found
    }

    /// Records that a local name is a size or a parameter, and propagates it to the callers.
    pub(crate) fn bind(&mut self, scope: Scope<'u>, name: &str, meaning: &str) {
        let (mut scope, mut name) = (scope, name.to_owned());
        // Mutually recursive functions would pass the name on forever.
        for _ in 0..MAX_DEPTH {
            self.bound
                .entry(Self::key(scope, &name))
                .or_insert_with(|| meaning.to_owned());
            let Some((caller, argument)) = self.argument(scope, &name) else {
                return;
            };
            if argument.kind() != "identifier" {
                return;
            }
            name = caller.source.node_text(argument).to_owned();
            scope = caller;
        }
    }

    /// Returns the argument that a function's first caller passes for a parameter.
    fn argument(&self, scope: Scope<'u>, name: &str) -> Option<(Scope<'u>, Node<'u>)> {
        let own_function = scope.function?;
        let parameters = kernel::parameters(scope.source, own_function);
        let at = parameters.iter().position(|each| each.name == name)?;
        let own = tree::declared(scope.source, own_function).pop()?;
        self.calls.get(&own)?.iter().find_map(|(source, node)| {
            let arguments = node.child_by_field_name("arguments")?;
            let argument = named(arguments).get(at).copied()?;
            let function = enclosing(*node);
            // A recursive call adds no information.
            let same = function.map(|f| f.start_byte()) == Some(own_function.start_byte());
            (!same).then_some((Scope { source, function }, argument))
        })
    }

    /// Returns the text of the template argument that a function's first caller passes.
    fn template_argument(&self, scope: Scope<'u>, name: &str) -> Option<(Scope<'u>, String)> {
        let own_function = scope.function?;
        let template = own_function.parent()?;
        let parameters = kernel::template_parameters(scope.source, template);
        let at = parameters.iter().position(|each| each.name == name)?;
        let own = tree::declared(scope.source, own_function).pop()?;
        self.calls.get(&own)?.iter().find_map(|(source, node)| {
            let callee = source.node_text(node.child_by_field_name("function")?);
            let (_, rest) = callee.split_once('<')?;
            let given = declarations::split(rest.get(..rest.rfind('>')?)?);
            let function = enclosing(*node);
            Some((Scope { source, function }, given.get(at)?.clone()))
        })
    }

    /// Returns the initializer of a name in a function or at file scope.
    fn initialiser(&self, scope: Scope<'u>, name: &str) -> Option<(Scope<'u>, Node<'u>)> {
        if let Some(function) = scope.function {
            let value = find_initialiser(scope.source, function, name)?;
            return Some((scope, value));
        }
        self.unit.declaring(name).find_map(|(item, source, node)| {
            if !matches!(item.kind, Kind::Declaration | Kind::HostVariable) {
                return None;
            }
            let value = find_initialiser(source, node, name)?;
            // The host assigns another value before the use.
            if item.kind == Kind::HostVariable && zero(source, value) {
                return None;
            }
            let function = None;
            Some((Scope { source, function }, value))
        })
    }

    /// Creates a size for a host expression, with a name valid in a search space.
    fn size(&mut self, scope: Scope<'u>, spelled: &str, name: &str, value: Option<i64>) -> Expr {
        let name = not_reserved(name);
        if !self.invented.iter().any(|(known, _)| *known == name) {
            self.invented.push((name.clone(), value));
        }
        self.bind(scope, spelled, &name);
        Expr::Name(name)
    }
}

fn calls(unit: &Unit) -> Calls<'_> {
    let mut found: Calls<'_> = BTreeMap::new();
    for source in &unit.files {
        visit(source.tree().root_node(), &mut |node| {
            if node.kind() == "call_expression"
                && let Some(callee) = node.child_by_field_name("function")
            {
                let name = base_name(source.node_text(callee)).to_owned();
                found.entry(name).or_default().push((source, node));
            }
            true
        });
    }
    found
}

/// Returns the byte count of a pointer's allocation below a node.
fn allocated<'t>(source: &Source, root: Node<'t>, name: &str) -> Option<Node<'t>> {
    let mut found = None;
    visit(root, &mut |node| {
        if found.is_none()
            && node.kind() == "call_expression"
            && let Some(callee) = node.child_by_field_name("function")
            && base_name(source.node_text(callee)).starts_with("cudaMalloc")
            && let Some(arguments) = node.child_by_field_name("arguments")
            && let [target, bytes, ..] = named(arguments).as_slice()
            // In `(void **)&name` the name follows the words of the cast.
            && tree::words(source.node_text(*target)).last() == Some(&name)
        {
            found = Some(*bytes);
        }
        found.is_none()
    });
    found
}

/// Finds the initializer of a name below a node: a declaration, else the first assignment. A zero that
/// another function replaces (`int blocks = 0; choose(n, blocks);`) does not count.
fn find_initialiser<'t>(source: &Source, root: Node<'t>, name: &str) -> Option<Node<'t>> {
    let mut values = Vec::new();
    let (mut passed, mut product) = (false, false);
    let mut counter = None;
    visit(root, &mut |node| {
        match node.kind() {
            "init_declarator" => {
                if let Some(declarator) = node.child_by_field_name("declarator")
                    && tree::declared_name(source, declarator).last() == Some(&name)
                {
                    values.extend(node.child_by_field_name("value"));
                    let declaration = node.parent();
                    let around = declaration.and_then(|declaration| declaration.parent());
                    if around.is_some_and(|around| around.kind() == "for_statement") {
                        counter = counter.or(node.child_by_field_name("value"));
                    }
                }
            }
            "function_declarator" => {
                let declaration = node.parent();
                let ty = declaration
                    .filter(|parent| parent.kind() == "declaration")
                    .and_then(|parent| parent.child_by_field_name("type"));
                // `const` and similar words are not part of the type.
                let of_dim3 = ty.is_some_and(|ty| source.node_text(ty) == "dim3");
                if of_dim3 && tree::declared_name(source, node).last() == Some(&name) {
                    values.extend(node.child_by_field_name("parameters"));
                }
            }
            // `int n; n = …;`
            "assignment_expression" => {
                if let Some(left) = node.child_by_field_name("left")
                    && left.kind() == "identifier"
                    && source.node_text(left) == name
                    && let Some(operator) = node.child_by_field_name("operator")
                {
                    match source.node_text(operator) {
                        "=" => values.extend(node.child_by_field_name("right")),
                        "*=" => product = true,
                        _ => {}
                    }
                }
            }
            "argument_list" => {
                let is_it =
                    |each: &Node<'_>| source.node_text(*each).trim_start_matches('&') == name;
                passed |= named(node).iter().any(is_it);
            }
            _ => {}
        }
        true
    });
    let first = *values.first()?;
    // The first iteration of a loop is one of the file's launches.
    if counter == Some(first) {
        return counter;
    }
    // `int n = 1; for (…) n *= …;`: the product is not known statically.
    if product && source.node_text(first) == "1" {
        return None;
    }
    if !zero(source, first) {
        return Some(first);
    }
    let other = values.into_iter().find(|value| !zero(source, *value));
    other.or_else(|| (!passed).then_some(first))
}

fn zero(source: &Source, value: Node<'_>) -> bool {
    matches!(source.node_text(value), "0" | "-1" | "0u" | "0.0")
}

/// Reports whether a value is a `dim3`.
fn is_dim3(source: &Source, value: Node<'_>) -> bool {
    matches!(
        value.kind(),
        "argument_list" | "initializer_list" | "parameter_list"
    ) || source.node_text(value).starts_with("dim3")
}
