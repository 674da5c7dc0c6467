//! Candidates compared on a real GPU: a paired comparison of two, and the final comparison of all.

use super::super::{Begins, Failure};
use super::{OpenGpu, settings};
use crate::step::Step;
use crate::worker::protocol::{Job, Response, TimingComparison};
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_judge::gate::Verified;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::executor::{self, HEADLINE};

/// Builds the result of a plan after another one ended the process.
fn not_judged() -> Judgement {
    Judgement::new(Verdict::NotJudged, "another candidate ended the process")
}

impl OpenGpu {
    /// Verifies each plan of a comparison on the comparison's seed. Plans after one that makes the context
    /// unusable are not judged.
    fn verified(
        &mut self,
        contest: &TimingComparison,
        begins: Begins<'_>,
    ) -> Result<Vec<Result<Verified, Judgement>>, Failure> {
        let mut all = Vec::with_capacity(contest.plans.len());
        for plan in &contest.plans {
            if self.session.gpu.corrupted().is_some() {
                all.push(Err(not_judged()));
                continue;
            }
            let job = Job {
                timed: Some(plan.clone()),
                seeds: vec![contest.seed],
                level: contest.level,
                ..Job::default()
            };
            let (judgement, proof) = self.judge(&job, begins)?;
            all.push(match proof {
                Some((_, verified, _)) => Ok(verified),
                None => Err(judgement),
            });
        }
        Ok(all)
    }

    pub(super) fn duel(
        &mut self,
        contest: &TimingComparison,
        begins: Begins<'_>,
    ) -> Result<Response, Failure> {
        let verified = self.verified(contest, begins)?;
        if let Some(Err(why)) = verified.iter().find(|verified| verified.is_err()) {
            return Ok(Response::Failed(why.to_string()));
        }
        let [challenger, incumbent] = contest.plans.as_slice() else {
            return Ok(Response::Failed("a duel is between two".to_owned()));
        };
        begins(Step::Time).map_err(Failure::Pipe)?;
        let mut fight = || -> Result<Response, Judgement> {
            let session = &mut self.session;
            let subjects = session.load_list([challenger, incumbent], contest.seed)?;
            let pair = <[_; 2]>::try_from(subjects.as_slice());
            let [challenger, incumbent] = pair.map_err(|_| not_judged())?;
            let settings = settings();
            let result = executor::duel(session, challenger, incumbent, CacheMode::Warm, settings);
            session.drop_subject(challenger);
            session.drop_subject(incumbent);
            Ok(Response::Dueled(result?.map(Box::new)))
        };
        Ok(fight().unwrap_or_else(|fault| Response::Failed(fault.detail)))
    }

    pub(super) fn finale(
        &mut self,
        contest: &TimingComparison,
        begins: Begins<'_>,
    ) -> Result<Response, Failure> {
        let mut verified = self.verified(contest, begins)?;
        if self.session.gpu.corrupted().is_some() {
            // Candidates before the failed one can no longer be timed.
            let passed = verified.iter_mut().filter(|verified| verified.is_ok());
            passed.for_each(|verified| *verified = Err(not_judged()));
        }
        begins(Step::Time).map_err(Failure::Pipe)?;
        Ok(self
            .last_word(contest, verified)
            .unwrap_or_else(|fault| Response::Failed(fault.detail)))
    }

    fn last_word(
        &mut self,
        contest: &TimingComparison,
        verified: Vec<Result<Verified, Judgement>>,
    ) -> Result<Response, Judgement> {
        let right: Vec<usize> = (0..verified.len())
            .filter(|index| verified[*index].is_ok())
            .collect();
        let Some(first) = right.first() else {
            let errors = verified.into_iter().filter_map(Result::err);
            return Ok(Response::Final(errors.map(TimedJudgement::from).collect()));
        };
        let reference = contest.reference.as_ref().unwrap_or(&contest.plans[*first]);
        let task = self.task(reference, contest.seed)?;
        let plans = right.iter().map(|index| &contest.plans[*index]);
        let subjects = self.session.load_list(plans, contest.seed)?;
        let timing = &self.timed[task].timing;
        let finale = executor::finale(&mut self.session, timing, &subjects, contest.seed);
        for subject in subjects {
            self.session.drop_subject(subject);
        }
        let finale = finale?;
        let time = |(index, verified): (usize, Result<Verified, Judgement>)| {
            let verified = match verified {
                Ok(verified) => verified,
                Err(why) => return why.into(),
            };
            let place = right.iter().position(|known| *known == index);
            match place.and_then(|place| finale.measured(&verified, place, HEADLINE)) {
                None => Judgement::new(Verdict::Crashed, "no round was completed").into(),
                measured => TimedJudgement {
                    measured,
                    ..Judgement::ok(None).into()
                },
            }
        };
        let times = verified.into_iter().enumerate().map(time);
        Ok(Response::Final(times.collect()))
    }
}
