//! A fleet as an evaluator: one device that judges many candidates concurrently.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that made them"
)]

use super::siblings::{TimeRange, reference_of};
use super::wire::{Answer, Assignment, Compiled, Finalists, Step, WorkOrder};
use super::{Capacity, Fleet, PackedFiles, Session};
use crate::evaluator::{BoxError, Evaluator, Judged, Order, Preparation};
use crate::judging::KernelTask;
use crate::record::stats;
use crate::{ReplayEvaluator, WINDOW};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::record::{ConfigValues, DeviceKind, TaskKey, TimingKind, Verdict};
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::replay::Recording;
use tuner_judge::judgement::TimedJudgement;
use tuner_space::{Config, Space};
use tuner_store::RunId;

/// A tuned task, with the parts that the hub needs.
pub struct FleetTask {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// The configurations.
    pub space: Space,
    /// Source of the candidate's identity.
    pub source: FleetSource,
}

/// Source of the candidates.
pub enum FleetSource {
    /// Rows of a recorded file.
    Recorded(Arc<Recording>),
    /// A template.
    Kernel(Box<KernelTask>),
}

/// Name of the step that ends in a judgement.
const JUDGE: &str = "judge";

/// Name of the step that proves a candidate.
const PROVE: &str = "prove";

/// Evaluator that sends candidates to a fleet.
pub struct FleetEvaluator {
    facts: DeviceFacts,
    fleet: Arc<dyn Fleet>,
    session: OnceLock<Arc<dyn Session>>,
    assignment: Assignment,
    tasks: Vec<FleetTask>,
    /// Concurrent compiles, if requested.
    jobs: Option<usize>,
    /// Results of candidates on real GPUs, by the identity of everything that decides them.
    known: Mutex<HashMap<ContentHash, Judged>>,
    /// Compiled candidates that passed, by the name of the order that proves them, on virtual GPUs.
    passed: Mutex<HashMap<ContentHash, Box<Compiled>>>,
    /// Results of proofs, by the identity of everything that decides them.
    proofs: Mutex<HashMap<ContentHash, Judgement>>,
    /// Lane instructions that a proof may take, on virtual GPUs; 0: no proofs.
    proof_limit: u64,
    /// Reference time and best candidate of each task, on real GPUs.
    standards: Mutex<HashMap<usize, TimeScale>>,
}

/// Common scale for times of several GPUs.
#[derive(Debug, Clone, PartialEq)]
struct TimeScale {
    /// The reference, and its time on the first GPU, microseconds.
    reference: (ContentHash, f64),
    /// Time of the best, microseconds.
    best_us: f64,
}

/// The run is not open on the fleet.
#[derive(Debug, thiserror::Error)]
#[error("the run was not opened on its fleet; please report this")]
struct NotOpen;

impl FleetEvaluator {
    /// Creates an evaluator for these tasks, in the order of the engine's plan.
    #[must_use]
    pub fn new(
        fleet: Arc<dyn Fleet>,
        assignment: Assignment,
        tasks: Vec<FleetTask>,
        jobs: Option<usize>,
    ) -> Self {
        Self {
            facts: assignment.device.clone(),
            fleet,
            session: OnceLock::new(),
            assignment,
            tasks,
            jobs,
            known: Mutex::new(HashMap::new()),
            passed: Mutex::default(),
            proofs: Mutex::default(),
            proof_limit: 0,
            standards: Mutex::default(),
        }
    }

    /// Enables proofs of at most this number of lane instructions; 0 disables them.
    #[must_use]
    pub(crate) fn with_proofs(self, proof_limit: u64) -> Self {
        Self {
            proof_limit,
            ..self
        }
    }

    /// Requests the proof of a compiled candidate. A candidate that no worker could prove keeps its
    /// judgement.
    fn proof(
        &self,
        task: usize,
        config: &Config,
        compiled: Box<Compiled>,
    ) -> Result<Judgement, BoxError> {
        let same = compiled.same.clone();
        let known = lock(&self.proofs).get(&same).cloned();
        if let Some(proof) = known {
            return Ok(proof);
        }
        let limit = self.proof_limit;
        let order = self.work_order(task, config, Step::Prove { compiled, limit });
        Ok(match self.session()?.ask(order)? {
            Answer::Judged(judged) => {
                let proof = judged.found.judgement;
                lock(&self.proofs).insert(same, proof.clone());
                proof
            }
            // Not kept: another worker may be able to prove the same code.
            Answer::NotJudged(why) | Answer::Unusable(why) | Answer::FalseObject(why) => {
                Judgement::new(Verdict::NotJudged, why)
            }
            _ => return Err(otherwise()),
        })
    }

    /// Opens the run's queues. The files are read now, so that the candidates are judged in their state at
    /// setup.
    ///
    /// # Errors
    /// The fleet refuses it.
    pub fn open(&self, run: &RunId, files: PackedFiles) -> Result<(), BoxError> {
        let session = self.fleet.open(run, &self.assignment, files)?;
        // A second opening of the same run finds the existing session.
        let _ = self.session.set(session);
        Ok(())
    }

    /// Ends the run on the fleet; returns lines for the user.
    pub fn close(&self, finished: bool) -> Vec<String> {
        self.session
            .get()
            .map(|session| session.close(finished))
            .unwrap_or_default()
    }

    fn session(&self) -> Result<Arc<dyn Session>, NotOpen> {
        self.session.get().map(Arc::clone).ok_or(NotOpen)
    }

    pub(crate) fn capacity(&self) -> Capacity {
        self.session
            .get()
            .map(|session| session.capacity())
            .unwrap_or_default()
    }

    fn identity(&self, task: usize, config: &Config) -> ContentHash {
        match &self.tasks[task].source {
            FleetSource::Recorded(recording) => ReplayEvaluator::identity(recording, config),
            FleetSource::Kernel(kernel) => {
                kernel.identity(config, self.assignment.nvrtc.as_deref().unwrap_or_default())
            }
        }
    }

    /// Returns the name of an order: the candidate alone does not identify the problem.
    fn order_id(&self, task: usize, values: &ConfigValues, step: &str) -> ContentHash {
        let key = &self.tasks[task].key;
        let values = serde_json::to_vec(values).unwrap_or_default();
        let parts: [&[u8]; 5] = [
            step.as_bytes(),
            key.kernel.as_bytes(),
            key.problem.as_bytes(),
            key.device.as_bytes(),
            &values,
        ];
        ContentHash::from_parts(parts)
    }

    /// Returns the name of the order that proves a configuration.
    fn proof_id(&self, task: usize, config: &Config) -> ContentHash {
        self.order_id(task, &self.tasks[task].space.values(config), PROVE)
    }

    fn work_order(&self, task: usize, config: &Config, step: Step) -> WorkOrder {
        let name = match &step {
            Step::Compile { again } => format!("compile{again}"),
            Step::Recorded => JUDGE.to_owned(),
            // A recompile after a false object is a new order.
            Step::Device(compiled) if compiled.again > 0 => format!("{JUDGE}{}", compiled.again),
            Step::Device(_) => JUDGE.to_owned(),
            Step::Prove { .. } => PROVE.to_owned(),
            Step::Final(finalists) => format!("final{}", finalists.not.len()),
        };
        WorkOrder {
            id: self.order_id(task, &self.tasks[task].space.values(config), &name),
            candidate: self.identity(task, config),
            task,
            choices: config.choices().to_vec(),
            step,
        }
    }

    /// Returns the judgement of an answer with its time scaled to the first GPU: candidates are
    /// compared by their ratio to the reference on the GPU that timed them.
    fn accept(&self, task: usize, config: &Config, mut judged: Judged) -> Result<Judged, BoxError> {
        let expected = match self.facts.kind {
            DeviceKind::Cuda => TimingKind::Measured,
            DeviceKind::Vgpu => TimingKind::Predicted,
            DeviceKind::Replay => match &self.tasks[task].source {
                FleetSource::Recorded(recording) => recording.timing,
                FleetSource::Kernel(_) => TimingKind::Recorded,
            },
        };
        if let FleetSource::Recorded(recording) = &self.tasks[task].source {
            // Recorded results are known here, so a worker's answer is not trusted for them.
            let recorded = recording.lookup(config);
            let (candidate, timing) = (judged.candidate, recording.timing);
            return Ok(ReplayEvaluator::judge(candidate, &recorded, timing));
        }
        // A predicted time of a misconfigured worker must never rank among measured ones.
        if judged.time().is_some_and(|time| time.kind != expected) {
            let why = format!(
                "a worker answered with a time of a kind that {} does not give",
                self.facts.kind
            );
            return Ok(not_judged(judged.candidate, why));
        }
        if self.facts.kind != DeviceKind::Cuda {
            return Ok(judged);
        }
        let Some(measured) = judged.found.measured.take() else {
            return Ok(judged);
        };
        let Some((reference, reference_us)) = reference_of(measured.record()) else {
            judged.found.measured = Some(measured);
            return Ok(judged);
        };
        let mut standards = lock(&self.standards);
        let standard = standards.entry(task).or_insert_with(|| TimeScale {
            reference: (reference.clone(), reference_us),
            best_us: f64::INFINITY,
        });
        let measured = match &standard.reference {
            (same, us) if *same == reference => measured.in_units_of(*us),
            _ => measured,
        };
        let range = TimeRange::from_measurement(measured.record());
        if range.us < standard.best_us {
            standard.best_us = range.us;
            self.session()?.best(task, config.choices(), range);
        }
        judged.found.measured = Some(measured);
        Ok(judged)
    }

    /// Sends an order and waits for the answer. The inner error is an answer without a judgement.
    fn ask(
        &self,
        task: usize,
        config: &Config,
        step: Step,
    ) -> Result<Result<Judged, Answer>, BoxError> {
        let order = self.work_order(task, config, step);
        let candidate = order.candidate.clone();
        Ok(match self.session()?.ask(order)? {
            Answer::Judged(judged) => Ok(self.accept(task, config, *judged)?),
            Answer::NotJudged(why) => Ok(not_judged(candidate, why)),
            Answer::Unusable(why) => return Err(unusable(why)),
            other => Err(other),
        })
    }

    /// Times the best configurations of a task together, on a GPU whose worker is not one of these.
    /// Returns the worker, and a time or reason for each.
    ///
    /// # Errors
    /// The run has ended, or they cannot be timed anywhere.
    pub(crate) fn finale(
        &self,
        task: usize,
        configs: &[Config],
        seed: u64,
        excluded: Vec<String>,
    ) -> Result<(String, Vec<TimedJudgement>), BoxError> {
        let Some(first) = configs.first() else {
            return Err("there is nothing to time".into());
        };
        let finalists = Finalists {
            configs: configs.iter().map(|c| c.choices().to_vec()).collect(),
            seed,
            not: excluded,
        };
        let order = self.work_order(task, first, Step::Final(Box::new(finalists)));
        match self.session()?.ask(order)? {
            Answer::Final { worker, times } if times.len() == configs.len() => Ok((worker, times)),
            Answer::NotJudged(why) => Err(why.into()),
            Answer::Unusable(why) => Err(unusable(why)),
            _ => Err(otherwise()),
        }
    }

    /// Requests the compile of a candidate; `again` counts false objects so far.
    fn compiled(
        &self,
        task: usize,
        config: &Config,
        again: u32,
    ) -> Result<Result<Box<Compiled>, Judged>, BoxError> {
        match self.ask(task, config, Step::Compile { again })? {
            Ok(judged) => Ok(Err(judged)),
            Err(Answer::Compiled(compiled)) => Ok(Ok(compiled)),
            Err(_) => Err(otherwise()),
        }
    }

    /// Judges compiled work, or returns an earlier result.
    fn on_device(
        &self,
        task: usize,
        config: &Config,
        compiled: Box<Compiled>,
    ) -> Result<Judged, BoxError> {
        // The lock ends here: the following code locks it again.
        let known = lock(&self.known).get(&compiled.same).cloned();
        if let Some(judged) = known {
            if self.proof_limit > 0 && judged.lacks_proof() {
                let key = self.proof_id(task, config);
                lock(&self.passed).insert(key, compiled.clone());
            }
            return Ok(Judged {
                candidate: compiled.candidate,
                found: judged.found.reused(),
                compilation: Some(compiled.compilation),
                charged_us: judged.charged_us,
                put_off: false,
                whole_tried: judged.whole_tried,
            });
        }
        let same = compiled.same.clone();
        let kept = (self.proof_limit > 0).then(|| compiled.clone());
        let judged = self.sent(task, config, compiled)?;
        if let Some(compiled) = kept.filter(|_| judged.lacks_proof()) {
            lock(&self.passed).insert(self.proof_id(task, config), compiled);
        }
        // A timeout or a lost worker may be the machine's fault and answers for no other candidate.
        if judged.found.is_lasting() {
            lock(&self.known).insert(same, judged.clone());
        }
        Ok(judged)
    }

    /// Sends compiled work to a device. If its object does not match its hash, it is compiled
    /// again.
    fn sent(
        &self,
        task: usize,
        config: &Config,
        mut compiled: Box<Compiled>,
    ) -> Result<Judged, BoxError> {
        for again in 1..=FALSE_OBJECTS_MAX {
            let candidate = compiled.candidate.clone();
            let why = match self.ask(task, config, Step::Device(compiled))? {
                Ok(judged) => return Ok(judged),
                Err(Answer::FalseObject(why)) => why,
                Err(_) => break,
            };
            if again == FALSE_OBJECTS_MAX {
                return Ok(not_judged(candidate, why));
            }
            match self.compiled(task, config, again)? {
                Ok(anew) => compiled = anew,
                Err(judged) => return Ok(judged),
            }
        }
        Err(otherwise())
    }
}

/// Builds the result of a candidate that could not be judged.
fn not_judged(candidate: ContentHash, why: String) -> Judged {
    Judged::without_device(candidate, Judgement::new(Verdict::NotJudged, why))
}

/// Returns the error for an answer that does not fit its order; a hub accepts no such answer.
fn otherwise() -> BoxError {
    "the fleet's answer does not fit the order; please report this".into()
}

/// Maximum false objects of one candidate.
const FALSE_OBJECTS_MAX: u32 = 3;

fn unusable(why: String) -> BoxError {
    tuner_device::worker::host::WorkerError::Unusable(why).into()
}

impl Evaluator for FleetEvaluator {
    type Work = Box<Compiled>;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn devices(&self) -> usize {
        self.capacity().devices.max(1)
    }

    /// Returns the number of concurrent jobs. With a fixed order all candidates in flight are sent: the
    /// order of reports depends on counts only, so that a fleet finds the same as one machine.
    fn jobs(&self, _asked: usize) -> usize {
        match self.order() {
            Order::Fixed => WINDOW,
            Order::Arrival => self
                .jobs
                .unwrap_or_else(|| self.capacity().compilers.max(1)),
        }
    }

    fn outlives(&self) -> bool {
        true
    }

    fn stored(&self, task: usize, config: &ConfigValues) {
        if let Some(session) = self.session.get() {
            session.stored(&self.order_id(task, config, JUDGE));
        }
    }

    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Self::Work>, BoxError> {
        let judged = match &self.tasks[task].source {
            FleetSource::Recorded(_) => {
                let found = self.ask(task, config, Step::Recorded)?;
                found.map_err(|_| otherwise())?
            }
            FleetSource::Kernel(_) => match self.compiled(task, config, 0)? {
                Err(judged) => judged,
                // Judged as part of the preparation, so that all candidates in flight reach the
                // workers at once.
                Ok(compiled) if self.order() == Order::Fixed => {
                    self.on_device(task, config, compiled)?
                }
                Ok(compiled) => {
                    return Ok(Preparation::Ready {
                        candidate: compiled.candidate.clone(),
                        facts: Some(stats(&compiled.compilation, compiled.predicted)),
                        work: compiled,
                    });
                }
            },
        };
        Ok(Preparation::Judged(Box::new(judged)))
    }

    fn proof_limit(&self) -> Option<u64> {
        let proves = self.facts.kind == DeviceKind::Vgpu && self.proof_limit > 0;
        proves.then_some(self.proof_limit)
    }

    fn prove_whole(
        &self,
        task: usize,
        config: &Config,
        judged: Judged,
    ) -> Result<Judged, BoxError> {
        let key = self.proof_id(task, config);
        // The lock ends here: an answer may take minutes.
        let compiled = lock(&self.passed).remove(&key);
        let proof = match compiled {
            Some(compiled) => self.proof(task, config, compiled)?,
            None => Judgement::new(Verdict::NotJudged, "its code is not at hand"),
        };
        Ok(judged.proven_whole(proof))
    }

    fn evaluate(&self, task: usize, config: &Config, work: Self::Work) -> Result<Judged, BoxError> {
        let _doing = tuner_core::activity::begin("waiting for", "a worker of the fleet");
        self.on_device(task, config, work)
    }
}
