//! Reference data: inputs, oracles and reference outputs of problems.

use super::adversarial::{self, Data, Made};
use super::element::Element;
use super::inputs::Fill;
use super::naive::Naive;
use super::oracle::{self, Oracle, OracleError, Tensor};
use crate::device::plan::{Plan, PlanArgument, Role};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The bytes of each input of a plan; outputs, scratch and scalars are `None`.
pub(super) type Inputs = Arc<Vec<Option<Arc<[u8]>>>>;

/// Reference data kept between candidates: inputs, oracles and reference outputs of a problem are
/// the same for all of them.
#[derive(Default)]
pub struct References {
    inputs: HashMap<String, Inputs>,
    oracles: HashMap<String, Arc<dyn Oracle>>,
    outputs: HashMap<String, Arc<Vec<Vec<u8>>>>,
    hard: HashMap<String, Option<Made>>,
    /// What is known of reference kernels that take too long to run whole.
    parts: HashMap<String, Naive>,
    /// Expectations that the oracles may still keep.
    room: Room,
    /// Problems on which the reference kernel was compared with float64.
    proven: HashSet<String>,
}

/// Elements of expectations kept at once: 24 bytes each.
const KEPT_ELEMENTS: u64 = 4 << 20;

struct Room(Arc<AtomicU64>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(KEPT_ELEMENTS)))
    }
}

impl References {
    /// Problems kept at once; the least that serves a kernel with its check problems.
    const KEPT: usize = 32;

    fn key(plan: &Plan, data: Data) -> String {
        let arguments: Vec<String> = plan
            .arguments
            .iter()
            .map(|a| format!("{}{:?}{:?}", a.name, a.shape, a.fill))
            .collect();
        format!(
            "{}|{:?}|{}|{data:?}|{:?}",
            plan.problem,
            plan.sizes,
            arguments.join(";"),
            adversarial::oracle_of(plan)
        )
    }

    fn trim(&mut self) {
        if self.inputs.len() + self.hard.len() > 2 * Self::KEPT {
            *self = Self::default();
        }
    }

    /// The inputs and the judging of a hard case; `None` where it does not fit the plan.
    pub(super) fn hard(&mut self, plan: &Plan, data: Data) -> Option<Made> {
        self.trim();
        let made = self.hard.entry(Self::key(plan, data));
        made.or_insert_with(|| adversarial::make(plan, data))
            .clone()
    }

    /// The inputs of a plan; outputs, scratch and scalars are `None`.
    pub(super) fn inputs(&mut self, plan: &Plan, data: Data) -> Inputs {
        if data.case.is_some()
            && let Some(made) = self.hard(plan, data)
        {
            return made.inputs;
        }
        self.trim();
        let seed = data.seed;
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
                .entry(Self::key(plan, data))
                .or_insert_with(make),
        )
    }

    pub(super) fn oracle(
        &mut self,
        name: &str,
        plan: &Plan,
        data: Data,
    ) -> Result<Arc<dyn Oracle>, OracleError> {
        let key = format!("{name}|{}", Self::key(plan, data));
        if let Some(oracle) = self.oracles.get(&key) {
            return Ok(Arc::clone(oracle));
        }
        let inputs = self.inputs(plan, data);
        let oracle = oracle::build(name, &problem(plan, &inputs))?;
        let oracle = oracle::keeping(oracle, &self.room.0);
        if self.oracles.len() > Self::KEPT {
            self.oracles.clear();
        }
        self.oracles.insert(key, Arc::clone(&oracle));
        Ok(oracle)
    }

    /// Outputs of the reference kernel, where they are known.
    pub(super) fn outputs(&self, plan: &Plan, data: Data) -> Option<Arc<Vec<Vec<u8>>>> {
        self.outputs.get(&Self::key(plan, data)).map(Arc::clone)
    }

    /// Keeps outputs of the reference kernel.
    pub(super) fn keep_outputs(&mut self, plan: &Plan, data: Data, outputs: &Arc<Vec<Vec<u8>>>) {
        self.outputs
            .insert(Self::key(plan, data), Arc::clone(outputs));
    }

    /// Takes out what is known of a reference kernel that runs in parts.
    pub(super) fn take_part(&mut self, plan: &Plan, data: Data) -> Option<Naive> {
        self.parts.remove(&Self::key(plan, data))
    }

    /// Keeps what is known of a reference kernel that runs in parts.
    pub(super) fn keep_part(&mut self, plan: &Plan, data: Data, part: Naive) {
        self.parts.insert(Self::key(plan, data), part);
    }

    /// Whether this is the first time that the reference kernel runs on a problem.
    pub(super) fn unproven(&mut self, plan: &Plan) -> bool {
        let key = Self::key(plan, Data::seeded(0));
        self.proven.insert(key)
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
