//! A second look: what timed launches left in their outputs is judged like the gate's own runs.

use super::adversarial::Data;
use super::oracle::OracleError;
use super::references::References;
use super::verify::{Demands, Gate, Pass, Stop};
use crate::session::{Run, RunReport, Session, Slot};
use crate::stopwatch::OutputSet;
use std::ops::Range;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;

/// Judges sets of outputs that launches of the plan wrote from the inputs of `seed`; `session` is the
/// device, where it has kept them.
///
/// # Errors
/// [`OracleError`] as for [`super::verify::verify`]; wrong outputs are the `Ok(Err(_))` case.
pub fn recheck(
    plan: &Plan,
    seed: u64,
    sets: &[OutputSet],
    references: &mut References,
    session: Option<&mut dyn Session>,
) -> Result<Result<(), Judgement>, OracleError> {
    let demands = Demands::default();
    let mut nowhere = Nowhere;
    let session = session.unwrap_or(&mut nowhere);
    for outputs in sets {
        let mut gate = Gate::new(&mut *session, plan, &demands, &mut *references);
        let pass = Pass {
            work: Vec::new(),
            outputs: outputs.clone(),
            slots: vec![None; plan.arguments.len()],
            sampled: false,
            comparable: true,
            budget_exhausted: None,
        };
        match gate.judge(Data::seeded(seed), &pass) {
            Ok(()) => {}
            Err(Stop::Rejected(rejection)) => return Ok(Err(rejection)),
            Err(Stop::Oracle(error)) => return Err(error),
        }
    }
    Ok(Ok(()))
}

/// No device: everything that the judgement needs is there already.
struct Nowhere;

fn absent() -> Judgement {
    Judgement::new(
        Verdict::Crashed,
        "the reference's outputs are not known any more".to_owned(),
    )
}

impl Session for Nowhere {
    fn reset(&mut self) {}

    fn alloc(&mut self, _: &str, _: u64) -> Result<Slot, Judgement> {
        Err(absent())
    }

    fn upload(&mut self, _: Slot, _: &[u8]) -> Result<(), Judgement> {
        Err(absent())
    }

    fn poison(&mut self, _: Slot, _: &[u8]) -> Result<(), Judgement> {
        Err(absent())
    }

    fn download(&mut self, _: Slot) -> Result<Vec<u8>, Judgement> {
        Err(absent())
    }

    fn unwritten(&self, _: Slot) -> Option<Vec<Range<u64>>> {
        None
    }

    fn can_sample(&self) -> bool {
        false
    }

    fn run(&mut self, _: &Run<'_>) -> Result<RunReport, Judgement> {
        Err(absent())
    }
}
