//! A kernel's search space file, read and checked.

use super::file::Origin;
use super::{Config, Constraint, Environment, Expr, Parameter};
use gpu_tensor_map::TensorElement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tuner_core::data::DataFile;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::Role;
use tuner_core::record::ConfigValues;
use tuner_core::target::ArchFeatures;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;

/// A tunable kernel: the checked contents of its YAML file.
#[derive(Debug, Clone)]
pub struct KernelSpec {
    /// The given path of the file.
    pub path: PathBuf,
    /// The kernel's name.
    pub kernel: String,
    /// Description of the computation; may be empty.
    pub summary: String,
    /// Path of the template; relative paths are resolved from the file's folder.
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
    /// Passing of a problem's sizes to the kernel.
    pub sizes: Sizes,
    /// The kernel's arguments, in order.
    pub arguments: Vec<Argument>,
    /// `__constant__` and `__device__` variables that are set before the first launch, as scalars
    /// and inputs.
    pub variables: Vec<Argument>,
    /// The launches, in order; at least one.
    pub launches: Vec<Launch>,
    /// Reference for the results.
    pub reference: Reference,
    /// Comparison of results.
    pub gate: Gate,
    /// Floating-point operations of a run.
    pub flops: Option<Expr>,
    /// Minimum number of bytes that a run moves.
    pub bytes: Option<Expr>,
    /// Default weight of a problem's gain in the budget of a run.
    pub weight: Option<Expr>,
    /// Number of terms of the sum that produces an output element, for the tolerance of results.
    pub terms: Option<Expr>,
    /// Known good points; missing parameters take their defaults.
    pub seeds: Vec<ConfigValues>,
    /// Compiler options, with `{NAME}` for macros.
    pub options: Vec<String>,
    /// Features of the device's architecture that its portable target lacks.
    pub arch_features: Option<ArchFeatures>,
    /// Folders for included files; relative paths are resolved from the file's folder.
    pub include: Vec<PathBuf>,
    /// Program and arguments of a peer to compare with; may be empty.
    pub baseline: Vec<String>,
    /// Python expression that computes the outputs with PyTorch, for `tuner export --torch`.
    pub torch_fallback: Option<String>,
    /// Hashes of data files that exist once per problem, by path; set when they are read.
    pub data_hashes: BTreeMap<String, ContentHash>,
    /// The source text.
    pub(crate) origin: Origin,
}

/// Passing of a problem's sizes to a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sizes {
    /// All sizes as macros.
    #[default]
    Macro,
    /// All sizes as scalar arguments: none is a macro, so one compilation serves all problems.
    Argument,
    /// These sizes as scalar arguments, the others as macros: one compilation serves all problems
    /// with equal macros.
    Arguments(BTreeSet<String>),
}

impl Sizes {
    /// Reports whether a size is a macro of the template.
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
    /// Sizes in declared order; [`Sizes`] selects the macros.
    pub sizes: Vec<(String, Value)>,
    /// Weight of its gain in the budget of a run, if the file has one.
    pub weight: Option<f64>,
}

/// One argument of the kernel.
#[derive(Clone)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// Element type: for a vector, the type of a lane; for a struct, a byte.
    pub ty: Element,
    /// Numbers in a vector element, such as 4 for `float4`; 1 otherwise.
    pub lanes: u32,
    /// Fields of an element that is a struct.
    pub record: Option<Record>,
    /// The kernel's pointer may have another element type.
    pub any_type: bool,
    /// Whole numbers that no fill limits.
    pub any_value: bool,
    /// Use by the kernel.
    pub role: Role,
    /// Extents; empty for scalars. For vectors and structs the last extent is the element's.
    pub shape: Vec<Expr>,
    /// Initial contents; `None` if the argument is not filled.
    pub fill: Option<Fill>,
    /// Numbers that the fill needs from the problem, in its order.
    pub fill_sizes: Vec<Expr>,
    /// The value of a scalar of one number; `None` for other arguments.
    pub value: Option<Expr>,
    /// The value of a scalar of several numbers, piece by piece.
    pub pieces: Vec<Piece>,
    /// The contents or the value are a guess, so hazards may be caused by it.
    pub guessed: bool,
    /// The shape is a guess, so accesses out of bounds may be caused by it.
    pub guessed_extent: bool,
}

/// Stored identities are computed from this text: a field added by a later version is included only
/// if it is not at its default. The marks of guesses change no result.
impl std::fmt::Debug for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Argument");
        text.field("name", &self.name)
            .field("ty", &self.ty)
            .field("lanes", &self.lanes)
            .field("record", &self.record)
            .field("any_type", &self.any_type)
            .field("role", &self.role)
            .field("shape", &self.shape)
            .field("fill", &self.fill)
            .field("fill_sizes", &self.fill_sizes)
            .field("value", &self.value)
            .field("pieces", &self.pieces);
        if self.any_value {
            text.field("any_value", &true);
        }
        text.finish()
    }
}

impl Argument {
    /// Returns the map and the index of its buffer, if it is a tensor map.
    #[must_use]
    pub fn tensor_map(&self) -> Option<(&MapText, usize)> {
        match self.pieces.as_slice() {
            [map, of] => match (&map.value, &of.value) {
                (PieceValue::TensorMap(map), PieceValue::Address(of)) => Some((map, *of)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reports whether it is a tensor map.
    #[must_use]
    pub fn is_tensor_map(&self) -> bool {
        self.tensor_map().is_some()
    }
}

/// A struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Bytes, padding at the end included.
    pub size: u64,
    /// The fields in order, without padding fields.
    pub fields: Vec<RecordField>,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordField {
    /// Name.
    pub name: String,
    /// Type of its numbers; `u64` for a pointer.
    pub ty: Element,
    /// Number of elements.
    pub count: u64,
    /// Offset, bytes.
    pub offset: u64,
    /// The field points to an argument.
    pub pointer: bool,
    /// Initial contents.
    pub fill: Fill,
}

/// A part of a composed value.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Offset, bytes.
    pub offset: u64,
    /// Its type.
    pub ty: Element,
    /// The value.
    pub value: PieceValue,
}

/// Value of a piece.
#[derive(Debug, Clone)]
pub enum PieceValue {
    /// A number.
    Number(Expr),
    /// The address of the argument of that index.
    Address(usize),
    /// A tensor map without the address of its tensor.
    TensorMap(Box<MapText>),
}

/// A tensor map of an argument. Lists begin with the outermost dimension, as shapes do.
#[derive(Clone)]
pub struct MapText {
    /// Type of the tensor's elements.
    pub element: TensorElement,
    /// Extents of the tensor, elements.
    pub shape: Vec<Expr>,
    /// Elements from one index to the next, for each dimension except the innermost; empty for a tensor
    /// without gaps.
    pub strides: Vec<Expr>,
    /// Extents of the box that a copy moves, elements.
    pub boxes: Vec<Expr>,
    /// Steps between the elements of the box; empty if all are 1.
    pub steps: Vec<Expr>,
    /// Of an im2col map, whose box has pixels and channels: the first coordinate of a filter's first pixel
    /// in each spatial dimension; else empty.
    pub lower: Vec<Expr>,
    /// The last such coordinate minus the last of the tensor.
    pub upper: Vec<Expr>,
    /// Bytes in which chunks of 16 are permuted: 0, 32, 64 or 128.
    pub swizzle: Expr,
    /// Bytes that a swizzle of 128 keeps together: 16, 32 or 64.
    pub swizzle_atom: Expr,
    /// Bytes of interleaved channels: 0, 16 or 32.
    pub interleave: Expr,
    /// Bytes that a miss brings into L2: 0, 64, 128 or 256.
    pub l2_promotion: Expr,
    /// 1 if elements outside the tensor are NaN, 0 if they are zero.
    pub nan_fill: Expr,
}

impl MapText {
    /// Returns the expressions in the order in which they are evaluated, each with its key.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expr)> {
        let lists = [
            ("shape", &self.shape),
            ("strides", &self.strides),
            ("box", &self.boxes),
            ("steps", &self.steps),
            ("lower", &self.lower),
            ("upper", &self.upper),
        ];
        let single = [
            ("swizzle", &self.swizzle),
            ("swizzle_atom", &self.swizzle_atom),
            ("interleave", &self.interleave),
            ("l2_promotion", &self.l2_promotion),
            ("nan_fill", &self.nan_fill),
        ];
        let lists = lists.into_iter();
        let lists = lists.flat_map(|(key, list)| list.iter().map(move |expr| (key, expr)));
        lists.chain(single)
    }
}

/// One launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The kernel function.
    pub entry: String,
    /// Condition of the launch.
    pub when: Option<Expr>,
    /// Indices of the launch's arguments.
    pub args: Vec<usize>,
    /// Blocks in x, y, z.
    pub grid: [Expr; 3],
    /// Threads per block in x, y, z.
    pub block: [Expr; 3],
    /// Dynamic shared memory a block, bytes.
    pub shared: Expr,
    /// Blocks of a cluster in x, y, z.
    pub cluster: Option<[Expr; 3]>,
    /// All blocks are resident at once and may wait for each other.
    pub cooperative: bool,
    /// The grid or the block is a guess, so hazards may be caused by the guess.
    pub guessed: bool,
}

/// Reference for the results.
#[derive(Debug, Clone)]
pub enum Reference {
    /// A built-in reference with this name.
    Oracle(String),
    /// A reference kernel, which receives all arguments in order.
    Kernel {
        /// Path of its file, relative paths resolved from the YAML's folder.
        source: PathBuf,
        /// Its launch; `when` is `None`.
        launch: Box<Launch>,
        /// A built-in reference that verifies the reference kernel once.
        proven_by: Option<String>,
    },
    /// No reference: the kernel is checked for hazards only.
    None,
    /// Values in files.
    Values {
        /// Files, one for each compared argument, in order.
        files: Vec<Fill>,
        /// Name under which something else accepted them, which is their identity.
        accepted_as: Option<String>,
    },
}

/// Comparison of results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Absolute tolerance; if neither tolerance is given, the oracle's error model decides.
    pub atol: Option<f64>,
    /// Relative tolerance.
    pub rtol: Option<f64>,
    /// Repeated runs must agree bit for bit.
    pub deterministic: bool,
    /// Treatment of unordered plain stores of the same value.
    pub same_value_writes: SameValueWrites,
}

/// Treatment of unordered plain stores of the same value to the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SameValueWrites {
    /// Not a hazard.
    Allow,
    /// A race, like any other.
    #[default]
    Race,
}

/// Limits of a device that expressions may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Streaming multiprocessors: `DEVICE_SM_COUNT`.
    pub sm_count: u32,
    /// Opt-in maximum of shared memory per block, including static, bytes: `DEVICE_SHARED_BYTES`.
    pub shared_bytes: u32,
    /// Compute capability, such as 90: `DEVICE_CC`.
    pub cc: u32,
    /// Maximum number of threads per block: `DEVICE_MAX_THREADS`.
    pub max_threads: u32,
}

/// Device names in expressions, each with its meaning.
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
    /// Iterates over the names and values for expressions.
    pub fn constants(&self) -> impl Iterator<Item = (String, Value)> {
        let values = [self.sm_count, self.shared_bytes, self.cc, self.max_threads];
        let named = DEVICE_NAMES.iter().zip(values);
        named.map(|((name, _), value)| ((*name).to_owned(), Value::Int(value.into())))
    }
}

impl KernelSpec {
    /// Explains why no configuration of this kernel can be ranked, with a fix; `None` if they can.
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

    /// Iterates over the files from which buffers are filled or with which they are compared.
    pub fn data_files_mut(&mut self) -> impl Iterator<Item = (&str, &mut DataFile)> {
        let values = match &mut self.reference {
            Reference::Values { files, .. } => files.as_mut_slice(),
            _ => &mut [],
        };
        let all = self.arguments.iter_mut().chain(&mut self.variables);
        let fills = all.filter_map(|argument| Some((&*argument.name, argument.fill.as_mut()?)));
        let fills = fills.chain(values.iter_mut().map(|fill| ("reference", fill)));
        fills.filter_map(|(name, fill)| match fill {
            Fill::File(file) => Some((name, file)),
            _ => None,
        })
    }

    /// Returns every data file, including those of all problems.
    #[must_use]
    pub fn data_paths(&self) -> Vec<PathBuf> {
        let mut spec = self.clone();
        let files: Vec<DataFile> = spec
            .data_files_mut()
            .map(|(_, file)| file.clone())
            .collect();
        let problems = self.problems.iter().chain(&self.check_problems);
        let names: Vec<&str> = problems.map(|problem| problem.name.as_str()).collect();
        let each = files.iter().flat_map(|file| match file.is_of_problem() {
            true => names.iter().map(|name| file.of_problem(name)).collect(),
            false => vec![file.clone()],
        });
        each.map(|file| PathBuf::from(&*file.path)).collect()
    }

    /// Returns the specification with the data files of one problem.
    #[must_use]
    pub(crate) fn of_problem(&self, problem: &str) -> Self {
        let mut spec = self.clone();
        let hashes = std::mem::take(&mut spec.data_hashes);
        for (_, file) in spec.data_files_mut() {
            if file.is_of_problem() {
                *file = file.of_problem(problem);
                file.hash = hashes.get(&*file.path).cloned();
            }
        }
        spec
    }

    /// Returns the configuration of all defaults, valid or not.
    #[must_use]
    pub fn default_config(&self) -> Config {
        Config::of_defaults(&self.parameters)
    }

    /// Returns a problem by name, tuned or for checks only.
    #[must_use]
    pub fn problem(&self, name: &str) -> Option<&Problem> {
        self.problems
            .iter()
            .chain(&self.check_problems)
            .find(|problem| problem.name == name)
    }

    /// Returns the names in expressions besides parameters, for one problem and device.
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
