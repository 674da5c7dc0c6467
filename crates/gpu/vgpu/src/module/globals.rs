//! Variables of a module, and limits on sizes.

use std::collections::{HashMap, HashSet};

use super::LoadError;
use crate::lower::FunctionTable;
use ptx::ast::{Ast, Init, StateSpace, Variable};
use ptx::stored::never_written;
use ptx::{PtxError, PtxErrorKind};

/// A `.global` or `.const` variable.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// A variable without an initializer that no kernel writes: the host must set it.
    pub(super) unset: bool,
    /// Addresses to fill in.
    pub(super) pointers: Vec<Pointer>,
}

/// An element of an initializer that holds the address of a variable, or some bits of it.
#[derive(Debug)]
pub(super) struct Pointer {
    /// Byte offset of the element, and its size.
    pub(super) at: usize,
    pub(super) bytes: usize,
    /// The variable, and the offset added to its address.
    pub(super) target: usize,
    pub(super) offset: u64,
    /// The bits that are kept, from the lowest one on.
    pub(super) mask: u64,
}

/// Returns the bits of a mask, from its lowest one on.
pub(super) fn masked(value: u64, mask: u64) -> u64 {
    (value & mask) >> (mask.trailing_zeros() & 63)
}

/// Maximum size of a function's parameters and of its local and shared variables, bytes.
const MAX_FUNCTION_BYTES: u64 = 1 << 24;

/// Rejects sizes that no GPU supports, before anything is computed from them.
pub(super) fn check_sizes(ast: &Ast<'_>) -> Result<(), LoadError> {
    let device = |v: &&Variable<'_>| matches!(v.space, StateSpace::Global | StateSpace::Const);
    let outside: Vec<&Variable<'_>> = ast.variables.iter().filter(|v| !device(v)).collect();
    let functions = ast.functions.iter().map(|f| {
        let body = f.body.iter().flat_map(|b| &b.variables);
        let own = f.params.iter().chain(&f.returns).chain(body);
        own.filter(|v| !device(v)).collect()
    });
    for group in functions.chain([outside]) {
        let mut total = 0u64;
        for v in group {
            total = total.saturating_add(v.bytes).saturating_add(v.align.into());
            if total > MAX_FUNCTION_BYTES {
                return Err(LoadError::Ptx(PtxError {
                    line: v.line,
                    column: 1,
                    kind: PtxErrorKind::Syntax,
                    message: format!("with `{}` the variables take {total} bytes", v.name),
                }));
            }
        }
    }
    Ok(())
}

/// Maximum size of a module's variables, bytes: a text with more is not a kernel.
const MAX_GLOBAL_BYTES: u64 = 1 << 30;

pub(super) fn globals(
    ast: &Ast<'_>,
    functions: &FunctionTable<'_>,
) -> Result<(Vec<Global>, HashMap<String, u32>), LoadError> {
    let device = |v: &&Variable<'_>| matches!(v.space, StateSpace::Global | StateSpace::Const);
    let mut named: Vec<(String, &Variable<'_>)> = ast
        .variables
        .iter()
        .filter(device)
        .map(|v| (v.name.to_owned(), v))
        .collect();
    for f in &ast.functions {
        let inside = f.body.iter().flat_map(|b| &b.variables).filter(device);
        named.extend(inside.map(|v| (format!("{}::{}", f.name, v.name), v)));
    }
    let total = named
        .iter()
        .fold(0u64, |t, (_, v)| t.saturating_add(v.bytes));
    if total > MAX_GLOBAL_BYTES {
        return Err(LoadError::Ptx(PtxError {
            line: named.first().map_or(1, |(_, v)| v.line),
            column: 1,
            kind: PtxErrorKind::Syntax,
            message: format!("the variables of the module take {total} bytes"),
        }));
    }
    let index: HashMap<String, u32> = named
        .iter()
        .enumerate()
        .map(|(i, (name, _))| (name.clone(), i as u32))
        .collect();
    let unwritten = never_written(ast);
    let globals = named
        .iter()
        .map(|(name, v)| global_of(name, v, &index, functions, &unwritten))
        .collect();
    Ok((globals, index))
}

fn global_of(
    name: &str,
    v: &Variable<'_>,
    index: &HashMap<String, u32>,
    functions: &FunctionTable<'_>,
    unwritten: &HashSet<String>,
) -> Global {
    let mut bytes = vec![0; v.bytes as usize];
    let mut pointers = Vec::new();
    let width = v.ty.bytes().max(1) as usize;
    for (i, init) in v.init.iter().enumerate() {
        let at = i * width;
        let value = match init {
            Init::Bits(b) => *b,
            Init::F32(b) if width == 8 => f64::from(f32::from_bits(*b)).to_bits(),
            Init::F32(b) => (*b).into(),
            Init::F64(b) if width == 4 => (f64::from_bits(*b) as f32).to_bits().into(),
            Init::F64(b) => *b,
            Init::Address {
                symbol,
                offset,
                mask,
                ..
            } => {
                if let Some(target) = index.get(*symbol) {
                    pointers.push(Pointer {
                        at,
                        bytes: width.min(8),
                        target: *target as usize,
                        offset: *offset as u64,
                        mask: *mask,
                    });
                }
                // A variable hides a function, of which there is none of its name.
                let function = functions.address(symbol);
                function.map_or(0, |address| {
                    masked(address.wrapping_add_signed(*offset), *mask)
                })
            }
        };
        let n = width.min(8);
        if let Some(slot) = bytes.get_mut(at..at + n) {
            slot.copy_from_slice(&value.to_le_bytes()[..n]);
        }
    }
    Global {
        name: name.to_owned(),
        bytes,
        unset: v.init.is_empty() && (v.space == StateSpace::Const || unwritten.contains(name)),
        pointers,
    }
}
