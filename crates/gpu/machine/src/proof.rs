//! Comparison of SASS and PTX: a timing model may rely on the SASS if both leave the same memory.

use std::collections::BTreeMap;

use super::{Execution, Machine, MachineError};
use std::sync::atomic::Ordering::Relaxed;
use vgpu::Arch;
use vgpu::Module;
use vgpu::exec::launch::{End, Launch, LaunchReport, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::GlobalMemory;

/// A word with different values after PTX and after SASS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the buffer.
    pub buffer: String,
    /// Byte offset of the word.
    pub offset: u64,
    /// Value left by the PTX.
    pub ptx: u32,
    /// Value left by the SASS.
    pub machine: u32,
}

/// Result of comparing PTX and SASS.
#[derive(Debug, Clone)]
pub enum Proof {
    /// Both left the same global memory.
    Same(Box<Execution>),
    /// Both left the same memory except for rounding that PTX leaves open: sums by atomics,
    /// functions of angles, products that the assembler contracts otherwise than
    /// [`Module::load_contracted`].
    Rounded {
        /// Execution of the SASS.
        execution: Box<Execution>,
        /// Number of differing words.
        words: usize,
        /// Largest distance of two words, in units of the last place of the number format.
        ulps: u32,
    },
    /// The launch's limits stopped an execution, so there is nothing to compare.
    Unfinished(Box<Execution>),
    /// Different memory: the number of differing words, and the first of them.
    Differs(usize, Vec<Difference>),
    /// The SASS was not executed.
    NotAvailable(MachineError),
}

/// Largest number of reported differences.
const MAX_REPORTED_DIFFERENCES: usize = 8;
/// Largest distance, in units of the last place, that rounding explains for any numbers.
const MAX_ULPS: u32 = 64;
/// Largest difference that rounding explains in sums with cancellation, as a share of the buffer's
/// largest magnitude: 64 units of the last place of a single.
const MAX_CANCELLED: f32 = 64.0 / 16_777_216.0;

/// Computes the distance of two words in units of the last place, as a single or as two halves of
/// either format, whichever is smaller.
fn distance(a: u32, b: u32) -> u32 {
    // Map sign and magnitude to a line on which both zeros are adjacent.
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

/// Executed SASS of a launch, with its stores undone.
pub struct SassRun {
    found: Result<Box<Execution>, MachineError>,
    after: BTreeMap<(u32, u32), u32>,
}

impl SassRun {
    /// Executes the SASS of a launch until it ends or the launch's limits stop it. Memory is
    /// restored.
    pub fn execute(
        machine: &Machine,
        module: &Module,
        memory: &mut GlobalMemory,
        template: &Launch,
    ) -> SassRun {
        let found = machine.run(module, memory, template);
        let after = match &found {
            Ok(execution) => execution.undo(memory),
            // A failed execution has undone its stores.
            Err(_) => BTreeMap::new(),
        };
        let found = found.map(Box::new);
        SassRun { found, after }
    }

    /// Returns true if the launch's limits stopped the execution.
    pub fn stopped(&self) -> bool {
        self.found
            .as_ref()
            .is_ok_and(|execution| !execution.complete)
    }

    /// Returns true if all blocks ran to their ends.
    pub fn ended(&self) -> bool {
        self.found
            .as_ref()
            .is_ok_and(|execution| execution.complete)
    }

    /// Returns the number of instructions executed by warps.
    pub fn instructions(&self) -> u64 {
        self.found
            .as_ref()
            .map_or(0, |execution| execution.warp_instructions)
    }

    /// Returns true if polling loops were most of the execution: the block waits for another block.
    /// (The trace holds one pass of each such loop.)
    pub fn waits(&self) -> bool {
        let Ok(execution) = &self.found else {
            return false;
        };
        let warps = execution.traces.iter().flat_map(|block| &block.warps);
        let runs = warps.flat_map(|warp| &warp.runs);
        let passed: u64 = runs.map(|run| u64::from(run.end - run.start)).sum();
        !execution.traces.is_empty() && 2 * passed < self.instructions()
    }

    /// Returns the trace of the first block, if the launch requested one.
    pub fn trace(&self) -> Option<&BlockTrace> {
        self.found.as_ref().ok()?.traces.first()
    }
}

/// Executes a launch as PTX and as SASS and compares. Memory holds the result of the PTX. The
/// traces of the report are from the PTX, those of the execution from the SASS, if the launch
/// requests them.
///
/// # Errors
/// A refused launch.
pub fn prove(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
) -> Result<(LaunchReport, Proof), MachineError> {
    let run = SassRun::execute(machine, module, memory, template);
    prove_run(run, module, memory, arch, template)
}

/// Compares with SASS that was executed before; otherwise like [`prove`].
///
/// # Errors
/// A refused launch.
pub fn prove_run(
    run: SassRun,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
) -> Result<(LaunchReport, Proof), MachineError> {
    let SassRun { found, after } = run;
    // The comparison needs the trace of the PTX, which lists the words it stored.
    let mut traced = template.clone();
    traced.trace = true;
    let mut report = launch(module, memory, arch, &traced)?;
    let execution = match found {
        Ok(execution) => execution,
        Err(error) => return Ok((report, Proof::NotAvailable(error))),
    };
    let stored = take_stored_words(&mut report);
    // A stopped execution left only some of its stores, which would count as differences.
    if !execution.complete || report.end != End::Completed {
        return Ok((report, Proof::Unfinished(execution)));
    }
    let found = compare(memory, &after, stored);
    // Rounding is an explanation only if the PTX leaves it open.
    let rounding = found.is_rounding() && module.leaves_rounding_open();
    let proof = match found.count {
        0 => Proof::Same(execution),
        words if rounding => Proof::Rounded {
            execution,
            words,
            ulps: found.ulps,
        },
        count => Proof::Differs(count, found.kept),
    };
    Ok((report, proof))
}

/// Removes the numbers of the stored words from the traces; ascending, without duplicates.
fn take_stored_words(report: &mut LaunchReport) -> Vec<u64> {
    let warps = report.traces.iter_mut().flat_map(|block| &mut block.warps);
    let mut all: Vec<u64> = Vec::new();
    for warp in warps {
        all.append(&mut warp.stored);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Differences between two executions.
#[derive(Debug, Default)]
struct Comparison {
    count: usize,
    ulps: u32,
    /// Largest difference relative to the largest number of its buffer.
    relative: f32,
    kept: Vec<Difference>,
}

impl Comparison {
    /// Returns true if rounding explains all differences.
    fn is_rounding(&self) -> bool {
        self.ulps <= MAX_ULPS || self.relative <= MAX_CANCELLED
    }
}

/// Compares memory, as the PTX left it, with the stores of the SASS; `stored` are the words that
/// the PTX stored. A word stored by only one of them differs if its value does, and always if that
/// one is the PTX.
fn compare(
    memory: &GlobalMemory,
    machine: &BTreeMap<(u32, u32), u32>,
    stored: Vec<u64>,
) -> Comparison {
    let mut found = Comparison::default();
    // The largest finite number of each buffer, and the largest difference. Infinities are
    // excluded: a maximum of nothing is infinite, and kernels store it next to sums.
    let mut sizes: BTreeMap<u32, (f32, f32)> = BTreeMap::new();
    let mut differ = |(index, at): (u32, u32), ptx: u32, machine: u32, ulps: u32| {
        found.count += 1;
        found.ulps = found.ulps.max(ulps);
        if found.kept.len() < MAX_REPORTED_DIFFERENCES {
            found.kept.push(Difference {
                buffer: memory.name(index as usize).to_owned(),
                offset: u64::from(at) * 4,
                ptx,
                machine,
            });
        }
    };
    for (place, machine) in machine {
        let ptx = memory.words(place.0 as usize)[place.1 as usize].load(Relaxed);
        let (a, b) = (f32::from_bits(ptx), f32::from_bits(*machine));
        let (largest, apart) = sizes.entry(place.0).or_default();
        for number in [a, b].map(f32::abs).into_iter().filter(|n| n.is_finite()) {
            *largest = largest.max(number);
        }
        if ptx != *machine {
            let difference = (a - b).abs();
            // A NaN, or two infinities, is never a rounding difference.
            *apart = if difference.is_nan() {
                f32::INFINITY
            } else {
                apart.max(difference)
            };
            differ(*place, ptx, *machine, distance(ptx, *machine));
        }
    }
    // Words that only the PTX stored are missing from the journal of the SASS.
    for word in stored {
        let Some(place) = memory.find(word * 4) else {
            continue;
        };
        let place = (place.index as u32, (place.offset / 4) as u32);
        if !machine.contains_key(&place) {
            let ptx = memory.words(place.0 as usize)[place.1 as usize].load(Relaxed);
            differ(place, ptx, 0, u32::MAX);
            // No rounding explains a missing store.
            sizes.insert(place.0, (1.0, f32::INFINITY));
        }
    }
    let shares = sizes.values().map(|(largest, apart)| match largest {
        size if size.is_normal() => apart / size,
        _ if *apart == 0.0 => 0.0,
        _ => f32::INFINITY,
    });
    found.relative = shares.fold(0.0, f32::max);
    found
}

impl Execution {
    /// Undoes all stores and returns the values that they had left.
    pub(super) fn undo(&self, memory: &GlobalMemory) -> BTreeMap<(u32, u32), u32> {
        let mut after = BTreeMap::new();
        // In reverse order, a word first shows its final value and ends at its original one.
        for written in self.written.iter().rev() {
            let word = &memory.words(written.allocation as usize)[written.word as usize];
            let now = word.load(Relaxed);
            after
                .entry((written.allocation, written.word))
                .or_insert(now);
            word.store(written.old, Relaxed);
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Op, Unavailable};
    use vgpu::{Arch, Arg};

    /// Compares a kernel that copies tiles through shared memory, with one SASS instruction
    /// changed.
    fn copied(change: impl FnOnce(&mut Machine)) -> Proof {
        let module = Module::load(include_str!("../../model/tests/model/blocks.ptx")).unwrap();
        let cubin = include_bytes!("../../model/tests/model/blocks.cubin");
        let mut machine = Machine::load(cubin, "turn").unwrap();
        change(&mut machine);
        let mut memory = GlobalMemory::new(1 << 20);
        let from = memory.alloc(64 * 64 * 4, "from").unwrap();
        let numbers: Vec<u8> = (1..=4096u32).flat_map(u32::to_le_bytes).collect();
        memory.write(from, 0, &numbers);
        let to = memory.alloc(64 * 64 * 4, "to").unwrap();
        let args = vec![
            Arg::Buffer(from),
            Arg::Buffer(to),
            Arg::Bytes(64u32.to_le_bytes().to_vec()),
        ];
        let launch = Launch::new("turn", [2, 2, 1], [32, 8, 1], args);
        let arch = Arch::by_name("a100").unwrap();
        prove(&machine, &module, &mut memory, arch, &launch)
            .unwrap()
            .1
    }

    fn first(machine: &Machine, opcode: &str) -> usize {
        let opcodes = machine.program.opcodes.iter();
        opcodes.clone().position(|o| *o == opcode).unwrap()
    }

    #[test]
    fn a_store_that_the_machine_code_lacks_is_a_difference_that_names_its_buffer() {
        assert!(matches!(copied(|_| {}), Proof::Same(_)));
        let proof = copied(|machine| {
            let at = first(machine, "STG");
            machine.program.steps[at].op = Op::Nothing;
        });
        let Proof::Differs(words, kept) = proof else {
            panic!("{proof:?}")
        };
        // One of four stores per thread.
        assert_eq!(words, 1024);
        assert_eq!(kept[0].buffer, "to");
    }

    #[test]
    fn an_instruction_that_is_not_known_is_named_if_it_is_executed() {
        let unknown = |address: u32| {
            Op::Unavailable(Box::new(Unavailable {
                name: "STG.STRANGE".to_owned(),
                address,
            }))
        };
        let proof = copied(|machine| {
            let at = first(machine, "STG");
            machine.program.steps[at].op = unknown(at as u32 * 16);
        });
        let Proof::NotAvailable(error) = proof else {
            panic!("{proof:?}")
        };
        let text = error.to_string();
        assert!(text.starts_with("instruction STG.STRANGE at 0x"), "{text}");
        let proof = copied(|machine| {
            let last = machine.program.steps.len() - 1;
            machine.program.steps[last].op = unknown(last as u32 * 16);
        });
        assert!(
            matches!(proof, Proof::Same(_)),
            "behind the end of all warps"
        );
    }

    #[test]
    fn an_infinite_number_beside_them_does_not_make_small_differences_large() {
        let mut memory = GlobalMemory::new(1 << 20);
        let sums = memory.alloc(12, "sums").unwrap();
        let bytes = |words: [f32; 3]| words.map(f32::to_le_bytes).concat();
        memory.write(sums, 0, &bytes([f32::NEG_INFINITY, 8.0, 0.25]));
        let found = |last: f32| {
            let left = [f32::NEG_INFINITY, 8.0, last];
            let left = (0u32..).zip(left.map(f32::to_bits));
            let left = left.map(|(at, word)| ((sums.index() as u32, at), word));
            compare(&memory, &left.collect(), Vec::new())
        };
        let near = found(0.250_01);
        assert!(near.ulps > MAX_ULPS && near.is_rounding(), "{near:?}");
        assert!(!found(0.26).is_rounding());
        assert!(!found(f32::INFINITY).is_rounding());
    }

    #[test]
    fn rounding_is_told_from_other_numbers() {
        let near = |a: f32, b: f32| distance(a.to_bits(), b.to_bits());
        assert_eq!(near(1.0, 1.0 + f32::EPSILON), 1);
        assert!(near(1.0, 1.01) > MAX_ULPS);
        assert_eq!(near(0.0, -0.0), 0);
    }
}
