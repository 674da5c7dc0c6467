//! Semantic checks: builds a specification from a file's sections.

use super::de::Spanned;
use super::origin::{Origin, Places};
use super::schema::{Document, Formula, GateText, Ordered, ParameterText, Scalar};
use super::texts::{ReferenceWord, SizesText};
use super::weight;
use crate::construct::{Place, resolve};
use crate::expr::nearest_or_all;
use crate::{
    Constraint, DeviceLimits, Diagnostic, Environment, Expr, ExprError, Gate, KernelSpec,
    Parameter, Problem, Reference, Sizes, SpaceError,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use tuner_core::value::Value;

/// Maximum number of checks of parameters and expressions, counted once per problem.
const MAX_CHECKS: usize = 10_000_000;

/// Limits of a device, for the check of names: their values do not matter.
pub(super) const SOME_LIMITS: DeviceLimits = DeviceLimits {
    sm_count: 132,
    shared_bytes: 232_448,
    cc: 90,
    max_threads: 1024,
};

/// Collector of errors and of expressions with unchecked names.
pub(super) struct Checker<'s> {
    pub(super) source: &'s str,
    /// The file's folder, the base of relative paths.
    pub(super) folder: &'s Path,
    pub(super) errors: Vec<Diagnostic>,
    /// Positions and messages of reported expression errors.
    reported: HashSet<(usize, String)>,
    /// Expressions of arguments, launches and other sections.
    pub(super) formulas: Vec<(Expr, Range<usize>)>,
    pub(super) derived: Vec<Range<usize>>,
    pub(super) rules: Vec<Range<usize>>,
    /// Positions of arguments and launches.
    pub(super) places: Places,
    /// Sizes that are macros.
    pub(super) macro_sizes: HashSet<String>,
}

/// Checks a kernel's file.
pub(super) fn spec(
    document: Document,
    source: &str,
    path: &Path,
) -> Result<KernelSpec, Vec<Diagnostic>> {
    let mut checker = Checker::new(source, path);
    checker.places.source = Some(document.source.at.clone());
    let texts = document.parameters.unwrap_or_default();
    let parameters = checker.parameters(&texts);
    let derived = checker.derived(document.derived.as_ref());
    let constraints = checker.constraints(document.constraints.unwrap_or_default());
    let problems = checker.problems(&document.problems);
    let check_problems = checker.problems(&document.check_problems.unwrap_or_default());
    checker.names(&texts, &document.problems, &derived);
    let sizes = checker.sizes(document.sizes, &problems);
    let mut size_names = size_names(&problems);
    checker.macro_sizes = size_names.extract_if(|name| sizes.is_macro(name)).collect();
    let compared = matches!(document.reference, ReferenceWord::Some(_));
    let arguments = checker.arguments(document.arguments, &size_names, compared);
    let variables = checker.variables(document.variables, &arguments);
    let launches = checker.launches(document.launches, &arguments, &variables);
    let reference = match document.reference {
        ReferenceWord::None => Some(Reference::None),
        ReferenceWord::Some(text) => checker.reference(*text, &arguments, &variables),
    };
    let metric = document.metric.unwrap_or_default();
    let [flops, bytes] = [metric.flops, metric.bytes].map(|it| checker.formula(it?));
    let weight = checker.metric_weight(metric.weight, &problems);
    let mut gate = document.gate.unwrap_or_default();
    let terms = gate.terms.take().and_then(|terms| checker.formula(terms));
    let gate = checker.gate(gate);
    let seeds = checker.seeds(document.seeds.unwrap_or_default(), &parameters);
    let compile = document.compile.unwrap_or_default();
    let options = checker.options(compile.options.unwrap_or_default());
    let arch_features = compile.arch_features;
    let include = compile.include.unwrap_or_default();
    if problems.is_empty() {
        checker.error("`problems` is empty", 0..1, "name at least one problem");
    }
    let baseline = checker.baseline(document.baseline);
    let torch_fallback = checker.torch_fallback(document.torch);
    let Some(reference) = reference else {
        return Err(checker.errors);
    };
    let spec = KernelSpec {
        path: path.to_owned(),
        kernel: checker.kernel_name(document.kernel),
        summary: document.summary.unwrap_or_default(),
        source: checker.file(&document.source.value),
        problems,
        check_problems,
        parameters,
        derived,
        constraints,
        sizes,
        arguments,
        variables,
        launches,
        reference,
        gate,
        flops,
        bytes,
        weight,
        terms,
        seeds,
        options,
        arch_features,
        include: include.iter().map(|it| checker.file(it)).collect(),
        baseline,
        torch_fallback,
        data_hashes: std::collections::BTreeMap::new(),
        origin: Origin::new(path, &checker),
    };
    checker.resolve_all(&spec);
    let errors = checker.errors;
    errors.is_empty().then_some(spec).ok_or(errors)
}

/// Returns the names of all sizes.
fn size_names(problems: &[Problem]) -> HashSet<String> {
    let sizes = problems.iter().flat_map(|problem| &problem.sizes);
    sizes.map(|(name, _)| name.clone()).collect()
}

impl<'s> Checker<'s> {
    pub(super) fn new(source: &'s str, path: &'s Path) -> Self {
        Self {
            source,
            folder: path.parent().unwrap_or(Path::new("")),
            errors: Vec::new(),
            reported: HashSet::new(),
            formulas: Vec::new(),
            derived: Vec::new(),
            rules: Vec::new(),
            places: Places::default(),
            macro_sizes: HashSet::new(),
        }
    }

    /// Resolves the sizes that are arguments and rejects unknown names.
    fn sizes(&mut self, text: Option<SizesText>, problems: &[Problem]) -> Sizes {
        let names = match text {
            None => return Sizes::default(),
            Some(SizesText::All(sizes)) => return sizes,
            Some(SizesText::Arguments(names)) => names,
        };
        let known = size_names(problems);
        for name in names.iter().filter(|name| !known.contains(&name.value)) {
            let mut sizes: Vec<&str> = known.iter().map(String::as_str).collect();
            sizes.sort_unstable();
            let help = nearest_or_all(&name.value, &sizes, "the sizes are");
            let message = format!("`{}` is not a size of a problem", name.value);
            self.error(message, name.at.clone(), help);
        }
        Sizes::Arguments(names.into_iter().map(|name| name.value).collect())
    }

    pub(super) fn error(
        &mut self,
        message: impl Into<String>,
        at: Range<usize>,
        help: impl Into<String>,
    ) {
        self.errors.push(Diagnostic::new(message, at).help(help));
    }

    pub(super) fn expression_error(&mut self, error: &ExprError, at: Range<usize>) {
        let error = Diagnostic::in_expression(error, at, self.source);
        self.report_once(error);
    }

    /// Reports an error once, because every problem checks the same expressions.
    pub(super) fn report_once(&mut self, error: Diagnostic) {
        let start = error.at.as_ref().map_or(0, |at| at.start);
        if self.reported.insert((start, error.message.clone())) {
            self.errors.push(error);
        }
    }

    pub(super) fn parse(&mut self, formula: &Formula) -> Option<Expr> {
        Expr::parse(&formula.value.0)
            .map_err(|error| self.expression_error(&error, formula.at.clone()))
            .ok()
    }

    /// Parses an expression and keeps it for the check of its names.
    pub(super) fn formula(&mut self, formula: Formula) -> Option<Expr> {
        let expr = self.parse(&formula)?;
        self.places.expressions.push(formula.at.clone());
        self.formulas.push((expr.clone(), formula.at));
        Some(expr)
    }

    fn kernel_name(&mut self, name: Spanned<String>) -> String {
        if !super::vocabulary::is_kernel_name(&name.value) {
            self.error(
                format!("`{}` cannot be a kernel's name", name.value),
                name.at,
                "use letters, digits and `_`, because files are named after it",
            );
        }
        name.value
    }

    /// Checks a name for use in expressions and macros.
    pub(super) fn name(&mut self, name: &Spanned<String>) {
        const WORDS: [&str; 11] = [
            "and", "or", "not", "in", "is", "if", "else", "lambda", "True", "False", "defined",
        ];
        let text = name.value.as_str();
        let letter = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let valid = text.chars().all(letter)
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty();
        if !valid {
            self.error(
                format!("`{text}` cannot be a name"),
                name.at.clone(),
                "use letters, digits and `_`, beginning with a letter: it becomes a macro",
            );
        } else if WORDS.contains(&text) || matches!(text, "true" | "false") {
            self.error(
                format!("`{text}` is a word of the expression language"),
                name.at.clone(),
                "choose another name",
            );
        } else if text.starts_with("DEVICE_") {
            self.error(
                format!("`{text}` is a name of the device's"),
                name.at.clone(),
                "names beginning with DEVICE_ are taken: choose another",
            );
        }
    }

    pub(super) fn derived(&mut self, derived: Option<&Ordered<Formula>>) -> Vec<(String, Expr)> {
        let mut parsed = Vec::new();
        for (name, formula) in derived.iter().flat_map(|derived| &derived.0) {
            self.name(name);
            if let Some(expr) = self.parse(formula) {
                self.derived.push(formula.at.clone());
                parsed.push((name.value.clone(), expr));
            }
        }
        parsed
    }

    pub(super) fn constraints(
        &mut self,
        texts: Vec<super::schema::ConstraintText>,
    ) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for text in texts {
            if let Some(rule) = self.parse(&text.rule) {
                self.rules.push(text.rule.at);
                let why = text.why;
                constraints.push(Constraint { rule, why });
            }
        }
        constraints
    }

    fn problems(&mut self, problems: &Ordered<Ordered<Scalar>>) -> Vec<Problem> {
        let mut checked = Vec::new();
        for (name, sizes) in &problems.0 {
            let mut values = Vec::new();
            let mut weight = None;
            for (size, value) in &sizes.0 {
                if size.value == weight::KEY {
                    weight = self.weight(value);
                    continue;
                }
                self.name(size);
                if let Value::Text(_) = value.value.0 {
                    self.error(
                        format!("the size `{}` is text", size.value),
                        value.at.clone(),
                        "sizes are numbers or booleans",
                    );
                }
                values.push((size.value.clone(), value.value.0.clone()));
            }
            checked.push(Problem {
                name: name.value.clone(),
                sizes: values,
                weight,
            });
        }
        checked
    }

    /// Checks that parameters, sizes and derived values have distinct names.
    #[expect(
        clippy::indexing_slicing,
        reason = "places are of the lists that they were found in, one line before"
    )]
    fn names(
        &mut self,
        parameters: &Ordered<ParameterText>,
        problems: &Ordered<Ordered<Scalar>>,
        derived: &[(String, Expr)],
    ) {
        let parameters: HashSet<&str> = parameters.0.iter().map(|(name, _)| &*name.value).collect();
        let known: HashSet<&str> = derived.iter().map(|(name, _)| &**name).collect();
        for (_, sizes) in &problems.0 {
            for (size, _) in &sizes.0 {
                let other = if parameters.contains(&*size.value) {
                    "a parameter"
                } else if known.contains(&*size.value) {
                    "a derived value"
                } else {
                    continue;
                };
                self.error(
                    format!("`{}` is a size and {other}", size.value),
                    size.at.clone(),
                    "rename one of them",
                );
            }
        }
        for (at, (name, _)) in derived.iter().enumerate() {
            if parameters.contains(&**name) {
                let at = self.derived[at].clone();
                let message = format!("`{name}` is a derived value and a parameter");
                self.error(message, at, "rename one of them");
            }
        }
    }

    fn gate(&mut self, gate: GateText) -> Gate {
        let mut tolerance = |given: Option<Spanned<f64>>| {
            let given = given?;
            if given.value < 0.0 {
                self.error("a tolerance cannot be negative", given.at, "write its size");
            }
            Some(given.value)
        };
        Gate {
            atol: tolerance(gate.atol),
            rtol: tolerance(gate.rtol),
            deterministic: gate.deterministic.unwrap_or(true),
            same_value_writes: gate.same_value_writes.unwrap_or_default(),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "places are of the lists that they were found in, one line before"
    )]
    fn seeds(
        &mut self,
        seeds: Vec<Ordered<Scalar>>,
        parameters: &[Parameter],
    ) -> Vec<Vec<(String, Value)>> {
        let names = || parameters.iter().map(|parameter| parameter.name.as_str());
        let known: HashMap<&str, &Parameter> = names().zip(parameters).collect();
        let mut checked = Vec::new();
        for seed in seeds {
            let mut values = Vec::new();
            for (name, value) in seed.0 {
                let Some(parameter) = known.get(name.value.as_str()) else {
                    let names: Vec<&str> = names().collect();
                    let help = nearest_or_all(&name.value, &names, "the parameters are");
                    self.error(format!("unknown parameter `{}`", name.value), name.at, help);
                    continue;
                };
                match parameter.index_of(&value.value.0) {
                    Some(index) => {
                        values.push((name.value, parameter.values[index as usize].clone()));
                    }
                    None => self.not_a_value(parameter, &value, "the seed's"),
                }
            }
            checked.push(values);
        }
        checked
    }

    /// Keeps the names in braces of options for the check of names.
    fn options(&mut self, options: Vec<Spanned<String>>) -> Vec<String> {
        for option in &options {
            self.braced(option);
            self.places.options.push(option.at.clone());
        }
        options.into_iter().map(|option| option.value).collect()
    }

    /// Keeps the names in braces of a text for the check of names.
    pub(super) fn braced(&mut self, text: &Spanned<String>) {
        for name in crate::bind::braced(&text.value) {
            if let Ok(expr) = Expr::parse(name) {
                let start = self.source[text.at.clone()].find(name).unwrap_or(0);
                let start = text.at.start + start;
                self.formulas.push((expr, start..start + name.len()));
            }
        }
    }

    /// Checks the names in all expressions for every problem.
    fn resolve_all(&mut self, spec: &KernelSpec) {
        if !self.errors.is_empty() {
            return;
        }
        let problems = spec.problems.len() + spec.check_problems.len();
        let names = spec.parameters.len() + spec.derived.len();
        let each = names + spec.constraints.len() + self.formulas.len();
        if problems.saturating_mul(each) > MAX_CHECKS {
            let message = format!("{problems} problems with {each} parameters and expressions");
            let help = "keep the two below ten million together: leave problems out, or write \
                several files";
            return self.error(message, 0..1, help);
        }
        for problem in spec.problems.iter().chain(&spec.check_problems) {
            let environment = spec.environment(problem, &SOME_LIMITS);
            self.resolve(&spec.parameters, &spec.constraints, &environment);
        }
    }

    /// Checks the names in all expressions against these definitions.
    pub(super) fn resolve(
        &mut self,
        parameters: &[Parameter],
        constraints: &[Constraint],
        environment: &Environment,
    ) {
        let mut resolved = match resolve(parameters, environment) {
            Ok(resolved) => resolved,
            Err(error) => return self.unresolved(&error, environment),
        };
        let rules = constraints.iter().map(|constraint| &constraint.rule);
        let rules = rules.zip(self.rules.clone());
        let formulas = self.formulas.clone();
        let formulas = formulas.iter().map(|(expr, at)| (expr, at.clone()));
        for (expr, at) in rules.chain(formulas) {
            if let Err(error) = resolved.terms.lower(expr, &resolved.scope) {
                self.expression_error(&error, at);
            }
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "places are of the lists that they were found in, one line before"
    )]
    fn unresolved(&mut self, error: &SpaceError, environment: &Environment) {
        match error {
            SpaceError::Expression {
                place: Place::Derived(at),
                error,
                ..
            } => self.expression_error(error, self.derived[*at].clone()),
            SpaceError::Cycle(names) => {
                let first = environment
                    .derived
                    .iter()
                    .position(|(name, _)| Some(name) == names.first());
                let at = first
                    .and_then(|at| self.derived.get(at).cloned())
                    .unwrap_or(0..1);
                let error = Diagnostic::new(
                    format!(
                        "derived values depend on each other in a circle: {}",
                        names.join(" → ")
                    ),
                    at,
                )
                .help("write one of them without the others");
                self.report_once(error);
            }
            other => {
                let error = Diagnostic::new(other.to_string(), 0..1);
                self.report_once(error);
            }
        }
    }
}
