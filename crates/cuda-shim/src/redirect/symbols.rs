//! Functions of the CUDA runtime in the symbol table of a file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Version of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// Before CUDA 12.
    Older,
    /// CUDA 12.
    Cuda12,
    /// CUDA 13 and newer.
    Cuda13,
}

/// A function with its place.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// Address in the file.
    pub(super) offset: usize,
    /// Bytes from its start to that of the next function.
    pub(super) room: usize,
}

/// Section of symbols.
const SHT_SYMTAB: u32 = 2;
const STT_FUNC: u8 = 2;
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// Function that each program with a kernel calls.
const REGISTRATION: &str = "__cudaRegisterFatBinary";
/// Functions that CUDA 12 and CUDA 13 removed.
const REMOVED: [&str; 2] = ["cudaUnbindTexture", "cudaGetDeviceProperties_v2"];

/// Returns the functions of the runtime that is linked into a file; `None` where there is none, or no table of
/// symbols.
pub(super) fn find_runtime(path: &Path) -> Option<(Runtime, Vec<Function>)> {
    let file = File::open(path).ok()?;
    let functions = read_functions(&|offset, bytes| read_at(&file, offset, bytes))?;
    Some((version(&functions)?, functions))
}

/// Returns the version of the runtime that is linked into a file with these bytes; `None` where there is none, or
/// no table of symbols.
#[must_use]
pub fn runtime_in(file: &[u8]) -> Option<Runtime> {
    let part = |offset: u64, bytes: usize| {
        let start = usize::try_from(offset).ok()?;
        Some(file.get(start..start.checked_add(bytes)?)?.to_vec())
    };
    version(&read_functions(&part)?)
}

/// Returns the version of a runtime by its functions; `None` if they are not those of one.
fn version(functions: &[Function]) -> Option<Runtime> {
    let has = |name: &str| functions.iter().any(|function| function.name == name);
    if !has(REGISTRATION) {
        return None;
    }
    Some(match REMOVED.map(has) {
        [true, _] => Runtime::Older,
        [false, true] => Runtime::Cuda12,
        [false, false] => Runtime::Cuda13,
    })
}

fn read_at(file: &File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    read.try_reserve_exact(bytes).ok()?;
    read.resize(bytes, 0);
    file.read_exact_at(&mut read, offset).ok()?;
    Some(read)
}

/// Reads the functions of a runtime's names, from a file whose parts `read` returns.
fn read_functions(read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Option<Vec<Function>> {
    let header = read(0, HEADER_BYTES)?;
    // 64 bits, little endian.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let count = usize::from(u16::from_le_bytes(field(&header, 0x3c)?));
    let sections = read(number(&header, 0x28)?, count * SECTION_BYTES)?;
    let sections: Vec<&[u8]> = sections.chunks_exact(SECTION_BYTES).collect();
    let symbols = sections
        .iter()
        .find(|section| field(section, 4).map(u32::from_le_bytes) == Some(SHT_SYMTAB))?;
    let names = usize::try_from(u32::from_le_bytes(field(symbols, 0x28)?)).ok()?;
    let content = |section: &[u8]| {
        let bytes = usize::try_from(number(section, 0x20)?).ok()?;
        read(number(section, 0x18)?, bytes)
    };
    let (names, symbols) = (content(sections.get(names)?)?, content(symbols)?);
    let defined = symbols.chunks_exact(SYMBOL_BYTES).filter_map(start);
    let mut starts: Vec<usize> = defined.collect();
    starts.sort_unstable();
    let functions = symbols.chunks_exact(SYMBOL_BYTES);
    Some(
        functions
            .filter_map(|it| function(it, &names, &starts))
            .collect(),
    )
}

/// Returns the address of a defined function; `None` for another symbol.
fn start(symbol: &[u8]) -> Option<usize> {
    let [kind] = field(symbol, 4)?;
    let defined = u16::from_le_bytes(field(symbol, 6)?) != 0;
    let address = usize::try_from(number(symbol, 8)?).ok();
    address.filter(|_| kind & 0xf == STT_FUNC && defined)
}

/// Reads a symbol, with the ascending addresses of all functions; `None` if it is not a defined function of a
/// runtime's names.
fn function(symbol: &[u8], names: &[u8], starts: &[usize]) -> Option<Function> {
    let name = usize::try_from(u32::from_le_bytes(field(symbol, 0)?)).ok()?;
    let offset = start(symbol)?;
    let next = starts.get(starts.partition_point(|start| *start <= offset));
    let name = names.get(name..)?.split(|byte| *byte == 0).next()?;
    if !name.starts_with(b"cuda") && !name.starts_with(b"__cuda") {
        return None;
    }
    Some(Function {
        name: String::from_utf8(name.to_vec()).ok()?,
        offset,
        room: next.map_or(usize::MAX, |next| next - offset),
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
