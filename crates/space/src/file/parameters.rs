//! Checks of parameters and their values.

use super::check::Checker;
use super::de::Spanned;
use super::loose_list::comma_separated;
use super::schema::{Ordered, ParameterText, RangeText, Scalar};
use crate::Parameter;
use crate::parameter::repeated;
use std::ops::Range;
use tuner_core::value::Value;

/// Maximum number of values of a range.
const MAX_VALUES: usize = 4_000_000;
const TOO_MANY: &str = "the range has more than four million values";

impl Checker<'_> {
    #[expect(
        clippy::indexing_slicing,
        reason = "places are of the lists that they were found in, one line before"
    )]
    pub(super) fn parameters(&mut self, texts: &Ordered<ParameterText>) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for (name, text) in &texts.0 {
            self.name(name);
            let Some((values, at)) = self.values(name, text) else {
                continue;
            };
            if let Some(index) = repeated(&values) {
                let at = match &text.values {
                    Some(list) => list.value[index].at.clone(),
                    None => at.clone(),
                };
                self.error(
                    format!("`{}` has the value {} twice", name.value, values[index]),
                    at,
                    "list every value once",
                );
            }
            let mut parameter = Parameter::new(name.value.clone(), values);
            if let Some(default) = &text.default {
                match parameter.index_of(&default.value.0) {
                    Some(index) => parameter.default = index,
                    None => self.not_a_value(&parameter, default, "the default"),
                }
            }
            parameter.doc = text.doc.clone().unwrap_or_default();
            parameters.push(parameter);
        }
        parameters
    }

    pub(super) fn not_a_value(&mut self, parameter: &Parameter, given: &Scalar, what: &str) {
        let shown = crate::set::some_values(&parameter.values);
        self.error(
            format!(
                "{what} {} is not a value of `{}`",
                given.value.0, parameter.name
            ),
            given.at.clone(),
            format!("its values are {shown}"),
        );
    }

    fn values(
        &mut self,
        name: &Spanned<String>,
        text: &ParameterText,
    ) -> Option<(Vec<Value>, Range<usize>)> {
        match (&text.values, &text.range) {
            (Some(list), None) if list.value.is_empty() => {
                self.error(
                    format!("`{}` has no values", name.value),
                    list.at.clone(),
                    "list at least one value",
                );
                None
            }
            (Some(list), None)
                if let Some((text, values)) = list.value.iter().find_map(unseparated) =>
            {
                self.error(
                    format!("`{text}` is one value of `{}`", name.value),
                    list.at.clone(),
                    format!("separate the values by commas: `[{values}]`"),
                );
                None
            }
            (Some(list), None) => {
                let values = list.value.iter().map(|value| value.value.0.clone());
                Some((values.collect(), list.at.clone()))
            }
            (None, Some(range)) => match expand(&range.value) {
                Ok(values) => Some((values, range.at.clone())),
                Err((message, help)) => {
                    self.error(message, range.at.clone(), help);
                    None
                }
            },
            (Some(_), Some(range)) => {
                self.error(
                    format!("`{}` has both `values` and `range`", name.value),
                    range.at.clone(),
                    "keep one of them",
                );
                None
            }
            (None, None) => {
                self.error(
                    format!("`{}` has no values", name.value),
                    name.at.clone(),
                    "add `values: [1, 2, 4]` or `range: { from: 1, to: 4 }`",
                );
                None
            }
        }
    }
}

/// Returns a text that consists of several numbers, and its comma-separated form.
fn unseparated(value: &Scalar) -> Option<(String, String)> {
    match &value.value.0 {
        Value::Text(text) => Some((text.to_string(), comma_separated(text)?)),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => None,
    }
}

/// Expands a range; the error has a message and a fix.
fn expand(range: &RangeText) -> Result<Vec<Value>, (String, String)> {
    let bad = |message: &str, help: &str| Err((message.to_owned(), help.to_owned()));
    let step = range
        .step
        .as_ref()
        .map_or(&Value::Int(1), |step| &step.value.0);
    let (from, to) = (&range.from.value.0, &range.to.value.0);
    let number = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => value.as_f64(),
        _ => None,
    };
    let (Some(first), Some(last), Some(distance)) = (number(from), number(to), number(step)) else {
        return bad(
            "a range needs numbers",
            "write `range: { from: 1, to: 8, step: 1 }`",
        );
    };
    if distance == 0.0 {
        return bad("the step is 0", "leave it out for a step of 1");
    }
    if (last - first) * distance < 0.0 {
        return bad(
            "the range is empty: its step leads away from `to`",
            "swap `from` and `to`",
        );
    }
    // Whole numbers are counted exactly, without rounding errors.
    if let (Value::Int(first), Value::Int(distance)) = (from, step) {
        let (first, distance) = (i128::from(*first), i128::from(*distance));
        let last = match to {
            Value::Int(last) => i128::from(*last),
            _ if distance > 0 => last.floor() as i128,
            _ => last.ceil() as i128,
        };
        let steps = last.saturating_sub(first) / distance;
        if steps >= MAX_VALUES as i128 {
            return bad(TOO_MANY, "widen the step");
        }
        let value = |at: i128| i64::try_from(first + at * distance).ok();
        return Ok((0..=steps).filter_map(value).map(Value::Int).collect());
    }
    // The tolerance makes 0.1 to 0.3 by 0.1 three values.
    let steps = ((last - first) / distance + 1e-9).floor();
    if steps >= MAX_VALUES as f64 {
        return bad(TOO_MANY, "widen the step");
    }
    Ok((0..=steps as i64)
        .map(|at| Value::Float(first + at as f64 * distance))
        .collect())
}
