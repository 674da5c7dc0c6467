//! Worker settings: start command, deadlines, and errors.

use crate::gpu::stand_in;
use crate::step::{Step, proof_deadline};
use std::path::PathBuf;
use std::time::Duration;
use tuner_core::plan::{Code, CodeFormat};

/// Variable of a program under `tuner exec`: its driver is a virtual GPU, which executes PTX.
const EXEC_VARIABLE: &str = "TUNER_EXEC_SOCKET";
/// Factor of the deadlines under `tuner exec`, where the host executes kernels.
const EXEC_PATIENCE: u32 = 30;

/// Settings of glibc's allocator. A worker allocates a problem's buffers for each run. By default every
/// free returns their pages to the kernel, which clears them at the next allocation: a quarter of the time
/// of the first trials of softmax.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "17179869184"),
];

/// Command to start a worker, and the deadlines of its steps.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Program to start: the running one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// Helper kernels for a real GPU.
    pub helpers: Option<Code>,
    /// Form in which a candidate's code is sent.
    pub carry: CodeFormat,
    /// Deadline for opening the device.
    pub open: Duration,
    /// Deadline for reading code.
    pub load: Duration,
    /// Deadline for one launch of the gate, on devices that announce launches.
    pub launch: Duration,
    /// Deadline for running and comparing one problem.
    pub gate: Duration,
    /// Deadline for timing.
    pub time: Duration,
    /// Pauses before further attempts to open the device; after the last one it is lost.
    pub retries: Vec<Duration>,
}

impl Settings {
    /// Creates settings for a worker of this program, for the device named `selector`.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_device(selector: &str) -> std::io::Result<Self> {
        // The user's own values take precedence.
        let unset = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
        let allocator = ALLOCATOR.into_iter().filter(unset);
        let environment = allocator.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: vec!["device-worker".into(), "--device".into(), selector.into()],
            environment: environment.collect(),
            helpers: None,
            carry: CodeFormat::Ptx,
            open: Duration::from_secs(60),
            load: Duration::from_secs(30),
            launch: Duration::from_secs(10),
            gate: Duration::from_secs(120),
            time: Duration::from_secs(60),
            retries: vec![Duration::from_secs(1), Duration::from_secs(4)],
        })
    }

    /// Creates settings for a worker of the GPU with that number, with the helper kernels compiled
    /// for it.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_gpu(ordinal: u32, helpers: Code) -> std::io::Result<Self> {
        let stand_in = stand_in::installed().is_some();
        let under_exec = std::env::var_os(EXEC_VARIABLE).is_some();
        let patience = if under_exec { EXEC_PATIENCE } else { 1 };
        let mut plain = Self::for_device(&format!("cuda:{ordinal}"))?;
        let mut environment = std::mem::take(&mut plain.environment);
        // Kernels are loaded with their module: never while a graph is being captured.
        environment.push(("CUDA_MODULE_LOADING".to_owned(), "EAGER".to_owned()));
        Ok(Self {
            helpers: Some(helpers),
            carry: if stand_in || under_exec {
                CodeFormat::PtxAsCubin
            } else {
                CodeFormat::Cubin
            },
            // Naive references of large problems are slow; the stand-in hangs only in tests.
            launch: patience * Duration::from_secs(if stand_in { 2 } else { 10 }),
            // Includes pauses for cooling, a warm-up and a paired comparison of a slow kernel.
            time: patience * Duration::from_secs(120),
            gate: patience * plain.gate,
            environment,
            ..plain
        })
    }

    pub(super) fn deadline(&self, step: Step) -> Duration {
        match step {
            Step::Open => self.open,
            Step::Load => self.load,
            Step::Launch => self.launch,
            Step::Gate => self.gate,
            Step::Prove(limit) => self.gate.saturating_add(proof_deadline(limit)),
            Step::Time => self.time,
        }
    }
}

/// Reasons why a worker cannot be used at all. A candidate that fails, hangs or crashes is not one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The process did not start.
    #[error("the device worker did not start: {0}")]
    Start(String),
    /// The space file and its oracle do not match.
    #[error("{0}")]
    Unusable(String),
    /// The device no longer responds, even in new processes.
    #[error(
        "the device is lost: {0}; all finished work is stored (check `nvidia-smi` and the \
         kernel log, then continue with --resume)"
    )]
    DeviceLost(String),
    /// Workers are repeatedly killed from outside.
    #[error(
        "device workers do not live long enough to judge a candidate: {0}; all finished work is \
         stored (find what kills them, then continue with --resume)"
    )]
    WorkersLost(String),
    /// The request failed.
    #[error("{0}")]
    Failed(String),
    /// A request to the device itself timed out.
    #[error("{0}")]
    Hung(String),
    /// The caller's deadline passed, see [`super::Worker::set_deadline`].
    #[error("no answer within the time that the run had left")]
    OutOfTime,
}
