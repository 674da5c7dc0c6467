//! Reference data: inputs, oracles and reference outputs of problems.

use super::adversarial::{self, Data, Made};
use super::expected::ExpectedValues;
use super::held::Held;
use super::keys::{DataKey, KeyedPlan};
use super::naive::Naive;
pub use super::oracle::kept::Progress;
use super::oracle::kept::{Means, keeping};
use super::oracle::{self, Oracle, OracleError, Tensor};
use super::rounding::Rounded;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tuner_core::cache::CacheFolder;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, Role};
use tuner_core::units::ContentHash;

/// The bytes of each argument that is filled; outputs, scratch and scalars are `None`.
pub(super) type Inputs = Arc<Vec<Option<Arc<[u8]>>>>;

/// Reference data kept between candidates: inputs, oracles and reference outputs of a problem are
/// the same for all of them.
pub struct References {
    inputs: Held<DataKey, Inputs>,
    oracles: Held<(String, DataKey), Arc<dyn Oracle>>,
    outputs: Held<DataKey, Arc<Vec<Vec<u8>>>>,
    hard: Held<DataKey, Option<Made>>,
    /// What is known of reference kernels that take too long to run whole.
    parts: Held<DataKey, Naive>,
    /// The same under random rounding, whole or in parts, by the precision.
    rounded: Held<(DataKey, u32), Rounded>,
    /// Reference kernels, each on one problem, that were compared with float64.
    proven: HashSet<ContentHash>,
    /// Summaries of expected values that a device keeps.
    expected: HashMap<ContentHash, ExpectedValues>,
    means: Means,
}

/// Bytes of reference data where nothing else is said.
const BYTES_USUAL: u64 = 1 << 30;

impl Default for References {
    fn default() -> Self {
        Self::bounded(BYTES_USUAL)
    }
}

fn size(inputs: &[Option<Arc<[u8]>>]) -> u64 {
    inputs
        .iter()
        .flatten()
        .map(|bytes| bytes.len() as u64)
        .sum()
}

impl References {
    /// Reference data of up to so many bytes; what a single candidate needs is kept whatever its
    /// size.
    #[must_use]
    pub fn bounded(bytes: u64) -> Self {
        Self {
            inputs: Held::new(bytes / 4),
            oracles: Held::new(bytes / 4),
            outputs: Held::new(bytes / 4),
            hard: Held::new(bytes / 8),
            parts: Held::new(bytes / 8),
            rounded: Held::new(bytes / 8),
            proven: HashSet::new(),
            expected: HashMap::new(),
            means: Means {
                memory_bytes: bytes / 4,
                ..Means::default()
            },
        }
    }

    /// The same, with float64 results that took long kept in a folder.
    #[must_use]
    pub fn on_disk(mut self, folder: Arc<CacheFolder>) -> Self {
        self.means.folder = Some(folder);
        self
    }

    /// The same, with somebody told while float64 results are worked out.
    #[must_use]
    pub fn watched(mut self, progress: Progress) -> Self {
        self.means.progress = Some(progress);
        self
    }

    /// The inputs and the judging of a hard case; `None` where it does not fit the plan.
    pub(super) fn hard(&mut self, plan: &KeyedPlan<'_>, data: Data) -> Option<Made> {
        let key = plan.inputs(data);
        if let Some(known) = self.hard.get(&key) {
            return known.clone();
        }
        let made = adversarial::make(plan.plan, data);
        let bytes = made.as_ref().map_or(0, |made| size(&made.inputs));
        self.hard.insert(key, made.clone(), bytes);
        made
    }

    /// Whether the inputs of a plan are known.
    pub(super) fn has_inputs(&self, plan: &KeyedPlan<'_>, data: Data) -> bool {
        self.inputs.peek(&plan.inputs(data)).is_some()
    }

    /// The inputs of a plan; outputs, scratch and scalars are `None`. `generated` are those that a
    /// device makes, where they are not known yet.
    ///
    /// # Errors
    /// Why the data that an argument is filled with cannot be used.
    pub(super) fn inputs_with(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        generated: &BTreeMap<usize, Arc<[u8]>>,
    ) -> Result<Inputs, OracleError> {
        if data.case.is_some()
            && let Some(made) = self.hard(plan, data)
        {
            return Ok(made.inputs);
        }
        if let Some(known) = self.inputs.get(&plan.inputs(data)) {
            return Ok(Arc::clone(known));
        }
        let mut inputs = Vec::with_capacity(plan.plan.arguments.len());
        for (index, argument) in plan.plan.arguments.iter().enumerate() {
            if !argument.role.is_filled() {
                inputs.push(None);
                continue;
            }
            if let Some(made) = generated.get(&index) {
                inputs.push(Some(Arc::clone(made)));
                continue;
            }
            let content = match &argument.fill {
                Fill::Kernel(_) => Err("what its generator wrote is not known any more".to_owned()),
                _ => argument.content(data.seed, index as u64),
            };
            let content = content.map_err(|why| OracleError::Data {
                argument: argument.name.clone(),
                problem: plan.plan.problem.clone(),
                why,
            })?;
            inputs.push(Some(content.into()));
        }
        let bytes = size(&inputs);
        let inputs = Arc::new(inputs);
        self.inputs
            .insert(plan.inputs(data), Arc::clone(&inputs), bytes);
        Ok(inputs)
    }

    /// The inputs of a plan, once they were made: none are missing then.
    pub(super) fn inputs(&mut self, plan: &KeyedPlan<'_>, data: Data) -> Inputs {
        let known = self.inputs_with(plan, data, &BTreeMap::new());
        known.unwrap_or_else(|_| Arc::new(vec![None; plan.plan.arguments.len()]))
    }

    pub(super) fn oracle(
        &mut self,
        name: &str,
        plan: &KeyedPlan<'_>,
        data: Data,
    ) -> Result<Arc<dyn Oracle>, OracleError> {
        let key = (name.to_owned(), plan.inputs(data));
        // What they keep has grown since they were made.
        self.oracles.weigh(&key, |oracle| oracle.bytes());
        if let Some(oracle) = self.oracles.get(&key) {
            return Ok(Arc::clone(oracle));
        }
        let inputs = self.inputs(plan, data);
        let oracle = oracle::build(name, &problem(plan.plan, &inputs))?;
        let identity = format!("{name} {} {} {data:?}", oracle::version(name), key.1.0);
        let oracle = keeping(oracle, identity, &self.means);
        self.oracles.insert(key, Arc::clone(&oracle), 0);
        Ok(oracle)
    }

    /// Outputs of the reference kernel, where they are known.
    pub(super) fn outputs(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
    ) -> Option<Arc<Vec<Vec<u8>>>> {
        self.outputs.get(&plan.outputs(data)).map(Arc::clone)
    }

    /// Keeps outputs of the reference kernel.
    pub(super) fn keep_outputs(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        outputs: &Arc<Vec<Vec<u8>>>,
    ) {
        let bytes = outputs.iter().map(|output| output.len() as u64).sum();
        self.outputs
            .insert(plan.outputs(data), Arc::clone(outputs), bytes);
    }

    /// Takes out what is known of a reference kernel that runs in parts.
    pub(super) fn take_part(&mut self, plan: &KeyedPlan<'_>, data: Data) -> Option<Naive> {
        self.parts.remove(&plan.outputs(data))
    }

    /// The blocks of a reference kernel that have run; `None` where it ran whole.
    pub(super) fn blocks(&self, plan: &KeyedPlan<'_>, data: Data) -> Option<BTreeSet<u64>> {
        let part = self.parts.peek(&plan.outputs(data));
        part.map(|part| part.blocks.clone())
    }

    /// Takes out what a reference kernel writes with random rounding at a precision.
    pub(super) fn take_rounded(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
    ) -> Option<Rounded> {
        self.rounded.remove(&(plan.outputs(data), precision))
    }

    /// What a reference kernel writes with random rounding at a precision, as far as it is known.
    pub(super) fn peek_rounded(
        &self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
    ) -> Option<&Rounded> {
        self.rounded.peek(&(plan.outputs(data), precision))
    }

    /// Tells the watcher that work goes on.
    pub(super) fn report_progress(&self) {
        if let Some(progress) = &self.means.progress {
            progress();
        }
    }

    /// Keeps what a reference kernel writes with random rounding at a precision.
    pub(super) fn keep_rounded(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
        rounded: Rounded,
    ) {
        let bytes = rounded.bytes();
        self.rounded
            .insert((plan.outputs(data), precision), rounded, bytes);
    }

    /// Keeps what is known of a reference kernel that runs in parts.
    pub(super) fn keep_part(&mut self, plan: &KeyedPlan<'_>, data: Data, part: Naive) {
        let bytes = part.bytes();
        self.parts.insert(plan.outputs(data), part, bytes);
    }

    /// The summary of the expected values that a device keeps under a key: `made` where they were
    /// made just now.
    pub(super) fn expected_values(
        &mut self,
        key: ContentHash,
        made: Option<ExpectedValues>,
    ) -> ExpectedValues {
        match made {
            Some(made) => *self.expected.entry(key).insert_entry(made).get(),
            None => {
                let known = self.expected.get(&key).copied();
                known.unwrap_or_else(ExpectedValues::unknown)
            }
        }
    }

    /// Whether this reference kernel was not yet compared with float64 on this problem.
    pub(super) fn unproven(&self, plan: &KeyedPlan<'_>) -> bool {
        !self.proven.contains(plan.reference())
    }

    /// Notes that this reference kernel agrees with float64 on this problem.
    pub(super) fn keep_proven(&mut self, plan: &KeyedPlan<'_>) {
        self.proven.insert(plan.reference().clone());
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
                element: argument.element,
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
            .map(|a| (a.name.clone(), a.element.round(a.value)))
            .collect(),
        sizes: plan.sizes.iter().cloned().collect::<BTreeMap<_, _>>(),
    }
}
