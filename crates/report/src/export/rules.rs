//! Rules of an entry's space that still depend on the sizes, as C functions of the requested
//! sizes.
//!
//! The entry's configuration, its device and the sizes that must match are substituted first, so
//! that the remainder depends on the other sizes only. It is written operation by operation over
//! the values of `number.c`, with the semantics of the tuner's evaluator.
#![expect(
    clippy::indexing_slicing,
    reason = "terms and free values are numbered by the lists that the rules were made from"
)]

use super::header::Plan;
use super::number::{Printer, is_number};
use super::values::c_value;
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;
use tuner_space::{
    Environment, Expr, Kind, Op, Parameter, Program, Resolved, Term, TermId, Terms, Val, resolve,
};

/// A rule that some sizes break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizeRule {
    /// The original rule, with its reason.
    pub(super) source: CComment,
    /// Temporaries that the condition uses.
    pub(super) statements: Vec<String>,
    /// The condition in C, over the members of the sizes.
    pub(super) condition: String,
    /// The size members in it.
    pub(super) members: BTreeSet<String>,
    /// Reason why it holds only for the entry's own sizes.
    pub(super) limit: Option<CComment>,
}

/// A size that need not match.
struct Free {
    name: String,
    member: String,
    own: Value,
    real: bool,
}

/// Returns the rules of an entry that depend on the sizes, in the order of the space.
pub(super) fn size_rules(plan: &Plan<'_>, entry: &Entry) -> Vec<SizeRule> {
    let used = entry.definition.constraints.iter().map(|rule| &*rule.rule);
    let mut writer = Writer::new(plan, entry, used.collect());
    let rules = &entry.definition.constraints;
    rules
        .iter()
        .filter_map(|rule| {
            let source = if rule.why.is_empty() {
                rule.rule.clone()
            } else {
                format!("{}: {}", rule.rule, rule.why)
            };
            writer.rule(&rule.rule, CComment::new(&source))
        })
        .collect()
}

/// The value of an expression for the requested sizes.
pub(super) struct SizeValue {
    /// Temporaries that the value uses.
    pub(super) statements: Vec<String>,
    /// The value in C, of the header's type of numbers.
    pub(super) text: String,
    /// Reason why it holds only for the entry's own sizes.
    pub(super) limit: Option<CComment>,
}

pub(super) struct Writer<'p> {
    lower: &'p str,
    free: Vec<Free>,
    /// Resolved names, or the reason why they cannot be resolved.
    names: Result<Resolved, String>,
    /// Prefix of temporaries, before their number.
    prefix: String,
    named: BTreeMap<TermId, String>,
}

impl<'p> Writer<'p> {
    /// Creates a writer for the parts of an entry that these expressions use.
    pub(super) fn new<'e>(plan: &'p Plan<'_>, entry: &'e Entry, used: Vec<&'e str>) -> Self {
        let mut free = Vec::new();
        let mut constants: ConfigValues = entry.best.config.clone();
        constants.extend(entry.environment.iter().cloned());
        for (name, value) in &entry.sizes {
            match plan.sizes.iter().find(|column| *column.name == **name) {
                Some(column) if !column.exact => free.push(Free {
                    name: name.clone(),
                    member: column.member.clone(),
                    own: value.clone(),
                    real: column.c_type == "double",
                }),
                _ => constants.push((name.clone(), value.clone())),
            }
        }
        Self {
            lower: &plan.lower,
            names: meanings(entry, used, &free, constants),
            free,
            prefix: plan.unused("v"),
            named: BTreeMap::new(),
        }
    }

    /// Writes the rule in C; `None` if it holds for all sizes.
    fn rule(&mut self, text: &str, source: CComment) -> Option<SizeRule> {
        let (root, terms) = match lowered(&mut self.names, text) {
            Ok(lowered) => lowered,
            Err(why) => {
                let all: Vec<usize> = (0..self.free.len()).collect();
                return self.own_only(&all, why, source);
            }
        };
        if let Some(value) = terms.constant(root) {
            let broken = value.truth() != Some(true);
            return broken.then(|| never(source));
        }
        let used: Vec<usize> = terms.vars(root).iter().map(|var| var as usize).collect();
        let order = operands_first(terms, root);
        let values = Program::over_config(terms, &order)
            .evaluate(|var| Val::from(&self.free[var as usize].own));
        let holds = values.last().and_then(Val::truth) == Some(true);
        let limit = unwritten(terms, &order, &values).or_else(|| self.other_kind(&used));
        match limit {
            Some(_) if !holds => Some(never(source)),
            Some(why) => self.own_only(&used, why, source),
            None => Some(self.written(root, &order, &used, holds, source)),
        }
    }

    /// Writes an expression's value; empty if it cannot be expressed.
    pub(super) fn value(&mut self, text: &str) -> SizeValue {
        let none = |lower: &str, why: String| SizeValue {
            statements: Vec::new(),
            text: format!("{lower}_none()"),
            limit: Some(CComment::new(&why)),
        };
        let lower = self.lower;
        let (root, terms) = match lowered(&mut self.names, text) {
            Ok(lowered) => lowered,
            Err(why) => return none(lower, why),
        };
        let used: Vec<usize> = terms.vars(root).iter().map(|var| var as usize).collect();
        let order = operands_first(terms, root);
        let values = Program::over_config(terms, &order)
            .evaluate(|var| Val::from(&self.free[var as usize].own));
        let own = values.last().and_then(Val::int);
        match unwritten(terms, &order, &values).or_else(|| self.other_kind(&used)) {
            None => {
                let (statements, text) = self.expression(root, &order);
                SizeValue {
                    statements,
                    text,
                    limit: None,
                }
            }
            Some(why) => match own.and_then(|own| i64::try_from(own).ok()) {
                Some(own) => SizeValue {
                    statements: Vec::new(),
                    text: format!(
                        "{} ? {lower}_int({own}LL) : {lower}_none()",
                        if used.is_empty() {
                            "1".to_owned()
                        } else {
                            self.own(&used)
                        }
                    ),
                    limit: Some(CComment::new(&why)),
                },
                None => none(lower, why),
            },
        }
    }

    /// Explains a rule over a size that is an integer here, but real in C because of another entry.
    fn other_kind(&self, used: &[usize]) -> Option<String> {
        used.iter()
            .map(|at| &self.free[*at])
            .find(|size| size.real != matches!(size.own, Value::Float(_)))
            .map(|size| format!("{} is whole here and a fraction elsewhere", size.name))
    }

    fn own(&self, used: &[usize]) -> String {
        let parts: Vec<String> = used
            .iter()
            .map(|at| &self.free[*at])
            .map(|size| format!("{} == {}", size.member, c_value(Some(&size.own), "")))
            .collect();
        parts.join(" && ")
    }

    fn members(&self, used: &[usize]) -> BTreeSet<String> {
        let members = used.iter().map(|at| self.free[*at].member.clone());
        members.collect()
    }

    /// Builds a rule that is only known to hold for the entry's own sizes.
    fn own_only(&self, used: &[usize], why: String, source: CComment) -> Option<SizeRule> {
        (!used.is_empty()).then(|| SizeRule {
            condition: self.own(used),
            members: self.members(used),
            limit: Some(CComment::new(&why)),
            ..never(source)
        })
    }

    fn written(
        &mut self,
        root: TermId,
        order: &[TermId],
        used: &[usize],
        holds: bool,
        source: CComment,
    ) -> SizeRule {
        let (statements, text) = self.expression(root, order);
        let Ok(names) = &self.names else {
            return never(source);
        };
        let terms = &names.terms;
        let mut condition = format!("{}_truth({text}) == 1", self.lower);
        // These are defined in Python for some operands for which they are undefined in C.
        let partial = |id: &TermId| matches!(terms.term(*id), Term::Op(Op::Log2 | Op::Pow, _));
        if holds && order.iter().any(partial) {
            condition = format!("({}) || {condition}", self.own(used));
        }
        SizeRule {
            statements,
            condition,
            members: self.members(used),
            ..never(source)
        }
    }

    /// Writes a term in C, with the additional temporaries that it needs.
    fn expression(&mut self, root: TermId, order: &[TermId]) -> (Vec<String>, String) {
        let Ok(names) = &self.names else {
            return (Vec::new(), format!("{}_none()", self.lower));
        };
        let terms = &names.terms;
        let sizes: Vec<String> = self
            .free
            .iter()
            .map(|size| {
                let kind = if size.real { "real" } else { "int" };
                format!("{}_{kind}({})", self.lower, size.member)
            })
            .collect();
        let lower = self.lower;
        let text = |id: TermId, named: &BTreeMap<TermId, String>| {
            let printer = Printer {
                terms,
                lower,
                sizes: &sizes,
                named,
            };
            printer.text(id)
        };
        let mut statements = Vec::new();
        for id in shared(terms, order) {
            if !self.named.contains_key(&id) {
                let text = text(id, &self.named);
                let name = format!("{}{}", self.prefix, self.named.len());
                statements.push(format!("const {lower}_number {name} = {text};"));
                self.named.insert(id, name);
            }
        }
        let text = text(root, &self.named);
        (statements, text)
    }
}

fn never(source: CComment) -> SizeRule {
    SizeRule {
        source,
        statements: Vec::new(),
        condition: "0".to_owned(),
        members: BTreeSet::new(),
        limit: None,
    }
}

/// Resolves names: sizes are variables, everything else of the entry is constant. Only the derived
/// values that rules use are included, so that an unusual one elsewhere has no effect.
fn meanings<'e>(
    entry: &'e Entry,
    mut open: Vec<&'e str>,
    free: &[Free],
    constants: ConfigValues,
) -> Result<Resolved, String> {
    let definition = &entry.definition;
    let mut derived: BTreeMap<&str, Expr> = BTreeMap::new();
    while let Some(text) = open.pop() {
        // A rule that cannot be parsed is refused later, on its own.
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
    let parameters: Vec<Parameter> = free
        .iter()
        .map(|size| Parameter::new(size.name.clone(), vec![size.own.clone()]))
        .collect();
    let environment = Environment {
        derived: derived
            .into_iter()
            .map(|(name, expr)| (name.to_owned(), expr))
            .collect(),
        constants,
    };
    resolve(&parameters, &environment).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })
}

/// Returns a term and all its dependencies, operands first, the term last.
fn operands_first(terms: &Terms, root: TermId) -> Vec<TermId> {
    let (mut found, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(id) = open.pop() {
        if found.insert(id)
            && let Term::Op(_, args) = terms.term(id)
        {
            open.extend(args);
        }
    }
    // Operands are created before the terms that use them.
    found.into_iter().collect()
}

/// Returns operations whose value is used more than once.
fn shared(terms: &Terms, order: &[TermId]) -> Vec<TermId> {
    let mut uses: BTreeMap<TermId, usize> = BTreeMap::new();
    for id in order {
        let Term::Op(op, args) = terms.term(*id) else {
            continue;
        };
        for arg in args {
            *uses.entry(*arg).or_default() += 1;
        }
        if let (Op::In | Op::NotIn, [item, _]) = (op, &**args) {
            // It is compared with each element.
            *uses.entry(*item).or_default() += 1;
        }
    }
    for id in order.iter().rev() {
        if let Term::Op(Op::Log2, args) = terms.term(*id) {
            // Never a temporary: the conversion to an integer needs its operand.
            let often = uses.remove(id).unwrap_or(0);
            *uses.entry(args[0]).or_default() += often;
        }
    }
    let often = |id: &TermId| uses.get(id).is_some_and(|count| *count > 1);
    let number = |id: &TermId| match terms.term(*id) {
        Term::Op(op, _) => *op != Op::List,
        _ => false,
    };
    order
        .iter()
        .copied()
        .filter(|id| number(id) && often(id))
        .collect()
}

/// Explains why C has no expression for a rule, given the values of its terms for the entry's own
/// sizes.
fn unwritten(terms: &Terms, order: &[TermId], values: &[Val]) -> Option<String> {
    let too_large = |value: &Val| {
        value
            .int()
            .is_some_and(|whole| i64::try_from(whole).is_err())
    };
    if values.iter().any(too_large) || order.iter().any(|id| overflows(terms, order, values, *id)) {
        return Some("a number in it is beyond 64 bits".to_owned());
    }
    order.iter().find_map(|id| {
        let why = match terms.term(*id) {
            Term::Op(op, args) => operation(terms, *op, args)?,
            _ => return None,
        };
        Some(why.to_owned())
    })
}

/// Reports whether a sum or product exceeds 64 bits before its last operand.
fn overflows(terms: &Terms, order: &[TermId], values: &[Val], id: TermId) -> bool {
    let Term::Op(op @ (Op::Add | Op::Mul), args) = terms.term(id) else {
        return false;
    };
    let value = |id: &TermId| order.binary_search(id).ok().and_then(|at| values[at].int());
    let Some(numbers) = args.iter().map(value).collect::<Option<Vec<i128>>>() else {
        return false;
    };
    let start = i64::from(*op == Op::Mul);
    let joined = numbers.iter().try_fold(start, |so_far, next| {
        let next = i64::try_from(*next).ok()?;
        match op {
            Op::Add => so_far.checked_add(next),
            _ => so_far.checked_mul(next),
        }
    });
    joined.is_none()
}

/// Explains why an operation cannot be written.
fn operation(terms: &Terms, op: Op, args: &[TermId]) -> Option<&'static str> {
    let list = |id: TermId| match terms.term(id) {
        Term::Const(Val::List(items)) => Some(items.iter().all(is_number)),
        Term::Op(Op::List, _) => Some(true),
        _ => None,
    };
    let numbers = match (op, args) {
        (Op::In | Op::NotIn, [item, items]) if list(*items).is_some() => std::slice::from_ref(item),
        (Op::Min | Op::Max, [items]) if list(*items) == Some(true) => &[],
        (Op::Min | Op::Max, [_]) | (Op::Len, _) => return Some("it measures lists or text"),
        (Op::Round, [_, _]) => return Some("C rounds to no decimal digits"),
        (Op::Pow, _) if args.iter().any(|id| terms.kind(*id) != Kind::Int) => {
            return Some("only whole numbers can be raised to a power");
        }
        _ => args,
    };
    let strange = numbers.iter().any(|id| match terms.term(*id) {
        Term::Const(Val::Float(value)) => !value.is_finite(),
        Term::Const(Val::Text(_) | Val::List(_)) => true,
        Term::Op(Op::List, _) => true,
        _ => false,
    });
    strange.then_some("it works on lists, text or infinity")
}

/// Lowers an expression to its root among the terms, or explains why it cannot be written.
fn lowered<'n>(
    names: &'n mut Result<Resolved, String>,
    text: &str,
) -> Result<(TermId, &'n mut Terms), String> {
    let names = names.as_mut().map_err(|why| why.clone())?;
    let root = Expr::parse(text)
        .and_then(|expr| names.terms.lower(&expr, &names.scope))
        .map_err(|error| error.message)?;
    Ok((root, &mut names.terms))
}
