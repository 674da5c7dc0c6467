//! Code of several sections: a kernel with the functions that it calls, as the linker of relocatable device code
//! leaves them, and the relocations of both.

use std::collections::BTreeMap;

use crate::cubin::{Cubin, Kernel, Relocation, RelocationTarget};
use crate::decode::decode;
use crate::instruction::{Instruction, Unknown};

/// Instructions before the first function, so that no function has the address 0.
const PAD: usize = 8;
/// Constant bank of literals.
const LITERALS: u8 = 2;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: usize = 16;

/// Relocation types: halves of an address in a 32-bit immediate, and the target of an absolute call before and from
/// compute capability 9.0 on.
const LOW_HALF: u32 = 56;
const HIGH_HALF: u32 = 57;
const CALL_TARGET: u32 = 58;
const LONG_CALL_TARGET: u32 = 75;

/// Code of a kernel and all functions of its file.
#[derive(Debug, Clone)]
pub struct LinkedCode {
    /// Instructions in order of address.
    pub code: Vec<Result<Instruction, Unknown>>,
    /// Index of the first instruction of the kernel.
    pub start: usize,
}

/// Error in linking code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkError {
    /// A symbol without an address.
    Symbol(String),
    /// A type of relocation that is not known.
    Kind(u32),
    /// A function with literals of its own, which only the kernel's bank can hold.
    Literals(String),
}

impl std::fmt::Display for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LinkError::Symbol(name) => write!(f, "the address of `{name}` is not known"),
            LinkError::Kind(kind) => write!(f, "a relocation of type {kind}"),
            LinkError::Literals(name) => write!(f, "the function `{name}` has literals of its own"),
        }
    }
}

impl std::error::Error for LinkError {}

impl Cubin {
    /// Returns the addresses of functions with sections of their own: the same in the code of every kernel.
    #[must_use]
    pub fn function_addresses(&self) -> BTreeMap<&str, u64> {
        let mut next = PAD;
        let mut addresses = BTreeMap::new();
        for (name, function) in self.functions() {
            addresses.insert(name, (next * INSTRUCTION_BYTES) as u64);
            next += function.words.len();
        }
        addresses
    }

    fn functions(&self) -> impl Iterator<Item = (&str, &Kernel)> {
        let all = self.kernels.iter().filter(|(_, kernel)| !kernel.entry);
        all.map(|(name, kernel)| (name.as_str(), kernel))
    }

    /// Reports whether a kernel cannot run from its own section alone.
    #[must_use]
    pub fn needs_link(&self, entry: &str) -> bool {
        let relocated = |kernel: &Kernel| {
            let mut code = kernel.relocations.iter().filter(|r| is_code(r));
            code.any(|r| !kernel.functions.iter().any(|f| f.name == r.symbol))
        };
        self.functions().next().is_some() || self.kernels.get(entry).is_some_and(relocated)
    }

    /// Returns the sections whose code a kernel may execute, by name.
    fn reachable<'a>(&'a self, entry: &'a str) -> BTreeMap<&'a str, &'a Kernel> {
        // Functions in tables may be called by any kernel.
        let pointers = self.pointers.iter().map(|pointer| pointer.symbol.as_str());
        let mut next: Vec<&str> = pointers.chain([entry]).collect();
        let mut reached = BTreeMap::new();
        while let Some(name) = next.pop() {
            if let Some(kernel) = self.kernels.get(name)
                && reached.insert(name, kernel).is_none()
            {
                next.extend(kernel.relocations.iter().map(|r| r.symbol.as_str()));
            }
        }
        reached
    }

    /// Joins a kernel with all functions; `address` returns the addresses of other symbols.
    ///
    /// # Errors
    /// A relocation that cannot be applied.
    pub fn link(
        &self,
        entry: &str,
        address: impl Fn(&str) -> Option<u64>,
    ) -> Result<LinkedCode, LinkError> {
        let reached = self.reachable(entry);
        let literals = |kernel: &&Kernel| kernel.constants.get(&LITERALS).cloned();
        let own = reached.get(entry).and_then(literals);
        let differ = |kernel: &&Kernel| literals(kernel).is_some_and(|found| Some(found) != own);
        if let Some((name, _)) = reached.iter().find(|(_, kernel)| differ(kernel)) {
            return Err(LinkError::Literals((*name).to_owned()));
        }
        let functions = self.function_addresses();
        let mut words = vec![0; PAD];
        let mut sections: Vec<(usize, &Kernel)> = Vec::new();
        let kernel = self.kernels.get_key_value(entry);
        let kernel = kernel.map(|(name, kernel)| (name.as_str(), kernel));
        let mut start = 0;
        for (name, section) in self.functions().chain(kernel) {
            start = words.len();
            words.extend_from_slice(&section.words);
            // Code that does not run may name what has no address here.
            if reached.contains_key(name) {
                sections.push((start, section));
            }
        }
        for (first, section) in &sections {
            for relocation in section.relocations.iter().filter(|r| is_code(r)) {
                let name = relocation.symbol.as_str();
                // The section itself, or a function inside it.
                let inside = section.functions.iter().find(|f| f.name == name);
                let inside =
                    inside.map(|f| (first * INSTRUCTION_BYTES) as u64 + u64::from(f.address));
                let own = (name == entry).then_some((start * INSTRUCTION_BYTES) as u64);
                let found = inside.or(own).or_else(|| functions.get(name).copied());
                let found = found.or_else(|| address(name));
                let base = found.ok_or_else(|| LinkError::Symbol(name.to_owned()))?;
                let at = first + relocation.offset as usize / INSTRUCTION_BYTES;
                if let Some(word) = words.get_mut(at) {
                    let value = base.wrapping_add_signed(relocation.addend);
                    *word = patch(*word, relocation.kind, value)?;
                }
            }
        }
        let numbered = words.iter().zip((0..).step_by(INSTRUCTION_BYTES));
        Ok(LinkedCode {
            code: numbered
                .map(|(word, at)| decode(*word, at, self.sm))
                .collect(),
            start,
        })
    }
}

fn is_code(relocation: &Relocation) -> bool {
    relocation.target == RelocationTarget::Code
}

/// Writes an address to an instruction.
fn patch(word: u128, kind: u32, value: u64) -> Result<u128, LinkError> {
    let put = |word: u128, at: u32, bits: u32, value: u64| {
        let mask = ((1u128 << bits) - 1) << at;
        word & !mask | u128::from(value) << at & mask
    };
    // Targets count in words of 4 bytes.
    let words = value >> 2;
    Ok(match kind {
        LOW_HALF => put(word, 32, 32, value & 0xffff_ffff),
        HIGH_HALF => put(word, 32, 32, value >> 32),
        CALL_TARGET => put(word, 34, 48, words),
        LONG_CALL_TARGET => put(put(word, 16, 8, words & 0xff), 34, 48, words >> 8),
        kind => return Err(LinkError::Kind(kind)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that calls the function of another section, and reads a variable.
    fn cubin() -> Cubin {
        let relocation = |offset, kind, symbol: &str, addend| Relocation {
            target: RelocationTarget::Code,
            offset,
            kind,
            symbol: symbol.to_owned(),
            addend,
        };
        let function = Kernel {
            words: vec![7; 3],
            ..Kernel::default()
        };
        let kernel = Kernel {
            entry: true,
            words: vec![0; 4],
            relocations: vec![
                relocation(0, CALL_TARGET, "f", 0),
                relocation(16, LOW_HALF, "k", 0x20),
                relocation(32, HIGH_HALF, "x", 0),
                relocation(48, LONG_CALL_TARGET, "x", 4),
            ],
            ..Kernel::default()
        };
        Cubin {
            sm: 80,
            kernels: [("f".to_owned(), function), ("k".to_owned(), kernel)].into(),
            ..Cubin::default()
        }
    }

    #[test]
    fn functions_precede_the_kernel_and_addresses_are_filled_in() {
        let cubin = cubin();
        assert!(cubin.needs_link("k"));
        let address = cubin.function_addresses()["f"];
        assert_eq!(address, 128);
        let linked = cubin.link("k", |name| (name == "x").then_some(0x12_3456_7800));
        let linked = linked.expect("linked code");
        assert_eq!((linked.start, linked.code.len()), (11, 15));
        assert_eq!(patch(0, CALL_TARGET, address), Ok(32 << 34));
        assert_eq!(patch(0, LOW_HALF, 11 * 16 + 0x20), Ok(0xd0 << 32));
        assert_eq!(patch(0, HIGH_HALF, 0x12_3456_7800), Ok(0x12 << 32));
        let long = Ok(0x401 << 34 | 1 << 16);
        assert_eq!(patch(0, LONG_CALL_TARGET, 0x10_0404), long);
    }

    #[test]
    fn a_called_function_with_literals_of_its_own_is_an_error() {
        let mut cubin = cubin();
        let function = cubin.kernels.get_mut("f").expect("the function");
        function.constants.insert(LITERALS, vec![1]);
        let error = cubin.link("k", |_| Some(0)).expect_err("literals");
        assert_eq!(error, LinkError::Literals("f".to_owned()));
        // A function that the kernel does not call is of no concern.
        let kernel = cubin.kernels.get_mut("k").expect("the kernel");
        kernel.relocations.remove(0);
        assert!(cubin.link("k", |_| Some(0)).is_ok());
    }

    #[test]
    fn a_symbol_without_an_address_is_an_error() {
        let error = cubin().link("k", |_| None).expect_err("no address");
        assert_eq!(error, LinkError::Symbol("x".to_owned()));
        assert_eq!(patch(0, 99, 0), Err(LinkError::Kind(99)));
    }
}
