//! The register file of a scheduler: two banks with a read port each, and the reuse cache.
//!
//! After Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025;
//! arXiv 2503.20481, "Analyzing Modern NVIDIA GPU cores"), section 5.3, measured on Turing, Ampere
//! and Blackwell: a bank gives one register of a warp a cycle, an instruction of fixed latency
//! reads its sources within three cycles and is held, and all behind it, until the ports allow
//! that. Of each bank and source position the last register is kept where the assembler says so.
//! On GPUs that can issue a multiply-add every cycle this, not the pipe, is what limits one whose
//! three sources are all read: 2 of 3 cycles.

use crate::code::{READS, Read};

/// Cycles within which an instruction reads its sources.
const WINDOW: u32 = 3;
/// Source positions of an instruction.
const SLOTS: usize = 3;

/// Ports of a scheduler's register file, and what was kept of earlier reads.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// The first cycle that the next instruction can begin to read in.
    next: u64,
    /// Cycles from `next` on in which the port of each bank is taken, a bit each.
    taken: [u8; 2],
    /// Warp and register kept, by source position and bank.
    kept: [[Option<(usize, u8)>; 2]; SLOTS],
}

impl Ports {
    /// Reads the sources of an instruction that a warp issues: the cycle at which it begins to, no
    /// earlier than `now`.
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
        let window = (1u8 << WINDOW) - 1;
        while (0..2)
            .any(|bank| (!self.taken[bank] & window).count_ones() < wanted[bank].min(WINDOW))
        {
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

    /// Lets the time before `cycle` pass.
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

    /// Sources in their order; a negative one is kept.
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

    /// Cycles that each of these instructions takes, repeated for long, of one warp.
    fn each(code: &[[i16; 3]]) -> f64 {
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
        // All in one bank, spread evenly, and the published code whose bubbles are 0, 1 and 2.
        assert!((each(&[[2, 4, 6]]) - 3.0).abs() < 0.02);
        assert!((each(&[[1, 2, 3], [2, 1, 4]]) - 1.5).abs() < 0.02);
        for (x, y, bubbles) in [(19, 21, 0), (18, 21, 1), (18, 20, 2)] {
            let mut ports = Ports::default();
            assert_eq!(ports.read(0, &sources([10, 12, 14]), 100), 100);
            assert_eq!(ports.read(0, &sources([16, x, y]), 101), 101 + bubbles);
        }
    }

    #[test]
    fn a_kept_source_is_not_read_again_by_the_same_warp_in_the_same_place() {
        let outer = [[4, -9, -10], [5, -9, -10], [6, -9, -10], [7, -9, -10]];
        assert!((each(&outer) - 1.0).abs() < 0.02);
        // In another place, and by another warp, it is read.
        let mut ports = Ports::default();
        ports.read(0, &sources([-2, 3, 5]), 0);
        assert_eq!(ports.kept[0][0], Some((0, 2)));
        ports.read(0, &sources([7, 2, 9]), 10);
        assert_eq!(ports.kept[0][0], Some((0, 2)));
        ports.read(1, &sources([4, 3, 5]), 20);
        assert_eq!(ports.kept[0][0], None);
    }
}
