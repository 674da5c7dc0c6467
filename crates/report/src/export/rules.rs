//! What the rules of an entry's space still ask of the sizes, as C functions of the sizes asked.
//!
//! The entry's configuration, its device and the sizes that must match are put in first, so that
//! what is left depends on the other sizes only. It is written operation by operation over the
//! values of `number.c`, which mean what the tuner's own evaluator means.
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
    /// The rule as it was written, with its reason.
    pub(super) source: CComment,
    /// Temporaries that the condition uses.
    pub(super) statements: Vec<String>,
    /// The condition in C, over the members of the sizes.
    pub(super) condition: String,
    /// The members that it uses.
    pub(super) members: BTreeSet<String>,
    /// Why it holds only where these are the entry's own sizes.
    pub(super) limit: Option<CComment>,
}

/// A size that need not match.
struct Free {
    name: String,
    member: String,
    own: Value,
    real: bool,
}

/// The rules of an entry that the sizes decide, in the order of the space.
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

/// The value of an expression for the sizes asked.
pub(super) struct SizeValue {
    /// Temporaries that the value uses.
    pub(super) statements: Vec<String>,
    /// The value in C, of the header's type of numbers.
    pub(super) text: String,
    /// Why it holds only where the sizes are the entry's own.
    pub(super) limit: Option<CComment>,
}

pub(super) struct Writer<'p> {
    lower: &'p str,
    free: Vec<Free>,
    /// What names mean, or why they mean nothing.
    names: Result<Resolved, String>,
    /// What temporaries are called, before their number.
    prefix: String,
    named: BTreeMap<TermId, String>,
}

impl<'p> Writer<'p> {
    /// A writer of what these expressions use of an entry.
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

    /// The rule in C; `None` where it holds whatever the sizes.
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

    /// An expression's value; none where it cannot be said.
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

    /// A rule over a size that is whole here, but real in C because another entry's is.
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

    /// A rule of which all that is known is that the entry's own sizes keep it.
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
        // These have values in Python where they have none in C.
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

    /// A term in C, with the temporaries that it needs beside those there are.
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

/// Sizes are variables, all else of the entry is constant; of the derived values those that rules
/// use, so that a strange one elsewhere is in nobody's way.
fn meanings<'e>(
    entry: &'e Entry,
    mut open: Vec<&'e str>,
    free: &[Free],
    constants: ConfigValues,
) -> Result<Resolved, String> {
    let definition = &entry.definition;
    let mut derived: BTreeMap<&str, Expr> = BTreeMap::new();
    while let Some(text) = open.pop() {
        // A rule that cannot be parsed is refused when its turn comes.
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

/// A term and all it depends on, operands first, the term last.
fn operands_first(terms: &Terms, root: TermId) -> Vec<TermId> {
    let (mut found, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(id) = open.pop() {
        if found.insert(id)
            && let Term::Op(_, args) = terms.term(id)
        {
            open.extend(args);
        }
    }
    // Operands are made before the terms that use them.
    found.into_iter().collect()
}

/// Operations whose value is used more than once.
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
            // Never a temporary: what makes it whole wants its operand.
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

/// Why C has no expression for a rule, given the values of its terms for the entry's own sizes.
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

/// Whether a sum or product leaves 64 bits before its last operand.
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

/// Why an operation cannot be written.
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

/// An expression's root and the terms that it stands among, or why it cannot be written.
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
