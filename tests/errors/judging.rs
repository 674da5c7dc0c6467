//! The gate's comparison of a planted result, with a built-in oracle or a reference kernel.

use crate::errors::kernels::{How, Operation, Order, Problem};
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_judge::gate::compare;
use tuner_judge::gate::compare::Comparison;
use tuner_judge::gate::expected_output::Rule;
use tuner_judge::gate::oracle;
use tuner_judge::gate::oracle::Oracle;
use tuner_judge::gate::spread::{FurtherRuns, MAX_ROUNDED_RUNS, precision, shadow_error_type};
use tuner_judge::gate::tolerance::Tolerance;

/// What results are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum By {
    Oracle,
    /// A sequential kernel with float32 sums, or float64 ones where the output has the type.
    Kernel,
}

enum Wanted {
    Oracle(Arc<dyn Oracle>),
    /// The tolerance, what the reference wrote, what it wrote with random rounding, and the distances
    /// of its shadow values.
    Kernel(Box<Tolerance>, Vec<u8>, Vec<Vec<u8>>, Option<Vec<u8>>),
}

/// A problem, its right answer, and what an honest kernel makes of it.
pub(crate) struct Case {
    pub(crate) problem: Problem,
    wanted: Wanted,
    pub(crate) element: Element,
    pub(crate) count: u64,
    pub(crate) honest: Vec<f64>,
}

impl Case {
    pub(crate) fn new(operation: Operation, types: [Element; 2], by: By, seed: u64) -> Self {
        let problem = Problem::new(operation, types, seed);
        let (element, count) = (problem.output.element, problem.output.count());
        let honest = problem.run(&How::honest(Order::Split, element));
        let wanted = match by {
            By::Oracle => Wanted::Oracle(oracle(&problem)),
            By::Kernel => {
                let plan = plan(&problem);
                let output = plan.arguments.last().expect("an output");
                let how = How::honest(Order::Sequential, element);
                let reference = nearest(element, &problem.run(&how));
                let run = |precision, number| {
                    let random = Some((number, precision));
                    nearest(element, &problem.run(&How { random, ..how }))
                };
                let numbers = (0..MAX_ROUNDED_RUNS).filter(|_| precision(element).is_some());
                let rounded = numbers
                    .map(|number| run(precision(element).unwrap_or_default(), number))
                    .collect();
                let tolerance = Tolerance::for_argument(&plan, output);
                let shadows = problem.run(&How {
                    shadow: true,
                    ..how
                });
                let errors = shadow_errors(element, &reference, &shadows);
                Wanted::Kernel(Box::new(tolerance), reference, rounded, errors)
            }
        };
        Self {
            problem,
            wanted,
            element,
            count,
            honest,
        }
    }

    pub(crate) fn judge(&self, bytes: &[u8]) -> Comparison {
        match &self.wanted {
            Wanted::Oracle(oracle) => {
                let all = 0..self.count;
                let all = std::slice::from_ref(&all);
                compare::with_oracle(oracle.as_ref(), 0, self.element, bytes, all, Rule::Tiles)
            }
            Wanted::Kernel(tolerance, reference, rounded, errors) => {
                let all = std::iter::once(0..self.count).collect::<Vec<_>>();
                let runs = FurtherRuns {
                    rounded: rounded.iter().map(Vec::as_slice).collect(),
                    shadow_errors: errors.as_deref(),
                };
                tolerance.compare(bytes, reference, &all, &runs)
            }
        }
    }

    /// The verdict on values that are rounded to nearest.
    pub(crate) fn caught(&self, values: &[f64]) -> bool {
        !self.judge(&nearest(self.element, values)).passed()
    }
}

/// Values as an output holds them, each rounded to nearest.
pub(crate) fn nearest(element: Element, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        element.encode(*value, &mut bytes);
    }
    bytes
}

/// Distances of shadow values from what the reference wrote, as the virtual GPU returns them.
fn shadow_errors(element: Element, reference: &[u8], shadows: &[f64]) -> Option<Vec<u8>> {
    let ty = shadow_error_type(element)?;
    let mut errors = Vec::new();
    for (code, shadow) in reference.chunks(element.size()).zip(shadows) {
        ty.encode(shadow - element.decode(code), &mut errors);
    }
    Some(errors)
}

fn oracle(problem: &Problem) -> Arc<dyn Oracle> {
    let name = match problem.operation {
        Operation::Gemm { .. } => "gemm",
        Operation::Attention { .. } => "attention",
        Operation::AttentionF8 { .. } => "attention_f8",
        Operation::Softmax { .. } => "softmax",
        Operation::LayerNorm { .. } => "layernorm",
        Operation::ReduceSum { .. } => "reduce_sum",
        Operation::Conv2d => "conv2d",
    };
    let sizes = [("SCALE_ROWS".to_owned(), 64.0)].into_iter().collect();
    let problem = oracle::Problem {
        inputs: problem.inputs.clone(),
        outputs: vec![problem.output.clone()],
        scalars: std::collections::BTreeMap::new(),
        sizes,
    };
    oracle::build(name, &problem).expect("the arguments fit")
}

/// The plan of a space that compares with a reference kernel and gives no tolerance.
pub(crate) fn plan(problem: &Problem) -> Plan {
    let argument = |tensor: &oracle::Tensor, role| {
        PlanArgument::new(&tensor.name, tensor.element, role, &tensor.shape)
    };
    let inputs = problem.inputs.iter().map(|x| argument(x, Role::Input));
    let output = std::iter::once(argument(&problem.output, Role::Output));
    let outputs = problem.output.count() as f64;
    let code = Code::default();
    let launch = PlanLaunch::new("naive", [1; 3], [32, 1, 1], Vec::new());
    Plan {
        problem: "planted".into(),
        flops: match problem.operation {
            Operation::Gemm { k } => Some(2.0 * outputs * k as f64),
            Operation::Conv2d => Some(50.0 * outputs),
            Operation::Attention { keys } | Operation::AttentionF8 { keys } => {
                Some(4.0 * outputs * keys as f64)
            }
            _ => None,
        },
        ..Plan::new(
            inputs.chain(output).collect(),
            vec![launch.clone()],
            code.clone(),
            PlanReference::Kernel {
                code,
                launch,
                oracle: None,
            },
        )
    }
}
