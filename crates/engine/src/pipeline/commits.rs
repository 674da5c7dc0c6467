//! Results that await their commit, and their announcement after it.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::{Clock, Evaluator};
use crate::event::{Event, TrialEvent};
use crate::record::needed_no_compile;
use crate::schedule::ReportedResult;
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, TimingKind, TrialRecord, Verdict};
use tuner_core::units::Micros;
use tuner_store::Ack;

/// Maximum results that wait for their commit.
const MAX_UNCOMMITTED: usize = 1024;

impl<E: Evaluator> Driver<'_, E> {
    pub(super) async fn submit(
        &mut self,
        task: usize,
        told: ReportedResult,
    ) -> Result<(), EngineError> {
        let charged_us = match &told {
            ReportedResult::Stored(trial) => trial.charged_us,
            ReportedResult::New(trial) => trial.charged_us,
            ReportedResult::Known(known) => known.trial().charged_us,
        };
        self.charged_us = self.charged_us.saturating_add(charged_us);
        let (event, ack) = match told {
            ReportedResult::Stored(trial) => (self.event(task, &trial, true), None),
            ReportedResult::New(trial) => {
                let event = self.event(task, &trial, false);
                let key = &self.tasks[task].key;
                (
                    event,
                    Some(self.store.submit(&self.run, key, *trial).await?),
                )
            }
            ReportedResult::Known(known) => {
                let mut event = self.event(task, known.trial(), false);
                event.known = true;
                let key = &self.tasks[task].key;
                let ack = self.store.submit_known(&self.run, key, *known).await?;
                (event, Some(ack))
            }
        };
        self.uncommitted.push_back((event, ack));
        while self.uncommitted.len() > MAX_UNCOMMITTED {
            front(&mut self.uncommitted).await?;
            self.announce_front();
        }
        Ok(())
    }

    /// Announces results that were committed meanwhile, without waiting.
    pub(super) fn announce_committed(&mut self) -> Result<(), EngineError> {
        // No waker: `front` polls the same acknowledgement when the loop waits.
        let mut context = Context::from_waker(Waker::noop());
        while let Some((_, ack)) = self.uncommitted.front_mut() {
            if let Some(pending) = ack {
                match Pin::new(pending).poll(&mut context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => {
                        self.uncommitted.clear();
                        return Err(error.into());
                    }
                    Poll::Pending => break,
                }
            }
            self.announce_front();
        }
        Ok(())
    }

    pub(super) async fn drain(&mut self) -> Result<(), EngineError> {
        while !self.uncommitted.is_empty() {
            front(&mut self.uncommitted).await?;
            self.announce_front();
        }
        Ok(())
    }

    pub(super) fn announce_front(&mut self) {
        if let Some((event, _)) = self.uncommitted.pop_front() {
            self.announce(event);
        }
    }

    pub(super) fn announce(&mut self, mut event: TrialEvent) {
        self.ledger.enter(&mut event);
        self.evaluator.stored(event.task, &event.config);
        // A doubt about a candidate that is not the best would only distract.
        let doubts = event.doubts.iter().filter(|_| event.new_best);
        let doubts: Vec<String> = doubts
            .map(|doubt| format!("warning: {}: {doubt}", event.kernel))
            .collect();
        (self.sink)(&Event::Trial(event));
        for text in doubts {
            (self.sink)(&Event::Note { text });
        }
    }

    pub(super) fn event<T: AsRef<Measurement>>(
        &self,
        task: usize,
        trial: &TrialRecord<T>,
        resumed: bool,
    ) -> TrialEvent {
        let key = &self.tasks[task].key;
        let time = trial.measurement.as_ref().map(AsRef::as_ref);
        TrialEvent {
            task,
            kernel: key.kernel.clone(),
            problem: key.problem.clone(),
            sequence: trial.sequence,
            config: trial.config.clone(),
            verdict: trial.judgement.verdict,
            detail: in_a_line(&trial.judgement),
            time_us: time.map(|time| time.p50.get()),
            timing: time.map(|time| time.kind),
            compared: trial.judgement.compared,
            best_us: None,
            new_best: false,
            origin: trial.origin.clone(),
            evals: 0,
            clock_s: match self.evaluator.clock() {
                Clock::Charged => Duration::from_micros(self.charged_us).as_secs_f64(),
                Clock::Wall => 0.0,
            },
            resumed,
            reused: time.is_some_and(|time| time.reused),
            known: false,
            free: needed_no_compile(trial) && self.evaluator.clock() != Clock::Charged,
            ci95_us: time.and_then(interval),
            left: self.schedule.remaining_gain(task),
            doubts: doubts(&trial.judgement),
        }
    }
}

/// Returns the warnings that say how little a comparison proves.
fn doubts(judgement: &Judgement) -> Vec<String> {
    let warnings = judgement.warnings.iter();
    let doubts = warnings.filter(|warning| warning.kind == Verdict::Unchecked);
    doubts.map(|warning| warning.detail.clone()).collect()
}

/// Returns the 95 % interval of a measured time, microseconds.
fn interval(time: &Measurement) -> Option<[f64; 2]> {
    (time.kind == TimingKind::Measured).then(|| time.ci95.map(Micros::get))
}

/// Waits for the commit of the oldest result. After an error it does not wait: that result was not stored,
/// and later ones must not be announced across the gap.
pub(super) async fn front(
    uncommitted: &mut VecDeque<(TrialEvent, Option<Ack>)>,
) -> Result<(), EngineError> {
    if let Some((_, ack)) = uncommitted.front_mut()
        && let Some(pending) = ack
    {
        let stored = pending.await;
        *ack = None;
        if let Err(error) = stored {
            uncommitted.clear();
            return Err(error.into());
        }
    }
    Ok(())
}

/// Returns the first line of the finding, truncated if it is long.
fn in_a_line(judgement: &Judgement) -> String {
    const MAX_CHARACTERS: usize = 300;
    if judgement.verdict == Verdict::Ok {
        return String::new();
    }
    let first = judgement
        .detail
        .lines()
        .find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default();
    if first.chars().count() <= MAX_CHARACTERS {
        return first.to_owned();
    }
    let kept = first.chars().take(MAX_CHARACTERS - 1);
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_that_is_cut_says_so() {
        let line = |text: &str| in_a_line(&Judgement::new(Verdict::Incorrect, text));
        assert_eq!(line("\nwrong (seed 2430)\nmore"), "wrong (seed 2430)");
        let whole = "x".repeat(300);
        assert_eq!(line(&whole), whole);
        let cut = line(&format!("{whole})"));
        assert_eq!((cut.chars().count(), cut.chars().last()), (300, Some('…')));
    }
}
