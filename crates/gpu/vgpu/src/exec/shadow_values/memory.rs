//! Shadow values of loads, stores and atomics.

use std::sync::atomic::Ordering::Relaxed;

use super::super::access::split;
use super::super::cta::Cta;
use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::{FloatFormat, ShadowWord, plain};
use crate::lower::program::{Address, Area, Atom, Mem};
use gpu_arithmetic::atomic::{AtomOp, AtomType};

/// Place of a number in memory.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Global(u64),
    Shared(u64),
    /// Lane, and address among locals or call parameters.
    Local(usize, u64, bool),
    /// Parameters of the kernel, which have no shadow.
    Parameter,
}

impl Place {
    pub(super) fn new(w: &Warp, a: &Address, lane: usize) -> Place {
        let at = w.address(a, lane);
        let (area, at) = match a.area {
            Area::Generic => split(at),
            area => (area, at),
        };
        match area {
            Area::Shared | Area::Cluster => Place::Shared(at),
            Area::Local => Place::Local(lane, at, false),
            Area::CallParam => Place::Local(lane, at, true),
            Area::KernelParam => Place::Parameter,
            Area::Generic | Area::Global => Place::Global(at),
        }
    }

    pub(super) fn plus(self, bytes: u64) -> Place {
        match self {
            Place::Global(at) => Place::Global(at.wrapping_add(bytes)),
            Place::Shared(at) => Place::Shared(at.wrapping_add(bytes)),
            Place::Local(lane, at, call) => Place::Local(lane, at.wrapping_add(bytes), call),
            Place::Parameter => self,
        }
    }

    /// Reports whether an address is in the high half of a word.
    pub(super) fn in_high_half(self) -> bool {
        match self {
            Place::Global(at) | Place::Shared(at) | Place::Local(_, at, _) => at & 2 != 0,
            Place::Parameter => false,
        }
    }
}

/// Returns the key of a word of local memory.
fn local_key(lane: usize, at: u64, call: bool) -> (usize, u64) {
    (lane, at / 4 * 2 + u64::from(call))
}

impl Cta<'_> {
    pub(super) fn shadow_at(&self, w: &Warp, place: Place) -> ShadowWord {
        let found = match place {
            Place::Global(at) => self.context.memory.shadows.as_ref().map(|all| all.word(at)),
            Place::Shared(at) => self.shared_shadows.get((at / 4) as usize).copied(),
            Place::Local(lane, at, call) => {
                let key = local_key(lane, at, call);
                w.shadows
                    .as_ref()
                    .and_then(|shadows| shadows.local.get(&key))
                    .copied()
            }
            Place::Parameter => None,
        };
        found.unwrap_or_default()
    }

    pub(super) fn change_shadow(
        &mut self,
        w: &mut Warp,
        place: Place,
        change: impl FnOnce(&mut ShadowWord),
    ) {
        match place {
            Place::Global(at) => {
                if let Some(all) = &self.context.memory.shadows {
                    all.change(at, change);
                }
            }
            Place::Shared(at) => {
                if self.shared_shadows.is_empty() {
                    self.shared_shadows = vec![ShadowWord::default(); self.shared.len()];
                }
                if let Some(word) = self.shared_shadows.get_mut((at / 4) as usize) {
                    change(word);
                }
            }
            Place::Local(lane, at, call) => {
                if let Some(shadows) = &mut w.shadows {
                    change(shadows.local.entry(local_key(lane, at, call)).or_default());
                }
            }
            Place::Parameter => {}
        }
    }

    /// Loads with shadow values.
    pub(in crate::exec) fn load_shadowed(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        // Addresses before the load, which may overwrite their register.
        let mut places = [Place::Parameter; 32];
        lanes(mask).for_each(|lane| places[lane] = Place::new(w, &m.at, lane));
        self.load(w, m, mask);
        for lane in lanes(mask) {
            let first = places[lane];
            for (i, register) in m.data.iter().enumerate() {
                let place = first.plus(i as u64 * u64::from(m.width));
                let words = match m.width {
                    8 => [self.shadow_at(w, place), self.shadow_at(w, place.plus(4))],
                    4 => [self.shadow_at(w, place), ShadowWord::default()],
                    2 => {
                        let word = self.shadow_at(w, place).only_half(place.in_high_half());
                        [word, ShadowWord::default()]
                    }
                    _ => [ShadowWord::default(); 2],
                };
                if let Some(shadows) = &mut w.shadows {
                    shadows.set_word(*register, 0, lane, words[0]);
                    shadows.set_word(*register, 1, lane, words[1]);
                }
            }
        }
    }

    /// Stores with shadow values.
    pub(in crate::exec) fn store_shadows(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        if w.shadows.is_none() {
            return;
        }
        for lane in lanes(mask) {
            let first = Place::new(w, &m.at, lane);
            for (i, register) in m.data.iter().enumerate() {
                let place = first.plus(i as u64 * u64::from(m.width));
                let word = |n| {
                    let shadows = w.shadows.as_ref();
                    shadows.map_or_else(ShadowWord::default, |all| all.word(*register, n, lane))
                };
                match m.width {
                    8 => {
                        let words = [word(0), word(1)];
                        self.change_shadow(w, place, |old| *old = words[0]);
                        self.change_shadow(w, place.plus(4), |old| *old = words[1]);
                    }
                    4 => {
                        let new = word(0);
                        self.change_shadow(w, place, |old| *old = new);
                    }
                    2 => {
                        let bits = w.value(*register, lane) as u16;
                        let value = word(0).half(false, bits);
                        let high = place.in_high_half();
                        self.change_shadow(w, place, |old| old.set_half(high, bits, value));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Executes an atomic lane by lane, since several lanes may change one word.
    pub(in crate::exec) fn atom_shadowed(&mut self, w: &mut Warp, a: &Atom, mask: u32) {
        if a.upper.is_some() {
            // 128 bits are no float.
            self.atom(w, a, mask);
            return;
        }
        for lane in lanes(mask) {
            let place = Place::new(w, &a.at, lane);
            let words = if a.ty.bytes() == 8 { 2 } else { 1 };
            let part = |n: usize| place.plus(4 * n as u64);
            let before: [u64; 2] = std::array::from_fn(|n| self.bits_at(part(n)).into());
            let old: [ShadowWord; 2] = std::array::from_fn(|n| self.shadow_at(w, part(n)));
            let operands = [a.b, a.c].map(|register| {
                let bits = w.value(register, lane);
                let shadows = w.shadows.as_ref();
                let words: [ShadowWord; 2] = std::array::from_fn(|n| {
                    shadows.map_or_else(ShadowWord::default, |all| all.word(register, n, lane))
                });
                (bits, words)
            });
            self.atom(w, a, 1 << lane);
            let after: [u64; 2] = std::array::from_fn(|n| self.bits_at(part(n)).into());
            let high = place.in_high_half();
            if let Some(shadows) = &mut w.shadows {
                for (n, old) in old.iter().enumerate().take(words) {
                    let given = if a.ty.bytes() == 2 {
                        old.only_half(high)
                    } else {
                        *old
                    };
                    shadows.set_word(a.dest, n, lane, given);
                }
            }
            let update = AtomicUpdate {
                op: a.op,
                before: before[0] | before[1] << 32,
                after: after[0] | after[1] << 32,
                old,
                operands,
                high,
            };
            let new = update.shadows(a.ty);
            for (n, word) in new.into_iter().enumerate().take(words) {
                self.change_shadow(w, part(n), |old| *old = word);
            }
        }
    }

    /// Returns the word that a place is in; 0 outside memory.
    fn bits_at(&self, place: Place) -> u32 {
        match place {
            Place::Global(at) => {
                let found = self.context.memory.find(at);
                let words = found.map(|l| (&self.context.memory.allocations[l.index], l.offset));
                let word = words.and_then(|(a, offset)| a.words.get((offset / 4) as usize));
                word.map_or(0, |word| word.load(Relaxed))
            }
            Place::Shared(at) => self.shared.get((at / 4) as usize).copied().unwrap_or(0),
            // Atomics on local memory are rare: the shadow starts again from the value.
            Place::Local(..) | Place::Parameter => 0,
        }
    }
}

/// Result of an atomic on one or two words of memory.
struct AtomicUpdate {
    op: AtomOp,
    before: u64,
    after: u64,
    old: [ShadowWord; 2],
    /// Bits and shadows of both operands.
    operands: [(u64, [ShadowWord; 2]); 2],
    /// A 16-bit number is in the high half of its word.
    high: bool,
}

impl AtomicUpdate {
    /// Returns the shadows of the new words.
    fn shadows(&self, ty: AtomType) -> [ShadowWord; 2] {
        let (bits, words) = self.operands[0];
        let none = ShadowWord::default();
        match ty {
            AtomType::F32 if self.computes() => {
                let old = self.old[0].as_single(self.before as u32);
                let b = words[0].as_single(bits as u32);
                let ordinary = |bits| plain(FloatFormat::Single, bits);
                let old = old.unwrap_or_else(|| ordinary(self.before));
                let value = self.combine(old, b.unwrap_or_else(|| ordinary(bits)));
                [ShadowWord::single(self.after as u32, value), none]
            }
            AtomType::F64 if self.computes() => {
                let old = ShadowWord::as_double(self.old, self.before);
                let b = ShadowWord::as_double(words, bits);
                let ordinary = |bits| plain(FloatFormat::Double, bits);
                let old = old.unwrap_or_else(|| ordinary(self.before));
                let value = self.combine(old, b.unwrap_or_else(|| ordinary(bits)));
                ShadowWord::double(self.after, value)
            }
            AtomType::F16 if self.computes() => self.halves(FloatFormat::Half, &[self.high]),
            AtomType::Bf16 if self.computes() => self.halves(FloatFormat::Bfloat, &[self.high]),
            AtomType::F16x2 if self.computes() => self.halves(FloatFormat::Half, &[false, true]),
            AtomType::Bf16x2 if self.computes() => self.halves(FloatFormat::Bfloat, &[false, true]),
            _ => self.moved(),
        }
    }

    fn computes(&self) -> bool {
        matches!(self.op, AtomOp::Add | AtomOp::Min | AtomOp::Max)
    }

    fn combine(&self, old: f64, b: f64) -> f64 {
        match self.op {
            AtomOp::Min => old.min(b),
            AtomOp::Max => old.max(b),
            _ => old + b,
        }
    }

    fn halves(&self, format: FloatFormat, parts: &[bool]) -> [ShadowWord; 2] {
        let mut word = self.old[0];
        let (bits, words) = self.operands[0];
        for high in parts.iter().copied() {
            // The operand of a 16-bit atomic is in the low half of its register.
            let from_high = high && parts.len() == 2;
            let part = |bits: u64, high: bool| (bits >> if high { 16 } else { 0 }) as u16;
            let (before, b) = (part(self.before, high), part(bits, from_high));
            let old = word.half(high, before);
            let old = old.unwrap_or_else(|| plain(format, before.into()));
            let operand = words[0].half(from_high, b);
            let value = self.combine(old, operand.unwrap_or_else(|| plain(format, b.into())));
            word.set_half(high, part(self.after, high), Some(value));
        }
        [word, ShadowWord::default()]
    }

    /// Returns the shadows after an exchange: those of the operand that memory now holds.
    fn moved(&self) -> [ShadowWord; 2] {
        if self.after == self.before {
            return self.old;
        }
        let moved = self.operands.iter().find(|(bits, _)| {
            // The second word counts for 64-bit atomics only.
            *bits == self.after || *bits as u32 == self.after as u32
        });
        moved.map_or([ShadowWord::default(); 2], |(_, words)| *words)
    }
}
