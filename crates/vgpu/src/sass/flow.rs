//! Straight pieces of a kernel and what follows each.

use super::decode::{Instr, Jump};

/// Instructions that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First instruction.
    pub(crate) start: u32,
    /// The one behind the last.
    pub(crate) end: u32,
}

/// The pieces of a kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    pub(crate) pieces: Vec<Piece>,
    /// The piece of each instruction.
    pub(crate) of: Vec<u32>,
}

impl Flow {
    /// Cuts a kernel into pieces.
    pub(super) fn of(code: &[Instr]) -> Flow {
        let mut leads = vec![false; code.len() + 1];
        if let [first, ..] = leads.as_mut_slice() {
            *first = true;
        }
        if let [.., last] = leads.as_mut_slice() {
            *last = true;
        }
        for (index, instr) in code.iter().enumerate() {
            let target = match instr.jump {
                Jump::None => continue,
                Jump::To(target) | Jump::Call(target) | Jump::Split(target) => target,
                Jump::Return | Jump::Exit | Jump::Indirect | Jump::Meet => u32::MAX,
            };
            if let Some(lead) = leads.get_mut(target as usize) {
                *lead = true;
            }
            if !matches!(instr.jump, Jump::Split(_))
                && let Some(next) = leads.get_mut(index + 1)
            {
                *next = true;
            }
        }
        let mut flow = Flow::default();
        let mut start = 0;
        let ends = leads.iter().enumerate().skip(1).filter(|(_, lead)| **lead);
        for (index, _) in ends {
            let piece = flow.pieces.len() as u32;
            flow.of.extend((start..index).map(|_| piece));
            flow.pieces.push(Piece {
                start: start as u32,
                end: index as u32,
            });
            start = index;
        }
        flow
    }

    /// The piece that an instruction starts or is in.
    pub(crate) fn piece(&self, instruction: u32) -> Option<u32> {
        self.of.get(instruction as usize).copied()
    }
}
