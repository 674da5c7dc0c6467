//! State of a worker per kernel and problem: the reference and the incumbent, loaded and warm.

use super::{OpenGpu, settings};
use crate::worker::protocol::{IncumbentPlan, RelativeTime};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use tuner_judge::stopwatch::Subject;
use tuner_judge::timing::executor::{Incumbent, TimingResult, TimingSession};
use tuner_judge::timing::plan::Runner;

/// Maximum number of timing sessions, one per kernel and problem between which a run alternates, if the
/// GPU's memory suffices.
const MAX_SESSIONS: usize = 64;
/// Divisor of the memory: a session is dropped if less than this share is free.
const MEMORY_SHARE: u64 = 4;

/// One kernel and problem in this process: its reference is loaded and warm.
pub(super) struct Task {
    pub(super) reference: ContentHash,
    pub(super) subject: Subject,
    pub(super) timing: TimingSession,
    pub(super) incumbent: Option<(ContentHash, Subject)>,
}

impl OpenGpu {
    /// Makes the winner of a paired comparison the incumbent, and drops any other candidate.
    pub(super) fn take_in(
        &mut self,
        task: usize,
        plan: &Plan,
        candidate: Subject,
        timed: TimingResult,
    ) -> (Measured, RelativeTime) {
        let task = &mut self.timed[task];
        if timed.replaces_incumbent {
            if let Some((_, old)) = task
                .incumbent
                .replace((plan.work(&plan.code.cubin), candidate))
            {
                self.session.drop_subject(old);
            }
            task.timing.incumbent = Some(timed.as_incumbent());
        } else {
            self.session.drop_subject(candidate);
        }
        let standing = RelativeTime {
            ratio: timed.ratio,
            replaces_incumbent: timed.replaces_incumbent,
        };
        (timed.measured, standing)
    }

    /// Returns the index of the reference's timing session, warmed up if it is new.
    pub(super) fn task(&mut self, reference: &Plan, seed: u64) -> Result<usize, Judgement> {
        let key = reference.work(&reference.code.cubin);
        if let Some(known) = self.timed.iter().position(|task| task.reference == key) {
            return Ok(known);
        }
        while !self.timed.is_empty() && (self.timed.len() >= MAX_SESSIONS || self.is_tight()?) {
            let old = self.timed.remove(0);
            self.session.drop_subject(old.subject);
            if let Some((_, incumbent)) = old.incumbent {
                self.session.drop_subject(incumbent);
            }
        }
        let calibration = self.calibration()?;
        let subject = self.session.load_subject(reference, seed)?;
        let timing = TimingSession::begin(
            &mut self.session,
            subject,
            Some(key.clone()),
            Some(calibration),
            settings(),
        );
        match timing {
            Ok(timing) => {
                self.timed.push(Task {
                    reference: key,
                    subject,
                    timing,
                    incumbent: None,
                });
                Ok(self.timed.len() - 1)
            }
            Err(fault) => {
                self.session.drop_subject(subject);
                Err(fault)
            }
        }
    }

    /// Reports whether the GPU's memory is nearly full.
    fn is_tight(&mut self) -> Result<bool, Judgement> {
        let (free, all) = self.session.gpu.memory()?;
        Ok(free < all / MEMORY_SHARE)
    }

    /// Loads the tuner's incumbent, which a fresh process does not have.
    pub(super) fn meet(
        &mut self,
        task: usize,
        rival: Option<&IncumbentPlan>,
        seed: u64,
    ) -> Result<(), Judgement> {
        let key = rival.map(|rival| rival.plan.work(&rival.plan.code.cubin));
        let known = self.timed[task].incumbent.as_ref().map(|(key, _)| key);
        if known == key.as_ref() {
            return Ok(());
        }
        if let Some((_, old)) = self.timed[task].incumbent.take() {
            self.session.drop_subject(old);
        }
        self.timed[task].timing.incumbent = None;
        let (Some(rival), Some(key)) = (rival, key) else {
            return Ok(());
        };
        let subject = self.session.load_subject(&rival.plan, seed)?;
        let task = &mut self.timed[task];
        let unit = task.timing.warm.session_us;
        task.timing.incumbent = Some(Incumbent {
            runner: Runner {
                subject,
                // The ratio determines its time without another measurement.
                launches: settings().launches(rival.ratio * unit),
            },
            ratio: rival.ratio,
        });
        task.incumbent = Some((key, subject));
        Ok(())
    }
}
