//! Rounds of an evolution: parent, request, answer, evaluation, decision, storage, announcement.

use super::announce;
use super::evaluate::{Evaluation, Evaluator, Parent, Results, Tuned};
use super::floor;
use super::mutator::{Mutator, MutatorError};
use super::options::Options;
use super::reading;
use super::request::{self, Asked};
use super::watch::Files;
use crate::cli::{CliError, usage};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tokio::sync::watch::Receiver;
use tuner_core::record::ConfigValues;
use tuner_core::units::ContentHash;
use tuner_engine::job::ChangedCode;
use tuner_evolve::accept::{Comparison, decide};
use tuner_evolve::outcome::Outcome;
use tuner_evolve::patch;
use tuner_evolve::population::{Member, Population};
use tuner_evolve::protocol::{MutationRequest, Usage};
use tuner_store::{Change, ChangeTime, Lineage, Store};

/// Number of consecutive requests without an answer after which an evolution ends.
const MAX_SILENT_ROUNDS: u32 = 5;

/// Maximum length of a stored finding, characters.
const MAX_DETAIL_CHARS: usize = 2000;

/// Reason of an evolution's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Rounds,
    Budget,
    /// The mutator no longer answers.
    Silent,
    Interrupted,
}

/// State of an evolution.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) store: &'a Store,
    pub(super) evaluator: Evaluator<'a>,
    pub(super) mutator: Box<dyn Mutator>,
    pub(super) mutator_name: String,
    pub(super) name: String,
    pub(super) shipped: Results,
    pub(super) population: Population,
    pub(super) changes: Vec<Change>,
    /// Results of changes that this process evaluated or read.
    pub(super) results: BTreeMap<i64, Results>,
    pub(super) files: Files,
    /// No later request will be answered.
    pub(super) exhausted: bool,
}

/// Code and results of a member.
struct ParentCode {
    change: Option<i64>,
    code: ChangedCode,
    results: Results,
}

/// Answer with its cost.
struct Answered {
    note: String,
    usage: Usage,
    seconds: f64,
    code: Result<reading::Change, (Outcome, String)>,
}

impl Session<'_> {
    /// Runs the remaining rounds.
    ///
    /// # Errors
    /// The tuner failed; announced changes are stored.
    pub(super) async fn run(&mut self, shutdown: Receiver<bool>) -> Result<End, CliError> {
        let began = Instant::now();
        let first = self.changes.last().map_or(1, |change| change.round + 1);
        let mut silent = 0;
        for round in first..=self.options.rounds {
            if *shutdown.borrow() {
                return Ok(End::Interrupted);
            }
            if self
                .options
                .budget
                .is_some_and(|budget| began.elapsed() >= budget)
            {
                return Ok(End::Budget);
            }
            let Some(change) = self.round(round, &shutdown).await? else {
                return Ok(End::Interrupted);
            };
            silent = match change.outcome == Outcome::NoAnswer.to_string() {
                true => silent + 1,
                false => 0,
            };
            if self.exhausted || silent == MAX_SILENT_ROUNDS {
                return Ok(End::Silent);
            }
        }
        Ok(End::Rounds)
    }

    /// Runs one round, and returns its stored change; `None`: interrupted, nothing is stored.
    async fn round(
        &mut self,
        round: u32,
        shutdown: &Receiver<bool>,
    ) -> Result<Option<Change>, CliError> {
        let parent = self.parent(round)?;
        let request = self.request(round, &parent)?;
        let Some(answered) = self.ask(request, &parent, shutdown)? else {
            return Ok(None);
        };
        let island = Population::island(round);
        let mut change = Change {
            id: 0,
            round,
            parent: parent.change,
            mutator: self.mutator_name.clone(),
            note: answered.note,
            diff: String::new(),
            source: None,
            space: None,
            tokens: u32::try_from(answered.usage.tokens).unwrap_or(u32::MAX),
            cost: answered.usage.cost,
            seconds: answered.seconds,
            outcome: String::new(),
            verdict: None,
            detail: String::new(),
            code: String::new(),
            behaviour: Vec::new(),
            times: Vec::new(),
        };
        let mut results = None;
        match answered.code {
            Err((outcome, detail)) => {
                change.outcome = outcome.to_string();
                change.detail = detail;
            }
            Ok(reading::Change { code, notes }) => {
                change.diff = diff(&parent.code, &code);
                let of = Parent {
                    code: &parent.code,
                    results: &parent.results,
                };
                match self.evaluator.evaluate(&code, &of, round).await? {
                    Evaluation::Interrupted => return Ok(None),
                    Evaluation::Right(found) => results = Some(self.judged(&mut change, found)),
                    Evaluation::Unchanged(why) => {
                        change.outcome = Outcome::Unchanged.to_string();
                        why.clone_into(&mut change.detail);
                    }
                    Evaluation::Wrong { verdict, detail } => {
                        change.outcome = Outcome::Failed.to_string();
                        change.verdict = Some(verdict.to_string());
                        change.detail = detail;
                    }
                }
                for note in notes {
                    change.detail.push_str("; ");
                    change.detail.push_str(&note);
                }
                (change.source, change.space) = (Some(code.source), Some(code.space));
            }
        }
        change.detail = cut(&change.detail);
        change.id = self.store.add_change(&self.name, change.clone()).await?;
        if let Some(results) = results {
            self.population.add(member(&change, Some(island)));
            self.results.insert(change.id, results);
        }
        self.changes.push(change.clone());
        // Announced after the commit.
        announce::change(&change, self.options);
        Ok(Some(change))
    }

    /// Decides about a correct change, and records its times.
    fn judged(&self, change: &mut Change, found: Results) -> Results {
        let incumbent = self.incumbent(change.parent);
        let comparisons = found.iter().filter_map(|(problem, tuned)| {
            let before = incumbent.get(problem)?;
            let impossible = floor::below(self.options, problem, &self.shipped, tuned);
            let doubts = before.facts.doubts.iter().chain(&tuned.facts.doubts);
            let mut seen = BTreeSet::new();
            let doubts = doubts.cloned().chain(impossible);
            // Without duplicates, in the order of their times.
            let doubts = doubts.filter(|doubt| seen.insert(doubt.clone())).collect();
            Some(Comparison {
                problem: problem.clone(),
                incumbent: before.time,
                change: tuned.time,
                doubts,
            })
        });
        let comparisons: Vec<Comparison> = comparisons.collect();
        let decision = decide(&self.options.rules, self.options.predicted, &comparisons);
        change.outcome = decision.outcome.to_string();
        change.verdict = Some("ok".to_owned());
        change.detail = decision.detail();
        change.code = code_hash(&found);
        change.behaviour = behaviour(&found);
        change.times = found
            .iter()
            .map(|(problem, tuned)| {
                let us = |results: &Results| {
                    results
                        .get(problem)
                        .map_or(tuned.time.us, |one| one.time.us)
                };
                ChangeTime {
                    problem: problem.clone(),
                    us: tuned.time.us,
                    incumbent_us: us(incumbent),
                    shipped_us: us(&self.shipped),
                    config: tuned.config.clone(),
                }
            })
            .collect();
        found
    }

    /// Returns the results of the nearest ancestor that was accepted or predicted better, else of the
    /// shipped template.
    fn incumbent(&self, mut change: Option<i64>) -> &Results {
        while let Some(found) = self.changes.iter().find(|one| Some(one.id) == change) {
            let outcome: Option<Outcome> = found.outcome.parse().ok();
            if outcome.is_some_and(Outcome::is_incumbent)
                && let Some(results) = self.results.get(&found.id)
            {
                return results;
            }
            change = found.parent;
        }
        &self.shipped
    }

    /// Chooses the parent of a round.
    fn parent(&self, round: u32) -> Result<ParentCode, CliError> {
        let member = self.population.choose_parent(self.options.seed, round);
        let change = member.and_then(|member| member.change);
        let stored = self.changes.iter().find(|one| Some(one.id) == change);
        let code = stored.and_then(|one| {
            Some(ChangedCode {
                source: one.source.clone()?,
                space: one.space.clone()?,
            })
        });
        let results = change.map_or(Some(&self.shipped), |change| self.results.get(&change));
        let results = results.ok_or_else(|| usage("the evolution's parent has no stored times"))?;
        Ok(ParentCode {
            change,
            code: code.unwrap_or_else(|| self.options.code.clone()),
            results: results.clone(),
        })
    }

    fn request(&mut self, round: u32, parent: &ParentCode) -> Result<MutationRequest, CliError> {
        let asked = Asked {
            change: parent.change,
            source: &parent.code.source,
            space: &parent.code.space,
            results: &parent.results,
            shipped: &self.shipped,
        };
        request::build(self.options, round, &self.name, &asked, &self.changes).map_err(usage)
    }

    /// Asks the mutator, and a second time with the defect of an invalid answer. `None`: interrupted.
    fn ask(
        &mut self,
        mut request: MutationRequest,
        parent: &ParentCode,
        shutdown: &Receiver<bool>,
    ) -> Result<Option<Answered>, CliError> {
        let began = Instant::now();
        let mut total = Usage::default();
        loop {
            let stopped = || *shutdown.borrow();
            let within = self.options.timeout;
            let reply =
                // An answer may take minutes: the task that watches for signals has to run in the meantime.
                tokio::task::block_in_place(|| self.mutator.propose(&request, within, &stopped));
            let changed = self.files.changed();
            let (note, code) = match reply {
                Err(MutatorError::Stopped) => return Ok(None),
                Err(MutatorError::NoAnswer { why, usage }) => {
                    total.add(usage);
                    (String::new(), Err((Outcome::NoAnswer, why)))
                }
                Err(MutatorError::Exhausted(why)) => {
                    self.exhausted = true;
                    (String::new(), Err((Outcome::NoAnswer, why)))
                }
                Ok(reply) => {
                    let read = reading::read(self.options, &reply, &request, &parent.code);
                    total.add(read.usage);
                    match (changed, read.change) {
                        (Some(why), _) => (read.note, Err((Outcome::Refused, why))),
                        (None, Ok(change)) => (read.note, Ok(change)),
                        // Only once: otherwise a mutator that never follows the format would be asked
                        // endlessly.
                        (None, Err(error)) if request.correction.is_none() => {
                            request.correction = Some(cut(&error.to_string()));
                            continue;
                        }
                        (None, Err(error)) => {
                            (read.note, Err((error.outcome(), error.to_string())))
                        }
                    }
                }
            };
            return Ok(Some(Answered {
                note,
                usage: total,
                seconds: began.elapsed().as_secs_f64(),
                code,
            }));
        }
    }

    /// Takes over the changes of an interrupted evolution.
    ///
    /// # Errors
    /// The device failed.
    pub(super) fn take_over(&mut self, lineage: Lineage) -> Result<(), CliError> {
        self.name = lineage.name;
        for change in lineage.changes {
            let outcome: Option<Outcome> = change.outcome.parse().ok();
            if outcome.is_some_and(Outcome::is_right) {
                let results = self.stored_results(&change)?;
                self.results.insert(change.id, results);
                let island = Population::island(change.round);
                self.population.add(member(&change, Some(island)));
            }
            self.changes.push(change);
        }
        Ok(())
    }

    /// Returns the results of a stored change; counters are collected again.
    fn stored_results(&self, change: &Change) -> Result<Results, CliError> {
        let (Some(source), Some(space)) = (change.source.clone(), change.space.clone()) else {
            return Ok(Results::new());
        };
        let code = ChangedCode { source, space };
        let configs: BTreeMap<String, ConfigValues> = change
            .times
            .iter()
            .map(|time| (time.problem.clone(), time.config.clone()))
            .collect();
        let facts = self.evaluator.facts(Some(&code), &configs)?;
        let results = change.times.iter().map(|time| {
            let facts = facts.get(&time.problem).cloned().unwrap_or_default();
            // The interval of a measured time is not stored.
            let tuned = Tuned::new(time.config.clone(), time.us, None, facts);
            (time.problem.clone(), tuned)
        });
        Ok(results.collect())
    }
}

/// Truncates a very long finding of a compiler or a device.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((at, _)) => format!("{} … (cut)", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the member of a stored change.
fn member(change: &Change, island: Option<u32>) -> Member {
    let times = change.times.iter();
    Member {
        change: Some(change.id),
        island,
        outcome: change.outcome.parse().unwrap_or(Outcome::NotBetter),
        code: change.code.clone(),
        times: times.map(|time| (time.problem.clone(), time.us)).collect(),
        behaviour: change.behaviour.clone(),
    }
}

/// Returns the member of the shipped template.
pub(super) fn shipped_member(results: &Results) -> Member {
    Member {
        change: None,
        island: None,
        outcome: Outcome::NotBetter,
        code: code_hash(results),
        times: results
            .iter()
            .map(|(problem, one)| (problem.clone(), one.time.us))
            .collect(),
        behaviour: behaviour(results),
    }
}

fn code_hash(results: &Results) -> String {
    let codes = results.values().map(|one| one.facts.code.as_bytes());
    ContentHash::from_parts(codes).to_string()
}

/// Returns logarithms of registers and counters, ordered by problem.
fn behaviour(results: &Results) -> Vec<f64> {
    const COUNTERS: [&str; 4] = [
        "warp_instructions",
        "shared_wavefronts",
        "global_load_sectors",
        "occupancy",
    ];
    let figures = results.values().flat_map(|one| {
        let counter = |name: &&str| {
            one.facts
                .counters
                .get(*name)
                .and_then(serde_json::Value::as_f64)
        };
        let counters = COUNTERS
            .iter()
            .map(move |name| counter(name).unwrap_or(0.0));
        let registers = one.facts.registers.map_or(0.0, f64::from);
        std::iter::once(registers)
            .chain(counters)
            .map(f64::ln_1p)
            .collect::<Vec<f64>>()
    });
    figures.collect()
}

/// Returns the unified diff of source and search space.
fn diff(parent: &ChangedCode, change: &ChangedCode) -> String {
    let mut text = String::new();
    if parent.source != change.source {
        text.push_str(&patch::between(&parent.source, &change.source));
    }
    if parent.space != change.space {
        text.push_str(&patch::between(&parent.space, &change.space));
    }
    text
}
