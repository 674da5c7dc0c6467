//! A kernel's search space file, read and checked.

use super::file::Origin;
use super::{Config, Constraint, Environment, Expr, Parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::Role;
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
    /// How the kernel is told a problem's sizes.
    pub sizes: Sizes,
    /// The kernel's arguments, in order.
    pub arguments: Vec<Argument>,
    /// `__constant__` and `__device__` variables that are set before the first launch, as scalars
    /// and inputs.
    pub variables: Vec<Argument>,
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

/// How a kernel is told the sizes of its problem.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sizes {
    /// As macros.
    #[default]
    Macro,
    /// As scalar arguments: no macro has their names, and one compilation serves all problems.
    Argument,
    /// These as scalar arguments and the others as macros: one compilation serves all problems in
    /// which the others are equal.
    Arguments(BTreeSet<String>),
}

impl Sizes {
    /// Whether the template knows the size of that name as a macro.
    #[must_use]
    pub fn is_macro(&self, name: &str) -> bool {
        match self {
            Self::Macro => true,
            Self::Argument => false,
            Self::Arguments(names) => !names.contains(name),
        }
    }
}

/// Sizes of one problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// Its sizes, in declared order; which of them are macros [`Sizes`] says.
    pub sizes: Vec<(String, Value)>,
}

/// One argument of the kernel.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// Element type: of a vector that of its lanes, of a struct a byte.
    pub ty: Element,
    /// Numbers of an element that is a vector, such as 4 of `float4`; 1 otherwise.
    pub lanes: u32,
    /// Fields of an element that is a struct.
    pub record: Option<Record>,
    /// What the kernel does with it.
    pub role: Role,
    /// Extents; empty for scalars. Of vectors and structs the last one is theirs.
    pub shape: Vec<Expr>,
    /// What it is filled with; `None` for what is not.
    pub fill: Option<Fill>,
    /// Numbers that the fill takes from the problem, in its order.
    pub fill_sizes: Vec<Expr>,
    /// The value of a scalar of one number; `None` for others.
    pub value: Option<Expr>,
    /// The value of a scalar of several numbers, piece by piece.
    pub pieces: Vec<Piece>,
}

/// A struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Bytes, padding at the end included.
    pub size: u64,
    /// The fields in order, those that only pad left out.
    pub fields: Vec<RecordField>,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordField {
    /// Name.
    pub name: String,
    /// Type of its numbers; of a pointer, `u64`.
    pub ty: Element,
    /// How many numbers it is.
    pub count: u64,
    /// Where it begins, bytes.
    pub offset: u64,
    /// It is a pointer to an argument.
    pub pointer: bool,
    /// What it is filled with.
    pub fill: Fill,
}

/// A part of a value that is made of several.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Where it stands, bytes.
    pub offset: u64,
    /// Its type.
    pub ty: Element,
    /// What it is.
    pub value: PieceValue,
}

/// What a part of a value is.
#[derive(Debug, Clone)]
pub enum PieceValue {
    /// A number.
    Number(Expr),
    /// The address of the argument of that index.
    Address(usize),
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
    /// All blocks are on the device at once and may wait for each other.
    pub cooperative: bool,
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
    /// Nothing: the kernel is looked at for hazards only, and its results are not compared.
    None,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, JsonSchema)]
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

/// The names that expressions see of a device, each with its meaning.
pub const DEVICE_NAMES: [(&str, &str); 4] = [
    ("DEVICE_SM_COUNT", "Streaming multiprocessors"),
    (
        "DEVICE_SHARED_BYTES",
        "Shared memory that a block may opt in to, static included, bytes",
    ),
    ("DEVICE_CC", "Compute capability, such as 90"),
    ("DEVICE_MAX_THREADS", "Threads that a block may have"),
];

impl DeviceLimits {
    /// The names and values expressions see.
    pub fn constants(&self) -> impl Iterator<Item = (String, Value)> {
        let values = [self.sm_count, self.shared_bytes, self.cc, self.max_threads];
        let named = DEVICE_NAMES.iter().zip(values);
        named.map(|((name, _), value)| ((*name).to_owned(), Value::Int(value.into())))
    }
}

impl KernelSpec {
    /// Why no configuration of this kernel can be ranked, and what to write; `None` where they can.
    #[must_use]
    pub fn unranked(&self) -> Option<String> {
        matches!(self.reference, Reference::None).then(|| {
            format!(
                "{}: `reference: none` compares no results, so nothing can be ranked; it is enough \
                 for `tuner check` and `tuner predict`. Give a reference kernel: `reference: \
                 {{ source: …, entry: …, grid: […], block: […] }}`",
                self.path.display()
            )
        })
    }

    /// The configuration of all defaults, valid or not.
    #[must_use]
    pub fn default_config(&self) -> Config {
        Config::of_defaults(&self.parameters)
    }

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
