//! Weights of problems in the budget of a run.

use super::check::{Checker, SOME_LIMITS};
use super::schema::{Formula, Scalar};
use crate::expr::{EvaluateError, ExprError};
use crate::{DeviceLimits, Diagnostic, Diagnostics, Expr, KernelSpec, Problem};
use std::ops::Range;
use tuner_core::value::Value;

/// Key of a problem that is its weight, not a size.
pub(super) const KEY: &str = "weight";
/// Begin of the names of device limits.
const DEVICE: &str = "DEVICE_";

/// Reason why an expression is not a weight.
enum WeightError {
    Expression(ExprError),
    Value(String),
}

impl WeightError {
    fn diagnostic(&self, at: Range<usize>, source: &str) -> Diagnostic {
        match self {
            Self::Expression(error) => Diagnostic::in_expression(error, at, source),
            Self::Value(why) => Diagnostic::new(format!("the weight of `metric` {why}"), at)
                .help("change it, or give this problem a `weight`"),
        }
    }
}

/// Evaluates the weight of `metric` for a problem.
fn evaluate(expr: &Expr, problem: &Problem, limits: &DeviceLimits) -> Result<f64, WeightError> {
    let mut names = problem.sizes.clone();
    names.extend(limits.constants());
    let on = format!("on problem `{}`", problem.name);
    let value = expr.evaluate(&names).map_err(|error| match error {
        EvaluateError::Expression(error) => WeightError::Expression(error),
        other => WeightError::Value(format!("has no value {on}: {other}")),
    })?;
    let number = match value {
        Value::Int(number) => number as f64,
        Value::Float(number) => number,
        Value::Bool(_) | Value::Text(_) => f64::NAN,
    };
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    let why = format!("is {value} {on}, but must be a number of at least 0");
    Err(WeightError::Value(why))
}

impl Checker<'_> {
    /// Reads the weight of a problem.
    pub(super) fn weight(&mut self, value: &Scalar) -> Option<f64> {
        let weight = value.value.0.to_string().parse::<f64>().ok();
        let weight = weight.filter(|weight| weight.is_finite() && *weight >= 0.0);
        if weight.is_none() {
            let message = "the weight of a problem is a number of at least 0";
            let help = "write a number such as 2: a gain of this problem then counts twice";
            self.error(message, value.at.clone(), help);
        }
        weight
    }

    /// Reads the weight of `metric`, an expression of sizes and device limits.
    pub(super) fn metric_weight(
        &mut self,
        formula: Option<Formula>,
        problems: &[Problem],
    ) -> Option<Expr> {
        let formula = formula?;
        let expr = self.parse(&formula)?;
        let at = formula.at;
        self.places.weight = Some(at.clone());
        // Its value depends on the device, and is checked for that of a run.
        let by_device = expr.names().any(|(name, _)| name.starts_with(DEVICE));
        for problem in problems.iter().filter(|problem| problem.weight.is_none()) {
            match evaluate(&expr, problem, &SOME_LIMITS) {
                Err(WeightError::Expression(mut error)) => {
                    error.message +=
                        "; the weight of `metric` belongs to a problem, not to a configuration";
                    self.expression_error(&error, at.clone());
                }
                Err(error) if !by_device => {
                    self.report_once(error.diagnostic(at.clone(), self.source));
                }
                _ => {}
            }
        }
        Some(expr)
    }
}

impl KernelSpec {
    /// Returns the weight of a problem's gain in the budget of a run: its own, else that of `metric`,
    /// else 1.
    ///
    /// # Errors
    /// The weight of `metric` is not a number of at least 0.
    pub fn weight_of(&self, problem: &Problem, limits: &DeviceLimits) -> Result<f64, Diagnostics> {
        let own = problem.weight.map(Ok);
        let metric = || Some(evaluate(self.weight.as_ref()?, problem, limits));
        own.or_else(metric).unwrap_or(Ok(1.0)).map_err(|error| {
            let at = self.places().weight.clone().unwrap_or(0..1);
            self.faults(vec![error.diagnostic(at, self.source_text())])
        })
    }
}
