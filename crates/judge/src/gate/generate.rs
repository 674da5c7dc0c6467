//! Data that a kernel of the template makes: `fill: { kernel: NAME }`.
//!
//! A generator is `void NAME(T* out, unsigned long long count, unsigned long long seed)`, launched
//! with a thread for each element, rounded up to whole blocks. It is compiled for the default
//! configuration, so that all candidates meet the same data.

use super::oracle::OracleError;
use crate::session::{Blocks, Order, Run, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{
    Code, Passed, Plan, PlanArgument, PlanGate, PlanLaunch, PlanReference, Role,
};

/// Threads of a block of a generator.
const THREADS: u32 = 256;

/// The launch of a generator that fills so many elements. Its arguments are the buffer, how many
/// elements that has, and the seed.
#[must_use]
pub fn launch(entry: &str, count: u64) -> PlanLaunch {
    let blocks = count.div_ceil(u64::from(THREADS)).max(1);
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    PlanLaunch::new(entry, [blocks, 1, 1], [THREADS, 1, 1], vec![0, 1, 2])
}

/// Elements of an argument as its generator counts them: of vectors and structs, whole ones.
#[must_use]
pub fn elements(argument: &PlanArgument) -> u64 {
    match &argument.layout {
        Some(layout) => argument.count() / layout.size.max(1),
        None => argument.count(),
    }
}

/// A generator's launch on one argument as a plan of its own.
fn plan_of(argument: &PlanArgument, entry: &str, code: &Code, seed: u64) -> Plan {
    let count = elements(argument);
    let scalar = |name: &str, value: u64| PlanArgument {
        name: name.to_owned(),
        element: Element::U64,
        role: Role::Scalar,
        shape: Vec::new(),
        fill: Fill::Zeros,
        value: value as f64,
        layout: None,
        passed: Some(Passed {
            bytes: value.to_le_bytes().to_vec(),
            addresses: Vec::new(),
        }),
    };
    let buffer = PlanArgument {
        role: Role::Output,
        ..argument.clone()
    };
    Plan {
        gate: PlanGate::default(),
        ..Plan::new(
            vec![buffer, scalar("count", count), scalar("seed", seed)],
            vec![launch(entry, count)],
            code.clone(),
            PlanReference::None,
        )
    }
}

/// What the generators of a plan write for a seed, by argument. Frees every buffer of the session.
///
/// # Errors
/// A generator that does what no kernel may, or leaves elements unwritten.
pub fn all(
    session: &mut dyn Session,
    plan: &Plan,
    seed: u64,
) -> Result<BTreeMap<usize, Arc<[u8]>>, OracleError> {
    let mut made = BTreeMap::new();
    let Some(code) = &plan.generators else {
        return Ok(made);
    };
    for (index, argument) in plan.arguments.iter().enumerate() {
        if let (Fill::Kernel(entry), true) = (&argument.fill, argument.role.is_filled()) {
            let own = plan_of(argument, entry, code, seed ^ (index as u64) << 32);
            let bytes = one(session, &own).map_err(|why| OracleError::Data {
                argument: argument.name.clone(),
                problem: plan.problem.clone(),
                why: format!(
                    "its generator `{entry}`: {why}; a generator is `void {entry}(T* out, unsigned \
                     long long count, unsigned long long seed)`, launched with at least `count` \
                     threads"
                ),
            })?;
            made.insert(index, bytes.into());
        }
    }
    Ok(made)
}

fn one(session: &mut dyn Session, plan: &Plan) -> Result<Vec<u8>, String> {
    let told = |fault: tuner_core::judgement::Judgement| fault.to_string();
    let buffer = &plan.arguments[0];
    session.reset();
    let slot = session.alloc(&buffer.name, buffer.bytes()).map_err(told)?;
    session
        .poison(slot, buffer.element.poison())
        .map_err(told)?;
    let report = session.run(&Run {
        code: &plan.code,
        launch: &plan.launches[0],
        plan,
        slots: &[Some(slot), None, None],
        blocks: Blocks::All,
        order: Order::Natural,
        budget: None,
    });
    if let Some(hazard) = report.map_err(told)?.hazards.first() {
        return Err(format!("{}: {}", hazard.kind, hazard.detail));
    }
    let holes = session.unwritten(slot).unwrap_or_default();
    let holes = super::naive::without_padding(buffer, holes);
    if let Some(hole) = holes.first() {
        let first = hole.start / buffer.element.size() as u64;
        return Err(format!("it leaves element {first} unwritten"));
    }
    session.download(slot).map_err(told)
}
