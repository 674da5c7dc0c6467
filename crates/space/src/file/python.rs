//! Lists of values in Python source, as in T1 files: literals, `range`, `list` and simple
//! comprehensions. They are parsed, never executed.

use crate::expr::Val;
use crate::{Expr, ExprError};
use tuner_core::value::Value;

/// Maximum number of values of a list.
const MAX_VALUES: i128 = 1_000_000;

/// Evaluates a list in Python source.
pub(super) fn list(text: &str) -> Result<Vec<Value>, ExprError> {
    let values = sequence(text, 0)?;
    let converted: Option<Vec<Value>> = values.iter().map(Val::to_value).collect();
    converted.ok_or_else(|| {
        ExprError::whole(text, "a value is not a number, boolean or text")
            .help("list integers, floats, booleans or strings")
    })
}

fn sequence(text: &str, depth: usize) -> Result<Vec<Val>, ExprError> {
    let trimmed = text.trim();
    if depth > 8 {
        return Err(ExprError::whole(text, "nested too deeply"));
    }
    if let Some(inner) = call(trimmed, "list").or_else(|| call(trimmed, "tuple")) {
        return sequence(inner, depth + 1);
    }
    if let Some(inner) = call(trimmed, "range") {
        return range(text, inner);
    }
    let bracketed = trimmed
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(inner) = bracketed
        && let Some((value, rest)) = inner.split_once(" for ")
    {
        return comprehension(text, value, rest, depth);
    }
    match evaluate(text, None)? {
        Val::List(items) => Ok(items.to_vec()),
        single => Ok(vec![single]),
    }
}

/// Returns the text between the brackets of `name(…)`.
fn call<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name)?.trim_start();
    rest.strip_prefix('(')?.strip_suffix(')')
}

fn evaluate(text: &str, variable: Option<(&str, &Val)>) -> Result<Val, ExprError> {
    let known = variable.map(|(name, value)| (name, value.clone()));
    match Expr::parse(text)?.value(known)? {
        Val::Fault(fault) => Err(ExprError::whole(text, fault.to_string())),
        value => Ok(value),
    }
}

fn range(text: &str, arguments: &str) -> Result<Vec<Val>, ExprError> {
    let Val::List(bounds) = evaluate(&format!("[{arguments}]"), None)? else {
        return Err(ExprError::whole(text, "`range` takes numbers"));
    };
    let bounds: Option<Vec<i128>> = bounds.iter().map(Val::int).collect();
    let (from, to, step) = match bounds.as_deref() {
        Some([to]) => (0, *to, 1),
        Some([from, to]) => (*from, *to, 1),
        Some([from, to, step]) if *step != 0 => (*from, *to, *step),
        _ => {
            let message = "`range` takes one to three whole numbers, the step not 0";
            return Err(ExprError::whole(text, message));
        }
    };
    let count = (to.saturating_sub(from).saturating_add(step - step.signum()) / step).max(0);
    if count > MAX_VALUES {
        return Err(ExprError::whole(text, "more than a million values"));
    }
    Ok((0..count).map(|at| Val::Int(from + at * step)).collect())
}

/// Evaluates `[value for name in items if condition]`.
fn comprehension(text: &str, value: &str, rest: &str, depth: usize) -> Result<Vec<Val>, ExprError> {
    let wrong =
        |message: &str| ExprError::whole(text, message).help("write the values out: [1, 2, 4]");
    let (name, rest) = rest
        .split_once(" in ")
        .ok_or_else(|| wrong("a comprehension needs `in`"))?;
    if rest.contains(" for ") {
        return Err(wrong("a comprehension over two lists is not understood"));
    }
    let (items, condition) = match rest.split_once(" if ") {
        Some((items, condition)) => (items, Some(condition)),
        None => (rest, None),
    };
    let mut values = Vec::new();
    for item in sequence(items, depth + 1)? {
        let variable = Some((name.trim(), &item));
        let kept = match condition {
            Some(condition) => evaluate(condition, variable)?.truth() == Some(true),
            None => true,
        };
        if kept {
            values.push(evaluate(value, variable)?);
        }
    }
    Ok(values)
}
