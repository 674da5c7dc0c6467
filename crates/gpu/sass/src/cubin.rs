//! Kernels of a cubin with their code, constants, attributes and relocations.

use crate::decode::decode;
use crate::elf::{Elf, Section, number};
use crate::info::Info;
use crate::instruction::{Instruction, Unknown};
use crate::lines;
use std::collections::BTreeMap;

/// Shared memory that the system reserves in each block from compute capability 9.0 on, bytes.
const RESERVED_SHARED_BYTES: u64 = 1024;

/// Error for bytes that are not a complete 64-bit ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CubinError;

impl std::fmt::Display for CubinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no complete ELF file")
    }
}

impl std::error::Error for CubinError {}

/// The contents of a cubin.
#[derive(Debug, Clone, Default)]
pub struct Cubin {
    /// Compute capability times ten.
    pub sm: u32,
    /// Kernels, and functions with a separate section, by name.
    pub kernels: BTreeMap<String, Kernel>,
    /// Variables in global memory and in the user's constant bank.
    pub globals: Vec<Global>,
    /// Initial values at the start of global memory, from `.nv.global.init`.
    pub initial: Vec<u8>,
    /// Addresses in the initial values of variables.
    pub pointers: Vec<Pointer>,
}

/// One kernel.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// True for a kernel that can be launched; false for a function that can only be called.
    pub entry: bool,
    /// Instructions in order of address, 16 bytes each.
    pub code: Vec<Result<Instruction, Unknown>>,
    /// The encodings.
    pub words: Vec<u128>,
    /// Functions in the code, in order of address; the kernel is the first.
    pub functions: Vec<Function>,
    /// Constant banks by number: 0 launch parameters (zeros here), 2 compiler, 3 user, 4 addresses
    /// of variables, which relocations fill in.
    pub constants: BTreeMap<u8, Vec<u8>>,
    /// Its attributes.
    pub info: Info,
    /// Statically declared shared memory, bytes.
    pub shared: u64,
    /// Relocations for the loader.
    pub relocations: Vec<Relocation>,
    /// PTX lines: start address and line, in order of address; empty if the file has none.
    pub lines: Vec<(u32, u32)>,
}

/// A function within a kernel's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Byte address of the first instruction.
    pub address: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Section of the variable, for example `.nv.global.init` or `.nv.constant3`.
    pub section: String,
    /// Bytes from the start of the section.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// An address in the initial value of a variable, 8 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Name of the variable.
    pub variable: String,
    /// Bytes from its start.
    pub offset: u64,
    /// Variable or function whose address it is.
    pub symbol: String,
    /// Number added to the address.
    pub addend: i64,
}

/// Destination of a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelocationTarget {
    /// The kernel's code.
    Code,
    /// A constant bank.
    Constant(u8),
}

/// A relocation: the loader writes the address of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Code or bank to write.
    pub target: RelocationTarget,
    /// Byte offset in the destination.
    pub offset: u64,
    /// NVIDIA's number of the relocation type, for example 2 for a 64-bit address.
    pub kind: u32,
    /// Symbol whose address is written.
    pub symbol: String,
    /// Number added to the address.
    pub addend: i64,
}

impl Cubin {
    /// Reads a cubin. Unknown instructions are kept in the code as [`Unknown`].
    ///
    /// # Errors
    /// Bytes that are not a complete 64-bit ELF file.
    pub fn read(bytes: &[u8]) -> Result<Cubin, CubinError> {
        let elf = Elf::read(bytes).ok_or(CubinError)?;
        let mut lines = lines::read(&elf);
        let mut out = Cubin {
            sm: elf.sm,
            initial: data(&elf, ".nv.global.init"),
            ..Cubin::default()
        };
        for (index, section) in elf.sections.iter().enumerate() {
            if let Some(name) = section.name.strip_prefix(".text.") {
                let mut kernel = kernel(&elf, index, section, name);
                kernel.lines = lines.remove(name).unwrap_or_default();
                out.kernels.insert(name.to_owned(), kernel);
            }
        }
        // Kind 1 is `STT_OBJECT` in ELF: a variable.
        let objects = elf.symbols.iter().filter(|symbol| symbol.kind == 1);
        out.globals = objects
            .filter_map(|symbol| {
                Some(Global {
                    name: symbol.name.clone(),
                    section: elf.sections.get(symbol.section)?.name.clone(),
                    offset: symbol.value,
                    size: symbol.size,
                })
            })
            .collect();
        out.pointers = pointers(&elf, &out.globals);
        Ok(out)
    }
}

fn data(elf: &Elf<'_>, name: &str) -> Vec<u8> {
    elf.section(name)
        .map(|section| section.data.to_vec())
        .unwrap_or_default()
}

fn kernel(elf: &Elf<'_>, index: usize, section: &Section<'_>, name: &str) -> Kernel {
    let words = section.data.as_chunks::<16>().0.iter();
    let words: Vec<u128> = words.map(|word| u128::from_le_bytes(*word)).collect();
    let code = words
        .iter()
        .zip((0..).step_by(16))
        .map(|(word, address)| decode(*word, address, elf.sm))
        .collect();
    let mut functions: Vec<Function> = elf
        .symbols
        .iter()
        .filter(|symbol| symbol.section == index && symbol.kind == 2)
        .map(|symbol| Function {
            name: symbol.name.clone(),
            address: symbol.value as u32,
            size: symbol.size as u32,
        })
        .collect();
    // Of two functions at the same address the larger one comes first: it contains the other.
    functions.sort_by(|a, b| (a.address, b.size).cmp(&(b.address, a.size)));
    let symbol = elf.symbols.iter().position(|symbol| symbol.name == name);
    let entry = symbol.and_then(|symbol| elf.symbols.get(symbol));
    let own = data(elf, &format!(".nv.info.{name}"));
    Kernel {
        entry: entry.is_some_and(|symbol| symbol.entry),
        code,
        words,
        functions,
        constants: constants(elf, name),
        info: Info::read(&own, &data(elf, ".nv.info"), symbol.unwrap_or(usize::MAX)),
        shared: static_shared(elf, name),
        relocations: relocations(elf, index, name),
        lines: Vec::new(),
    }
}

/// Returns the bytes of shared memory that a kernel declares. From compute capability 9.0 on its section begins
/// with those that the system reserves, which the limits of a launch do not count.
fn static_shared(elf: &Elf<'_>, name: &str) -> u64 {
    let section = elf.section(&format!(".nv.shared.{name}"));
    let all = section.map_or(0, |section| section.size);
    match elf.section(".nv.shared.reserved.0") {
        Some(_) if elf.sm >= 90 => all.saturating_sub(RESERVED_SHARED_BYTES),
        _ => all,
    }
}

/// Returns the bank and the kernel named by a constant section; no kernel for a common section.
fn bank(section: &str) -> Option<(u8, Option<&str>)> {
    let rest = section.strip_prefix(".nv.constant")?;
    match rest.split_once('.') {
        Some((number, kernel)) => Some((number.parse().ok()?, Some(kernel))),
        None => Some((rest.parse().ok()?, None)),
    }
}

fn constants(elf: &Elf<'_>, name: &str) -> BTreeMap<u8, Vec<u8>> {
    let sections = elf.sections.iter();
    sections
        .filter_map(|section| {
            let (number, kernel) = bank(&section.name)?;
            // A section without a kernel's name is common to all kernels, such as the user's
            // constants.
            let ours = kernel.is_none_or(|kernel| kernel == name);
            ours.then(|| (number, section.data.to_vec()))
        })
        .collect()
}

/// Returns the size of an entry of a section of relocations.
fn entry_bytes(section: &Section<'_>) -> Option<usize> {
    match () {
        () if section.name.starts_with(".rela.") => Some(24),
        () if section.name.starts_with(".rel.") => Some(16),
        () => None,
    }
}

/// Returns the addresses in the initial values of variables.
fn pointers(elf: &Elf<'_>, globals: &[Global]) -> Vec<Pointer> {
    let mut out = Vec::new();
    for section in &elf.sections {
        let changed = elf.sections.get(section.info as usize);
        let (Some(entry), Some(changed)) = (entry_bytes(section), changed) else {
            continue;
        };
        if ![".nv.global.init", ".nv.constant3"].contains(&changed.name.as_str()) {
            continue;
        }
        for entry in section.data.chunks_exact(entry) {
            let field = |at| number::<4>(entry, at).unwrap_or(0);
            let at = number::<8>(entry, 0).unwrap_or(0);
            let holds = |global: &&Global| {
                let inside = at.checked_sub(global.offset);
                global.section == changed.name && inside.is_some_and(|at| at < global.size)
            };
            let holder = globals.iter().find(holds);
            let symbol = elf.symbols.get(field(12) as usize);
            // Types of 64-bit addresses; the others are in no data that compilers write.
            let (Some(variable), Some(symbol), 2 | 4) = (holder, symbol, field(8)) else {
                continue;
            };
            // The short form has the addend in the place itself.
            let stored = number::<8>(entry, 16).or_else(|| number::<8>(changed.data, at as usize));
            out.push(Pointer {
                variable: variable.name.clone(),
                offset: at - variable.offset,
                symbol: symbol.name.clone(),
                addend: stored.unwrap_or(0) as i64,
            });
        }
    }
    out
}

fn relocations(elf: &Elf<'_>, code: usize, name: &str) -> Vec<Relocation> {
    let mut out = Vec::new();
    for section in &elf.sections {
        let Some(entry) = entry_bytes(section) else {
            continue;
        };
        let Some(changed) = elf.sections.get(section.info as usize) else {
            continue;
        };
        let target = if section.info as usize == code {
            RelocationTarget::Code
        } else {
            match bank(&changed.name) {
                Some((number, kernel)) if kernel.is_none_or(|kernel| kernel == name) => {
                    RelocationTarget::Constant(number)
                }
                _ => continue,
            }
        };
        out.extend(section.data.chunks_exact(entry).map(|entry| {
            let field = |at| number::<4>(entry, at).unwrap_or(0);
            let symbol = elf.symbols.get(field(12) as usize);
            Relocation {
                target,
                offset: number::<8>(entry, 0).unwrap_or(0),
                kind: field(8) as u32,
                symbol: symbol.map(|symbol| symbol.name.clone()).unwrap_or_default(),
                // The short form ends before it.
                addend: number::<8>(entry, 16).unwrap_or(0) as i64,
            }
        }));
    }
    out
}
