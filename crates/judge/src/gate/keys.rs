//! Identity of the data that a candidate is compared with.
//!
//! Reference data outlives a candidate, and in a daemon a run. It is stored by the content of everything
//! that determines it. Names of kernels and problems, addresses and file paths are excluded: two kernels
//! with one signature may have different references, and a reference kernel may be edited between two runs.

use super::adversarial::{Data, oracle_of};
use super::naive::Kernel;
use super::oracle;
use tuner_core::plan::{Plan, PlanReference, Role};
use tuner_core::units::ContentHash;

/// A plan with the identities of its inputs and of its expected outputs.
pub(super) struct KeyedPlan<'a> {
    pub(super) plan: &'a Plan,
    inputs: ContentHash,
    outputs: ContentHash,
}

impl<'a> KeyedPlan<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let inputs = inputs_of(plan);
        let outputs = ContentHash::from_parts([inputs.as_str().as_bytes(), &reference_of(plan)]);
        Self {
            plan,
            inputs,
            outputs,
        }
    }

    /// Returns the identity of the inputs generated from `data`.
    pub(super) fn inputs(&self, data: Data) -> DataKey {
        (self.inputs.clone(), data)
    }

    /// Returns the identity of the expected outputs for `data`.
    pub(super) fn outputs(&self, data: Data) -> DataKey {
        (self.outputs.clone(), data)
    }

    /// Returns the identity of the candidate on this problem: of everything that determines the elements
    /// that it writes for `data`.
    pub(super) fn candidate(&self, data: Data) -> DataKey {
        let Plan {
            code,
            launches,
            tile_sizes,
            ..
        } = self.plan;
        let scratch = self.plan.of_role(Role::Scratch);
        let scratch: Vec<_> = scratch.map(|argument| &argument.shape).collect();
        let rest = format!("{launches:?} {tile_sizes:?} {scratch:?}");
        let parts = [
            self.inputs.as_str().as_bytes(),
            code.ptx.as_bytes(),
            &code.cubin,
            rest.as_bytes(),
        ];
        (ContentHash::from_parts(parts), data)
    }

    /// Returns the identity of the reference on this problem, independent of the data.
    pub(super) fn reference(&self) -> &ContentHash {
        &self.outputs
    }
}

/// Returns the identity of everything that decides whether a candidate's outputs are correct. Two
/// candidates of equal machine code, launches and data share a verdict only if this is equal too.
#[must_use]
pub fn expectation(plan: &Plan) -> ContentHash {
    let outputs = KeyedPlan::new(plan).outputs;
    let rules = format!("{:?} {:?} {:?}", plan.gate, plan.flops, plan.bytes);
    ContentHash::from_parts([outputs.as_str().as_bytes(), rules.as_bytes()])
}

/// Identity of a data set: the content that it is generated from, and the seed or hard case.
pub(super) type DataKey = (ContentHash, Data);

/// Hashes everything that decides the inputs and a built-in oracle's results: arguments except
/// scratch, sizes, and the oracle.
fn inputs_of(plan: &Plan) -> ContentHash {
    let arguments: Vec<String> = plan
        .arguments
        .iter()
        .map(|argument| {
            // Configurations may differ in scratch, which oracles ignore.
            let shape = (argument.role != Role::Scratch).then_some(&argument.shape);
            let value = argument.value.to_bits();
            let (element, role, fill) = (argument.element.name(), argument.role, &argument.fill);
            let (name, more) = (&argument.name, (&argument.layout, &argument.passed));
            // A fill equal to the default one still limits the numbers.
            let any_value = if argument.any_value { " any_value" } else { "" };
            format!("{name:?} {element} {role:?} {shape:?} {fill:?} {value:x} {more:?}{any_value}")
        })
        .collect();
    let sizes = plan.sizes.iter();
    let sizes = sizes.map(|(name, value)| format!("{name:?} {:x}", value.to_bits()));
    let name = oracle_of(plan);
    let oracle = format!("{name:?} {}", name.map_or(1, oracle::version));
    let generators = plan
        .generators
        .as_ref()
        .map(|code| ContentHash::from_parts([code.ptx.as_bytes(), &code.cubin]).to_string());
    let variables = format!("{:?} {generators:?}", plan.variables);
    let texts: Vec<String> = arguments
        .into_iter()
        .chain(sizes)
        .chain([oracle, variables])
        .collect();
    ContentHash::from_parts(texts.iter().map(String::as_bytes))
}

/// Encodes everything else that determines the outputs of a reference kernel and its acceptance: code,
/// launch, scratch, and the tolerances of its comparison with float64.
fn reference_of(plan: &Plan) -> Vec<u8> {
    if let PlanReference::Values(values) = &plan.reference {
        return format!("{values:?}").into_bytes();
    }
    let Some(kernel) = Kernel::from_plan(plan) else {
        return Vec::new();
    };
    let scratch = plan.of_role(Role::Scratch);
    let scratch: Vec<_> = scratch.map(|argument| &argument.shape).collect();
    let code = ContentHash::from_parts([kernel.code.ptx.as_bytes(), &kernel.code.cubin]);
    let (launch, oracle) = (kernel.launch, kernel.oracle);
    format!("{code} {launch:?} {oracle:?} {scratch:?} {:?}", plan.gate).into_bytes()
}

#[cfg(test)]
mod tests;
