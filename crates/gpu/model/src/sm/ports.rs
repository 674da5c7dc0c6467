//! Register file of a scheduler: two banks with a read port each, and the reuse cache.
//!
//! After Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025;
//! arXiv 2503.20481, "Analyzing Modern NVIDIA GPU cores"), section 5.3, measured on Turing, Ampere
//! and Blackwell. A bank delivers one register of a warp per cycle. A fixed-latency instruction
//! reads its sources within three cycles; it stalls, with all instructions after it, until the
//! ports allow that. The reuse cache keeps the last register of each bank and source position if
//! the assembler sets the reuse bit. On GPUs that can issue a multiply-add every cycle, the ports
//! and not the pipe limit one that reads all three sources: 2 of 3 cycles.

use crate::code::{READS, Read};

/// Cycles within which an instruction reads its sources.
const READ_WINDOW_CYCLES: u32 = 3;
/// Number of source positions of an instruction.
const SLOTS: usize = 3;

/// Read ports and reuse cache of a scheduler's register file.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// First cycle at which the next instruction can begin to read.
    next: u64,
    /// Bit mask per bank of the cycles from `next` on in which its port is occupied.
    taken: [u8; 2],
    /// Cached warp and register, by source position and bank.
    kept: [[Option<(usize, u8)>; 2]; SLOTS],
}

impl Ports {
    /// Reads the sources of an issued instruction and returns the cycle at which the reads begin,
    /// not before `now`.
    pub(super) fn read(&mut self, warp: usize, reads: &[Read; READS], now: u64) -> u64 {
        let mut wanted = [0u32; 2];
        for read in reads.iter().filter(|read| read.register != sass::ZERO) {
            let bank = usize::from(read.register & 1);
            let Some(kept) = self.kept.get_mut(usize::from(read.slot)) else {
                wanted[bank] += 1;
                continue;
            };
            let this = Some((warp, read.register));
            wanted[bank] += u32::from(kept[bank] != this);
            kept[bank] = this.filter(|_| read.reuse);
        }
        self.advance(now);
        let window = (1u8 << READ_WINDOW_CYCLES) - 1;
        // A fourth register of one bank cannot be read in the window and follows it.
        while (0..2).any(|bank| {
            (!self.taken[bank] & window).count_ones() < wanted[bank].min(READ_WINDOW_CYCLES)
        }) {
            self.advance(self.next + 1);
        }
        for (taken, wanted) in self.taken.iter_mut().zip(wanted) {
            for _ in 0..wanted {
                *taken |= 1 << taken.trailing_ones().min(7);
            }
        }
        let begun = self.next;
        self.advance(begun + 1);
        begun
    }

    /// Discards the cycles before `cycle`.
    fn advance(&mut self, cycle: u64) {
        let passed = cycle.saturating_sub(self.next).min(8) as u32;
        for taken in &mut self.taken {
            *taken = taken.checked_shr(passed).unwrap_or(0);
        }
        self.next = self.next.max(cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates sources in their order; a negative number sets the reuse bit.
    fn sources(registers: [i16; 3]) -> [Read; READS] {
        let mut reads = [Read {
            register: sass::ZERO,
            slot: 0,
            reuse: false,
        }; READS];
        for (slot, register) in registers.into_iter().enumerate() {
            let register_number = register.unsigned_abs() as u8;
            reads[slot] = Read {
                register: register_number,
                slot: slot as u8,
                reuse: register < 0,
            };
        }
        reads
    }

    /// Returns the cycles per instruction of one warp that repeats these instructions.
    fn cycles_per_instruction(code: &[[i16; 3]]) -> f64 {
        let mut ports = Ports::default();
        let mut last = 0;
        for _ in 0..300 {
            for registers in code {
                last = ports.read(0, &sources(*registers), last + 1);
            }
        }
        last as f64 / (300 * code.len()) as f64
    }

    #[test]
    fn three_sources_take_as_long_as_the_fuller_bank_needs() {
        // All in one bank, spread evenly, and the published code with 0, 1 and 2 bubbles.
        assert!((cycles_per_instruction(&[[2, 4, 6]]) - 3.0).abs() < 0.02);
        assert!((cycles_per_instruction(&[[1, 2, 3], [2, 1, 4]]) - 1.5).abs() < 0.02);
        for (x, y, bubbles) in [(19, 21, 0), (18, 21, 1), (18, 20, 2)] {
            let mut ports = Ports::default();
            assert_eq!(ports.read(0, &sources([10, 12, 14]), 100), 100);
            assert_eq!(ports.read(0, &sources([16, x, y]), 101), 101 + bubbles);
        }
    }

    #[test]
    fn a_kept_source_is_not_read_again_by_the_same_warp_in_the_same_place() {
        let outer = [[4, -9, -10], [5, -9, -10], [6, -9, -10], [7, -9, -10]];
        assert!((cycles_per_instruction(&outer) - 1.0).abs() < 0.02);
        // At another position, or by another warp, it is read again.
        let mut ports = Ports::default();
        ports.read(0, &sources([-2, 3, 5]), 0);
        assert_eq!(ports.kept[0][0], Some((0, 2)));
        ports.read(0, &sources([7, 2, 9]), 10);
        assert_eq!(ports.kept[0][0], Some((0, 2)));
        ports.read(1, &sources([4, 3, 5]), 20);
        assert_eq!(ports.kept[0][0], None);
    }
}
