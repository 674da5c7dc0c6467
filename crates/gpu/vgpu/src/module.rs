//! Loaded modules: parsed PTX with one flat program per entry.
#![expect(
    clippy::indexing_slicing,
    reason = "entries, programs and variables are numbered by the module that declares them"
)]

mod globals;
mod variables;

use std::sync::atomic::{AtomicU64, Ordering};

use globals::{Global, check_sizes, globals};

use crate::exec::launch::{Launch, LaunchError, parameters};
use crate::hazard::SourceLine;
use crate::lower::program::Program;
use crate::lower::{self, Form, Globals};
use crate::memory::GlobalMemory;
use ptx::ast::Function;
use ptx::stores::Roots;
use ptx::{self, PtxError};

/// One kernel parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Size, bytes.
    pub bytes: u32,
    /// Alignment, bytes.
    pub align: u32,
    /// Offset in the parameter buffer, bytes.
    pub offset: u32,
}

/// An instruction (or directive) that the virtual GPU does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: `{instruction}` at PTX line {line}{}", format_source(.source_line))]
pub struct Unsupported {
    /// The instruction as written.
    pub instruction: String,
    /// PTX line, from 1.
    pub line: u32,
    /// CUDA line.
    pub source_line: Option<SourceLine>,
}

fn format_source(source: &Option<SourceLine>) -> String {
    source
        .as_ref()
        .map(|s| format!(", {s}"))
        .unwrap_or_default()
}

/// Reason why PTX was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The text cannot be parsed as PTX.
    #[error(transparent)]
    Ptx(#[from] PtxError),
    /// An instruction that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// Dependence of a kernel's control flow on its block and on other blocks:
/// [`Module::control_dependence`].
#[derive(Debug, Clone, Copy)]
pub struct ControlDependence<'a> {
    program: &'a Program,
}

impl ControlDependence<'_> {
    /// Reports whether some branch depends on the block's index.
    #[must_use]
    pub fn depends_on_block(self) -> bool {
        self.program.by_block
    }

    /// Reports whether it depends on results of other blocks.
    #[must_use]
    pub fn depends_on_other_blocks(self) -> bool {
        self.program.by_others
    }

    /// Reports whether the value that the instruction `pc` loads may decide a branch or an address.
    #[must_use]
    pub fn is_decided_by(self, pc: u32) -> bool {
        let instruction = self.program.code.get(pc as usize);
        instruction.is_some_and(|i| i.keep & ptx::skeleton::DATA != 0)
    }
}

/// One kernel of a module.
#[derive(Debug)]
pub struct Entry {
    /// Name, as mangled by the compiler.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Parameter>,
    /// Static shared memory, bytes, as a GPU lays it out.
    pub static_shared_bytes: u32,
    /// `.maxntid`: maximum number of threads per block.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the required block size.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm` of `__launch_bounds__`.
    pub min_blocks_per_sm: Option<u32>,
    /// Directives about clusters.
    pub cluster: ptx::ast::ClusterDirectives,
}

/// Parsed and lowered PTX. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Module {
    id: u64,
    target: String,
    entries: Vec<Entry>,
    programs: Vec<Result<Program, Unsupported>>,
    globals: Vec<Global>,
    rounding_open: bool,
}

/// Products that may be fused with a sum, functions of angles, which SASS first divides by 2π with
/// rounding, and the inverse root of a double, which SASS computes from an approximation.
const ROUNDED_BY_CHOICE: [&str; 10] = [
    "mul.f32",
    "mul.ftz.f32",
    "mul.f64",
    "mul.f16",
    "mul.f16x2",
    "mul.bf16",
    "mul.bf16x2",
    "sin.approx",
    "cos.approx",
    "rsqrt.approx.f64",
];

/// Reports whether another execution of the same code may round differently: by choice of the
/// assembler, or because atomic sums come in another order.
fn rounding_open(ptx: &str) -> bool {
    let sums = |line: &str| {
        (line.contains("atom.") || line.contains("red.")) && line.contains(".add.") && {
            [".f16", ".bf16", ".f32", ".f64"]
                .iter()
                .any(|ty| line.contains(ty))
        }
    };
    // For Hopper the assembler splits sparse products of bytes into those of halves.
    let split = |line: &str| {
        line.contains("mma.sp") && [".e4m3", ".e5m2"].iter().any(|ty| line.contains(ty))
    };
    let chosen = |line: &str| ROUNDED_BY_CHOICE.iter().any(|name| line.contains(name));
    ptx.lines()
        .any(|line| sums(line) || split(line) || chosen(line))
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Module {
    /// Reads PTX text. An unsupported instruction is an error only for the entries that contain it:
    /// see [`Module::supported`].
    pub fn load(ptx: &str) -> Result<Module, LoadError> {
        Module::lowered(ptx, ptx::parse(ptx)?, Form::Plain)
    }

    /// Reads the slice of each entry that decides which bytes of global memory it accesses: see
    /// [`ptx::stores`]. Its launches do not store the kernel's results. An entry without a slice is
    /// reported by [`Module::supported`].
    ///
    /// # Errors
    /// Those of [`Module::load`].
    pub fn load_slice(ptx: &str, roots: Roots) -> Result<Module, LoadError> {
        Module::lowered(ptx, ptx::parse(ptx)?, Form::Slice(roots))
    }

    /// Reads PTX text, with products rounded as the assembler rounds them: fused with the following
    /// sum if the PTX leaves that open.
    ///
    /// # Errors
    /// Those of [`Module::load`].
    pub fn load_contracted(ptx: &str) -> Result<Module, LoadError> {
        let mut ast = ptx::parse(ptx)?;
        ptx::contract::contract(&mut ast);
        Module::lowered(ptx, ast, Form::Plain)
    }

    /// Reads PTX text for launches with [`Launch::rounding`]: floating-point results are rounded up
    /// or down at random. Instructions with a directed rounding (`.rz`, `.rm`, `.rp`) and the
    /// addition of a constant that rounds to an integer are unchanged, because kernels rely on
    /// them.
    ///
    /// # Errors
    /// Those of [`Module::load`].
    pub fn load_randomly_rounded(ptx: &str) -> Result<Module, LoadError> {
        Module::lowered(ptx, ptx::parse(ptx)?, Form::RandomlyRounded)
    }

    /// Reads PTX text for launches with [`Launch::shadow_values`].
    ///
    /// # Errors
    /// Those of [`Module::load`].
    pub fn load_with_shadow_values(ptx: &str) -> Result<Module, LoadError> {
        Module::lowered(ptx, ptx::parse(ptx)?, Form::Shadowed)
    }

    fn lowered(ptx: &str, ast: ptx::ast::Ast<'_>, form: Form) -> Result<Module, LoadError> {
        check_sizes(&ast)?;
        let functions = lower::FunctionTable::new(&ast);
        let (globals, index) = globals(&ast, &functions)?;
        let mut entries = Vec::new();
        let mut programs = Vec::new();
        for f in ast.functions.iter().filter(|f| f.entry && f.body.is_some()) {
            let lowered = lower::lower(
                &ast,
                Globals {
                    index: &index,
                    functions: &functions,
                },
                f,
                form,
            );
            let shared = lowered
                .as_ref()
                .map_or(0, |p| lower::shared_bytes(&p.shared));
            entries.push(entry_of(f, shared));
            programs.push(lowered);
        }
        Ok(Module {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            target: ast.target.to_owned(),
            entries,
            programs,
            globals,
            rounding_open: rounding_open(ptx),
        })
    }

    /// Reports whether another execution may round differently from the PTX here; PTX leaves the
    /// rounding of a product and a sum open by omitting `.rn`.
    pub fn leaves_rounding_open(&self) -> bool {
        self.rounding_open
    }

    /// Returns the `.target` of the PTX, such as `sm_80`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Iterates over the kernels.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns the kernel called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// Checks that every instruction of entry `name`, and of its callees, is supported. An unknown
    /// name is not an error here.
    pub fn supported(&self, name: &str) -> Result<(), Unsupported> {
        let found = self.entries.iter().position(|e| e.name == name);
        match found.map(|i| &self.programs[i]) {
            Some(Err(unsupported)) => Err(unsupported.clone()),
            _ => Ok(()),
        }
    }

    /// Returns the parameter buffer of a launch, as the kernel reads it.
    ///
    /// # Errors
    /// An entry that the module does not have, or arguments that do not match its parameters.
    pub fn parameters(
        &self,
        launch: &Launch,
        memory: &GlobalMemory,
    ) -> Result<Vec<u8>, LaunchError> {
        let (entry, _) = self.program(&launch.entry)?;
        parameters(launch, entry, memory)
    }

    /// Returns the dependence of a kernel's control flow.
    ///
    /// # Errors
    /// An entry that the module does not have, or that cannot be executed.
    pub fn control_dependence(&self, entry: &str) -> Result<ControlDependence<'_>, LaunchError> {
        let (_, program) = self.program(entry)?;
        Ok(ControlDependence { program: program? })
    }

    /// Returns an entry and its program.
    pub(crate) fn program(
        &self,
        name: &str,
    ) -> Result<(&Entry, Result<&Program, Unsupported>), LaunchError> {
        let Some(i) = self.entries.iter().position(|e| e.name == name) else {
            let known: Vec<&str> = self.entries.iter().map(|e| e.name.as_str()).collect();
            return Err(LaunchError::UnknownEntry {
                name: name.to_owned(),
                known: if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                },
            });
        };
        Ok((
            &self.entries[i],
            self.programs[i].as_ref().map_err(Clone::clone),
        ))
    }
}

/// Returns the C++ name of a PTX variable (`ns::name` in a namespace), or the symbol if it is not
/// mangled.
#[must_use]
pub fn plain_name(symbol: &str) -> String {
    let parts = || {
        let mut rest = symbol.strip_prefix("_Z")?;
        rest = rest.strip_prefix('N').unwrap_or(rest);
        let mut parts = Vec::new();
        loop {
            rest = rest.strip_prefix('L').unwrap_or(rest);
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (length, name) = rest.split_at_checked(digits)?;
            let Ok(length) = length.parse() else { break };
            let (part, more) = name.split_at_checked(length)?;
            parts.push(part);
            rest = more;
        }
        (!parts.is_empty()).then(|| parts.join("::"))
    };
    parts().unwrap_or_else(|| symbol.to_owned())
}

/// Reports whether a PTX variable is the C++ one of that name (`ns::name` in a namespace). A
/// mangled name has the length before each part, and an `L` before that for `static` ones.
fn is_named(symbol: &str, name: &str) -> bool {
    if symbol == name {
        return true;
    }
    let Some(rest) = symbol.strip_prefix("_Z") else {
        return false;
    };
    let (spaces, last) = name.rsplit_once("::").unwrap_or(("", name));
    let length = |part: &str| format!("{}{part}", part.len());
    let spaces: String = spaces
        .split("::")
        .filter(|part| !part.is_empty())
        .map(length)
        .collect();
    let nested = rest
        .strip_prefix('N')
        .and_then(|inner| inner.strip_suffix('E'));
    let own = nested.unwrap_or(rest).strip_prefix(spaces.as_str());
    own.is_some_and(|own| own.strip_prefix('L').unwrap_or(own) == length(last))
}

fn entry_of(f: &Function<'_>, static_shared_bytes: u32) -> Entry {
    let mut offset = 0u32;
    let mut params = Vec::new();
    for p in &f.params {
        offset = offset.next_multiple_of(p.align.max(1));
        params.push(Parameter {
            bytes: p.bytes as u32,
            align: p.align,
            offset,
        });
        offset += p.bytes as u32;
    }
    Entry {
        name: f.name.to_owned(),
        params,
        static_shared_bytes,
        max_threads: f.max_threads,
        required_threads: f.required_threads,
        min_blocks_per_sm: f.min_blocks,
        cluster: f.cluster,
    }
}
