//! A kernel's search space file, read and checked.

use super::file::Origin;
use super::{Constraint, Environment, Expr, Parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;

/// A tunable kernel: everything its YAML file says, checked.
#[derive(Debug, Clone)]
pub struct KernelSpec {
    /// The file, as it was named.
    pub path: PathBuf,
    /// The kernel's name.
    pub kernel: String,
    /// What it computes; may be empty.
    pub summary: String,
    /// The template, found from the file's folder.
    pub source: PathBuf,
    /// Problems that are tuned and ranked; at least one.
    pub problems: Vec<Problem>,
    /// Problems for correctness only.
    pub check_problems: Vec<Problem>,
    /// The parameters, in declared order.
    pub parameters: Vec<Parameter>,
    /// Derived values, in declared order.
    pub derived: Vec<(String, Expr)>,
    /// The constraints, in declared order.
    pub constraints: Vec<Constraint>,
    /// The kernel's arguments, in order.
    pub arguments: Vec<Argument>,
    /// The launches, in order; at least one.
    pub launches: Vec<Launch>,
    /// What results are compared with.
    pub reference: Reference,
    /// How results are compared.
    pub gate: Gate,
    /// Floating-point operations of a run.
    pub flops: Option<Expr>,
    /// Bytes a run moves at least.
    pub bytes: Option<Expr>,
    /// Terms of the sum that an output element is, for the tolerance of results.
    pub terms: Option<Expr>,
    /// Known good points; what they do not name takes its default.
    pub seeds: Vec<ConfigValues>,
    /// Compiler options, with `{NAME}` for macros.
    pub options: Vec<String>,
    /// Folders for included files, found from the file's folder.
    pub include: Vec<PathBuf>,
    /// Program and arguments of a peer to compare with; empty when there is none.
    pub baseline: Vec<String>,
    /// The text it was read from.
    pub(crate) origin: Origin,
}

/// Sizes of one problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// Its sizes, in declared order; each is a macro.
    pub sizes: Vec<(String, Value)>,
}

/// One argument of the kernel.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: ElementType,
    /// What the kernel does with it.
    pub role: Role,
    /// Extents; empty for scalars.
    pub shape: Vec<Expr>,
    /// What an input is filled with; `None` for other roles.
    pub fill: Option<Fill>,
    /// A scalar's value; `None` for other roles.
    pub value: Option<Expr>,
}

/// Element types.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema
)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed 8 bit.
    I8,
    /// Unsigned 8 bit.
    U8,
    /// Signed 32 bit.
    I32,
    /// Unsigned 32 bit.
    U32,
    /// Signed 64 bit.
    I64,
    /// 8-bit float, 4 exponent bits.
    F8e4m3,
    /// 8-bit float, 5 exponent bits.
    F8e5m2,
}

impl ElementType {
    /// Size of an element, bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 | Self::F8e4m3 | Self::F8e5m2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    #[must_use]
    pub fn is_float(self) -> bool {
        !matches!(
            self,
            Self::I8 | Self::U8 | Self::I32 | Self::U32 | Self::I64
        )
    }

    /// The name used in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::F8e4m3 => "f8e4m3",
            Self::F8e5m2 => "f8e5m2",
        }
    }
}

/// What the kernel does with an argument.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A buffer it reads and must not change.
    Input,
    /// A buffer it writes completely; compared with the reference.
    Output,
    /// A buffer it may use as it likes; not compared.
    Scratch,
    /// A number passed by value.
    Scalar,
}

/// What an input buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Fill {
    /// Normally distributed numbers.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation, not negative.
        std: f64,
    },
    /// Uniformly distributed numbers.
    Uniform {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// The same number everywhere.
    Constant(f64),
    /// 0, 1, 2, …
    Arange,
    /// 0 everywhere.
    Zeros,
}

impl Fill {
    /// What an input is filled with that does not say: a standard normal, or, for whole
    /// numbers, 0 to 100.
    #[must_use]
    pub fn default_for(ty: ElementType) -> Self {
        if ty.is_float() {
            Self::Normal {
                mean: 0.0,
                std: 1.0,
            }
        } else {
            Self::Uniform {
                min: 0.0,
                max: 100.0,
            }
        }
    }
}

/// One launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The kernel function.
    pub entry: String,
    /// Launched only where this is true.
    pub when: Option<Expr>,
    /// Indices of the arguments it takes.
    pub args: Vec<usize>,
    /// Blocks in x, y, z.
    pub grid: [Expr; 3],
    /// Threads a block in x, y, z.
    pub block: [Expr; 3],
    /// Dynamic shared memory a block, bytes.
    pub shared: Expr,
}

/// What results are compared with.
#[derive(Debug, Clone)]
pub enum Reference {
    /// A built-in reference of this name.
    Oracle(String),
    /// A reference kernel, which takes all arguments in order.
    Kernel {
        /// Its file, found from the YAML's folder.
        source: PathBuf,
        /// How it is launched; `when` is `None`.
        launch: Box<Launch>,
        /// A built-in reference that it is compared with once.
        proven_by: Option<String>,
    },
}

/// How results are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Absolute tolerance; with neither given, the oracle's error model decides.
    pub atol: Option<f64>,
    /// Relative tolerance.
    pub rtol: Option<f64>,
    /// Repeated runs must agree bit for bit.
    pub deterministic: bool,
    /// What unordered plain stores of the same value are.
    pub same_value_writes: SameValueWrites,
}

/// Judgement on unordered plain stores of the same value to the same place.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    JsonSchema
)]
#[serde(rename_all = "lowercase")]
pub enum SameValueWrites {
    /// Let pass.
    Allow,
    /// A race, like any other.
    #[default]
    Race,
}

/// What expressions may know of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Streaming multiprocessors: `DEVICE_SM_COUNT`.
    pub sm_count: u32,
    /// Opt-in maximum of shared memory a block, static included, bytes: `DEVICE_SHARED_BYTES`.
    pub shared_bytes: u32,
    /// Compute capability, such as 90: `DEVICE_CC`.
    pub cc: u32,
    /// Threads a block at most: `DEVICE_MAX_THREADS`.
    pub max_threads: u32,
}

impl DeviceLimits {
    /// The names and values expressions see.
    #[must_use]
    pub fn constants(&self) -> [(String, Value); 4] {
        let pair = |name: &str, value: u32| (name.to_owned(), Value::Int(i64::from(value)));
        [
            pair("DEVICE_SM_COUNT", self.sm_count),
            pair("DEVICE_SHARED_BYTES", self.shared_bytes),
            pair("DEVICE_CC", self.cc),
            pair("DEVICE_MAX_THREADS", self.max_threads),
        ]
    }
}

impl KernelSpec {
    /// The problem of that name, tuned or for checks only.
    #[must_use]
    pub fn problem(&self, name: &str) -> Option<&Problem> {
        self.problems
            .iter()
            .chain(&self.check_problems)
            .find(|problem| problem.name == name)
    }

    /// The names expressions see besides parameters, for one problem and device.
    #[must_use]
    pub fn environment(&self, problem: &Problem, limits: &DeviceLimits) -> Environment {
        let mut constants = problem.sizes.clone();
        constants.extend(limits.constants());
        Environment {
            derived: self.derived.clone(),
            constants,
        }
    }
}
