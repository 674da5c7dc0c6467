//! A real GPU in a worker. The context exists as long as this process.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the worker itself, and finalists by the request whose plans they index"
)]

mod revalidate;
mod comparison;
mod task;

use revalidate::revalidate;
use task::Task;

use super::host_data::references;
use super::{Begins, Failure, GateOutcome, Served, gate, reply};
use crate::gpu;
use crate::gpu::context::Gpu;
use crate::gpu::helpers::Helpers;
use crate::gpu::meter::Spent;
use crate::gpu::nvml::{EnergyCounter as _, Monitor};
use crate::gpu::session::GpuSession;
use crate::step::Step;
use crate::worker::protocol::{Job, MeasureRequest, Opened, RelativeTime, Request, Response};
use std::io;
use std::time::{Duration, Instant};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan};
use tuner_core::record::Verdict;
use tuner_judge::gate::Verified;
use tuner_judge::gate::level::Level;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::Evidence;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::session::Session as _;
use tuner_judge::stopwatch::Subject;
use tuner_judge::timing::calibration::{Calibration, NeededWork};
use tuner_judge::timing::energy;
use tuner_judge::timing::executor::{RaceResult, TimingResult, race_candidate, settle};
use tuner_judge::timing::plan::Settings;
use tuner_process::Replies;

/// Helper kernel that is loaded first, to test whether the driver accepts the compiler's code.
const PROBE_KERNEL: &str = "tuner_null";
/// A GPU, opened by the first request.
pub(super) struct Cuda {
    ordinal: u32,
    replies: Replies,
    open: Option<OpenGpu>,
}

/// An open GPU with its state between candidates.
struct OpenGpu {
    session: GpuSession,
    references: References,
    calibration: Option<Calibration>,
    timed: Vec<Task>,
}

impl Cuda {
    pub(super) fn new(ordinal: u32, replies: Replies) -> Self {
        Self {
            ordinal,
            replies,
            open: None,
        }
    }

    fn open(&mut self, helpers: Code) -> Response {
        let gpu =
            gpu::open_counted()
                .map_err(gpu::GpuError::from)
                .and_then(|(mut driver, counter)| {
                    // No context exists yet, so all listed processes are others.
                    gpu::facts::start(&mut *driver)?;
                    let facts = gpu::GpuFacts::read(&mut *driver, self.ordinal)?;
                    let mut monitor = Monitor::open(&facts.uuid);
                    monitor.counter = counter;
                    let health = monitor.health();
                    Ok((Gpu::open(driver, self.ordinal)?, monitor, health))
                });
        let (gpu, monitor, health) = match gpu {
            Ok(parts) => parts,
            Err(error) => return Response::Lost(error.to_string()),
        };
        let facts = gpu.facts().clone();
        let counts_energy = monitor.energy_mj().is_some();
        let mut session = GpuSession::new(gpu, Helpers::new(helpers.clone()), monitor);
        if gpu::stand_in::installed().is_some_and(|stand_in| stand_in.compares_on_host) {
            session = session.comparing_on_host();
        }
        if let Err(fault) = session.gpu.kernel_facts(&helpers, PROBE_KERNEL, 32, 0) {
            let (major, minor) = facts.cuda;
            return Response::Failed(format!(
                "the driver, which supports CUDA up to {major}.{minor}, refuses what NVRTC compiles \
                 for {}: {}; update the driver, or set TUNER_NVRTC to an NVRTC of that version or \
                 an older one",
                facts.arch(),
                fault.detail
            ));
        }
        let replies = self.replies.clone();
        session.announce_launches(Box::new(move |step| {
            // A broken pipe is detected at the next answer.
            let _ = reply(&replies, &Response::Begins(step));
        }));
        self.open = Some(OpenGpu {
            session,
            references: references(&self.replies),
            calibration: None,
            timed: Vec::new(),
        });
        Response::Opened(Box::new(Opened {
            facts,
            health,
            counts_energy,
        }))
    }
}

impl Served for Cuda {
    fn answer(&mut self, request: Request, begins: Begins<'_>) -> io::Result<Response> {
        if let Request::Open(helpers) = request {
            begins(Step::Open)?;
            return Ok(self.open(*helpers));
        }
        let Some(bench) = &mut self.open else {
            return Ok(Response::Failed("the device is not open".to_owned()));
        };
        bench.session.next_job();
        let answer = match bench.handle(&request, begins) {
            Ok(answer) => answer,
            Err(Failure::Oracle(error)) => Response::Unusable(error.to_string()),
            Err(Failure::Pipe(error)) => return Err(error),
        };
        Ok(match bench.session.gpu.corrupted() {
            // A fault of the device is not evidence about the candidate.
            Some(error) if bench.session.gpu.is_device_fault() => Response::Lost(error.to_string()),
            _ => answer,
        })
    }

    fn corrupted(&self) -> Option<String> {
        let gpu = &self.open.as_ref()?.session.gpu;
        gpu.corrupted().map(ToString::to_string)
    }
}

impl OpenGpu {
    fn handle(&mut self, request: &Request, begins: Begins<'_>) -> Result<Response, Failure> {
        match request {
            Request::Open(_) => Ok(Response::Failed("the device is open".to_owned())),
            Request::Judge(job) => {
                let (judgement, _) = self.judge(job, begins)?;
                Ok(Response::Judged(Box::new(judgement.into())))
            }
            Request::Measure(measuring) => {
                let began = Instant::now();
                self.session.spent = Spent::default();
                let (found, standing) = self.measure(measuring, begins)?;
                let spent = Spent {
                    total: began.elapsed(),
                    ..self.session.spent
                };
                Ok(Response::Measured(Box::new(found), standing, spent))
            }
            Request::Calibrate => {
                begins(Step::Time).map_err(Failure::Pipe)?;
                Ok(match self.calibration() {
                    Ok(calibration) => Response::Calibrated(Box::new(calibration)),
                    Err(fault) => Response::Failed(fault.detail),
                })
            }
            Request::Examine(milliseconds) => {
                begins(Step::Time).map_err(Failure::Pipe)?;
                Ok(
                    match self.session.examine(Duration::from_millis(*milliseconds)) {
                        Ok(found) => Response::Examined(Box::new(found)),
                        Err(fault) => Response::Failed(fault.detail),
                    },
                )
            }
            Request::Duel(contest) => self.duel(contest, begins),
            Request::Finale(contest) => self.finale(contest, begins),
        }
    }

    fn calibration(&mut self) -> Result<Calibration, Judgement> {
        if let Some(known) = self.calibration {
            return Ok(known);
        }
        let promise = self.session.gpu.facts().promise();
        let calibration = Calibration::measure(&mut self.session, promise)?;
        self.calibration = Some(calibration);
        Ok(calibration)
    }

    /// Loads the code and verifies the candidate. Returns the evidence for the timed problem if it passed.
    fn judge<'a>(
        &mut self,
        job: &'a Job,
        begins: Begins<'_>,
    ) -> Result<(Judgement, Option<Proof<'a>>), Failure> {
        begins(Step::Load).map_err(Failure::Pipe)?;
        let began = Instant::now();
        for plan in job.checks.iter().chain(&job.timed) {
            if let Err(fault) = self.load(plan) {
                return Ok((fault, None));
            }
        }
        self.session.spent.load += began.elapsed();
        let gated = gate(&mut self.session, &mut self.references, job, begins)?;
        self.session.reset();
        Ok(match gated {
            GateOutcome::Rejected(judgement) => (judgement, None),
            GateOutcome::Passed { passed, last } => {
                let told = Judgement {
                    compared: passed.compared,
                    ..Judgement::ok(passed.max_error)
                };
                (told, last)
            }
        })
    }

    /// Checks that the driver accepts the code, and that each launch could be resident.
    fn load(&mut self, plan: &Plan) -> Result<(), Judgement> {
        for launch in &plan.launches {
            let facts = self.session.gpu.kernel_facts(
                &plan.code,
                &launch.entry,
                launch.threads(),
                u64::from(launch.shared_bytes),
            )?;
            if facts.blocks_per_sm == 0 {
                return Err(Judgement::new(
                    Verdict::LaunchFailed,
                    format!(
                        "too many resources requested for launch: a block of `{}` with {} threads \
                         of {} registers and {} bytes of shared memory does not fit on a \
                         multiprocessor",
                        launch.entry,
                        launch.threads(),
                        facts.registers,
                        launch.shared_bytes + facts.static_shared_bytes
                    ),
                ));
            }
        }
        Ok(())
    }

    fn measure(
        &mut self,
        measuring: &MeasureRequest,
        begins: Begins<'_>,
    ) -> Result<(TimedJudgement, Option<RelativeTime>), Failure> {
        // One seed and one run decide whether to time the candidate; the requested level is only for
        // potential winners.
        let first = Job {
            level: Level::First,
            seeds: measuring.job.seeds.iter().copied().take(1).collect(),
            ..measuring.job.clone()
        };
        let (judgement, proof) = self.judge(&first, begins)?;
        let (Some((plan, verified, _)), true) = (proof, first.timed.is_some()) else {
            return Ok((judgement.into(), None));
        };
        let seed = first.seeds.first().copied().unwrap_or(0);
        let max_error = judgement.max_error;
        Ok(match self.time(measuring, plan, verified, seed, begins)? {
            Ok((measured, standing)) => {
                let timed = TimedJudgement {
                    measured: Some(measured),
                    ..judgement.into()
                };
                (timed, Some(standing))
            }
            Err(why) => {
                let failed = Judgement { max_error, ..why };
                (failed.into(), None)
            }
        })
    }

    /// Returns the absolute and relative time of a verified candidate, or the reason for their absence: the
    /// device failed, or the candidate was rejected.
    fn time(
        &mut self,
        measuring: &MeasureRequest,
        plan: &Plan,
        verified: Verified,
        seed: u64,
        begins: Begins<'_>,
    ) -> Result<Result<(Measured, RelativeTime), Judgement>, Failure> {
        begins(Step::Time).map_err(Failure::Pipe)?;
        let raced = match self.race(measuring, plan, seed) {
            Ok(raced) => raced,
            Err(why) => return Ok(Err(why)),
        };
        let (task, candidate, raced) = raced;
        let mut verified = verified;
        if raced.is_contender() {
            let (judgement, proof) = self.judge(&measuring.job, begins)?;
            let Some((_, proof, _)) = proof else {
                self.session.drop_subject(candidate);
                return Ok(Err(judgement));
            };
            verified = proof;
            begins(Step::Time).map_err(Failure::Pipe)?;
        }
        let references = &mut self.references;
        let timed = settle(
            &verified,
            &mut self.session,
            &mut self.timed[task].timing,
            raced,
            &NeededWork::from_plan(plan),
            &mut |watch, subject| revalidate(plan, seed, watch, subject, references),
        );
        let timed = timed.and_then(|timed| {
            if measuring.energy {
                self.with_energy(timed)
            } else {
                Ok(timed)
            }
        });
        match timed {
            Ok(timed) => Ok(Ok(self.take_in(task, plan, candidate, timed))),
            Err(why) => {
                self.session.drop_subject(candidate);
                Ok(Err(why))
            }
        }
    }

    /// Measures the energy of the timed candidate.
    fn with_energy(&mut self, timed: TimingResult) -> Result<TimingResult, Judgement> {
        let micros = timed.measured.p50().get();
        let energy = energy::measure(&mut self.session, timed.runner, micros, settings())?;
        let measured = match energy {
            Some(energy) => timed.measured.with_energy(energy),
            None => timed.measured,
        };
        Ok(TimingResult { measured, ..timed })
    }

    /// Times the candidate against the task's reference.
    fn race(
        &mut self,
        measuring: &MeasureRequest,
        plan: &Plan,
        seed: u64,
    ) -> Result<(usize, Subject, RaceResult), Judgement> {
        let reference = measuring.reference.as_ref().unwrap_or(plan);
        let task = self.task(reference, seed)?;
        self.meet(task, measuring.incumbent.as_ref(), seed)?;
        let candidate = self.session.load_subject(plan, seed)?;
        let references = &mut self.references;
        let raced = race_candidate(
            &mut self.session,
            &mut self.timed[task].timing,
            candidate,
            &mut |watch, subject| revalidate(plan, seed, watch, subject, references),
        );
        match raced {
            Ok(raced) => Ok((task, candidate, raced)),
            Err(why) => {
                self.session.drop_subject(candidate);
                Err(why)
            }
        }
    }
}

/// Returns the constants of the protocol; shorter ones for the stand-in of the tests, whose clock
/// is steady.
fn settings() -> Settings {
    let usual = Settings::default();
    match gpu::stand_in::installed() {
        None => usual,
        Some(_) => Settings {
            warm_up_us: usual.warm_up_us / 20.0,
            launches_max: 40,
            samples_max: usual.samples_min,
            duel_pairs_min: 8,
            duel_pairs_max: 16,
            final_rounds: 8,
            energy_us: 2e3,
            ..usual
        },
    }
}

/// The timed problem, with the evidence that it is correct.
type Proof<'a> = (&'a Plan, Verified, Evidence);
