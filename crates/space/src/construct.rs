//! Construction of a space from parameters and constraints, or from listed rows.
#![expect(
    clippy::indexing_slicing,
    reason = "numbers of derived values, rows and layers come from walking the very lists that they index"
)]

use super::diagram::{Diagram, Reducer, TERMINAL};
use super::expr::{Expr, ExprError, Kind, Program, Scope, Symbol, TermId, Terms, Val};
use super::groups::{Builder, MAX_COUPLED};
use super::parameter::{Config, Parameter, repeated};
use super::resolved::Resolved;
use super::set::{Empty, Inner, Rule, Space};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;

/// A condition that every valid configuration satisfies.
#[derive(Debug, Clone)]
pub struct Constraint {
    /// The condition.
    pub rule: Expr,
    /// Explanation for a rejected configuration; `None` shows the rule itself.
    pub why: Option<String>,
}

/// Names that constraints may use in addition to parameters.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Derived values in any order; they may depend on each other.
    pub derived: Vec<(String, Expr)>,
    /// Problem sizes and device limits.
    pub constants: Vec<(String, Value)>,
}

/// Reason why a space cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SpaceError {
    /// Invalid expression.
    #[error("{which}: {error}")]
    Expression {
        /// Owner of the expression: `constraint 2`, `derived value X`.
        which: String,
        /// Position of the constraint or derived value in its list.
        place: Place,
        /// The error.
        error: ExprError,
    },
    /// Derived values with cyclic dependences.
    #[error("derived values depend on each other in a circle: {}: break it by writing one of them without the others", .0.join(" → "))]
    Cycle(Vec<String>),
    /// A parameter without values.
    #[error("parameter `{0}` has no values: list at least one")]
    NoValues(String),
    /// A parameter with a repeated value.
    #[error("parameter `{name}` has the value {value} twice: list it once")]
    RepeatedValue {
        /// The parameter.
        name: String,
        /// The value.
        value: String,
    },
    /// Two definitions with the same name.
    #[error("the name `{0}` is defined twice: rename one of them")]
    RepeatedName(String),
    /// A constraint that couples too many values.
    #[error(
        "the space needs too much memory: the constraint `{rule}` couples {parameters} parameters with too many values ({names}): shorten their lists, or split the constraint into several over fewer parameters"
    )]
    TooCoupled {
        /// The constraint.
        rule: String,
        /// Number of parameters in it.
        parameters: usize,
        /// Their names.
        names: String,
    },
    /// Constraints that connect more parameters than one group may have.
    #[error(
        "constraints couple {0} parameters with each other, one after the other; at most {MAX_COUPLED} can be: leave constraints out, or tune parts of them at a time"
    )]
    TooManyCoupled(usize),
    /// More configurations than 128 bits can count.
    #[error("the space has more than 3.4e38 configurations: shorten some lists of values")]
    TooMany,
    /// A row that does not fit the parameters.
    #[error("row {0} does not fit the parameters")]
    BadRow(usize),
}

/// Position of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the list of derived values.
    Derived(usize),
    /// In the list of constraints.
    Constraint(usize),
}

/// Resolves parameters, constants and derived values.
///
/// # Errors
/// A derived value is invalid over the preceding names.
pub fn resolve(
    parameters: &[Parameter],
    environment: &Environment,
) -> Result<Resolved, SpaceError> {
    let mut names = HashSet::new();
    let all = parameters.iter().map(|parameter| &parameter.name);
    let all = all.chain(environment.constants.iter().map(|(name, _)| name));
    for name in all.chain(environment.derived.iter().map(|(name, _)| name)) {
        if !names.insert(name) {
            return Err(SpaceError::RepeatedName(name.clone()));
        }
    }
    let mut terms = Terms::default();
    let mut scope = Scope::default();
    let mut inputs = Vec::new();
    let mut domains = Vec::new();
    for (at, parameter) in parameters.iter().enumerate() {
        check_values(parameter)?;
        let domain: Vec<Val> = parameter.values.iter().map(Val::from).collect();
        inputs.push(terms.var(at as u32, Kind::from_values(domain.iter())));
        domains.push(domain);
        scope.insert(&parameter.name, Symbol::Var(at as u32));
    }
    for (name, value) in &environment.constants {
        scope.insert(name, Symbol::Const(Val::from(value)));
    }
    let mut derived = vec![TermId(0); environment.derived.len()];
    for at in derived_order(&environment.derived)? {
        let (name, expr) = &environment.derived[at];
        let term = terms
            .lower(expr, &scope)
            .map_err(|error| SpaceError::Expression {
                which: format!("derived value `{name}`"),
                place: Place::Derived(at),
                error,
            })?;
        scope.insert(name, Symbol::Term(term));
        derived[at] = term;
    }
    Ok(Resolved {
        terms,
        scope,
        inputs,
        domains,
        derived,
    })
}

fn check_values(parameter: &Parameter) -> Result<(), SpaceError> {
    if parameter.values.is_empty() {
        return Err(SpaceError::NoValues(parameter.name.clone()));
    }
    match repeated(&parameter.values) {
        Some(at) => Err(SpaceError::RepeatedValue {
            name: parameter.name.clone(),
            value: parameter.values[at].to_string(),
        }),
        None => Ok(()),
    }
}

/// Returns an order in which every derived value comes after those that it uses.
pub(super) fn derived_order(derived: &[(String, Expr)]) -> Result<Vec<usize>, SpaceError> {
    let place: HashMap<&str, usize> = derived
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (name.as_str(), at))
        .collect();
    let uses: Vec<Vec<usize>> = derived
        .iter()
        .map(|(_, expr)| {
            let uses = expr.names().filter_map(|(name, _)| place.get(name));
            uses.copied().collect()
        })
        .collect();
    let (mut order, mut done) = (Vec::new(), vec![false; derived.len()]);
    let mut on_path = vec![false; derived.len()];
    for start in 0..derived.len() {
        // The path from `start`; each value with the number of its dependencies followed so far. An
        // explicit stack, because a long chain must not exhaust the thread's stack.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((at, next)) = path.pop() {
            if done[at] {
                continue;
            }
            match uses[at].get(next) {
                None => {
                    done[at] = true;
                    on_path[at] = false;
                    order.push(at);
                }
                Some(used) => {
                    path.push((at, next + 1));
                    on_path[at] = true;
                    if on_path[*used] {
                        let from = path.iter().position(|(each, _)| each == used);
                        let from = from.unwrap_or_default();
                        let circle = path[from..].iter().map(|(each, _)| *each).chain([*used]);
                        return Err(SpaceError::Cycle(
                            circle.map(|each| derived[each].0.clone()).collect(),
                        ));
                    }
                    path.push((*used, 0));
                }
            }
        }
    }
    Ok(order)
}

impl Space {
    /// Builds the set of configurations that satisfy all constraints.
    ///
    /// A constraint whose evaluation fails for a configuration (by division by zero, for example) is false
    /// there. A set may be empty: see [`Space::empty_reason`].
    ///
    /// # Errors
    /// Invalid expressions, repeated names or values, or constraints that couple more values than memory
    /// allows.
    pub fn build(
        name: &str,
        parameters: Vec<Parameter>,
        constraints: &[Constraint],
        environment: &Environment,
    ) -> Result<Self, SpaceError> {
        let mut resolved = resolve(&parameters, environment)?;
        let mut rules = Vec::new();
        let mut roots = Vec::new();
        for (at, constraint) in constraints.iter().enumerate() {
            let root = resolved
                .terms
                .lower(&constraint.rule, &resolved.scope)
                .map_err(|error| SpaceError::Expression {
                    which: format!("constraint {}", at + 1),
                    place: Place::Constraint(at),
                    error,
                })?;
            roots.push(root);
            rules.push(Rule {
                text: constraint.rule.text().to_owned(),
                why: constraint.why.clone(),
                program: Program::over_config(&mut resolved.terms, &[root]),
            });
        }
        let hash = content_hash(&parameters, constraints, environment);
        let builder = Builder {
            resolved,
            parameters: &parameters,
            rules: &rules,
        };
        let (diagrams, empty) = builder.diagrams(&roots)?;
        finish(name, parameters, rules, diagrams, hash, empty)
    }

    /// Builds the set of exactly these configurations; repeated rows count once.
    ///
    /// # Errors
    /// A row that does not fit, or parameters without values or with repeated ones.
    pub fn from_rows(
        name: &str,
        parameters: Vec<Parameter>,
        rows: &[Config],
    ) -> Result<Self, SpaceError> {
        for parameter in &parameters {
            check_values(parameter)?;
        }
        if let Some(at) = rows.iter().position(|row| !row.fits(&parameters)) {
            return Err(SpaceError::BadRow(at));
        }
        let mut sorted: Vec<&[u32]> = rows.iter().map(Config::choices).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let diagram = from_sorted(&sorted, parameters.len())?;
        let mut hash = content_hash(&parameters, &[], &Environment::default());
        let bytes: Vec<u8> = sorted
            .iter()
            .flat_map(|row| row.iter().flat_map(|choice| choice.to_le_bytes()))
            .collect();
        hash = ContentHash::from_parts([hash.as_str().as_bytes(), &bytes]);
        let empty = rows.is_empty().then(|| Empty {
            reason: "the list of configurations is empty".to_owned(),
            rule: None,
        });
        finish(name, parameters, Vec::new(), vec![diagram], hash, empty)
    }
}

fn finish(
    name: &str,
    parameters: Vec<Parameter>,
    rules: Vec<Rule>,
    diagrams: Vec<Diagram>,
    hash: ContentHash,
    empty: Option<Empty>,
) -> Result<Space, SpaceError> {
    let mut place = vec![(0, 0); parameters.len()];
    let mut groups = Vec::new();
    let mut count = 1_u128;
    for (group, diagram) in diagrams.iter().enumerate() {
        for (layer, var) in diagram.vars.iter().enumerate() {
            place[*var] = (group, layer);
        }
        let mut members = diagram.vars.clone();
        members.sort_unstable();
        groups.push(members);
    }
    // An empty group makes the product 0, although the product of the others may overflow.
    if diagrams.iter().any(|diagram| diagram.count() == 0) {
        count = 0;
    } else {
        for diagram in &diagrams {
            count = count
                .checked_mul(diagram.count())
                .ok_or(SpaceError::TooMany)?;
        }
    }
    Ok(Space(Arc::new(Inner {
        name: name.to_owned(),
        parameters,
        rules,
        groups,
        diagrams,
        place,
        count,
        hash,
        empty,
    })))
}

/// Builds a diagram of sorted, distinct rows.
fn from_sorted(rows: &[&[u32]], width: usize) -> Result<Diagram, SpaceError> {
    let mut reducer = Reducer::new((0..width).collect());
    // Rows that agree in all layers above the current one form a group; each group has a node.
    let mut groups: Vec<(usize, u32)> = (0..rows.len()).map(|row| (row, TERMINAL)).collect();
    for layer in (0..width).rev() {
        let mut above: Vec<(usize, u32)> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (at, (row, node)) in groups.iter().enumerate() {
            pairs.push((rows[*row][layer], *node));
            let next = groups.get(at + 1).map(|(next, _)| rows[*next]);
            if next.is_none_or(|next| next[..layer] != rows[*row][..layer]) {
                if let Some(node) = reducer.node(&pairs)? {
                    above.push((*row, node));
                }
                pairs.clear();
            }
        }
        groups = above;
    }
    let root = groups.first().map(|(_, node)| *node);
    Ok(reducer.finish(root))
}

/// Hashes the definition. The parts are tagged and ordered, so that different definitions have different
/// hashed bytes.
fn content_hash(
    parameters: &[Parameter],
    constraints: &[Constraint],
    environment: &Environment,
) -> ContentHash {
    let mut parts: Vec<String> = Vec::new();
    for parameter in parameters {
        parts.push(format!("parameter {}", parameter.name));
        // `Debug` distinguishes the number 1 from 1.0 and from the text "1".
        parts.extend(parameter.values.iter().map(|value| format!("{value:?}")));
    }
    for (name, expr) in &environment.derived {
        parts.push(format!("derived {name} = {}", expr.text()));
    }
    for (name, value) in &environment.constants {
        parts.push(format!("constant {name} = {value:?}"));
    }
    for constraint in constraints {
        parts.push(format!("constraint {}", constraint.rule.text()));
    }
    ContentHash::from_parts(parts.iter().map(String::as_bytes))
}
