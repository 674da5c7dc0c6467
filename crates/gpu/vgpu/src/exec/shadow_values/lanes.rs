//! Shadow values of moves between registers: splits, joins and shuffles.

use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::ShadowWord;
use crate::lower::program::{Data, Op};

impl Warp {
    /// Returns the shadows of a word of a register in all lanes.
    fn shadow_row(&self, register: Data, word: usize) -> [ShadowWord; 32] {
        let row = self
            .shadows
            .as_ref()
            .and_then(|shadows| shadows.row(register, word));
        row.copied().unwrap_or([ShadowWord::default(); 32])
    }

    fn set_shadow_row(&mut self, register: Data, word: usize, row: &[ShadowWord; 32], mask: u32) {
        if let Some(shadows) = &mut self.shadows {
            lanes(mask).for_each(|lane| shadows.set_word(register, word, lane, row[lane]));
        }
    }

    /// Returns the shadows that a split or join gives its destinations: before the instruction,
    /// which may overwrite its sources.
    pub(in crate::exec) fn moved_shadows(&self, op: &Op) -> Vec<(Data, usize, [ShadowWord; 32])> {
        let mut moved = Vec::new();
        if self.shadows.is_none() {
            return moved;
        }
        match op {
            Op::Unpack { from, to, width: 4 } => {
                for (i, to) in to.iter().enumerate() {
                    moved.push((*to, 0, self.shadow_row(*from, i)));
                }
            }
            Op::Unpack { from, to, width: 2 } => {
                for (i, to) in to.iter().enumerate() {
                    let row = self.shadow_row(*from, i / 2);
                    moved.push((*to, 0, row.map(|word| word.only_half(i % 2 == 1))));
                }
            }
            Op::Pack { from, to, width: 4 } => {
                for (i, from) in from.iter().enumerate() {
                    moved.push((*to, i, self.shadow_row(*from, 0)));
                }
            }
            Op::Pack { from, to, width: 2 } => {
                for (i, pair) in from.chunks(2).enumerate() {
                    let rows: Vec<_> = pair.iter().map(|half| self.shadow_row(*half, 0)).collect();
                    let joined = std::array::from_fn(|lane| {
                        let mut word = ShadowWord::default();
                        for (high, row) in [false, true].into_iter().zip(&rows) {
                            let half = row[lane].bits as u16;
                            word.set_half(high, half, row[lane].half(false, half));
                        }
                        word
                    });
                    moved.push((*to, i, joined));
                }
            }
            _ => {}
        }
        moved
    }

    /// Sets the shadows of a split or join.
    pub(in crate::exec) fn set_moved(
        &mut self,
        moved: Vec<(Data, usize, [ShadowWord; 32])>,
        mask: u32,
    ) {
        for (register, word, row) in &moved {
            self.set_shadow_row(*register, *word, row, mask);
        }
    }

    /// Moves shadows as a shuffle moves values: the row `values` as it was before, from the lanes
    /// `sources` to each lane of the group.
    pub(in crate::exec) fn shuffle_shadows(
        &mut self,
        dest: u32,
        values: &[ShadowWord; 32],
        sources: &[u8; 32],
        group: u32,
    ) {
        let row = std::array::from_fn(|lane| values[usize::from(sources[lane]) & 31]);
        self.set_shadow_row(Data::R32(dest), 0, &row, group);
    }

    /// Returns the shadows of a 32-bit register; `None` in launches without shadow values.
    pub(in crate::exec) fn shadows_of(&self, row: u32) -> Option<[ShadowWord; 32]> {
        self.shadows.as_ref()?;
        Some(self.shadow_row(Data::R32(row), 0))
    }
}

impl ShadowWord {
    /// Returns one half as a 16-bit register holds it.
    pub(super) fn only_half(self, high: bool) -> ShadowWord {
        let bits = (self.bits >> if high { 16 } else { 0 }) as u16;
        let mut word = ShadowWord::default();
        word.set_half(false, bits, self.half(high, bits));
        word.bits = u32::from(bits);
        word
    }
}
