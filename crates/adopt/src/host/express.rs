//! Translation of host expressions into the names of the search space.

use super::launches::{base_name, enclosing};
use super::values::{VALUE, initialised, is_real, number, operation, size_of};
use super::{Host, MAX_DEPTH, Scope, allocated, find_initialiser, is_dim3};
use crate::expr::Expr;
use crate::kernel;
use crate::tree::{self, Node, Source, named};
use crate::unit::Kind;

/// Position of an expression: its file, the function that defines its names, values of local names.
#[derive(Debug, Clone, Copy)]
struct Place<'u, 't> {
    scope: Option<Scope<'u>>,
    source: &'t Source,
    values: &'t [(String, Expr)],
}

/// Returns the object of `object.member` and `object->member`.
fn object_of(text: &str) -> &str {
    text.split(['.', '-']).next().unwrap_or(text).trim()
}

/// Substrings in the names of functions that divide and round up.
const CEIL_DIV: [&str; 9] = [
    "ceil_div",
    "ceildiv",
    "div_up",
    "divup",
    "cdiv",
    "div_ceil",
    "divceil",
    "updiv",
    "round_up_div",
];

/// Device properties that host code queries.
const FACTS: [(&str, &str); 4] = [
    ("multiProcessorCount", "DEVICE_SM_COUNT"),
    ("maxThreadsPerBlock", "DEVICE_MAX_THREADS"),
    ("sharedMemPerBlock", "DEVICE_SHARED_BYTES"),
    ("sharedMemPerBlockOptin", "DEVICE_SHARED_BYTES"),
];

impl<'u> Host<'u> {
    /// Translates the text of a template argument in the scope of the launch.
    pub(crate) fn of_text(&mut self, scope: Option<Scope<'u>>, text: &str) -> Option<Expr> {
        let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit());
        match scope {
            Some(scope) if is_name => self.name(scope, text, 0),
            scope => self.snippet(scope, text, &[], 0),
        }
    }

    /// Translates an expression of the unit.
    pub(crate) fn express(
        &mut self,
        scope: Scope<'u>,
        node: Node<'u>,
        depth: usize,
    ) -> Option<Expr> {
        let place = Place {
            scope: Some(scope),
            source: scope.source,
            values: &[],
        };
        self.evaluate(place, node, depth)
    }

    fn evaluate<'t>(&mut self, place: Place<'u, 't>, node: Node<'t>, depth: usize) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let node = tree::bare(node)?;
        let text = place.source.node_text(node);
        match node.kind() {
            "number_literal" => number(text),
            "sizeof_expression" => Some(size_of(text)),
            "identifier" => self.identifier(place, text, depth),
            "field_expression" => self.field(place, node, depth),
            "binary_expression" => {
                let left = node.child_by_field_name("left")?;
                let right = node.child_by_field_name("right")?;
                let texts = [left, right].map(|side| place.source.node_text(side));
                let left = self.evaluate(place, left, depth + 1)?;
                let right = self.evaluate(place, right, depth + 1)?;
                let operator = place
                    .source
                    .node_text(node.child_by_field_name("operator")?);
                let real = left.is_real() || right.is_real() || texts.into_iter().any(is_real);
                if operator == "/" && real {
                    return Some(Expr::binary("/", left, right));
                }
                operation(operator, left, right)
            }
            "conditional_expression" => self.choice(place, node, depth),
            "call_expression" => {
                let callee = node.child_by_field_name("function")?;
                let given = named(node.child_by_field_name("arguments")?);
                if callee.kind() == "field_expression" && given.is_empty() {
                    return self.field(place, callee, depth);
                }
                let arguments: Option<Vec<Expr>> = given
                    .into_iter()
                    .map(|each| self.evaluate(place, each, depth + 1))
                    .collect();
                self.apply(place.source.node_text(callee), arguments?, depth + 1)
            }
            _ => None,
        }
    }

    fn identifier(&mut self, place: Place<'u, '_>, text: &str, depth: usize) -> Option<Expr> {
        if let Some((_, value)) = place.values.iter().find(|(name, _)| name == text) {
            return Some(value.clone());
        }
        match place.scope {
            Some(scope) => self.name(scope, text, depth + 1),
            None if self.tunable.contains_key(text) => Some(Expr::Name(text.to_owned())),
            None => self.of_macro(text, depth + 1).or_else(|| {
                let source = self.unit.files.first()?;
                let outside = Scope {
                    source,
                    function: None,
                };
                self.global(outside, text, depth + 1)
            }),
        }
    }

    /// Translates `a < b ? a : b` and similar expressions.
    fn choice<'t>(&mut self, place: Place<'u, 't>, node: Node<'t>, depth: usize) -> Option<Expr> {
        let mut of = |name: &str, node: Node<'t>| {
            self.evaluate(place, node.child_by_field_name(name)?, depth + 1)
        };
        let (yes, no) = (of("consequence", node)?, of("alternative", node)?);
        let condition = tree::bare(node.child_by_field_name("condition")?)?;
        let (left, right) = (of("left", condition)?, of("right", condition)?);
        let operator = place
            .source
            .node_text(condition.child_by_field_name("operator")?);
        if yes == no {
            return Some(yes);
        }
        if let (Some(left), Some(right)) = (left.number(), right.number()) {
            let holds = match operator {
                "<" => left < right,
                "<=" => left <= right,
                ">" => left > right,
                ">=" => left >= right,
                "==" => left == right,
                "!=" => left != right,
                _ => return None,
            };
            return Some(if holds { yes } else { no });
        }
        let less = match operator {
            "<" | "<=" => true,
            ">" | ">=" => false,
            _ => return None,
        };
        let name = if (left == yes && right == no) == less {
            "min"
        } else {
            "max"
        };
        let same = left == yes && right == no || left == no && right == yes;
        same.then(|| Expr::call(name, vec![yes, no]))
    }

    /// Translates a member: an extent of a `dim3`, a device property, or a new size.
    fn field(&mut self, place: Place<'u, '_>, node: Node<'_>, depth: usize) -> Option<Expr> {
        let scope = place.scope?;
        let text = place.source.node_text(node);
        if let Some(meaning) = self.bound.get(&Self::key(scope, text)) {
            return Some(Expr::Name(meaning.clone()));
        }
        let field = place.source.node_text(node.child_by_field_name("field")?);
        if let Some((_, fact)) = FACTS.iter().find(|(name, _)| *name == field) {
            return Some(Expr::Name((*fact).to_owned()));
        }
        let object = place
            .source
            .node_text(node.child_by_field_name("argument")?);
        let axis = ["x", "y", "z"].iter().position(|axis| *axis == field);
        if let (Some(axis), Some((inner, value))) = (axis, self.initialiser(scope, object))
            && is_dim3(inner.source, value)
        {
            return self.extents(inner, value, depth + 1)?.into_iter().nth(axis);
        }
        let known = axis.and_then(|axis| {
            let (inner, value) = self.argument(scope, object)?;
            self.extents(inner, value, depth + 1)?.into_iter().nth(axis)
        });
        let plain = object.chars().all(|c| c.is_alphanumeric() || c == '_');
        let varies = known.as_ref().is_none_or(|known| known.number().is_some());
        if self.invent && plain && varies {
            let value = known.as_ref().and_then(Expr::number);
            let object = self.objects.get(&Self::key(scope, object));
            let object = object.map_or_else(|| object_of(text), String::as_str);
            let name = format!("{object}_{field}");
            return Some(self.size(scope, text, &name, value));
        }
        known
    }

    pub(super) fn name(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        if let Some(meaning) = self.bound.get(&Self::key(scope, name)) {
            return Some(Expr::Name(meaning.clone()));
        }
        if let Some(value) = self.constants.get(&Self::key(scope, name)) {
            return Some(Expr::Number(*value));
        }
        if self.tunable.contains_key(name) {
            return Some(Expr::Name(name.to_owned()));
        }
        if let Some((inner, value)) = self.initialiser(scope, name) {
            let known = self.express(inner, value, depth + 1);
            // A plain number in a function is a value that users change.
            if self.invent
                && inner.function.is_some()
                && let Some(value) = known
                    .as_ref()
                    .map_or(Some(None), |known| known.number().map(Some))
            {
                return Some(self.size(scope, name, name, value));
            }
            return known;
        }
        if let Some(pitch) = self.pitch(scope, name, depth) {
            return Some(pitch);
        }
        if let Some((caller, argument)) = self.argument(scope, name)
            && let Some(known) = self.express(caller, argument, depth + 1)
        {
            return Some(known);
        }
        if let Some((caller, text)) = self.template_argument(scope, name)
            && depth < MAX_DEPTH
            && let Some(known) = self.snippet(Some(caller), &text, &[], depth + 1)
        {
            return Some(known);
        }
        if let Some(value) = self.of_macro(name, depth) {
            return Some(value);
        }
        if scope.function.is_some()
            && let Some(found) = self.global(scope, name, depth)
        {
            return Some(found);
        }
        (self.invent && scope.function.is_some()).then(|| self.size(scope, name, name, None))
    }

    fn global(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        let outside = Scope {
            source: scope.source,
            function: None,
        };
        let (inner, value) = self.initialiser(outside, name)?;
        self.express(inner, value, depth + 1)
    }

    /// Translates a macro without parameters.
    fn of_macro(&mut self, name: &str, depth: usize) -> Option<Expr> {
        let mut found = self.unit.declaring(name);
        let (_, source, node) = found.find(|(item, ..)| item.kind == Kind::Macro)?;
        if node.kind() != "preproc_def" {
            return None;
        }
        let text = source
            .node_text(node.child_by_field_name("value")?)
            .to_owned();
        self.snippet(None, &text, &[], depth)
    }

    /// Translates an expression given as text, with values for its parameters.
    pub(crate) fn snippet(
        &mut self,
        scope: Option<Scope<'u>>,
        text: &str,
        values: &[(String, Expr)],
        depth: usize,
    ) -> Option<Expr> {
        let source = initialised(text)?;
        let value = find_initialiser(&source, source.tree().root_node(), VALUE)?;
        let place = Place {
            scope,
            source: &source,
            values,
        };
        self.evaluate(place, value, depth + 1)
    }

    /// Translates a call of a known function, a macro, or a function that only returns an
    /// expression.
    fn apply(&mut self, callee: &str, arguments: Vec<Expr>, depth: usize) -> Option<Expr> {
        let name = base_name(callee);
        if callee.contains("_cast")
            || matches!(name, "int" | "size_t" | "unsigned" | "float" | "double")
        {
            return arguments.into_iter().next();
        }
        let lower = name.to_lowercase();
        if arguments.len() == 2 && CEIL_DIV.iter().any(|known| lower.contains(known)) {
            return Some(Expr::call("ceil_div", arguments));
        }
        match (lower.as_str(), arguments.as_slice()) {
            ("min" | "imin" | "fmin", _) => return Some(Expr::call("min", arguments)),
            ("max" | "imax" | "fmax", _) => return Some(Expr::call("max", arguments)),
            ("ceil" | "ceilf", [Expr::Binary("//" | "/", a, b)]) => {
                return Some(Expr::call("ceil_div", vec![(**a).clone(), (**b).clone()]));
            }
            ("floor" | "floorf", [Expr::Binary("/", a, b)]) => {
                return Some(Expr::binary("//", (**a).clone(), (**b).clone()));
            }
            ("ceil" | "ceilf" | "floor" | "floorf", [other]) => return Some(other.clone()),
            _ => {}
        }
        let (parameters, text) = self.definition(name)?;
        if parameters.len() != arguments.len() {
            return None;
        }
        let values: Vec<(String, Expr)> = parameters.into_iter().zip(arguments).collect();
        self.snippet(None, &text, &values, depth)
    }

    /// Returns the parameters and the expression of a macro or of a function that only returns one.
    fn definition(&self, name: &str) -> Option<(Vec<String>, String)> {
        let kinds = [Kind::Macro, Kind::Host, Kind::Device];
        let mut found = self.unit.declaring(name);
        let (_, source, node) = found.find(|(item, ..)| kinds.contains(&item.kind))?;
        if node.kind() == "preproc_function_def" {
            let list = node.child_by_field_name("parameters")?;
            let parameters = named(list);
            let names = parameters
                .iter()
                .map(|each| source.node_text(*each).to_owned());
            let value = source.node_text(node.child_by_field_name("value")?);
            return Some((names.collect(), value.replace("\\\n", " ")));
        }
        let statements = named(tree::body(node)?);
        let [only] = statements.as_slice() else {
            return None;
        };
        let value = (only.kind() == "return_statement")
            .then(|| tree::first(*only))
            .flatten()?;
        let parameters = kernel::parameters(source, node);
        let names = parameters.into_iter().map(|each| each.name);
        Some((names.collect(), source.node_text(value).to_owned()))
    }

    /// Translates a `dim3` or a number into one to three extents.
    pub(crate) fn extents(
        &mut self,
        scope: Scope<'u>,
        node: Node<'u>,
        depth: usize,
    ) -> Option<Vec<Expr>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match node.kind() {
            // `dim3 grid(B, H);` also parses as a function declaration.
            "parameter_list" => {
                let all = named(node);
                let texts = all.into_iter().map(|each| scope.source.node_text(each));
                texts.map(|text| self.of_text(Some(scope), text)).collect()
            }
            "argument_list" | "initializer_list" | "comma_expression" => {
                let all = tree::listed(node);
                if all.is_empty() {
                    return Some(vec![Expr::Number(1)]);
                }
                all.into_iter()
                    .map(|each| self.express(scope, each, depth + 1))
                    .collect()
            }
            "call_expression" | "compound_literal_expression"
                if scope
                    .source
                    .node_text(node)
                    .trim_start()
                    .starts_with("dim3") =>
            {
                let list = node
                    .child_by_field_name("arguments")
                    .or_else(|| node.child_by_field_name("value"))?;
                self.extents(scope, list, depth + 1)
            }
            "parenthesized_expression" => self.extents(scope, tree::first(node)?, depth + 1),
            "identifier" => {
                let name = scope.source.node_text(node);
                if let Some((inner, value)) = self.initialiser(scope, name)
                    && is_dim3(scope.source, value)
                {
                    return self.extents(inner, value, depth + 1);
                }
                if let Some((caller, argument)) = self.argument(scope, name)
                    && scope.function.is_some_and(|function| {
                        let all = kernel::parameters(scope.source, function);
                        all.iter()
                            .any(|each| each.name == name && each.ty.contains("dim3"))
                    })
                {
                    return self.extents(caller, argument, depth + 1);
                }
                Some(vec![self.express(scope, node, depth + 1)?])
            }
            _ => Some(vec![self.express(scope, node, depth + 1)?]),
        }
    }

    /// Translates the byte count of a host pointer's allocation.
    pub(crate) fn allocation(
        &mut self,
        scope: Scope<'u>,
        node: Node<'u>,
        depth: usize,
    ) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let node = tree::bare(node)?;
        let name = match node.kind() {
            "identifier" => scope.source.node_text(node),
            "field_expression" => scope.source.node_text(node.child_by_field_name("field")?),
            // `p + offset`, `&p[i]`, `cond ? p : q`, `raw_pointer_cast(v.data())`, `v.data()`
            "binary_expression" => {
                return self.allocation(scope, node.child_by_field_name("left")?, depth + 1);
            }
            "pointer_expression" | "subscript_expression" => {
                return self.allocation(scope, node.child_by_field_name("argument")?, depth + 1);
            }
            "conditional_expression" => {
                let one = node.child_by_field_name("consequence")?;
                return self.allocation(scope, one, depth + 1);
            }
            "call_expression" => {
                let callee = node.child_by_field_name("function")?;
                let inner = match named(node.child_by_field_name("arguments")?).as_slice() {
                    [] if callee.kind() == "field_expression" => {
                        callee.child_by_field_name("argument")?
                    }
                    [only] => *only,
                    _ => return None,
                };
                return self.allocation(scope, inner, depth + 1);
            }
            _ => return None,
        };
        let local = |function| allocated(scope.source, function, name);
        if let Some(bytes) = scope.function.and_then(local) {
            return self.allocated_bytes(scope, bytes, depth + 1);
        }
        if let Some(bytes) = self.vector(scope, name, depth) {
            return Some(bytes);
        }
        if let Some((caller, argument)) = self.argument(scope, name) {
            return self.allocation(caller, argument, depth + 1);
        }
        // Another function allocates it: a file-scope variable or a member.
        let found = |source| Some((source, allocated(source, source.tree().root_node(), name)?));
        let (source, bytes) = self.unit.files.iter().find_map(found)?;
        let function = enclosing(bytes);
        self.allocated_bytes(Scope { source, function }, bytes, depth + 1)
    }
}
