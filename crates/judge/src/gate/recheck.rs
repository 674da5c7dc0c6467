//! Re-validates the outputs of the timed launches.

use super::adversarial::Data;
use super::oracle::OracleError;
use super::references::References;
use super::verify::{Demands, Gate, Pass, Stop};
use crate::session::Session;
use crate::stopwatch::OutputSet;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;

/// Judges sets of outputs that launches of the plan computed from the inputs of `seed`; `session`
/// is the device that holds them.
///
/// # Errors
/// [`OracleError`] as for [`super::verify::verify`]; wrong outputs are the `Ok(Err(_))` case.
pub fn recheck(
    plan: &Plan,
    seed: u64,
    sets: &[OutputSet],
    references: &mut References,
    session: &mut dyn Session,
) -> Result<Result<(), Judgement>, OracleError> {
    let demands = Demands::default();
    for outputs in sets {
        let mut gate = Gate::new(&mut *session, plan, &demands, &mut *references);
        let pass = Pass {
            work: Vec::new(),
            outputs: outputs.clone(),
            // These are not buffers of the session, so only the poison can show an unwritten output.
            slots: vec![None; plan.arguments.len()],
            sampled: false,
            elements: None,
            chosen: Vec::new(),
            untouched: Vec::new(),
            uncomparable: None,
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
