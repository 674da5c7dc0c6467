//! Textual description of tolerances.

use super::{Centre, Terms, Tolerance};
use crate::gate::spread::{precision, shadow_error_type};
use std::fmt;
use tuner_core::plan::{Plan, PlanArgument, PlanReference, Role};

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.element.name();
        let (atol, rtol) = self.given;
        if !self.element.is_float() && atol.or(rtol).is_none() {
            return write!(f, "{name}, exact: whole numbers have no tolerance");
        }
        let told = |given: Option<f64>, key: &str| {
            given.map_or(String::new(), |given| format!("{key} {given:e}"))
        };
        let told = [told(atol, "atol"), told(rtol, "rtol")];
        let told: Vec<String> = told.into_iter().filter(|text| !text.is_empty()).collect();
        if !told.is_empty() {
            write!(f, "{name}, {} from the space", told.join(" and "))?;
        }
        if !self.element.is_float() || told.len() == 2 {
            return Ok(());
        }
        if !told.is_empty() {
            f.write_str("; for the rest ")?;
        }
        let from = match self.terms.1 {
            Terms::Given => "gate: terms",
            Terms::Flops => "metric: flops",
            Terms::Inputs => "inputs for each output",
        };
        let sums = self.element.accumulator().name();
        write!(
            f,
            "{name} against {}, sums of {:.0} terms ({from}) in {sums}: ",
            if self.by_values {
                "values of a file"
            } else {
                "a kernel"
            },
            self.terms.0
        )?;
        if self.by_values || precision(self.element).is_none() {
            let (relative, spread) = (self.relative, self.spread);
            return write!(
                f,
                "{relative:.1e} of the value + {spread:.1e} of the rms around it"
            );
        }
        let (centre, name) = match shadow_error_type(self.element) {
            Some(_) => (Centre::Shadow, "reference's shadow value"),
            None => (Centre::Reference, "value"),
        };
        write!(
            f,
            "{:.1e} of the {name} + {:.1} times the reference's spread under random rounding, \
             or {:.1e} of the size of the terms",
            self.own(centre),
            self.spreads(centre),
            self.walk + self.steps + self.eighths + self.between
        )
    }
}

/// Describes the tolerances of a plan's outputs and their reasons.
#[must_use]
pub fn describe(plan: &Plan) -> String {
    let outputs = plan.compared();
    let each: Vec<String> = outputs
        .map(|argument| {
            let text = match &plan.reference {
                PlanReference::Oracle(name) => against_oracle(plan, argument, name),
                PlanReference::Kernel { .. } | PlanReference::Values(_)
                    if argument.layout.is_some() =>
                {
                    let columns = argument.columns();
                    let fields = columns.iter().map(|column| {
                        let name = column.name.rsplit('.').next().unwrap_or_default();
                        format!("{name} {}", Tolerance::for_argument(plan, column))
                    });
                    fields.collect::<Vec<_>>().join(", ")
                }
                PlanReference::Kernel { .. } | PlanReference::Values(_) => {
                    Tolerance::for_argument(plan, argument).to_string()
                }
                PlanReference::None => "not compared".to_owned(),
            };
            format!("{}: {text}", argument.name)
        })
        .collect();
    each.join("; ")
}

/// Describes the tolerance of a built-in reference.
fn against_oracle(plan: &Plan, argument: &PlanArgument, name: &str) -> String {
    let element = argument.element;
    let ty = element.name();
    if let Some((atol, rtol)) = plan.gate.tolerance() {
        return format!("{ty}, atol {atol:e} and rtol {rtol:e} from the space");
    }
    if !element.is_float() {
        return format!("{ty}, exact: whole numbers have no tolerance");
    }
    let inputs: Vec<&PlanArgument> = plan.of_role(Role::Input).collect();
    let shape = |input: usize| inputs.get(input).map_or(&[][..], |a| &a.shape);
    let terms = match name {
        "attention" | "attention_f8" => shape(1).get(2).copied(),
        "conv2d" => Some(shape(1).iter().product()),
        "reduce_sum" => {
            let all: u64 = shape(0).iter().product();
            all.checked_div(argument.count())
        }
        _ => shape(0).last().copied(),
    };
    format!(
        "{ty} against float64, error model of `{name}`: {:.1e} of the value, the error of sums of {} \
         terms in {}, and the norm of each tile",
        match name {
            "attention" | "attention_f8" => 3.0,
            _ => 1.05,
        } * element.unit_roundoff(),
        terms.unwrap_or(1),
        element.accumulator().name(),
    )
}
