//! How a worker is started, how long its steps may take, and why it could not be used.

use crate::gpu::stand_in;
use crate::step::{Step, proof_deadline};
use std::path::PathBuf;
use std::time::Duration;
use tuner_core::plan::{Code, CodeFormat};

/// Variable of a program that runs under `tuner exec`: its driver is a virtual GPU, which executes PTX.
const EXEC_VARIABLE: &str = "TUNER_EXEC_SOCKET";
/// Factor of the deadlines under `tuner exec`, where the host executes kernels.
const EXEC_PATIENCE: u32 = 30;

/// How to start a worker, and how long each of its steps may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Program to start: this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// The tuner's own kernels, for a real GPU.
    pub helpers: Option<Code>,
    /// Which form of a candidate's code it runs.
    pub carry: CodeFormat,
    /// Deadline for opening the device.
    pub open: Duration,
    /// Deadline for reading code.
    pub load: Duration,
    /// Deadline for one launch of the gate, where the device tells of launches.
    pub launch: Duration,
    /// Deadline for running and comparing one problem.
    pub gate: Duration,
    /// Deadline for timing.
    pub time: Duration,
    /// Pauses before the device is tried again when it does not open; then it is lost.
    pub retries: Vec<Duration>,
}

impl Settings {
    /// A worker of this very program for the device named `selector`.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_device(selector: &str) -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: vec!["device-worker".into(), "--device".into(), selector.into()],
            environment: Vec::new(),
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

    /// A worker for the GPU of that number, with the tuner's own kernels compiled for it.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_gpu(ordinal: u32, helpers: Code) -> std::io::Result<Self> {
        let stand_in = stand_in::installed().is_some();
        let under_exec = std::env::var_os(EXEC_VARIABLE).is_some();
        let patience = if under_exec { EXEC_PATIENCE } else { 1 };
        let plain = Self::for_device(&format!("cuda:{ordinal}"))?;
        Ok(Self {
            helpers: Some(helpers),
            carry: if stand_in || under_exec {
                CodeFormat::PtxAsCubin
            } else {
                CodeFormat::Cubin
            },
            // Naive references of large problems take their time; the stand-in hangs for tests only.
            launch: patience * Duration::from_secs(if stand_in { 2 } else { 10 }),
            // Pauses for heat, a warm-up and a duel of a slow kernel.
            time: patience * Duration::from_secs(120),
            gate: patience * plain.gate,
            // Kernels are loaded with their module: never while a graph is recorded.
            environment: vec![("CUDA_MODULE_LOADING".to_owned(), "EAGER".to_owned())],
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

/// Why a worker could not be used at all. A candidate that fails, hangs or crashes is not one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The process did not start.
    #[error("the device worker did not start: {0}")]
    Start(String),
    /// The space file and its oracle do not fit together.
    #[error("{0}")]
    Unusable(String),
    /// The device does not answer any more, in fresh processes either.
    #[error(
        "the device is lost: {0}; all finished work is stored (look at `nvidia-smi` and the \
         kernel's log, then go on with --resume)"
    )]
    DeviceLost(String),
    /// Worker after worker is ended from outside.
    #[error(
        "device workers do not live long enough to judge a candidate: {0}; all finished work is \
         stored (find what ends them, then go on with --resume)"
    )]
    WorkersLost(String),
    /// What was asked for failed.
    #[error("{0}")]
    Failed(String),
    /// What was asked of the device itself did not end.
    #[error("{0}")]
    Hung(String),
}
