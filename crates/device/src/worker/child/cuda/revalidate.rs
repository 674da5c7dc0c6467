//! Re-validation of timed candidates.

use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;
use tuner_judge::gate::recheck;
use tuner_judge::gate::references::References;
use tuner_judge::stopwatch::{Stopwatch, Subject};

/// Re-validates the outputs of the timed launches.
pub(super) fn revalidate(
    plan: &Plan,
    seed: u64,
    watch: &mut dyn Stopwatch,
    subject: Subject,
    references: &mut References,
) -> Result<(), Judgement> {
    let outputs = watch.outputs(subject)?;
    let refused =
        |verdict, detail: String| Judgement::new(verdict, format!("after it was timed: {detail}"));
    let Some(session) = watch.as_session() else {
        let why = "the device does not show what was written".to_owned();
        return Err(refused(Verdict::Crashed, why));
    };
    let found = recheck(plan, seed, &outputs, references, session);
    session.release_all();
    match found {
        Ok(Ok(())) => Ok(()),
        Ok(Err(rejection)) => Err(refused(rejection.verdict, rejection.detail)),
        // The gate has used the same oracle successfully before.
        Err(error) => Err(refused(Verdict::Incorrect, error.to_string())),
    }
}
