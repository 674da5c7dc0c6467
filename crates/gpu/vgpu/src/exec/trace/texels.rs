//! Accesses of texture units.

use super::{Target, WarpTrace};

impl WarpTrace {
    /// Records the texels that lanes access with one instruction. A texture unit takes four lanes at a time.
    pub fn texels(&mut self, pc: u32, places: &[(usize, u64)], bytes: u32, write: bool) {
        if places.is_empty() || self.full() {
            return;
        }
        let (first, mut mask) = (self.sectors.len(), 0);
        let mut lines: Vec<(usize, u64)> = Vec::new();
        for (lane, at) in places {
            mask |= 1u32 << (lane % 32);
            let last = at.saturating_add(u64::from(bytes.max(1)) - 1);
            for sector in at / 32..=last / 32 {
                if !self.sectors[first..].contains(&sector) {
                    self.sectors.push(sector);
                }
                let line = (lane / 4, sector / 4);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        let target = Target::Global {
            first: first as u32,
            count: (self.sectors.len() - first).min(u16::MAX.into()) as u16,
            lookups: lines.len().min(u8::MAX.into()) as u8,
        };
        self.push(pc, bytes, mask, write, target);
        if !write {
            self.note(pc);
        }
    }
}
