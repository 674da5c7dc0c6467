//! The gate: runs a candidate on unseen data and returns a [`Verified`] or the reason of the
//! rejection.
//!
//! Every run starts from poisoned outputs and scratch. Afterwards each output element must have
//! been written, be within its tolerance, and have the same bits in a repeated run. Each input
//! must be untouched. The [`Level`](super::level::Level) determines the number of seeds,
//! repetitions and adversarial inputs. If a problem is too large to run whole, a sample of its
//! blocks runs and their outputs are judged.

use super::Verified;
use super::adversarial::Data;
use super::compare::Comparison;
use super::coverage::Sample;
pub use super::demands::{Demands, OUTPUT_LIMIT};
pub use super::evidence::{Evidence, add_new};
use super::expected::Expectations;
use super::extremes::UnreadElements;
use super::generate;
use super::keys::KeyedPlan;
use super::oracle::OracleError;
use super::references::References;
use crate::session::{Blocks, Order, Run, RunReport, Session, Slot, Work};
use crate::stopwatch::OutputSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, Role};
use tuner_core::record::{Hazard, Verdict};

/// Upper bound on lane instructions per operation or byte of the problem.
const MAX_WORK_RATIO: f64 = 256.0;

/// Judges one candidate on one problem.
///
/// # Errors
/// [`OracleError`] when the space names an oracle that does not fit its arguments: the user's
/// mistake, not the candidate's. A candidate that fails is the `Ok(Err(_))` case.
pub fn verify(
    session: &mut dyn Session,
    plan: &Plan,
    demands: &Demands,
    references: &mut References,
) -> Result<Result<(Verified, Evidence), Judgement>, OracleError> {
    let mut gate = Gate::new(session, plan, demands, references);
    let found = gate.run_checks();
    // After a rejection as well: outputs of many candidates would fill the device's memory.
    gate.session.release_all();
    match found {
        Ok(evidence) => Ok(Ok((Verified::checked(Some(demands.level)), evidence))),
        Err(Stop::Rejected(rejection)) => Ok(Err(rejection)),
        Err(Stop::Oracle(error)) => Err(error),
    }
}

pub(super) enum Stop {
    Rejected(Judgement),
    Oracle(OracleError),
}

impl From<Judgement> for Stop {
    fn from(fault: Judgement) -> Self {
        Self::Rejected(fault)
    }
}

/// Results of one pass over the launches.
pub(super) struct Pass {
    pub(super) work: Vec<Work>,
    pub(super) outputs: OutputSet,
    pub(super) slots: Vec<Option<Slot>>,
    pub(super) sampled: bool,
    /// Elements of each output that can be compared; `None` if all written elements can.
    pub(super) elements: Option<Vec<Vec<Range<u64>>>>,
    /// Elements of each output that a sample was chosen for; all blocks that write them ran.
    pub(super) chosen: Vec<Vec<Range<u64>>>,
    /// Those of an in-out buffer that no block writes.
    pub(super) untouched: Vec<Vec<Range<u64>>>,
    /// Reason why nothing can be compared.
    pub(super) uncomparable: Option<String>,
    /// Reason why a block was abandoned before its end, if one was.
    pub(super) budget_exhausted: Option<String>,
}

pub(super) struct Gate<'a> {
    pub(super) session: &'a mut dyn Session,
    pub(super) plan: &'a Plan,
    pub(super) keyed: KeyedPlan<'a>,
    pub(super) demands: &'a Demands,
    pub(super) references: &'a mut References,
    pub(super) comparison: Option<Comparison>,
    pub(super) hazards: Vec<Hazard>,
    /// One for each position and kind.
    pub(super) warnings: Vec<Hazard>,
    /// Checks that were not made.
    pub(super) note: Option<String>,
    /// Outputs with compared elements.
    pub(super) compared: BTreeSet<usize>,
    /// Summaries of the expected values of the outputs.
    pub(super) expected: Expectations,
    /// A run left changed variables in its module.
    pub(super) remembers: bool,
    /// Elements of the inputs that the first whole run did not read; `None` before it.
    pub(super) unread: Option<UnreadElements>,
    /// Warp instructions of a block in runs that need not end; `None`: the device's limit.
    pub(super) block_budget: Option<u64>,
    /// The blocks that represent the problem; `None` if it is run whole.
    pub(super) sample: Option<Sample>,
    /// The blocks of `sample` were chosen.
    has_chosen: bool,
}

impl<'a> Gate<'a> {
    /// Starts without findings.
    pub(super) fn new(
        session: &'a mut dyn Session,
        plan: &'a Plan,
        demands: &'a Demands,
        references: &'a mut References,
    ) -> Self {
        Self {
            session,
            plan,
            keyed: KeyedPlan::new(plan),
            demands,
            references,
            comparison: None,
            hazards: Vec::new(),
            warnings: Vec::new(),
            note: None,
            compared: BTreeSet::new(),
            expected: Expectations::default(),
            remembers: false,
            unread: None,
            block_budget: None,
            sample: None,
            has_chosen: false,
        }
    }
}

impl Gate<'_> {
    fn run_checks(&mut self) -> Result<Evidence, Stop> {
        // State of an earlier candidate in `__device__` variables must not leak into this one.
        self.session.forget_variables();
        let mut first: Option<(Data, Pass)> = None;
        let seeds = self.affordable_seeds();
        for seed in seeds.iter().copied() {
            let data = Data::seeded(seed);
            let pass = self.pass(data, Order::Natural)?;
            if let Some(folder) = &self.demands.outputs {
                self.write_outputs(folder, &pass)?;
            }
            self.judge(data, &pass)?;
            match &first {
                None => {
                    // Only the first seed is repeated: repetition looks for effects of the order,
                    // other seeds for wrong values.
                    self.repeat(data, &pass)?;
                    first = Some((data, pass));
                }
                Some((other, before)) => {
                    self.depends(*other, before, data, &pass)?;
                    self.forget(&pass);
                }
            }
        }
        if let Some((data, pass)) = &first {
            // On the same data a result remembered from an earlier run is correct; other data exposes it.
            if seeds.len() == 1 && (self.remembers || self.affords_another(pass)) {
                self.other_seed(*data, pass)?;
            }
            self.unread_extremes(*data, pass)?;
            self.hard_cases(*data, pass)?;
            self.long_row(*data, pass)?;
            self.other_numbers(*data, pass)?;
            self.zeros(*data, pass)?;
        }
        let (sampled, budget_exhausted) = first.map_or((false, None), |(_, pass)| {
            (pass.sampled, pass.budget_exhausted)
        });
        let constant = self.expected.warnings(self.plan);
        add_new(&mut self.warnings, constant);
        Ok(Evidence {
            max_error: self.comparison.as_ref().map(|c| c.max_error),
            sampled,
            budget_exhausted,
            note: self.note.take(),
            warnings: std::mem::take(&mut self.warnings),
            compared: std::mem::take(&mut self.compared),
            not_finite: self.expected.not_finite(self.plan),
        })
    }

    pub(super) fn reject(&self, verdict: Verdict, mut detail: String) -> Stop {
        if self.remembers {
            detail.push_str(
                "; its runs leave variables of the module (`__device__`) otherwise than they find \
                 them",
            );
        }
        Stop::Rejected(Judgement {
            verdict,
            detail,
            hazards: self.hazards.clone(),
            warnings: self.warnings.clone(),
            max_error: self.comparison.as_ref().map(|c| c.max_error),
            compared: None,
        })
    }

    /// Allocates fresh buffers: inputs filled, outputs and scratch poisoned, variables of the code
    /// set.
    pub(super) fn prepare(&mut self, data: Data, code: &Code) -> Result<Vec<Option<Slot>>, Stop> {
        let mut generated = BTreeMap::new();
        if self.plan.generators.is_some() && !self.references.has_inputs(&self.keyed, data) {
            // Before the reset below: generators use and free the session's buffers.
            generated = generate::run_generators(self.session, self.plan, data.seed)
                .map_err(Stop::Oracle)?;
        }
        let inputs = self
            .references
            .inputs_with(&self.keyed, data, &generated)
            .map_err(Stop::Oracle)?;
        self.session.reset();
        let mut slots = Vec::with_capacity(self.plan.arguments.len());
        for (argument, input) in self.plan.arguments.iter().zip(inputs.iter()) {
            if argument.role == Role::Scalar {
                slots.push(None);
                continue;
            }
            let slot = self.session.alloc(&argument.name, argument.bytes())?;
            match input {
                Some(data) => self.session.upload_input(slot, data)?,
                // A correct value left by an earlier run would hide a missing store.
                None => self.session.poison(slot, argument.element.poison())?,
            }
            slots.push(Some(slot));
        }
        for (index, variable) in self.plan.variables.iter().enumerate() {
            let address = |argument: usize| {
                let slot = slots.get(argument).copied().flatten()?;
                self.session.address(slot)
            };
            let name = &variable.holds.name;
            let bytes = variable.bytes(data.seed, index, address).map_err(|why| {
                Stop::Oracle(OracleError::Data {
                    argument: name.clone(),
                    problem: self.plan.problem.clone(),
                    why,
                })
            })?;
            self.session.set_variable(code, name, &bytes)?;
        }
        Ok(slots)
    }

    /// Runs all launches once and collects hazards and outputs.
    pub(super) fn pass(&mut self, data: Data, order: Order) -> Result<Pass, Stop> {
        let plan = self.plan;
        let mut slots = self.prepare(data, &plan.code)?;
        let reports = match self.sample(data, order, &slots)? {
            Some(reports) => reports,
            None => {
                slots = self.prepare(data, &plan.code)?;
                self.whole(order, &slots)?
            }
        };
        let exhausted = self.exhausted(&reports)?;
        let sampled = exhausted.is_some()
            || reports
                .iter()
                .any(|report| report.work.blocks < report.work.grid_blocks);
        let mut work = Vec::with_capacity(reports.len());
        for report in reports {
            work.push(report.work);
            self.collect(report, sampled);
        }
        // Before the outputs are compared: after a race or an invalid access their values are meaningless.
        self.fail_on_hazards()?;
        // Blocks that were omitted would also have changed the variables.
        if !sampled {
            self.remembers |= self.session.keep_variables(&self.plan.code)?;
        }
        let outputs = self.contents(&slots)?;
        let sample = self.sample.as_ref().filter(|_| sampled);
        let linked = sample.filter(|sample| sample.linked);
        let uncomparable = sample.and_then(|sample| sample.uncomparable.clone());
        let of_sample = |list: fn(&Sample) -> &Vec<Vec<Range<u64>>>| {
            sample.map_or_else(Vec::new, |sample| list(sample).clone())
        };
        Ok(Pass {
            work,
            outputs,
            slots,
            sampled,
            elements: linked.map(|sample| sample.elements.clone()),
            chosen: of_sample(|sample| &sample.elements),
            untouched: of_sample(|sample| &sample.untouched),
            uncomparable: exhausted.clone().or(uncomparable),
            budget_exhausted: exhausted,
        })
    }

    /// Rejects the candidate for the worst of its hazards.
    pub(super) fn fail_on_hazards(&self) -> Result<(), Stop> {
        let Some(worst) = self.hazards.iter().min_by_key(|hazard| hazard.kind) else {
            return Ok(());
        };
        let place = match (&worst.file, worst.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            _ => String::new(),
        };
        let detail = format!("{place}{}", worst.detail);
        Err(self.reject(worst.kind, detail))
    }

    pub(super) fn launch(
        &mut self,
        index: usize,
        slots: &[Option<Slot>],
        blocks: Blocks,
        order: Order,
        budget: Option<u64>,
    ) -> Result<RunReport, Stop> {
        let plan = self.plan;
        let launch = &plan.launches[index];
        Ok(self.session.run(&Run {
            code: &plan.code,
            launch,
            plan,
            slots,
            blocks,
            order,
            budget,
        })?)
    }

    /// Runs every block of every launch.
    fn whole(&mut self, order: Order, slots: &[Option<Slot>]) -> Result<Vec<RunReport>, Stop> {
        let mut reports = Vec::with_capacity(self.plan.launches.len());
        let first = self.unread.is_none();
        for index in 0..self.plan.launches.len() {
            let mut report = self.launch(index, slots, Blocks::All, order, self.block_budget)?;
            // A device that does not count has still run everything.
            report.work.blocks = report.work.grid_blocks;
            let stopped = report.stopped;
            reports.push(report);
            if stopped {
                break;
            }
            if first {
                self.record_unread(slots);
            }
        }
        Ok(reports)
    }

    /// Runs some blocks of each launch if all would take too long. `None`: run everything, in fresh
    /// buffers.
    fn sample(
        &mut self,
        data: Data,
        order: Order,
        slots: &[Option<Slot>],
    ) -> Result<Option<Vec<RunReport>>, Stop> {
        let plan = self.plan;
        // Blocks that wait for each other must all run.
        let together = plan.launches.iter().any(|launch| launch.cooperative);
        if together || !self.session.can_sample() || self.demands.surely_whole(plan) {
            return Ok(None);
        }
        // Chosen once: in another order polling warps execute a different number of instructions, and
        // compared runs must execute the same blocks.
        if !self.has_chosen {
            self.has_chosen = true;
            self.sample = self.choose_sample(data, order, slots)?;
            self.refresh(data, slots)?;
        }
        let Some(sample) = self.sample.clone() else {
            return Ok(None);
        };
        let budget = Some(self.demands.block_limit);
        let mut reports = Vec::with_capacity(plan.launches.len());
        for (index, blocks) in sample.blocks.into_iter().enumerate() {
            let report = self.launch(index, slots, Blocks::Some(blocks), order, budget)?;
            let stopped = report.stopped;
            reports.push(report);
            // Later launches would read results of a launch that a hazard cut short. An exhausted budget is
            // not a hazard: later launches may still show one.
            if stopped && !reports.iter().any(|report| report.budget_exhausted) {
                break;
            }
        }
        Ok(Some(reports))
    }

    /// Returns the reason why a block was abandoned, if one was. A block that did far more work than the
    /// whole problem requires is rejected as endless.
    fn exhausted(&mut self, reports: &[RunReport]) -> Result<Option<String>, Stop> {
        let Some(at) = reports.iter().position(|report| report.budget_exhausted) else {
            return Ok(None);
        };
        let plan = self.plan;
        let launch = &plan.launches[at];
        let done = reports[at].work.lane_instructions;
        let limit = self.block_budget.unwrap_or(self.demands.block_limit);
        let spent = format!(
            "a block of `{}` did not end within {limit} warp instructions",
            launch.entry
        );
        let data = plan.arguments.iter().map(PlanArgument::count);
        let data = data.fold(0, u64::saturating_add) as f64;
        // Without a metric the required work is unknown, and there is no verdict on it.
        let needed = plan
            .flops
            .map(|flops| flops + plan.bytes.unwrap_or(0.0).max(data));
        // On hard inputs a loop may run up to an undeclared number.
        let is_declared = self.block_budget.is_none();
        if is_declared && needed.is_some_and(|needed| done as f64 > MAX_WORK_RATIO * needed) {
            let detail = format!(
                "{spent}, over {MAX_WORK_RATIO} times the work of the whole problem {}",
                plan.problem
            );
            return Err(self.reject(Verdict::Timeout, detail));
        }
        Ok(Some(format!(
            "{spent}, the limit of the virtual GPU for one block of problem {}",
            plan.problem
        )))
    }

    /// Records the findings of a run. If blocks that a sample depends on may have been omitted,
    /// waiting for them or reading their results is not a fault of the kernel.
    fn collect(&mut self, report: RunReport, sampled: bool) {
        let launches = self.plan.launches.len();
        let linked = uses_atomics(&report.work) || launches > 1;
        let sample = self.sample.as_ref();
        let open = sample.is_none_or(|sample| sample.uncomparable.is_some());
        let foreign = |kind: Verdict| {
            sampled
                && linked
                && open
                && matches!(
                    kind,
                    Verdict::Deadlock | Verdict::Timeout | Verdict::Uninitialized
                )
        };
        add_new(&mut self.warnings, report.warnings);
        self.hazards.extend(
            report
                .hazards
                .into_iter()
                .filter(|hazard| !foreign(hazard.kind)),
        );
    }
}

pub(super) fn uses_atomics(work: &Work) -> bool {
    work.atomics > 0
}
