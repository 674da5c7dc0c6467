//! The proof that a model may rely on machine code: both levels leave the same bytes.

use std::collections::BTreeMap;

use super::{Execution, Machine, MachineError};
use crate::arch::Arch;
use crate::exec::launch::{Launch, LaunchReport, launch};
use crate::memory::GlobalMemory;
use crate::module::Module;
use std::sync::atomic::Ordering::Relaxed;

/// A word that the two levels left different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the buffer.
    pub buffer: String,
    /// Byte offset of the word.
    pub offset: u64,
    /// What the PTX left.
    pub ptx: u32,
    /// What the machine code left.
    pub machine: u32,
}

/// What comparing the two levels gave.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The machine code did what the PTX did: both left the same global memory.
    Same(Box<Execution>),
    /// They did the same but for rounding: the PTX leaves it to the assembler whether a product and
    /// a sum are rounded once or twice (`mul.f32` without `.rn`), and it rounds once.
    Rounded {
        /// What the machine code did.
        execution: Box<Execution>,
        /// Words that differ.
        words: usize,
        /// The largest distance of one, in units of the last place of its number format.
        ulps: u32,
    },
    /// They differ in so many words, of which these are the first.
    Differs(usize, Vec<Difference>),
    /// The machine code was not executed.
    NotAvailable(MachineError),
}

/// Differences kept.
const KEPT: usize = 8;
/// Largest distance, in units of the last place, that rounding explains.
const MAX_ULPS: u32 = 64;

/// How far two words are apart in units of the last place: as a single, or as two halves of either
/// format, whichever is nearer.
fn distance(a: u32, b: u32) -> u32 {
    // Sign and magnitude to a line that has its zeros side by side.
    let line = |bits: u32, sign: u32| match bits & sign {
        0 => i64::from(bits),
        _ => -i64::from(bits & !sign),
    };
    let single = line(a, 1 << 31).abs_diff(line(b, 1 << 31));
    let half = |shift: u32| {
        let part = |word: u32| line(word >> shift & 0xffff, 1 << 15);
        part(a).abs_diff(part(b))
    };
    single.min(half(0).max(half(16))).min(u32::MAX.into()) as u32
}

/// Executes a launch on both levels and compares. Memory holds what the PTX left.
///
/// # Errors
/// A launch that is refused.
pub fn prove(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
) -> Result<(LaunchReport, Proof), MachineError> {
    let found = machine.run(module, memory, template);
    let after = match &found {
        Ok(execution) => execution.undo(memory),
        Err(_) => BTreeMap::new(),
    };
    // What the module's variables hold is compared as well; they were placed by the first run.
    let before = snapshot(memory);
    let report = launch(module, memory, arch, template)?;
    let execution = match found {
        Ok(execution) => execution,
        Err(error) => return Ok((report, Proof::NotAvailable(error))),
    };
    let (mut count, mut ulps) = (0, 0);
    let mut kept = Vec::new();
    for (index, (allocation, old)) in memory.allocations.iter().zip(&before).enumerate() {
        for (at, (word, old)) in allocation.words.iter().zip(old).enumerate() {
            let ptx = word.load(Relaxed);
            let machine = after
                .get(&(index as u32, at as u32))
                .copied()
                .unwrap_or(*old);
            if ptx != machine {
                count += 1;
                ulps = ulps.max(distance(ptx, machine));
                if kept.len() < KEPT {
                    kept.push(Difference {
                        buffer: allocation.name.clone(),
                        offset: at as u64 * 4,
                        ptx,
                        machine,
                    });
                }
            }
        }
    }
    let proof = match count {
        0 => Proof::Same(Box::new(execution)),
        words if ulps <= MAX_ULPS && module.leaves_rounding_open() => Proof::Rounded {
            execution: Box::new(execution),
            words,
            ulps,
        },
        count => Proof::Differs(count, kept),
    };
    Ok((report, proof))
}

fn snapshot(memory: &GlobalMemory) -> Vec<Vec<u32>> {
    let words = |a: &std::sync::Arc<crate::memory::Allocation>| {
        a.words.iter().map(|word| word.load(Relaxed)).collect()
    };
    memory.allocations.iter().map(words).collect()
}

impl Execution {
    /// Takes all stores back; gives what they had left.
    pub(super) fn undo(&self, memory: &GlobalMemory) -> BTreeMap<(u32, u32), u32> {
        let mut after = BTreeMap::new();
        for written in self.written.iter().rev() {
            let word =
                &memory.allocations[written.allocation as usize].words[written.word as usize];
            let now = word.load(Relaxed);
            after
                .entry((written.allocation, written.word))
                .or_insert(now);
            word.store(written.old, Relaxed);
        }
        after
    }
}
