//! A specification bound to one configuration: every expression evaluated.

mod launch;

use super::compose::argument;
use super::construct::resolve;
use super::expr::{Expr, Program, Val};
use super::{
    Config, DeviceLimits, ExprError, KernelSpec, PieceValue, Problem, Reference, Space, SpaceError,
};
use gpu_tensor_map::TensorMapError;
use launch::launch;
use std::collections::HashSet;
use std::sync::Arc;
use tuner_core::plan::{PlanArgument, PlanLaunch, PlanVariable};
use tuner_core::value::Value;

/// All values of one configuration on one problem and device.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Macros for the template: parameters, derived values, and problem sizes that are macros.
    pub macros: Vec<(String, Value)>,
    /// The arguments, in order.
    pub arguments: Vec<PlanArgument>,
    /// Variables of the template that are set before the first launch.
    pub variables: Vec<PlanVariable>,
    /// The launches in order, without those whose condition is false.
    pub launches: Vec<PlanLaunch>,
    /// The reference kernel's launch, if the reference is a kernel.
    pub reference: Option<PlanLaunch>,
    /// Compiler options with the names in braces replaced.
    pub options: Vec<String>,
    /// Floating-point operations of a run.
    pub flops: Option<f64>,
    /// Minimum number of bytes that a run moves.
    pub bytes: Option<f64>,
    /// Terms of the sum that an output element is.
    pub terms: Option<f64>,
}

/// Reason why a specification cannot be bound to a problem or a configuration.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BindError {
    /// Unknown problem.
    #[error("unknown problem `{name}`: the problems are {known}")]
    UnknownProblem {
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The space cannot be built.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Invalid expression.
    #[error("{what}: {error}")]
    Expression {
        /// Owner of the expression.
        what: String,
        /// The error.
        error: ExprError,
    },
    /// The configuration is of another space.
    #[error("the configuration does not fit the kernel's parameters")]
    Config,
    /// Expression without a usable value for this configuration.
    #[error("{what} is {value} (`{text}`), but must be {wanted}")]
    Value {
        /// Owner of the expression.
        what: String,
        /// The computed value.
        value: String,
        /// The expression.
        text: String,
        /// Description of a valid value.
        wanted: &'static str,
    },
    /// A cluster that no device can launch.
    #[error("the cluster {cluster:?} of `{entry}` is refused: {why}")]
    Cluster {
        /// Entry of its launch.
        entry: String,
        /// Blocks in x, y, z.
        cluster: [u32; 3],
        /// The limit that it breaks.
        why: String,
    },
    /// A tensor map that the driver would reject.
    #[error("the tensor map `{name}`: {limit}")]
    TensorMap {
        /// Its argument.
        name: String,
        /// The limit that it breaks.
        limit: TensorMapError,
    },
}

/// A specification with a problem and a device. Its expressions are compiled once to bind many
/// configurations.
#[derive(Debug, Clone)]
pub struct Binder {
    spec: Arc<KernelSpec>,
    sizes: Vec<(String, Value)>,
    program: Program,
    /// Every expression of `program` after the derived values, with its owner.
    parts: Vec<(String, Expr)>,
    /// The constraints.
    rules: Program,
}

impl KernelSpec {
    fn known_problem(&self, name: &str) -> Result<&super::Problem, BindError> {
        self.problem(name).ok_or_else(|| {
            let all = self.problems.iter().chain(&self.check_problems);
            let known: Vec<&str> = all.map(|problem| problem.name.as_str()).collect();
            BindError::UnknownProblem {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })
    }

    /// Returns the valid configurations for a problem on a device.
    ///
    /// # Errors
    /// An unknown problem, or an error of [`Space::build`].
    pub fn space(&self, problem: &str, limits: &DeviceLimits) -> Result<Space, BindError> {
        let environment = self.environment(self.known_problem(problem)?, limits);
        let parameters = self.parameters.clone();
        Ok(Space::build(
            &self.kernel,
            parameters,
            &self.constraints,
            &environment,
        )?)
    }

    /// Returns the sizes that the constraints use, directly or by derived values: problems with the same
    /// ones have the same space on a device.
    #[must_use]
    pub fn space_sizes<'p>(&self, problem: &'p Problem) -> Vec<&'p (String, Value)> {
        let mut used: HashSet<&str> = HashSet::new();
        let mut open: Vec<&Expr> = self.constraints.iter().map(|each| &each.rule).collect();
        while let Some(expr) = open.pop() {
            for (name, _) in expr.names() {
                if used.insert(name) {
                    let derived = self.derived.iter().filter(|(known, _)| known == name);
                    open.extend(derived.map(|(_, expr)| expr));
                }
            }
        }
        let sizes = problem.sizes.iter();
        sizes.filter(|(name, _)| used.contains(&**name)).collect()
    }

    /// Compiles all expressions for a problem and a device.
    ///
    /// # Errors
    /// An unknown problem, or expressions that are invalid for it.
    pub fn binder(&self, problem: &str, limits: &DeviceLimits) -> Result<Binder, BindError> {
        let problem = self.known_problem(problem)?;
        let environment = self.environment(problem, limits);
        let mut resolved = resolve(&self.parameters, &environment)?;
        let mut roots = resolved.derived.clone();
        let parts = parts(self);
        for (what, expr) in &parts {
            let lowered = resolved.terms.lower(expr, &resolved.scope);
            roots.push(lowered.map_err(|error| BindError::Expression {
                what: what.clone(),
                error,
            })?);
        }
        let mut rules = Vec::with_capacity(self.constraints.len());
        for constraint in &self.constraints {
            let lowered = resolved.terms.lower(&constraint.rule, &resolved.scope);
            rules.push(lowered.map_err(|error| BindError::Expression {
                what: "a constraint".to_owned(),
                error,
            })?);
        }
        Ok(Binder {
            spec: Arc::new(self.of_problem(&problem.name)),
            sizes: problem.sizes.clone(),
            program: Program::over_config(&mut resolved.terms, &roots),
            parts,
            rules: Program::over_config(&mut resolved.terms, &rules),
        })
    }

    /// Evaluates all expressions for one configuration. For many, use a [`Binder`].
    ///
    /// # Errors
    /// As [`KernelSpec::binder`] and [`Binder::bind`].
    pub fn bind(
        &self,
        problem: &str,
        limits: &DeviceLimits,
        config: &Config,
    ) -> Result<Bound, BindError> {
        self.binder(problem, limits)?.bind(config)
    }
}

/// Collects every expression outside `derived` and `constraints` with its owner, in the order in
/// which [`assemble`] consumes the values.
fn parts(spec: &KernelSpec) -> Vec<(String, Expr)> {
    let mut parts = Vec::new();
    let mut add = |what: String, expr: &Expr| parts.push((what, expr.clone()));
    for argument in spec.arguments.iter().chain(&spec.variables) {
        for (axis, extent) in argument.shape.iter().enumerate() {
            add(format!("extent {axis} of `{}`", argument.name), extent);
        }
        for size in &argument.fill_sizes {
            add(format!("a size in the fill of `{}`", argument.name), size);
        }
        if let Some(value) = &argument.value {
            add(format!("the value of `{}`", argument.name), value);
        }
        for piece in &argument.pieces {
            match &piece.value {
                PieceValue::Number(value) => {
                    add(format!("the value of `{}`", argument.name), value)
                }
                PieceValue::TensorMap(map) => {
                    for (key, expr) in map.expressions() {
                        add(format!("`{key}` of `{}`", argument.name), expr);
                    }
                }
                PieceValue::Address(_) => {}
            }
        }
    }
    let reference = match &spec.reference {
        Reference::Kernel { launch, .. } => Some(&**launch),
        Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
    };
    for launch in spec.launches.iter().chain(reference) {
        let entry = &launch.entry;
        if let Some(when) = &launch.when {
            add(format!("`when` of `{entry}`"), when);
        }
        let cluster = launch.cluster.as_ref().map(|cluster| ("cluster", cluster));
        let extents = [("grid", &launch.grid), ("block", &launch.block)];
        for (what, extents) in extents.into_iter().chain(cluster) {
            for (axis, extent) in ["x", "y", "z"].iter().zip(extents) {
                add(format!("{what} {axis} of `{entry}`"), extent);
            }
        }
        add(format!("shared bytes of `{entry}`"), &launch.shared);
    }
    let amounts = [
        ("metric flops", &spec.flops),
        ("metric bytes", &spec.bytes),
        ("gate terms", &spec.terms),
    ];
    for (what, amount) in amounts {
        if let Some(amount) = amount {
            add(what.to_owned(), amount);
        }
    }
    parts
}

impl Binder {
    /// Returns the specification.
    #[must_use]
    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// Reports whether every constraint holds for this problem and device: a configuration that is valid on
    /// one problem may be invalid on another. A constraint that cannot be evaluated does not hold.
    #[must_use]
    pub fn holds(&self, config: &Config) -> bool {
        let parameters = &self.spec.parameters;
        let value = |var: u32| {
            let at = var as usize;
            let choice = config.choices().get(at).map(|choice| *choice as usize);
            let values = parameters.get(at).map(|parameter| &parameter.values);
            let chosen = choice
                .zip(values)
                .and_then(|(choice, values)| values.get(choice));
            chosen.map_or(Val::Unset, Val::from)
        };
        let verdicts = self.rules.evaluate(value);
        verdicts.iter().all(|verdict| verdict.truth() == Some(true))
    }

    /// Evaluates all expressions for one configuration, valid or not.
    ///
    /// # Errors
    /// An expression without a usable value, such as a grid of 0 blocks.
    #[expect(
        clippy::indexing_slicing,
        reason = "a configuration of this space has a choice for each parameter, and a choice is a place among its values"
    )]
    pub fn bind(&self, config: &Config) -> Result<Bound, BindError> {
        let spec = &*self.spec;
        if !config.fits(&spec.parameters) {
            return Err(BindError::Config);
        }
        let chosen = |at: usize| &spec.parameters[at].values[config.choices()[at] as usize];
        let values = self.program.evaluate(|var| Val::from(chosen(var as usize)));
        let (derived, values) = values.split_at(spec.derived.len());
        let mut macros: Vec<(String, Value)> = (spec.parameters.iter().enumerate())
            .map(|(at, parameter)| (parameter.name.clone(), chosen(at).clone()))
            .collect();
        for ((name, expr), value) in spec.derived.iter().zip(derived) {
            let what = || format!("the derived value `{name}`");
            macros.push((name.clone(), scalar(&what, expr, value)?));
        }
        macros.extend(self.sizes.iter().cloned());
        let mut bound = assemble(spec, macros, &mut self.parts.iter().zip(values))?;
        // Options and entries may contain every size, but only sizes that are macros reach the template.
        let sizes = bound
            .macros
            .split_off(spec.parameters.len() + spec.derived.len());
        let told = sizes
            .into_iter()
            .filter(|(name, _)| spec.sizes.is_macro(name));
        bound.macros.extend(told);
        Ok(bound)
    }
}

/// Remaining expressions, each with its value.
pub(super) type Rest<'r, 'v> = &'r mut dyn Iterator<Item = (&'v (String, Expr), &'v Val)>;

/// Builds the result from the values, in the order of [`parts`].
fn assemble(
    spec: &KernelSpec,
    macros: Vec<(String, Value)>,
    rest: Rest<'_, '_>,
) -> Result<Bound, BindError> {
    let mut faults: Vec<Option<BindError>> = vec![None; spec.arguments.len()];
    let arguments = spec.arguments.iter().zip(&mut faults);
    let arguments = arguments.map(|(each, fault)| argument(each, rest, fault));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let variables = spec.variables.iter().map(|each| {
        let holds = argument(each, rest, &mut None)?;
        Ok(PlanVariable { holds })
    });
    let variables = variables.collect::<Result<Vec<_>, BindError>>()?;
    let mut launches = Vec::new();
    for each in &spec.launches {
        launches.extend(launch(each, &macros, rest)?);
    }
    // A wrong tensor map matters only if a launch uses it: `when` may omit that launch.
    let mut taken = launches.iter().flat_map(|launch| &launch.arguments);
    if let Some(fault) = taken.find_map(|index| faults.get(*index).cloned().flatten()) {
        return Err(fault);
    }
    let reference = match &spec.reference {
        Reference::Kernel { launch: each, .. } => launch(each, &macros, rest)?,
        Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
    };
    let mut amount = |given: &Option<Expr>| match given {
        Some(_) => number(rest).map(|value| Some(value.as_f64())),
        None => Ok(None),
    };
    let (flops, bytes) = (amount(&spec.flops)?, amount(&spec.bytes)?);
    let terms = amount(&spec.terms)?;
    Ok(Bound {
        arguments,
        variables,
        launches,
        reference,
        options: spec
            .options
            .iter()
            .map(|option| fill_in(option, &macros))
            .collect(),
        macros,
        flops,
        bytes,
        terms,
    })
}

pub(super) fn taken<'v>(rest: Rest<'_, 'v>) -> Result<(&'v (String, Expr), &'v Val), BindError> {
    // `parts` and `assemble` visit the same expressions, so this error means a foreign
    // configuration.
    rest.next().ok_or(BindError::Config)
}

pub(super) fn unusable(what: &str, expr: &Expr, value: &Val, wanted: &'static str) -> BindError {
    let value = match value {
        Val::Fault(fault) => fault.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Float(value) => format!("{value:?}"),
        Val::List(_) | Val::Unset => "a list".to_owned(),
        other => other
            .to_value()
            .map_or_else(String::new, |value| value.to_string()),
    };
    BindError::Value {
        what: what.to_owned(),
        value,
        text: expr.text().to_owned(),
        wanted,
    }
}

fn scalar(what: &dyn Fn() -> String, expr: &Expr, value: &Val) -> Result<Value, BindError> {
    let wanted = "a number within 64 bits, a boolean or text";
    value
        .to_value()
        .ok_or_else(|| unusable(&what(), expr, value, wanted))
}

/// A numeric value that a kernel receives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// A whole number that fits in 64 bits, signed or unsigned.
    Whole(i128),
    /// A finite number.
    Float(f64),
}

impl Number {
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Float(value) => value,
        }
    }
}

pub(super) fn number(rest: Rest<'_, '_>) -> Result<Number, BindError> {
    let ((what, expr), value) = taken(rest)?;
    let wide = i128::from(i64::MIN)..=i128::from(u64::MAX);
    match value {
        Val::Float(float) if float.is_finite() => Ok(Number::Float(*float)),
        Val::Bool(_) | Val::Int(_) => value
            .int()
            .filter(|whole| wide.contains(whole))
            .map(Number::Whole)
            .ok_or_else(|| unusable(what, expr, value, "a number within 64 bits")),
        _ => Err(unusable(what, expr, value, "a finite number")),
    }
}

/// Converts to a whole number. A whole float is accepted, because `/` always returns a float.
pub(super) fn whole(value: &Val) -> Option<i128> {
    match value {
        Val::Float(float) if float.fract() == 0.0 && float.abs() < 1e18 => Some(*float as i128),
        _ => value.int(),
    }
}

pub(super) fn extent(rest: Rest<'_, '_>) -> Result<u64, BindError> {
    let ((what, expr), value) = taken(rest)?;
    whole(value)
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| (1..=1 << 48).contains(number))
        .ok_or_else(|| unusable(what, expr, value, "a positive whole number"))
}

fn small(rest: Rest<'_, '_>, least: u32, wanted: &'static str) -> Result<u32, BindError> {
    let ((what, expr), value) = taken(rest)?;
    whole(value)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| (least..=i32::MAX as u32).contains(number))
        .ok_or_else(|| unusable(what, expr, value, wanted))
}

/// Iterates over the names in braces of a compiler option or an entry.
pub(super) fn braced(option: &str) -> impl Iterator<Item = &str> {
    option.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let letter = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let valid = !name.is_empty()
            && name.chars().all(letter)
            && !name.starts_with(|c: char| c.is_ascii_digit());
        valid.then_some(name)
    })
}

fn fill_in(option: &str, macros: &[(String, Value)]) -> String {
    macros
        .iter()
        .fold(option.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), &value.to_string())
        })
}
