//! What the host's code in a unit says of a kernel: launches, sizes and buffers.

use super::expr::Expr;
use super::tree::{self, Node, Source, each};
use super::unit::{Kind, Unit};
use std::collections::BTreeMap;

/// Steps from a name to its value, or from a function to its caller.
const MAX_DEPTH: usize = 12;

/// A launch as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Launch<'u> {
    /// The file.
    pub(crate) source: &'u Source,
    /// The function it stands in.
    pub(crate) function: Option<Node<'u>>,
    /// The template arguments' texts; empty where there are none.
    pub(crate) template: Vec<String>,
    /// Grid, block, shared memory and stream.
    pub(crate) config: Vec<Node<'u>>,
    /// The arguments.
    pub(crate) arguments: Vec<Node<'u>>,
}

/// Where a name is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'u> {
    pub(crate) source: &'u Source,
    pub(crate) function: Option<Node<'u>>,
}

/// Host code and what was decided about its names.
#[derive(Debug)]
pub(crate) struct Host<'u> {
    unit: &'u Unit,
    /// Names of functions that are sizes or parameters: file, beginning of the function, name.
    pub(crate) bound: BTreeMap<(String, usize, String), String>,
    /// Names that macros and constants at file scope have in the search space.
    pub(crate) tunable: BTreeMap<String, i64>,
    /// Whether names without a known value may become sizes.
    pub(crate) invent: bool,
    /// Sizes that were made of names of the host.
    pub(crate) invented: Vec<(String, Option<i64>)>,
}

impl<'u> Host<'u> {
    pub(crate) fn new(unit: &'u Unit) -> Self {
        Self {
            unit,
            bound: BTreeMap::new(),
            tunable: BTreeMap::new(),
            invent: false,
            invented: Vec::new(),
        }
    }

    /// The same knowledge, to be tried with.
    pub(crate) fn trial(&self) -> Self {
        Self {
            unit: self.unit,
            bound: self.bound.clone(),
            tunable: self.tunable.clone(),
            invent: true,
            invented: Vec::new(),
        }
    }

    /// Whether the extents of a launch can be expressed. The nodes are of the unit that this knows.
    pub(crate) fn understands(&mut self, scope: Scope<'u>, node: Node<'u>) -> bool {
        self.extents(scope, node, 0).is_some()
    }

    /// The plain names in what makes the extents of a launch.
    pub(crate) fn parts(&self, scope: Scope<'u>, node: Node<'u>) -> Vec<String> {
        let mut found = Vec::new();
        let node = match node.kind() {
            "identifier" => match self.initialiser(scope, scope.source.of(node)) {
                Some((_, value)) if is_dim3(scope.source, value) => value,
                _ => node,
            },
            _ => node,
        };
        each(node, &mut |node| {
            if matches!(node.kind(), "identifier" | "type_identifier") {
                let name = scope.source.of(node).to_owned();
                if name != "dim3" && !found.contains(&name) {
                    found.push(name);
                }
            }
            !matches!(node.kind(), "call_expression" if !scope.source.of(node).starts_with("dim3"))
        });
        found
    }

    /// An expression that is a template argument's text, looked up where the launch stands.
    pub(crate) fn of_text(&mut self, scope: Option<Scope<'u>>, text: &str) -> Option<Expr> {
        let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit());
        match scope {
            Some(scope) if is_name => self.name(scope, text, 0),
            scope => self.snippet(scope, text, &[], 0),
        }
    }

    /// Every launch of a kernel.
    pub(crate) fn launches(&self, kernel: &str) -> Vec<Launch<'u>> {
        let mut found = Vec::new();
        for source in &self.unit.files {
            each(source.tree().root_node(), &mut |node| {
                if node.kind() == "call_expression"
                    && let Some(launch) = launch(source, node, kernel)
                {
                    found.push(launch);
                }
                true
            });
        }
        found
    }

    fn key(scope: Scope<'u>, name: &str) -> (String, usize, String) {
        let start = scope
            .function
            .map_or(usize::MAX, |function| function.start_byte());
        (scope.source.shown.clone(), start, name.to_owned())
    }

    /// Says that a name of a function is a size or a parameter, and so for its callers' names.
    pub(crate) fn bind(&mut self, scope: Scope<'u>, name: &str, meaning: &str) {
        let (mut scope, mut name) = (scope, name.to_owned());
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
            name = caller.source.of(argument).to_owned();
            scope = caller;
        }
    }

    /// What a function's first caller passes for a parameter.
    fn argument(&self, scope: Scope<'u>, name: &str) -> Option<(Scope<'u>, Node<'u>)> {
        let function = scope.function?;
        let parameters = super::kernel::parameters(scope.source, function);
        let at = parameters.iter().position(|each| each.name == name)?;
        let own = tree::declared(scope.source, function).pop()?;
        let mut found = None;
        for source in &self.unit.files {
            each(source.tree().root_node(), &mut |node| {
                if found.is_none()
                    && node.kind() == "call_expression"
                    && let Some(callee) = node.child_by_field_name("function")
                    && base_name(source.of(callee)) == own
                    && let Some(arguments) = node.child_by_field_name("arguments")
                    && let Some(argument) = named(arguments).get(at).copied()
                {
                    let function = enclosing(node);
                    // A call of itself tells nothing.
                    if function.map(|f| f.start_byte()) != scope.function.map(|f| f.start_byte()) {
                        found = Some((Scope { source, function }, argument));
                    }
                }
                true
            });
        }
        found
    }

    /// The declarator that gives a name its value in a function, or at file scope.
    fn initialiser(&self, scope: Scope<'u>, name: &str) -> Option<(Scope<'u>, Node<'u>)> {
        let mut found = None;
        if let Some(function) = scope.function {
            find_initialiser(scope.source, function, name, &mut found);
            if let Some(value) = found {
                return Some((scope, value));
            }
            return None;
        }
        for item in &self.unit.items {
            if matches!(item.kind, Kind::Declaration | Kind::HostVariable)
                && item.names.iter().any(|known| known == name)
                && let Some((source, node)) = super::kernel::node_of(self.unit, item)
            {
                find_initialiser(source, node, name, &mut found);
                if let Some(value) = found {
                    return Some((
                        Scope {
                            source,
                            function: None,
                        },
                        value,
                    ));
                }
            }
        }
        None
    }

    /// An expression in words of the search space.
    pub(crate) fn express(
        &mut self,
        scope: Scope<'u>,
        node: Node<'u>,
        depth: usize,
    ) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let text = scope.source.of(node);
        match node.kind() {
            "number_literal" => number(text),
            "parenthesized_expression" => self.express(scope, node.named_child(0)?, depth + 1),
            "cast_expression" => self.express(scope, node.child_by_field_name("value")?, depth + 1),
            "identifier" => self.name(scope, text, depth),
            "binary_expression" => self.binary(scope, node, depth),
            "call_expression" => self.call(scope, node, depth),
            "sizeof_expression" => Some(Expr::Number(size_of(text)?)),
            "field_expression" if text.ends_with("multiProcessorCount") => {
                Some(Expr::Name("DEVICE_SM_COUNT".to_owned()))
            }
            "field_expression" => {
                let object = scope.source.of(node.child_by_field_name("argument")?);
                let axis = match scope.source.of(node.child_by_field_name("field")?) {
                    "x" => 0,
                    "y" => 1,
                    "z" => 2,
                    _ => return None,
                };
                let (inner, value) = self.initialiser(scope, object)?;
                self.extents(inner, value, depth + 1)?.into_iter().nth(axis)
            }
            _ => None,
        }
    }

    fn name(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        if let Some(meaning) = self.bound.get(&Self::key(scope, name)) {
            return Some(Expr::Name(meaning.clone()));
        }
        if self.tunable.contains_key(name) {
            return Some(Expr::Name(name.to_owned()));
        }
        if let Some((inner, value)) = self.initialiser(scope, name) {
            let known = self.express(inner, value, depth + 1);
            // A plain number in a function is what a user varies.
            if self.invent
                && inner.function.is_some()
                && let Some(value) = known
                    .as_ref()
                    .map_or(Some(None), |known| known.number().map(Some))
            {
                return Some(self.size(scope, name, value));
            }
            return known;
        }
        if let Some((caller, argument)) = self.argument(scope, name) {
            return self.express(caller, argument, depth + 1);
        }
        if let Some(value) = self.of_macro(name, depth) {
            return Some(value);
        }
        if scope.function.is_some()
            && let Some(found) = self.global(scope, name, depth)
        {
            return Some(found);
        }
        (self.invent && scope.function.is_some()).then(|| self.size(scope, name, None))
    }

    fn global(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        let outside = Scope {
            source: scope.source,
            function: None,
        };
        let (inner, value) = self.initialiser(outside, name)?;
        self.express(inner, value, depth + 1)
    }

    /// A size that is named as the host names it.
    fn size(&mut self, scope: Scope<'u>, name: &str, value: Option<i64>) -> Expr {
        if !self.invented.iter().any(|(known, _)| known == name) {
            self.invented.push((name.to_owned(), value));
        }
        self.bind(scope, name, name);
        Expr::Name(name.to_owned())
    }

    /// The value of a macro without parameters.
    fn of_macro(&mut self, name: &str, depth: usize) -> Option<Expr> {
        let defines = |item: &&super::unit::Item| {
            item.kind == Kind::Macro && item.names.iter().any(|known| known == name)
        };
        let item = self.unit.items.iter().find(defines)?;
        let (source, node) = super::kernel::node_of(self.unit, item)?;
        if node.kind() != "preproc_def" {
            return None;
        }
        let text = source.of(node.child_by_field_name("value")?).to_owned();
        self.snippet(None, &text, &[], depth)
    }

    /// An expression that is only known as text, with values of its parameters.
    fn snippet(
        &mut self,
        scope: Option<Scope<'u>>,
        text: &str,
        values: &[(String, Expr)],
        depth: usize,
    ) -> Option<Expr> {
        let whole = format!("int tuner_value = {text};");
        let source = Source::parse(std::path::Path::new(""), String::new(), whole)?;
        let mut found = None;
        find_initialiser(
            &source,
            source.tree().root_node(),
            "tuner_value",
            &mut found,
        );
        snippet(self, scope, &source, found?, values, depth + 1)
    }

    fn binary(&mut self, scope: Scope<'u>, node: Node<'u>, depth: usize) -> Option<Expr> {
        let left = self.express(scope, node.child_by_field_name("left")?, depth + 1)?;
        let right = self.express(scope, node.child_by_field_name("right")?, depth + 1)?;
        operation(
            scope.source.of(node.child_by_field_name("operator")?),
            left,
            right,
        )
    }

    fn call(&mut self, scope: Scope<'u>, node: Node<'u>, depth: usize) -> Option<Expr> {
        let callee = scope.source.of(node.child_by_field_name("function")?);
        let given = named(node.child_by_field_name("arguments")?);
        let mut arguments = Vec::new();
        for argument in &given {
            arguments.push(self.express(scope, *argument, depth + 1)?);
        }
        self.apply(callee, arguments, depth)
    }

    /// A call of a known function, of a macro or of a function that only returns an expression.
    fn apply(&mut self, callee: &str, arguments: Vec<Expr>, depth: usize) -> Option<Expr> {
        let name = base_name(callee);
        if callee.contains("_cast")
            || matches!(name, "int" | "size_t" | "unsigned" | "float" | "double")
        {
            return arguments.into_iter().next();
        }
        let lower = name.to_lowercase();
        let is_ceil = [
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
        if arguments.len() == 2 && is_ceil.iter().any(|known| lower.contains(known)) {
            return Some(Expr::call("ceil_div", arguments));
        }
        match (lower.as_str(), arguments.as_slice()) {
            ("min" | "imin" | "fmin", _) => return Some(Expr::call("min", arguments)),
            ("max" | "imax" | "fmax", _) => return Some(Expr::call("max", arguments)),
            ("ceil" | "ceilf", [Expr::Binary("//", a, b)]) => {
                return Some(Expr::call("ceil_div", vec![(**a).clone(), (**b).clone()]));
            }
            ("ceil" | "ceilf" | "floor", [other]) => return Some(other.clone()),
            _ => {}
        }
        let (parameters, text) = self.definition(name)?;
        if parameters.len() != arguments.len() {
            return None;
        }
        let values: Vec<(String, Expr)> = parameters.into_iter().zip(arguments).collect();
        self.snippet(None, &text, &values, depth)
    }

    /// The parameters and the expression of a macro or a function that only returns one.
    fn definition(&self, name: &str) -> Option<(Vec<String>, String)> {
        let matching = |item: &&super::unit::Item| {
            matches!(item.kind, Kind::Macro | Kind::Host | Kind::Device)
                && item.names.iter().any(|known| known == name)
        };
        let item = self.unit.items.iter().find(matching)?;
        let (source, node) = super::kernel::node_of(self.unit, item)?;
        if node.kind() == "preproc_function_def" {
            let list = node.child_by_field_name("parameters")?;
            let parameters = named(list);
            let names = parameters.iter().map(|each| source.of(*each).to_owned());
            let value = source.of(node.child_by_field_name("value")?);
            return Some((names.collect(), value.replace("\\\n", " ")));
        }
        let statements = named(tree::body(node)?);
        let [only] = statements.as_slice() else {
            return None;
        };
        let value = (only.kind() == "return_statement")
            .then(|| only.named_child(0))
            .flatten()?;
        let parameters = super::kernel::parameters(source, node);
        let names = parameters.into_iter().map(|each| each.name);
        Some((names.collect(), source.of(value).to_owned()))
    }

    /// The one to three extents of a `dim3` or a number.
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
            // `dim3 grid(B, H);` can be read as the declaration of a function.
            "parameter_list" => {
                let all = named(node);
                let texts = all.into_iter().map(|each| scope.source.of(each));
                texts.map(|text| self.of_text(Some(scope), text)).collect()
            }
            "argument_list" | "initializer_list" => {
                let all = named(node);
                if all.is_empty() {
                    return Some(vec![Expr::Number(1)]);
                }
                all.into_iter()
                    .map(|each| self.express(scope, each, depth + 1))
                    .collect()
            }
            "call_expression" | "compound_literal_expression"
                if scope.source.of(node).trim_start().starts_with("dim3") =>
            {
                let list = node
                    .child_by_field_name("arguments")
                    .or_else(|| node.child_by_field_name("value"))?;
                self.extents(scope, list, depth + 1)
            }
            "identifier" => {
                let name = scope.source.of(node);
                if let Some((inner, value)) = self.initialiser(scope, name)
                    && is_dim3(scope.source, value)
                {
                    return self.extents(inner, value, depth + 1);
                }
                if let Some((caller, argument)) = self.argument(scope, name)
                    && scope.function.is_some_and(|function| {
                        let all = super::kernel::parameters(scope.source, function);
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

    /// The bytes of the allocation behind a pointer of the host.
    pub(crate) fn allocation(
        &mut self,
        scope: Scope<'u>,
        node: Node<'u>,
        depth: usize,
    ) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let name = match node.kind() {
            "identifier" => scope.source.of(node).to_owned(),
            "cast_expression" => {
                return self.allocation(scope, node.child_by_field_name("value")?, depth + 1);
            }
            "parenthesized_expression" => {
                return self.allocation(scope, node.named_child(0)?, depth + 1);
            }
            _ => return None,
        };
        if let Some(bytes) = allocated(scope, &name) {
            return self.express(scope, bytes, depth + 1);
        }
        let (caller, argument) = self.argument(scope, &name)?;
        self.allocation(caller, argument, depth + 1)
    }
}

/// Evaluates a tree that lives on its own, with values of names.
fn snippet<'u>(
    host: &mut Host<'u>,
    scope: Option<Scope<'u>>,
    source: &Source,
    node: Node<'_>,
    values: &[(String, Expr)],
    depth: usize,
) -> Option<Expr> {
    if depth > MAX_DEPTH {
        return None;
    }
    let text = source.of(node);
    match node.kind() {
        "number_literal" => number(text),
        "parenthesized_expression" => {
            snippet(host, scope, source, node.named_child(0)?, values, depth + 1)
        }
        "cast_expression" => snippet(
            host,
            scope,
            source,
            node.child_by_field_name("value")?,
            values,
            depth + 1,
        ),
        "sizeof_expression" => Some(Expr::Number(size_of(text)?)),
        "identifier" => {
            if let Some((_, value)) = values.iter().find(|(name, _)| name == text) {
                return Some(value.clone());
            }
            if host.tunable.contains_key(text) {
                return Some(Expr::Name(text.to_owned()));
            }
            match scope {
                Some(scope) => host.name(scope, text, depth + 1),
                None => host.of_macro(text, depth + 1),
            }
        }
        "binary_expression" => {
            let left = snippet(
                host,
                scope,
                source,
                node.child_by_field_name("left")?,
                values,
                depth + 1,
            )?;
            let right = snippet(
                host,
                scope,
                source,
                node.child_by_field_name("right")?,
                values,
                depth + 1,
            )?;
            operation(
                source.of(node.child_by_field_name("operator")?),
                left,
                right,
            )
        }
        "call_expression" => {
            let callee = source.of(node.child_by_field_name("function")?);
            let given = named(node.child_by_field_name("arguments")?);
            let arguments: Option<Vec<Expr>> = given
                .into_iter()
                .map(|each| snippet(host, scope, source, each, values, depth + 1))
                .collect();
            host.apply(callee, arguments?, depth + 1)
        }
        _ => None,
    }
}

fn operation(operator: &str, left: Expr, right: Expr) -> Option<Expr> {
    Some(match operator {
        "+" => Expr::binary("+", left, right),
        "-" => Expr::binary("-", left, right),
        "*" => Expr::binary("*", left, right),
        "/" => Expr::binary("//", left, right),
        "%" => Expr::binary("%", left, right),
        "<<" => Expr::binary("*", left, Expr::binary("**", Expr::Number(2), right)),
        ">>" => Expr::binary("//", left, Expr::binary("**", Expr::Number(2), right)),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Expr> {
    let plain = text.replace('\'', "");
    let lower = plain.to_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        let digits = digits.trim_end_matches(['u', 'l']);
        return i64::from_str_radix(digits, 16).ok().map(Expr::Number);
    }
    let whole = lower.trim_end_matches(['u', 'l']);
    if let Ok(value) = whole.parse() {
        return Some(Expr::Number(value));
    }
    let real: f64 = lower.trim_end_matches(['f', 'l']).parse().ok()?;
    Some(if real.fract() == 0.0 && real.abs() < 1e15 {
        Expr::Number(real as i64)
    } else {
        Expr::Real(real)
    })
}

fn size_of(text: &str) -> Option<i64> {
    let inner = text
        .trim_start_matches("sizeof")
        .trim_matches(['(', ')', ' ']);
    bytes_of(inner)
}

/// Bytes of a type that is spelled as CUDA spells it.
pub(crate) fn bytes_of(ty: &str) -> Option<i64> {
    let ty = ty.replace("const", "");
    let ty = ty.trim().trim_start_matches('*');
    let (base, lanes) = match ty.chars().last() {
        Some(last @ '2'..='4')
            if !matches!(ty, "bfloat162") && !ty.ends_with("64") && !ty.ends_with("32") =>
        {
            (
                &ty[..ty.len() - 1],
                i64::from(u32::from(last) - u32::from('0')),
            )
        }
        _ => (ty, 1),
    };
    let lanes = if lanes == 0 { 1 } else { lanes };
    let each = match base {
        "char" | "uchar" | "bool" | "int8_t" | "uint8_t" | "unsigned char" | "signed char" => 1,
        "short" | "ushort" | "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" | "int16_t"
        | "uint16_t" | "unsigned short" | "floatX" => 2,
        "int" | "uint" | "float" | "unsigned" | "unsigned int" | "int32_t" | "uint32_t" => 4,
        "double" | "long" | "size_t" | "int64_t" | "uint64_t" | "long long" | "unsigned long"
        | "unsigned long long" => 8,
        _ => return None,
    };
    Some(each * lanes)
}

/// The number of bytes in the allocation of a pointer in a function.
fn allocated<'u>(scope: Scope<'u>, name: &str) -> Option<Node<'u>> {
    let function = scope.function?;
    let mut found = None;
    each(function, &mut |node| {
        if node.kind() == "call_expression"
            && let Some(callee) = node.child_by_field_name("function")
            && base_name(scope.source.of(callee)).starts_with("cudaMalloc")
            && let Some(arguments) = node.child_by_field_name("arguments")
            && let [target, bytes, ..] = named(arguments).as_slice()
            && tree::words(scope.source.of(*target)).last() == Some(&name)
            && found.is_none()
        {
            found = Some(*bytes);
        }
        true
    });
    found
}

fn find_initialiser<'t>(source: &Source, root: Node<'t>, name: &str, found: &mut Option<Node<'t>>) {
    each(root, &mut |node| {
        if found.is_none()
            && node.kind() == "init_declarator"
            && let Some(declarator) = node.child_by_field_name("declarator")
            && tree::declared_name(source, declarator).last() == Some(&name)
        {
            *found = node.child_by_field_name("value");
        }
        if found.is_none()
            && node.kind() == "function_declarator"
            && node.parent().is_some_and(|parent| {
                parent.kind() == "declaration" && source.of(parent).trim_start().starts_with("dim3")
            })
            && tree::declared_name(source, node).last() == Some(&name)
        {
            *found = node.child_by_field_name("parameters");
        }
        // `int n; n = …;`
        if found.is_none()
            && node.kind() == "assignment_expression"
            && let Some(left) = node.child_by_field_name("left")
            && left.kind() == "identifier"
            && source.of(left) == name
            && node
                .child_by_field_name("operator")
                .is_some_and(|it| source.of(it) == "=")
        {
            *found = node.child_by_field_name("right");
        }
        true
    });
}

/// Whether a value is that of a `dim3`.
fn is_dim3(source: &Source, value: Node<'_>) -> bool {
    matches!(
        value.kind(),
        "argument_list" | "initializer_list" | "parameter_list"
    ) || source.of(value).starts_with("dim3")
}

pub(crate) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

/// The function around a node.
fn enclosing(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent();
    while let Some(found) = at {
        if found.kind() == "function_definition" {
            return Some(found);
        }
        at = found.parent();
    }
    None
}

/// A name without its namespaces and template arguments.
pub(crate) fn base_name(text: &str) -> &str {
    let name = text.split('<').next().unwrap_or(text).trim();
    name.rsplit("::").next().unwrap_or(name).trim()
}

/// A call that is a launch of this kernel.
fn launch<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let config = named(node)
        .into_iter()
        .find(|child| child.kind() == "kernel_call_syntax")?;
    let callee = node.child_by_field_name("function")?;
    let function = enclosing(node);
    let mut text = source.of(callee).to_owned();
    if base_name(&text) != kernel {
        // `auto k = kernel<4>; k<<<…>>>(…)`
        let mut value = None;
        find_initialiser(source, function?, &text, &mut value);
        text = source.of(value?).trim_start_matches('&').to_owned();
        if base_name(&text) != kernel {
            return None;
        }
    }
    let template = text
        .split_once('<')
        .and_then(|(_, rest)| Some(&rest[..rest.rfind('>')?]))
        .map_or_else(Vec::new, super::pieces);
    Some(Launch {
        source,
        function,
        template,
        config: named(config),
        arguments: node
            .child_by_field_name("arguments")
            .map(named)
            .unwrap_or_default(),
    })
}
