//! A fleet as the engine sees it: one device that judges many candidates at once.
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

/// What is tuned, as far as the hub needs it.
pub struct FleetTask {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// The configurations.
    pub space: Space,
    /// Where the candidate's identity comes from.
    pub source: FleetSource,
}

/// What candidates are made from.
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

/// Has candidates judged by a fleet.
pub struct FleetEvaluator {
    facts: DeviceFacts,
    fleet: Arc<dyn Fleet>,
    session: OnceLock<Arc<dyn Session>>,
    assignment: Assignment,
    tasks: Vec<FleetTask>,
    /// Candidates compiled at once, where the asker said so.
    jobs: Option<usize>,
    /// What is known of candidates by what decides it, on real GPUs.
    known: Mutex<HashMap<ContentHash, Judged>>,
    /// Compiled candidates that passed, by the name of the order that proves them, on virtual GPUs.
    passed: Mutex<HashMap<ContentHash, Box<Compiled>>>,
    /// Results of proofs, by what decides them.
    proofs: Mutex<HashMap<ContentHash, Judgement>>,
    /// Lane instructions that a proof may take, on virtual GPUs; 0: no proofs.
    proof_limit: u64,
    /// What the reference of each task takes, and the best candidate so far, on real GPUs.
    standards: Mutex<HashMap<usize, Standard>>,
}

/// What times of several GPUs are brought together by.
#[derive(Debug, Clone, PartialEq)]
struct Standard {
    /// The reference, and what it takes on the GPU that was first, microseconds.
    reference: (ContentHash, f64),
    /// Time of the best, microseconds.
    best_us: f64,
}

/// The run is not open on the fleet.
#[derive(Debug, thiserror::Error)]
#[error("the run was not opened on its fleet; please report this")]
struct NotOpen;

impl FleetEvaluator {
    /// An evaluator for these tasks, in the order of the engine's plan.
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

    /// The same evaluator with proofs of at most this number of lane instructions; 0: none.
    #[must_use]
    pub(crate) fn with_proofs(self, proof_limit: u64) -> Self {
        Self {
            proof_limit,
            ..self
        }
    }

    /// Has a compiled candidate proven. One that no worker could prove is not judged by it.
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
            Answer::NotJudged(why) | Answer::Unusable(why) | Answer::FalseObject(why) => {
                Judgement::new(Verdict::NotJudged, why)
            }
            _ => return Err(otherwise()),
        })
    }

    /// Opens the run's queues. The files are read now, so that what is judged is what lay on disk
    /// when the run was set up.
    ///
    /// # Errors
    /// The fleet refuses it.
    pub fn open(&self, run: &RunId, files: PackedFiles) -> Result<(), BoxError> {
        let session = self.fleet.open(run, &self.assignment, files)?;
        // A second opening of the same run finds the first.
        let _ = self.session.set(session);
        Ok(())
    }

    /// Ends the run on the fleet; gives lines for the user.
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

    /// Name of what is asked for: the candidate alone does not say for which problem.
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
        ContentHash::of(parts)
    }

    /// Name of the order that proves a configuration.
    fn proof_id(&self, task: usize, config: &Config) -> ContentHash {
        self.order_id(task, &self.tasks[task].space.values(config), PROVE)
    }

    fn work_order(&self, task: usize, config: &Config, step: Step) -> WorkOrder {
        let name = match &step {
            Step::Compile { again } => format!("compile{again}"),
            Step::Recorded => JUDGE.to_owned(),
            // Code that was compiled again is other work than the code that was none.
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

    /// The judgement of an answer, its time at the pace of the GPU that was first: what tells
    /// candidates apart is their ratio to the reference on the GPU that timed them.
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
            // What is recorded is known here: a worker's word is not needed for it.
            let recorded = recording.lookup(config);
            let (candidate, timing) = (judged.candidate, recording.timing);
            return Ok(ReplayEvaluator::judge(candidate, &recorded, timing));
        }
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
        let standard = standards.entry(task).or_insert_with(|| Standard {
            reference: (reference.clone(), reference_us),
            best_us: f64::INFINITY,
        });
        let measured = match &standard.reference {
            (same, us) if *same == reference => measured.in_units_of(*us),
            _ => measured,
        };
        let range = TimeRange::of(measured.record());
        if range.us < standard.best_us {
            standard.best_us = range.us;
            self.session()?.best(task, config.choices(), range);
        }
        judged.found.measured = Some(measured);
        Ok(judged)
    }

    /// Has an order carried out. The inner error is an answer that ends in no judgement.
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

    /// Has the best configurations of a task timed together, on a GPU whose worker is not one of
    /// these. Gives the worker, and a time or reason each.
    ///
    /// # Errors
    /// The run has ended, or they cannot be timed anywhere.
    pub(crate) fn finale(
        &self,
        task: usize,
        configs: &[Config],
        (seed, not): (u64, Vec<String>),
    ) -> Result<(String, Vec<TimedJudgement>), BoxError> {
        let Some(first) = configs.first() else {
            return Err("there is nothing to time".into());
        };
        let finalists = Finalists {
            configs: configs.iter().map(|c| c.choices().to_vec()).collect(),
            seed,
            not,
        };
        let order = self.work_order(task, first, Step::Final(Box::new(finalists)));
        match self.session()?.ask(order)? {
            Answer::Final { worker, times } if times.len() == configs.len() => Ok((worker, times)),
            Answer::NotJudged(why) => Err(why.into()),
            Answer::Unusable(why) => Err(unusable(why)),
            _ => Err(otherwise()),
        }
    }

    /// Has a candidate compiled; `again` is how often its code turned out to be none.
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

    /// Judges compiled work, or remembers having done so.
    fn on_device(
        &self,
        task: usize,
        config: &Config,
        compiled: Box<Compiled>,
    ) -> Result<Judged, BoxError> {
        // The lock ends here: what follows takes it again.
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
        if judged.found.is_lasting() {
            lock(&self.known).insert(same, judged.clone());
        }
        Ok(judged)
    }

    /// Sends compiled work to a device. Where its code is not what its hash says, it is compiled anew.
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

/// A candidate that nobody could judge.
fn not_judged(candidate: ContentHash, why: String) -> Judged {
    Judged::without_device(candidate, Judgement::new(Verdict::NotJudged, why))
}

/// A hub takes in only answers that fit their order.
fn otherwise() -> BoxError {
    "the fleet did something else than it was asked; please report this".into()
}

/// How often the code of one candidate may turn out to be none.
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

    /// With a fixed order all candidates in flight are out at once; which is told when is decided by
    /// counting, so that a fleet finds what one machine finds.
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
