//! What a device is asked to run: one problem of one candidate, with everything evaluated.
//!
//! Plans cross the pipe to the worker process, so they hold code, launches and seeds, never
//! tensors: the worker makes the data itself.

pub use crate::argument::{Passed, PlanArgument, PlanVariable, Role};
use crate::fill::Fill;
use crate::units::ContentHash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

/// One launch.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLaunch {
    /// Kernel name.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// Indices into the plan's arguments, in the order of the kernel's parameters.
    pub arguments: Vec<usize>,
    /// All blocks are on the device at once and may wait for each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
}

impl PlanLaunch {
    /// A launch without dynamic shared memory, whose blocks do not wait for each other.
    #[must_use]
    pub fn new(
        entry: impl Into<String>,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: Vec<usize>,
    ) -> Self {
        Self {
            entry: entry.into(),
            grid,
            block,
            shared_bytes: 0,
            arguments,
            cooperative: false,
        }
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        product(self.grid)
    }

    /// Threads in a block.
    #[must_use]
    pub fn threads(&self) -> u64 {
        product(self.block)
    }
}

/// Stored identities are made of this text: a field that later versions added stands in it only
/// where it says something.
impl fmt::Debug for PlanLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("PlanLaunch");
        text.field("entry", &self.entry)
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("shared_bytes", &self.shared_bytes)
            .field("arguments", &self.arguments);
        if self.cooperative {
            text.field("cooperative", &self.cooperative);
        }
        text.finish()
    }
}

/// Compiled code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// PTX text, for the virtual GPU.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub ptx: std::sync::Arc<str>,
    /// Machine code, for a real GPU.
    #[serde(
        with = "machine_code",
        default,
        skip_serializing_if = "<[u8]>::is_empty"
    )]
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
    /// None: results are not compared.
    None,
    /// Values in files, one for each compared argument, in order.
    Values(Vec<Fill>),
}

/// How results are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
    /// Variables of the code, and of a reference kernel's, that are set before the first launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<PlanVariable>,
    /// Code of the kernels that fill arguments (`Fill::Kernel`), where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Code>,
    /// Whole numbers above 1 among the values of the space's parameters, ascending: tiles of these
    /// sizes may have faults at their edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tile_sizes: Vec<u64>,
}

impl Plan {
    /// A plan without a name, sizes, variables or a count of its work, for a kernel that gives the
    /// same bits each time.
    #[must_use]
    pub fn new(
        arguments: Vec<PlanArgument>,
        launches: Vec<PlanLaunch>,
        code: Code,
        reference: PlanReference,
    ) -> Self {
        Self {
            problem: String::new(),
            sizes: Vec::new(),
            arguments,
            launches,
            code,
            reference,
            gate: PlanGate {
                deterministic: true,
                ..PlanGate::default()
            },
            flops: None,
            bytes: None,
            variables: Vec::new(),
            generators: None,
            tile_sizes: Vec::new(),
        }
    }
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
    /// What its arguments and variables are filled with.
    pub fn fills_mut(&mut self) -> impl Iterator<Item = &mut Fill> {
        let variables = self
            .variables
            .iter_mut()
            .map(|variable| &mut variable.holds);
        let all = self.arguments.iter_mut().chain(variables);
        let values = match &mut self.reference {
            PlanReference::Values(values) => values.as_mut_slice(),
            _ => &mut [],
        };
        all.flat_map(PlanArgument::fills_mut).chain(values)
    }

    /// Identity of what runs: `code`, which names the machine code (the bytes, or their hash),
    /// launched like this on these arguments. Equal work has equal results and times. Stored with
    /// measured times as the identity of their reference (by the bytes), so it must not change.
    #[must_use]
    pub fn work(&self, code: &[u8]) -> ContentHash {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(PlanArgument::identity_text)
            .collect();
        let mut rest = format!(
            "{}|{:?}|[{}]|{:?}",
            self.problem,
            self.sizes,
            arguments.join(", "),
            self.launches
        );
        for variable in &self.variables {
            // Writing to a String cannot fail.
            let _ = write!(rest, "|{}", variable.holds.identity_text());
        }
        ContentHash::of([code, rest.as_bytes()])
    }

    /// The buffers whose content is compared, in their order.
    pub fn compared(&self) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(|argument| argument.role.is_compared())
    }

    /// The buffers that are filled before the first launch, in their order.
    pub fn filled(&self) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(|argument| argument.role.is_filled())
    }

    /// The arguments of a role, in their order.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(move |argument| argument.role == role)
    }

    /// All code in it: the candidate's, and that of a naive reference.
    pub fn codes_mut(&mut self) -> Vec<&mut Code> {
        let mut codes = vec![&mut self.code];
        codes.extend(&mut self.generators);
        if let PlanReference::Kernel { code, .. } = &mut self.reference {
            codes.push(code);
        }
        codes
    }

    /// With only the code that the device runs.
    #[must_use]
    pub fn packed(mut self, carry: CodeFormat) -> Self {
        // The model of the virtual GPU's time reads the candidate's machine code.
        let whole = usize::from(carry == CodeFormat::Ptx);
        for code in self.codes_mut().into_iter().skip(whole) {
            *code = code.clone().packed(carry);
        }
        self
    }
}

fn product(extents: [u32; 3]) -> u64 {
    let factors = extents.into_iter().map(u64::from);
    factors.fold(1, u64::saturating_mul)
}

/// Bytes as bytes, where the format has them (`serde_bytes` has no `Arc`).
mod machine_code {
    use serde::Deserialize as _;
    use std::sync::Arc;

    pub(super) fn serialize<S: serde::Serializer>(
        bytes: &Arc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[u8]>, D::Error> {
        serde_bytes::ByteBuf::deserialize(deserializer).map(|bytes| bytes.into_vec().into())
    }
}

#[cfg(test)]
mod tests;
