//! Threads that prepare and evaluate candidates: a pool and one thread for each device, or the
//! calling thread for an instant device.

use super::error::EngineError;
use super::evaluator::{BoxError, Evaluator, Judged, Preparation};
use super::threads::panic_text;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::mpsc as results;
use tuner_core::panics::lock;
use tuner_space::Config;

/// Identifies a candidate in flight.
pub(super) type Ticket = u64;

/// A candidate to prepare or evaluate.
pub(super) struct Job {
    pub(super) ticket: Ticket,
    pub(super) task: usize,
    pub(super) config: Config,
    /// Time that its judgement may take; `None`: any.
    pub(super) limit: Option<Duration>,
}

/// A candidate with further checks before it is reported.
pub(super) struct Proof {
    pub(super) job: Job,
    /// The judgement so far.
    pub(super) judged: Box<Judged>,
    /// Run the timed problem whole; else run the deferred checks.
    pub(super) whole: bool,
}

/// Report of a lane.
pub(super) struct Message<W> {
    pub(super) ticket: Ticket,
    /// Duration of the step.
    pub(super) spent: Duration,
    pub(super) step: Step<W>,
}

/// A completed step of a candidate.
pub(super) enum Step<W> {
    /// It is ready for the device, or judged without it.
    Prepared(Result<Preparation<W>, EngineError>),
    /// The device judged it.
    Evaluated(Result<Box<Judged>, EngineError>),
    /// The device stopped it at its limit.
    OutOfTime,
}

impl<W> Step<W> {
    /// Converts the answer of a device.
    fn evaluated(answer: Result<Option<Judged>, EngineError>) -> Self {
        match answer {
            Ok(None) => Self::OutOfTime,
            Ok(Some(judged)) => Self::Evaluated(Ok(Box::new(judged))),
            Err(error) => Self::Evaluated(Err(error)),
        }
    }
}

impl<W> Message<W> {
    /// Takes a step and its duration.
    fn timed(ticket: Ticket, step: impl FnOnce() -> Step<W>) -> Self {
        let began = Instant::now();
        let step = step();
        Self {
            ticket,
            spent: began.elapsed(),
            step,
        }
    }
}

/// A queue with several consumer threads.
pub(super) struct Queue<T> {
    sender: mpsc::Sender<T>,
    receiver: Arc<Mutex<mpsc::Receiver<T>>>,
}

impl<T: Send + 'static> Queue<T> {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
        }
    }

    /// Sends an item. It fails only when all threads have ended, which the end of the results then
    /// reports.
    pub(super) fn send(&self, item: T) {
        let _ = self.sender.send(item);
    }

    /// Starts a thread that reports its answer to each item, until the queue or the receiver
    /// closes.
    fn answer<M: Send + 'static>(
        &self,
        name: String,
        reports: results::UnboundedSender<M>,
        answer: impl Fn(T) -> Option<M> + Send + 'static,
    ) -> std::io::Result<()> {
        let queue = Arc::clone(&self.receiver);
        let work = move || {
            loop {
                // Held while waiting, because `mpsc` has one receiver: one idle thread waits for
                // the item, the others for the lock.
                let next = lock(&queue).recv();
                let Some(report) = next.ok().and_then(&answer) else {
                    break;
                };
                if reports.send(report).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name(name).spawn(work).map(drop)
    }
}

/// Threads around an evaluator. Dropping it stops them after their current work, without waiting.
pub(super) struct Lanes<E: Evaluator> {
    evaluator: Arc<E>,
    /// Candidates to be prepared.
    pub(super) jobs: Queue<Job>,
    /// Prepared candidates, for the device.
    pub(super) device: Queue<(Job, E::Work)>,
    /// Candidates with further checks to run now.
    pub(super) proofs: Queue<Proof>,
    sender: results::UnboundedSender<Message<E::Work>>,
    results: results::UnboundedReceiver<Message<E::Work>>,
    cancelled: Arc<AtomicBool>,
    threads: Threads,
}

/// Numbers of running threads.
#[derive(Default)]
struct Threads {
    preparing: usize,
    devices: usize,
    proving: usize,
}

impl<E: Evaluator> Lanes<E> {
    /// Creates lanes without threads; [`Lanes::grow`] starts them.
    pub(super) fn new(evaluator: &Arc<E>) -> Self {
        let (sender, results) = results::unbounded_channel();
        Self {
            evaluator: Arc::clone(evaluator),
            jobs: Queue::new(),
            device: Queue::new(),
            proofs: Queue::new(),
            sender,
            results,
            cancelled: Arc::new(AtomicBool::new(false)),
            threads: Threads::default(),
        }
    }

    /// Starts missing threads up to `jobs` preparing and proving threads and one for each device.
    pub(super) fn grow(&mut self, jobs: usize, devices: usize) -> std::io::Result<()> {
        if self.evaluator.instant() {
            return Ok(());
        }
        let Threads {
            preparing,
            devices: driving,
            proving,
        } = self.threads;
        let jobs = jobs.max(1);
        self.threads = Threads {
            // Checks compile a candidate for other problems, several times as long as they run it.
            proving: grown(proving, jobs, |number| self.start_proving(number))?,
            devices: grown(driving, devices, |number| self.start_device(number))?,
            preparing: grown(preparing, jobs, |number| self.start_preparing(number))?,
        };
        Ok(())
    }

    fn start_preparing(&self, number: usize) -> std::io::Result<()> {
        let (evaluator, cancelled) = (Arc::clone(&self.evaluator), Arc::clone(&self.cancelled));
        let prepared = move |job: Job| {
            if cancelled.load(Ordering::Relaxed) {
                return None;
            }
            Some(Message::timed(job.ticket, || {
                Step::Prepared(guard(|| evaluator.prepare(job.task, &job.config)))
            }))
        };
        let name = format!("prepare-{number}");
        self.jobs.answer(name, self.sender.clone(), prepared)
    }

    fn start_device(&self, number: usize) -> std::io::Result<()> {
        let evaluator = Arc::clone(&self.evaluator);
        let evaluated = move |(job, work): (Job, E::Work)| {
            Some(Message::timed(job.ticket, || {
                Step::evaluated(guard(|| {
                    evaluator.evaluate_within(job.task, &job.config, work, job.limit)
                }))
            }))
        };
        let name = format!("device-{number}");
        self.device.answer(name, self.sender.clone(), evaluated)
    }

    /// Starts a thread for deferred checks of candidates that may win; the device continues with others.
    fn start_proving(&self, number: usize) -> std::io::Result<()> {
        let evaluator = Arc::clone(&self.evaluator);
        let proved = move |proof: Proof| {
            let Proof { job, judged, whole } = proof;
            Some(Message::timed(job.ticket, || {
                Step::evaluated(guard(|| match whole {
                    true => {
                        let proven = evaluator.prove_whole(job.task, &job.config, *judged);
                        proven.map(Some)
                    }
                    false => evaluator.prove_within(job.task, &job.config, *judged, job.limit),
                }))
            }))
        };
        let name = format!("prove-{number}");
        self.proofs.answer(name, self.sender.clone(), proved)
    }

    /// Prepares and evaluates on this thread.
    pub(super) fn at_once(&self, task: usize, config: &Config) -> Result<Judged, EngineError> {
        guard(|| match self.evaluator.prepare(task, config)? {
            Preparation::Judged(judged) => Ok(*judged),
            Preparation::Ready { work, .. } => self.evaluator.evaluate(task, config, work),
        })
    }

    /// Returns the next report.
    pub(super) async fn next(&mut self) -> Option<Message<E::Work>> {
        self.results.recv().await
    }

    /// Drops the candidates that wait to be prepared.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl<E: Evaluator> Drop for Lanes<E> {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Starts threads until there are `wanted`, and returns the number that run. The first must start and can
/// do the work of all others.
fn grown(
    from: usize,
    wanted: usize,
    start: impl Fn(usize) -> std::io::Result<()>,
) -> std::io::Result<usize> {
    for number in from..wanted {
        match start(number) {
            Err(error) if number == 0 => return Err(error),
            Err(_) => return Ok(number),
            Ok(()) => {}
        }
    }
    Ok(from.max(wanted))
}

/// Converts a panic in a lane to an error that ends the run after all finished results are stored.
/// Otherwise the run would wait forever for the lost candidate.
fn guard<T>(step: impl FnOnce() -> Result<T, BoxError>) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(EngineError::Device),
        Err(panic) => Err(EngineError::Panicked(panic_text(&*panic))),
    }
}
