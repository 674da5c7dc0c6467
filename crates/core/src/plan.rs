//! Plan: one problem of one candidate for a device, with all expressions evaluated.
//!
//! Plans cross the pipe to the worker process, so they hold code, launches and seeds, never
//! tensors: the worker generates the data.

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
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y, z, if the launch specifies them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Indices into the plan's arguments, in the order of the kernel's parameters.
    pub arguments: Vec<usize>,
    /// All blocks are resident at once and may wait for each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
}

impl PlanLaunch {
    /// Creates a launch without dynamic shared memory, whose blocks do not wait for each other.
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
            cluster: None,
            arguments,
            cooperative: false,
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        product(self.grid)
    }

    /// Returns the threads in a block.
    #[must_use]
    pub fn threads(&self) -> u64 {
        product(self.block)
    }
}

/// Stored identities are computed from this text: a field added by a later version is included only
/// if it is not at its default.
impl fmt::Debug for PlanLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("PlanLaunch");
        text.field("entry", &self.entry)
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("shared_bytes", &self.shared_bytes)
            .field("arguments", &self.arguments);
        if let Some(cluster) = &self.cluster {
            text.field("cluster", cluster);
        }
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
    /// Registers per thread, the largest over the kernels.
    pub registers: u32,
    /// Static shared memory per block, the largest over the kernels, bytes.
    pub static_shared_bytes: u64,
    /// Resources of each kernel, by entry: a small kernel is not charged for a large one.
    #[serde(default)]
    pub kernels: BTreeMap<String, KernelNeeds>,
}

/// Multiprocessor resources of one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNeeds {
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, bytes.
    pub static_shared_bytes: u64,
}

impl Code {
    /// Returns the resources of the kernel of that name; the largest of all if it is unknown.
    #[must_use]
    pub fn needs(&self, entry: &str) -> KernelNeeds {
        let largest = KernelNeeds {
            registers: self.registers,
            static_shared_bytes: self.static_shared_bytes,
        };
        self.kernels.get(entry).copied().unwrap_or(largest)
    }
}

/// Source of the expected results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanReference {
    /// A built-in float64 oracle, by name.
    Oracle(String),
    /// A naive kernel, run on the same device.
    Kernel {
        /// Its code.
        code: Code,
        /// Its launch; its arguments are all arguments of the plan, in order.
        launch: PlanLaunch,
        /// The built-in oracle that it is compared with once, if the space names one.
        #[serde(default)]
        oracle: Option<String>,
    },
    /// None: results are not compared.
    None,
    /// Values in files, one for each compared argument, in order.
    Values(Vec<Fill>),
}

/// Rules for judging results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanGate {
    /// Absolute tolerance; `None` for the oracle's own error model.
    pub atol: Option<f64>,
    /// Relative tolerance.
    pub rtol: Option<f64>,
    /// Number of terms of the sum of an output element, if the space declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<f64>,
    /// Two runs on one input must have equal bits.
    pub deterministic: bool,
    /// Unordered plain stores of the same value are not a race.
    pub same_value_writes: bool,
}

impl PlanGate {
    /// Returns the space's `atol` and `rtol`; if one is absent it is zero. `None` if both are absent.
    #[must_use]
    pub fn tolerance(&self) -> Option<(f64, f64)> {
        let (atol, rtol) = (self.atol, self.rtol);
        atol.or(rtol)
            .map(|_| (atol.unwrap_or(0.0), rtol.unwrap_or(0.0)))
    }
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
    /// The expected results.
    pub reference: PlanReference,
    /// Rules for judging.
    pub gate: PlanGate,
    /// Useful arithmetic operations of the problem, from the space's `metric`.
    pub flops: Option<f64>,
    /// Bytes that must move, from the space's `metric`.
    pub bytes: Option<f64>,
    /// Variables of the code, and of a reference kernel's, that are set before the first launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<PlanVariable>,
    /// Code of the kernels that fill arguments (`Fill::Kernel`), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Code>,
    /// Integers above 1 among the values of the space's parameters, ascending: tiles of these sizes
    /// may have faults at their edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tile_sizes: Vec<u64>,
}

impl Plan {
    /// Creates a plan without a name, sizes, variables or work counts, for a deterministic kernel.
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

/// Form of the code that a device runs. The other form is omitted from its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeFormat {
    /// PTX, with the candidate's machine code for the timing model: the virtual GPU.
    Ptx,
    /// Machine code: a real GPU.
    Cubin,
    /// PTX in place of machine code: the tests' stand-in for a driver.
    PtxAsCubin,
}

impl Code {
    /// Keeps only the code that the device runs.
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
    /// Returns the fills of its arguments and variables.
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

    /// Returns the identity of the work: `code`, which identifies the machine code (the bytes, or their
    /// hash), with these launches and arguments. Equal work has equal results and times. It is stored with
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
        ContentHash::from_parts([code, rest.as_bytes()])
    }

    /// Returns the compared buffers, in order.
    pub fn compared(&self) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(|argument| argument.role.is_compared())
    }

    /// Returns the buffers that are filled before the first launch, in order.
    pub fn filled(&self) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(|argument| argument.role.is_filled())
    }

    /// Returns the arguments of a role, in order.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &PlanArgument> {
        let arguments = self.arguments.iter();
        arguments.filter(move |argument| argument.role == role)
    }

    /// Returns all code in it: the candidate's, and that of a naive reference.
    pub fn codes_mut(&mut self) -> Vec<&mut Code> {
        let mut codes = vec![&mut self.code];
        codes.extend(&mut self.generators);
        if let PlanReference::Kernel { code, .. } = &mut self.reference {
            codes.push(code);
        }
        codes
    }

    /// Keeps only the code that the device runs.
    #[must_use]
    pub fn packed(mut self, carry: CodeFormat) -> Self {
        // The virtual GPU's timing model reads the candidate's machine code.
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

/// Byte serialization, if the format supports it (`serde_bytes` lacks `Arc`).
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
