//! Reference data: inputs, oracles and reference outputs of problems.

use super::element::Element;
use super::inputs::Fill;
use super::oracle::{self, Oracle, OracleError, Tensor};
use crate::device::plan::{Plan, PlanArgument, Role};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The bytes of each input of a plan; outputs, scratch and scalars are `None`.
pub(super) type Inputs = Arc<Vec<Option<Arc<[u8]>>>>;

/// Reference data kept between candidates: inputs, oracles and reference outputs of a problem are
/// the same for all of them.
#[derive(Default)]
pub struct References {
    inputs: HashMap<String, Inputs>,
    oracles: HashMap<String, Arc<dyn Oracle>>,
    outputs: HashMap<String, Arc<Vec<Vec<u8>>>>,
}

impl References {
    /// Problems kept at once; the least that serves a kernel with its check problems.
    const KEPT: usize = 32;

    fn key(plan: &Plan, seed: u64) -> String {
        let arguments: Vec<String> = plan
            .arguments
            .iter()
            .map(|a| format!("{}{:?}{:?}", a.name, a.shape, a.fill))
            .collect();
        format!(
            "{}|{:?}|{}|{seed}",
            plan.problem,
            plan.sizes,
            arguments.join(";")
        )
    }

    fn trim(&mut self) {
        if self.inputs.len() > Self::KEPT {
            *self = Self::default();
        }
    }

    /// The inputs of a plan for a seed; outputs, scratch and scalars are `None`.
    pub(super) fn inputs(&mut self, plan: &Plan, seed: u64) -> Inputs {
        self.trim();
        let make = || {
            let fill = |(index, argument): (usize, &PlanArgument)| {
                let element = Element::from_name(&argument.element)?;
                (argument.role == Role::Input).then(|| {
                    let fill: Fill = argument.fill.into();
                    fill.bytes(element, seed, index as u64, argument.count())
                        .into()
                })
            };
            Arc::new(plan.arguments.iter().enumerate().map(fill).collect())
        };
        Arc::clone(
            self.inputs
                .entry(Self::key(plan, seed))
                .or_insert_with(make),
        )
    }

    pub(super) fn oracle(
        &mut self,
        name: &str,
        plan: &Plan,
        seed: u64,
    ) -> Result<Arc<dyn Oracle>, OracleError> {
        let key = format!("{name}|{}", Self::key(plan, seed));
        if let Some(oracle) = self.oracles.get(&key) {
            return Ok(Arc::clone(oracle));
        }
        let inputs = self.inputs(plan, seed);
        let oracle = oracle::build(name, &problem(plan, &inputs))?;
        if self.oracles.len() > Self::KEPT {
            self.oracles.clear();
        }
        self.oracles.insert(key, Arc::clone(&oracle));
        Ok(oracle)
    }

    /// Outputs of the reference kernel for a seed, where they are known.
    pub(super) fn outputs(&self, plan: &Plan, seed: u64) -> Option<Arc<Vec<Vec<u8>>>> {
        self.outputs.get(&Self::key(plan, seed)).map(Arc::clone)
    }

    /// Keeps outputs of the reference kernel.
    pub(super) fn keep_outputs(&mut self, plan: &Plan, seed: u64, outputs: &Arc<Vec<Vec<u8>>>) {
        self.outputs
            .insert(Self::key(plan, seed), Arc::clone(outputs));
    }
}

/// The plan as the oracle wants it.
fn problem(plan: &Plan, inputs: &[Option<Arc<[u8]>>]) -> oracle::Problem {
    let tensors = |role: Role| {
        plan.arguments
            .iter()
            .zip(inputs)
            .filter(|(argument, _)| argument.role == role)
            .map(|(argument, bytes)| Tensor {
                name: argument.name.clone(),
                element: Element::from_name(&argument.element).unwrap_or(Element::F32),
                shape: argument.shape.clone(),
                bytes: bytes.clone().unwrap_or_else(|| Arc::new([])),
            })
            .collect()
    };
    let scalars = plan.arguments.iter().filter(|a| a.role == Role::Scalar);
    oracle::Problem {
        inputs: tensors(Role::Input),
        outputs: tensors(Role::Output),
        scalars: scalars
            .map(|a| {
                let element = Element::from_name(&a.element).unwrap_or(Element::F64);
                (a.name.clone(), element.round(a.value))
            })
            .collect(),
        sizes: plan.sizes.iter().cloned().collect::<BTreeMap<_, _>>(),
    }
}
