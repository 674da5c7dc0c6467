//! Rules and launches of an entry as C expressions over the sizes.
//!
//! The configuration, the device and the sizes that must match are constants of the entry, so only its
//! other sizes remain variables. A part that C cannot express ties the entry to its own sizes.

use super::cexpr::{MAX_EXACT, Target, Variable, Writer, operands_first};
use super::plan::{Column, Condition, EntryCode, LaunchCode, Plan};
use super::values::c_value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::record::{ConfigValues, LaunchDefinition, value_of};
use tuner_core::value::Value;
use tuner_space::{Environment, Expr, Parameter, Program, Resolved, TermId, Terms, Val, resolve};

/// Largest size that a lookup accepts: kernels count in 32 bits.
pub(super) const MAX_SIZE: i64 = i32::MAX as i64;

/// A size that need not match.
pub(super) struct Free {
    pub(super) name: String,
    pub(super) own: Value,
    pub(super) variable: Variable,
}

/// Context of an entry's code.
pub(super) struct Context<'c> {
    pub(super) free: Vec<Free>,
    pub(super) constants: ConfigValues,
    pub(super) entry: &'c Entry,
    pub(super) lower: &'c str,
    pub(super) prefix: &'c str,
    pub(super) product: Option<f64>,
    pub(super) helpers: BTreeSet<&'static str>,
    pub(super) limits: Vec<(String, String)>,
    has_clusters: bool,
}

/// Writes the code of all entries; true if this requires a bound on the product of the sizes.
pub(super) fn fold_entries(plan: &Plan<'_>) -> (Vec<EntryCode>, bool) {
    let fold = |product| -> Vec<EntryCode> {
        let entries = plan.entries.iter();
        entries
            .map(|entry| Context::new(plan, entry, product).fold())
            .collect()
    };
    let limits = |codes: &[EntryCode]| -> usize {
        codes
            .iter()
            .map(|code| code.limits.len() + usize::from(code.alone))
            .sum()
    };
    let (free, bounded) = (fold(None), fold(Some(MAX_EXACT)));
    // A bound rejects large sizes, so it is only used if it frees a rule from its own sizes.
    if limits(&bounded) < limits(&free) {
        (bounded, true)
    } else {
        (free, false)
    }
}

impl<'c> Context<'c> {
    pub(super) fn new(plan: &'c Plan<'_>, entry: &'c Entry, product: Option<f64>) -> Self {
        let mut free = Vec::new();
        let mut constants: ConfigValues = entry.best.config.clone();
        constants.extend(entry.environment.iter().cloned());
        for (name, value) in &entry.sizes {
            match plan.sizes.iter().find(|column| *column.name == **name) {
                Some(column) if !column.exact => free.push(Free {
                    name: name.clone(),
                    own: value.clone(),
                    variable: variable(column),
                }),
                _ => constants.push((name.clone(), value.clone())),
            }
        }
        Self {
            free,
            constants,
            entry,
            lower: &plan.lower,
            prefix: &plan.temporary,
            product,
            helpers: BTreeSet::new(),
            limits: Vec::new(),
            has_clusters: plan.has_clusters(),
        }
    }

    pub(super) fn fold(mut self) -> EntryCode {
        let alone = !self.is_accepted();
        let entry = self.entry;
        let (statements, conditions) = self.conditions();
        let launches = entry.definition.launches.iter();
        let launches = launches.map(|launch| self.launch(launch)).collect();
        EntryCode {
            statements: if alone { Vec::new() } else { statements },
            conditions: if alone {
                self.own_conditions(&conditions)
            } else {
                conditions
            },
            launches,
            alone,
            helpers: self.helpers,
            limits: self.limits,
        }
    }

    /// Reports whether a lookup accepts the entry's own sizes.
    fn is_accepted(&self) -> bool {
        let sizes = self.free.iter().filter_map(|size| size.own.as_f64());
        let most = |size: &Free| {
            if size.variable.real {
                MAX_EXACT
            } else {
                MAX_SIZE as f64
            }
        };
        let each = self.free.iter().all(|size| {
            let own = size.own.as_f64().unwrap_or(f64::INFINITY);
            own > 0.0 && own <= most(size)
        });
        each && self
            .product
            .is_none_or(|bound| sizes.product::<f64>() <= bound)
    }

    /// Returns the conditions of an entry that matches only its own sizes.
    fn own_conditions(&self, conditions: &[Condition]) -> Vec<Condition> {
        // A rule that holds for no sizes also rejects the entry's own.
        if conditions.iter().any(|condition| condition.text == "0") {
            return conditions.to_vec();
        }
        let all: Vec<usize> = (0..self.free.len()).collect();
        let source = "for the tuned sizes only: they are beyond 32 bits or their product beyond 53";
        vec![Condition {
            text: self.own(&all),
            source: CComment::new(source),
        }]
    }

    /// Writes the rules that some sizes violate.
    fn conditions(&mut self) -> (Vec<String>, Vec<Condition>) {
        let rules = &self.entry.definition.constraints;
        let mut names = self.meanings(rules.iter().map(|rule| &*rule.rule).collect());
        let parts: Vec<Part> = rules
            .iter()
            .map(|rule| self.part(&mut names, &rule.rule, true))
            .collect();
        let variables = self.variables();
        let (statements, texts) = self.write(names.as_ref().ok(), &variables, &parts, &[true]);
        let mut conditions = Vec::new();
        for ((rule, part), text) in rules.iter().zip(&parts).zip(texts) {
            let mut source = match &*rule.why {
                "" => rule.rule.clone(),
                why => format!("{}: {why}", rule.rule),
            };
            let text = match part {
                Part::Constant(value) if value.truth() == Some(true) => continue,
                Part::Own { used, .. } if used.is_empty() => continue,
                Part::Own { used, why, .. } => {
                    let _ = write!(
                        source,
                        ". For the tuned sizes only, C cannot state it: {why}"
                    );
                    self.own(used)
                }
                _ => text,
            };
            conditions.push(Condition {
                text,
                source: CComment::new(&source),
            });
        }
        (statements, conditions)
    }

    /// Writes a launch: its condition, extents and limit.
    fn launch(&mut self, launch: &LaunchDefinition) -> LaunchCode {
        let when = launch.when.as_deref().unwrap_or("True");
        let extents = launch.grid.iter().chain(&launch.block);
        let extents = extents.chain([&launch.shared]).map(String::as_str);
        let one_block = ["1"; 3];
        let cluster: Option<[&str; 3]> = match &launch.cluster {
            Some(cluster) => Some(cluster.each_ref().map(String::as_str)),
            None => self.has_clusters.then_some(one_block),
        };
        let extents = extents.chain(cluster.into_iter().flatten());
        let texts: Vec<&str> = [when].into_iter().chain(extents).collect();
        let mut names = self.meanings(texts.clone());
        let parts: Vec<Part> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| self.part(&mut names, text, at == 0))
            .collect();
        let variables = self.variables();
        let (statements, mut arguments) =
            self.write(names.as_ref().ok(), &variables, &parts, &[true, false]);
        let mut tied: Vec<String> = Vec::new();
        for part in &parts {
            if let Part::Own { used, .. } = part
                && !used.is_empty()
            {
                tied.push(self.own(used));
            }
        }
        tied.dedup();
        if let Some(runs) = arguments.first_mut()
            && !tied.is_empty()
        {
            let when = std::mem::take(runs);
            let all = tied.iter().chain((when != "1").then_some(&when));
            *runs = all.map(String::as_str).collect::<Vec<_>>().join(" && ");
        }
        let most = value_of(&self.entry.environment, "DEVICE_SHARED_BYTES");
        let most = most.and_then(Value::as_i64).unwrap_or(MAX_SIZE);
        arguments.push(most.to_string());
        let never =
            |part: &Part| matches!(part, Part::Constant(when) if when.truth() != Some(true));
        LaunchCode {
            statements,
            arguments,
            happens: !parts.first().is_some_and(never),
        }
    }

    /// Writes parts with their common temporaries. `conditions` marks the parts that are conditions; its
    /// last element applies to all that follow.
    fn write(
        &mut self,
        names: Option<&Resolved>,
        variables: &[Variable],
        parts: &[Part],
        conditions: &[bool],
    ) -> (Vec<String>, Vec<String>) {
        let roots: Vec<TermId> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Written(root) => Some(*root),
                _ => None,
            })
            .collect();
        let empty = Terms::default();
        let terms = names.map_or(&empty, |names| &names.terms);
        let target = Target::Function(self.lower);
        let mut writer = Writer::new(terms, variables, self.product, target);
        let statements = writer.share(&roots, self.prefix);
        let last = conditions.last().copied().unwrap_or_default();
        let mut texts = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let condition = conditions.get(at).copied().unwrap_or(last);
            texts.push(
                match part {
                    // `part` has written it before, so this succeeds.
                    Part::Written(root) if condition => writer.condition(*root),
                    Part::Written(root) => writer.extent(*root),
                    Part::Constant(value) | Part::Own { value, .. } => Ok(match condition {
                        true => u8::from(value.truth() == Some(true)).to_string(),
                        false => extent(value),
                    }),
                }
                .unwrap_or_else(|_| "-1".to_owned()),
            );
        }
        self.helpers.extend(writer.helpers);
        (statements, texts)
    }

    pub(super) fn variables(&self) -> Vec<Variable> {
        self.free.iter().map(|size| size.variable.clone()).collect()
    }

    /// Resolves names: sizes are variables, everything else of the entry is constant.
    pub(super) fn meanings(&self, used: Vec<&str>) -> Result<Resolved, String> {
        let parameters: Vec<Parameter> = self
            .free
            .iter()
            .map(|size| Parameter::new(size.name.clone(), vec![size.own.clone()]))
            .collect();
        meanings(self.entry, used, &parameters, self.constants.clone())
    }

    /// Determines the form of an expression, and records parts that C cannot express.
    pub(super) fn part(
        &mut self,
        names: &mut Result<Resolved, String>,
        text: &str,
        condition: bool,
    ) -> Part {
        let (root, names) = match lowered(names, text) {
            Ok(lowered) => lowered,
            Err(why) => {
                self.limits.push((text.to_owned(), why.clone()));
                let used = (0..self.free.len()).collect();
                let value = Val::Bool(condition);
                return Part::Own { used, value, why };
            }
        };
        let terms = &mut names.terms;
        let own = self
            .values(terms, &[root], |size| Val::from(&size.own))
            .pop()
            .unwrap_or(Val::Bool(false));
        if terms.constant(root).is_some() {
            return Part::Constant(own);
        }
        let variables = self.variables();
        let mut writer = Writer::new(
            terms,
            &variables,
            self.product,
            Target::Function(self.lower),
        );
        let written = match condition {
            true => writer.condition(root),
            false => writer.extent(root),
        };
        let used: Vec<usize> = terms.vars(root).iter().map(|var| var as usize).collect();
        match written.and_then(|_| self.same_kind(&used)) {
            Ok(()) => Part::Written(root),
            // Tied to its own sizes, a condition that fails for them never holds.
            Err(_) if condition && own.truth() != Some(true) => Part::Constant(Val::Bool(false)),
            Err(why) => {
                self.limits.push((text.to_owned(), why.clone()));
                Part::Own {
                    used,
                    value: own,
                    why,
                }
            }
        }
    }

    /// Evaluates terms for sizes.
    #[expect(
        clippy::indexing_slicing,
        reason = "free sizes are numbered by the list that the rules were made from"
    )]
    pub(super) fn values(
        &self,
        terms: &mut Terms,
        roots: &[TermId],
        size: impl Fn(&Free) -> Val,
    ) -> Vec<Val> {
        roots
            .iter()
            .map(|root| {
                let order = operands_first(terms, &[*root]);
                let values = Program::over_config(terms, &order)
                    .evaluate(|var| size(&self.free[var as usize]));
                values.last().cloned().unwrap_or(Val::Bool(false))
            })
            .collect()
    }

    /// Rejects a size that is an integer here, but real in C because of another entry.
    #[expect(
        clippy::indexing_slicing,
        reason = "free sizes are numbered by the list that the rules were made from"
    )]
    fn same_kind(&self, used: &[usize]) -> Result<(), String> {
        let mut sizes = used.iter().map(|at| &self.free[*at]);
        let other = sizes.find(|size| size.variable.real != matches!(size.own, Value::Float(_)));
        match other {
            Some(size) => Err(format!(
                "{} is whole here and a fraction elsewhere",
                size.name
            )),
            None => Ok(()),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "free sizes are numbered by the list that the rules were made from"
    )]
    pub(super) fn own(&self, used: &[usize]) -> String {
        let parts: Vec<String> = used
            .iter()
            .map(|at| &self.free[*at])
            .map(|size| format!("{} == {}", size.variable.name, c_value(Some(&size.own), "")))
            .collect();
        parts.join(" && ")
    }
}

/// Form of one expression.
pub(super) enum Part {
    /// Independent of the sizes that may differ.
    Constant(Val),
    /// C states it.
    Written(TermId),
    /// Its value is only known for the entry's own sizes.
    Own {
        used: Vec<usize>,
        value: Val,
        why: String,
    },
}

/// Returns the C variable of a size.
fn variable(column: &Column) -> Variable {
    let real = column.c_type == "double";
    Variable {
        name: column.member.clone(),
        real,
        low: if real { 0.0 } else { 1.0 },
        bound: if real { MAX_EXACT } else { MAX_SIZE as f64 },
    }
}

/// Formats a launch extent; -1 if it is not a whole number.
fn extent(value: &Val) -> String {
    let whole = match value {
        Val::Float(value) if value.fract() == 0.0 && value.abs() <= MAX_EXACT => {
            Some(*value as i64)
        }
        _ => value.int().and_then(|whole| i64::try_from(whole).ok()),
    };
    let whole = whole.filter(|whole| *whole >= 0).unwrap_or(-1);
    if i32::try_from(whole).is_ok() {
        whole.to_string()
    } else {
        format!("{whole}LL")
    }
}

/// Resolves the names in these expressions. Only the derived values that they need are included, so that an
/// unusual one elsewhere has no effect.
pub(super) fn meanings<'e>(
    entry: &'e Entry,
    mut open: Vec<&'e str>,
    parameters: &[Parameter],
    constants: ConfigValues,
) -> Result<Resolved, String> {
    let definition = &entry.definition;
    let mut derived: BTreeMap<&str, Expr> = BTreeMap::new();
    while let Some(text) = open.pop() {
        // A rule that cannot be parsed is rejected separately later.
        let Ok(expr) = Expr::parse(text) else {
            continue;
        };
        for (name, _) in expr.names() {
            let found = definition.derived.iter().find(|(known, _)| known == name);
            if let Some((known, text)) = found
                && !derived.contains_key(known.as_str())
            {
                let expr = Expr::parse(text).map_err(|error| error.message)?;
                derived.insert(known, expr);
                open.push(text);
            }
        }
    }
    let derived = derived.into_iter();
    let environment = Environment {
        derived: derived
            .map(|(name, expr)| (name.to_owned(), expr))
            .collect(),
        constants,
    };
    resolve(parameters, &environment).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })
}

/// Lowers an expression to its root among the terms, or explains why it cannot be lowered.
pub(super) fn lowered<'n>(
    names: &'n mut Result<Resolved, String>,
    text: &str,
) -> Result<(TermId, &'n mut Resolved), String> {
    let names = names.as_mut().map_err(|why| why.clone())?;
    let root = Expr::parse(text)
        .and_then(|expr| names.terms.lower(&expr, &names.scope))
        .map_err(|error| error.message)?;
    Ok((root, names))
}
