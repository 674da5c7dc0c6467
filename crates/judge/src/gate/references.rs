//! Reference data: inputs, oracles and reference outputs of problems.

use super::adversarial::{self, CaseInputs, Data};
use super::bounded_cache::BoundedCache;
use super::coverage::Coverage;
use super::expected::ExpectedValues;
use super::extremes::{UnreadElements, move_extremes, number_of};
use super::keys::{DataKey, KeyedPlan};
pub use super::oracle::caching::Progress;
use super::oracle::caching::{Means, keeping};
use super::oracle::{self, Oracle, OracleError, Tensor};
use super::partial::PartialReference;
use super::rounding::RandomRoundings;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tuner_core::cache::CacheFolder;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, Role};
use tuner_core::units::ContentHash;

/// Bytes of each filled argument; `None` for outputs, scratch and scalars.
pub(super) type Inputs = Arc<Vec<Option<Arc<[u8]>>>>;

/// Identity of a candidate on a problem, and whether its blocks are linked.
pub(super) type CoverageKey = (DataKey, bool);

/// Cache of reference data: inputs, oracles and reference outputs of a problem are the same for all
/// candidates.
pub struct References {
    inputs: BoundedCache<DataKey, Inputs>,
    oracles: BoundedCache<(String, DataKey), Arc<dyn Oracle>>,
    outputs: BoundedCache<DataKey, Arc<Vec<Vec<u8>>>>,
    hard: BoundedCache<DataKey, Option<CaseInputs>>,
    /// Partial results of reference kernels that take too long to run whole.
    parts: BoundedCache<DataKey, PartialReference>,
    /// Results under random rounding, whole or partial, by precision.
    rounded: BoundedCache<(DataKey, u32), RandomRoundings>,
    /// Elements that receive the extreme values of inputs, with the number by which data names them: those
    /// of the candidate that was judged last.
    unread: Option<(u64, Arc<UnreadElements>)>,
    /// Coverage by candidates.
    coverage: BoundedCache<CoverageKey, Arc<Coverage>>,
    /// Lane instructions of reference kernels that ran whole.
    costs: HashMap<DataKey, u64>,
    /// Hard cases on which the reference kernel fails.
    failed: HashSet<DataKey>,
    /// Reference kernels, each on one problem, that agreed with float64.
    proven: HashSet<ContentHash>,
    /// Summaries of expected values that a device holds.
    expected: HashMap<ContentHash, ExpectedValues>,
    means: Means,
}

/// Default limit of reference data, bytes.
const DEFAULT_BYTES: u64 = 1 << 30;

impl Default for References {
    fn default() -> Self {
        Self::bounded(DEFAULT_BYTES)
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
    /// Limits reference data to `bytes`; the data of a single candidate is kept whatever its size.
    #[must_use]
    pub fn bounded(bytes: u64) -> Self {
        // Three large shares and four of half their size are the whole.
        let (large, small) = (bytes / 5, bytes / 10);
        Self {
            inputs: BoundedCache::new(large),
            oracles: BoundedCache::new(large),
            outputs: BoundedCache::new(large),
            hard: BoundedCache::new(small),
            parts: BoundedCache::new(small),
            rounded: BoundedCache::new(small),
            coverage: BoundedCache::new(small),
            unread: None,
            costs: HashMap::new(),
            failed: HashSet::new(),
            proven: HashSet::new(),
            expected: HashMap::new(),
            means: Means {
                memory_bytes: large,
                ..Means::default()
            },
        }
    }

    /// Stores expensive float64 results in a folder.
    #[must_use]
    pub fn on_disk(mut self, folder: Arc<CacheFolder>) -> Self {
        self.means.folder = Some(folder);
        self
    }

    /// Reports progress while float64 results are computed.
    #[must_use]
    pub fn watched(mut self, progress: Progress) -> Self {
        self.means.progress = Some(progress);
        self
    }

    /// Returns the inputs and rules of a hard case; `None` if it does not fit the plan.
    pub(super) fn hard(&mut self, plan: &KeyedPlan<'_>, data: Data) -> Option<CaseInputs> {
        let key = plan.inputs(data);
        if let Some(known) = self.hard.get(&key) {
            return known.clone();
        }
        let made = adversarial::make(plan.plan, data);
        let bytes = made.as_ref().map_or(0, |made| size(&made.inputs));
        self.hard.insert(key, made.clone(), bytes);
        made
    }

    /// Reports whether the inputs of a plan are cached.
    pub(super) fn has_inputs(&self, plan: &KeyedPlan<'_>, data: Data) -> bool {
        self.inputs.peek(&plan.inputs(data)).is_some()
    }

    /// Returns the inputs of a plan; outputs, scratch and scalars are `None`. `generated` holds the
    /// inputs that a device generated, if they are not cached.
    ///
    /// # Errors
    /// The fill data of an argument cannot be used, with the reason.
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
        if let Some(inputs) = self.moved_inputs(plan, data, generated)? {
            return Ok(inputs);
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
                // Only a device can regenerate these; callers check `has_inputs` first.
                Fill::Kernel(_) => Err("what its generator wrote is not known any more".to_owned()),
                _ => argument.content(data.seed, index as u64),
            };
            let content = content.map_err(|why| OracleError::Data {
                argument: argument.name.clone(),
                problem: plan.plan.problem.clone(),
                why,
            })?;
            inputs.push(Some(content));
        }
        let bytes = size(&inputs);
        let inputs = Arc::new(inputs);
        self.inputs
            .insert(plan.inputs(data), Arc::clone(&inputs), bytes);
        Ok(inputs)
    }

    /// Keeps a set of elements, and returns the number by which data names it.
    pub(super) fn keep_unread(&mut self, unread: UnreadElements) -> u64 {
        let number = number_of(&unread);
        self.unread = Some((number, Arc::new(unread)));
        number
    }

    /// Builds inputs whose extreme values are moved; `None` where those of `data` stay as drawn.
    fn moved_inputs(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        generated: &BTreeMap<usize, Arc<[u8]>>,
    ) -> Result<Option<Inputs>, OracleError> {
        let kept = self.unread.as_ref();
        let kept = kept.filter(|(number, _)| data.unread == Some(*number));
        let Some(unread) = kept.map(|(_, unread)| Arc::clone(unread)) else {
            return Ok(None);
        };
        let plain = Data {
            unread: None,
            ..data
        };
        let mut inputs = (*self.inputs_with(plan, plain, generated)?).clone();
        for (index, elements) in unread.iter() {
            let argument = plan.plan.arguments.get(*index);
            let input = inputs.get_mut(*index).and_then(Option::as_mut);
            if let Some((argument, input)) = argument.zip(input) {
                *input = move_extremes(input, argument.element, elements, data.seed);
            }
        }
        let (bytes, inputs) = (size(&inputs), Arc::new(inputs));
        self.inputs
            .insert(plan.inputs(data), Arc::clone(&inputs), bytes);
        Ok(Some(inputs))
    }

    /// Returns the cached inputs of a plan after they were built once.
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
        // The oracles' caches have grown since they were built.
        self.oracles.weigh(&key, |oracle| oracle.bytes());
        if let Some(oracle) = self.oracles.get(&key) {
            return Ok(Arc::clone(oracle));
        }
        let inputs = self.inputs(plan, data);
        let oracle = oracle::build(name, &problem(plan.plan, &inputs))?;
        let identity = format!("{name} {} {} {data:?}", oracle::version(name), key.1.0);
        let oracle = keeping(oracle, identity, &self.means);
        // Its size is measured at the next lookup, when its cache has filled.
        self.oracles.insert(key, Arc::clone(&oracle), 0);
        Ok(oracle)
    }

    /// Returns the coverage of a problem by a candidate if it is cached.
    pub(super) fn coverage(&mut self, key: &CoverageKey) -> Option<Arc<Coverage>> {
        self.coverage.get(key).map(Arc::clone)
    }

    /// Stores the coverage of a problem by a candidate.
    pub(super) fn keep_coverage(&mut self, key: CoverageKey, coverage: &Arc<Coverage>) {
        let bytes = coverage.bytes();
        self.coverage.insert(key, Arc::clone(coverage), bytes);
    }

    /// Keeps the lane instructions of a whole run of the reference kernel.
    pub(super) fn keep_cost(&mut self, plan: &KeyedPlan<'_>, data: Data, cost: u64) {
        self.costs.insert(plan.outputs(data), cost);
    }

    /// Returns the lane instructions of a whole run of the reference kernel, if it was made.
    pub(super) fn cost(&self, plan: &KeyedPlan<'_>, data: Data) -> Option<u64> {
        self.costs.get(&plan.outputs(data)).copied()
    }

    /// Records that the reference kernel fails on a hard case.
    pub(super) fn keep_failed(&mut self, plan: &KeyedPlan<'_>, data: Data) {
        self.failed.insert(plan.outputs(data));
    }

    /// Reports whether the reference kernel is known to fail on a hard case.
    pub(super) fn has_failed(&self, plan: &KeyedPlan<'_>, data: Data) -> bool {
        self.failed.contains(&plan.outputs(data))
    }

    /// Returns outputs of the reference kernel if they are cached.
    pub(super) fn outputs(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
    ) -> Option<Arc<Vec<Vec<u8>>>> {
        self.outputs.get(&plan.outputs(data)).map(Arc::clone)
    }

    /// Stores outputs of the reference kernel.
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

    /// Removes and returns the partial results of a reference kernel.
    pub(super) fn take_part(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
    ) -> Option<PartialReference> {
        self.parts.remove(&plan.outputs(data))
    }

    /// Returns the blocks of a reference kernel that have run; `None` if it ran whole.
    pub(super) fn blocks(&self, plan: &KeyedPlan<'_>, data: Data) -> Option<BTreeSet<u64>> {
        let part = self.parts.peek(&plan.outputs(data));
        part.map(|part| part.blocks.clone())
    }

    /// Removes and returns the results of a reference kernel under random rounding at a precision.
    pub(super) fn take_rounded(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
    ) -> Option<RandomRoundings> {
        self.rounded.remove(&(plan.outputs(data), precision))
    }

    /// Returns the results of a reference kernel under random rounding at a precision, if there are
    /// any.
    pub(super) fn peek_rounded(
        &self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
    ) -> Option<&RandomRoundings> {
        self.rounded.peek(&(plan.outputs(data), precision))
    }

    /// Reports progress to the watcher.
    pub(super) fn report_progress(&self) {
        if let Some(progress) = &self.means.progress {
            progress();
        }
    }

    /// Stores the results of a reference kernel under random rounding at a precision.
    pub(super) fn keep_rounded(
        &mut self,
        plan: &KeyedPlan<'_>,
        data: Data,
        precision: u32,
        rounded: RandomRoundings,
    ) {
        let bytes = rounded.bytes();
        self.rounded
            .insert((plan.outputs(data), precision), rounded, bytes);
    }

    /// Stores the partial results of a reference kernel.
    pub(super) fn keep_part(&mut self, plan: &KeyedPlan<'_>, data: Data, part: PartialReference) {
        let bytes = part.bytes();
        self.parts.insert(plan.outputs(data), part, bytes);
    }

    /// Returns the summary of the expected values that a device holds under a key; `made` if they
    /// were just computed.
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

    /// Reports whether this reference kernel has not yet been compared with float64 on this
    /// problem.
    pub(super) fn unproven(&self, plan: &KeyedPlan<'_>) -> bool {
        !self.proven.contains(plan.reference())
    }

    /// Records that this reference kernel agrees with float64 on this problem.
    pub(super) fn keep_proven(&mut self, plan: &KeyedPlan<'_>) {
        self.proven.insert(plan.reference().clone());
    }
}

/// Converts the plan to an oracle's problem.
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
