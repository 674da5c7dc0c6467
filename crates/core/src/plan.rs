//! What a device is asked to run: one problem of one candidate, with everything evaluated.
//!
//! Plans cross the pipe to the worker process, so they hold code, launches and seeds, never
//! tensors: the worker makes the data itself.

use crate::fill::Fill;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an argument is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read by the kernel, never written.
    Input,
    /// Written by the kernel: every element.
    Output,
    /// Working memory, unwritten before the first launch.
    Scratch,
    /// Passed by value.
    Scalar,
}

/// How an input is filled: the serialisable twin of [`Fill`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFill {
    /// Normally distributed.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Uniformly distributed.
    Uniform {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One value.
    Constant(f64),
    /// 0, 1, 2, …
    Arange,
    /// Zero.
    Zeros,
}

impl From<PlanFill> for Fill {
    fn from(fill: PlanFill) -> Self {
        match fill {
            PlanFill::Normal { mean, std } => Self::Normal { mean, std },
            PlanFill::Uniform { min, max } => Self::Uniform { min, max },
            PlanFill::Constant(value) => Self::Constant(value),
            PlanFill::Arange => Self::Arange,
            PlanFill::Zeros => Self::Zeros,
        }
    }
}

/// One kernel argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanArgument {
    /// Name in the space file.
    pub name: String,
    /// Element type, by its name in the space file (`f16`, `f32`, …).
    pub element: String,
    /// What it is for.
    pub role: Role,
    /// Extents, outermost first; empty for scalars.
    pub shape: Vec<u64>,
    /// How an input is filled.
    pub fill: PlanFill,
    /// The value of a scalar.
    pub value: f64,
}

/// One launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLaunch {
    /// Kernel name.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u64,
    /// Indices into the plan's arguments, in the order of the kernel's parameters.
    pub arguments: Vec<usize>,
}

/// Compiled code. Its text and machine code are no part of a message's JSON: they go beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// PTX text, for the virtual GPU.
    #[serde(skip)]
    pub ptx: std::sync::Arc<str>,
    /// Machine code, for a real GPU.
    #[serde(skip)]
    pub cubin: std::sync::Arc<[u8]>,
    /// Registers a thread, the largest over the kernels.
    pub registers: u32,
    /// Static shared memory a block, the largest over the kernels, bytes.
    pub static_shared_bytes: u64,
    /// What each kernel takes, by entry: a small kernel beside a large one is no larger for it.
    #[serde(default)]
    pub kernels: BTreeMap<String, KernelNeeds>,
}

/// What one kernel takes of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNeeds {
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory a block, bytes.
    pub static_shared_bytes: u64,
}

impl Code {
    /// What the kernel of that name takes; the largest of all where it is not known.
    #[must_use]
    pub fn needs(&self, entry: &str) -> KernelNeeds {
        let largest = KernelNeeds {
            registers: self.registers,
            static_shared_bytes: self.static_shared_bytes,
        };
        self.kernels.get(entry).copied().unwrap_or(largest)
    }
}

/// Where the right answer comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanReference {
    /// A built-in float64 oracle, by name.
    Oracle(String),
    /// A naive kernel, run on the same device.
    Kernel {
        /// Its code.
        code: Code,
        /// Its launch; arguments are those of the plan, all of them, in order.
        launch: PlanLaunch,
        /// The built-in oracle that it is compared with once, where the space names one.
        #[serde(default)]
        oracle: Option<String>,
    },
}

/// How results are judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlanGate {
    /// Absolute tolerance; `None` for the oracle's own error model.
    pub atol: Option<f64>,
    /// Relative tolerance.
    pub rtol: Option<f64>,
    /// Terms of the sum that an output element is, where the space says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<f64>,
    /// Two runs on one input must be bitwise equal.
    pub deterministic: bool,
    /// Unordered plain stores of the same value are no race.
    pub same_value_writes: bool,
}

/// One problem of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Problem name.
    pub problem: String,
    /// The problem's sizes and flags.
    pub sizes: Vec<(String, f64)>,
    /// Arguments in the order of the space file.
    pub arguments: Vec<PlanArgument>,
    /// Launches in order.
    pub launches: Vec<PlanLaunch>,
    /// The candidate's code.
    pub code: Code,
    /// The right answer.
    pub reference: PlanReference,
    /// How to judge.
    pub gate: PlanGate,
    /// Useful arithmetic operations of the problem, from the space's `metric`.
    pub flops: Option<f64>,
    /// Bytes that must move, from the space's `metric`.
    pub bytes: Option<f64>,
}

/// Which form of its code a device runs. The other is left out of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeFormat {
    /// PTX, and for the model of its time the candidate's machine code: the virtual GPU.
    Ptx,
    /// Machine code: a real GPU.
    Cubin,
    /// PTX in the place of machine code: the stand-in for a driver, in tests.
    PtxAsCubin,
}

impl Code {
    /// Only what the device runs.
    #[must_use]
    pub fn packed(mut self, carry: CodeFormat) -> Self {
        match carry {
            CodeFormat::Ptx => self.cubin = std::sync::Arc::new([]),
            CodeFormat::Cubin => self.ptx = "".into(),
            CodeFormat::PtxAsCubin => {
                self.cubin = self.ptx.as_bytes().into();
                self.ptx = "".into();
            }
        }
        self
    }
}

impl Plan {
    /// All code in it: the candidate's, and that of a naive reference.
    pub fn codes_mut(&mut self) -> Vec<&mut Code> {
        let mut codes = vec![&mut self.code];
        if let PlanReference::Kernel { code, .. } = &mut self.reference {
            codes.push(code);
        }
        codes
    }

    /// With only the code that the device runs.
    #[must_use]
    pub fn packed(mut self, carry: CodeFormat) -> Self {
        if carry != CodeFormat::Ptx {
            self.code = self.code.packed(carry);
        }
        if let PlanReference::Kernel {
            code,
            launch,
            oracle,
        } = self.reference
        {
            self.reference = PlanReference::Kernel {
                code: code.packed(carry),
                launch,
                oracle,
            };
        }
        self
    }
}

impl PlanArgument {
    /// Number of elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }
}

impl PlanLaunch {
    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.grid
            .iter()
            .fold(1u64, |all, extent| all.saturating_mul(*extent))
    }

    /// Threads in a block.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.block
            .iter()
            .fold(1u64, |all, extent| all.saturating_mul(*extent))
    }
}
