//! Undefined values in shared memory: a store leaves its bytes unwritten, and a load of them makes its result
//! undefined. As for registers, that is an error only where the value decides something.

use super::access::split;
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::definedness::Rule;
use crate::lower::program::{Area, Mem};

/// Bytes of a word of shared memory.
const WORD_BYTES: u64 = 4;

/// Address of an access in shared memory; `None` elsewhere.
fn shared_address(w: &Warp, m: &Mem, lane: usize) -> Option<u64> {
    let at = w.address(&m.at, lane);
    match m.at.area {
        Area::Shared => Some(at),
        Area::Generic => match split(at) {
            (Area::Shared, at) => Some(at),
            _ => None,
        },
        _ => None,
    }
}

impl Cta<'_> {
    /// Records that lanes store an undefined value as element `n` of a vector.
    pub(super) fn note_undefined(&mut self, w: &Warp, m: &Mem, n: i64, mask: u32) {
        for lane in lanes(mask) {
            if let Some(at) = shared_address(w, m, lane) {
                let first = at.wrapping_add_signed(n * i64::from(m.width));
                let last = first.saturating_add(u64::from(m.width) - 1);
                self.undefined_words
                    .extend(first / WORD_BYTES..=last / WORD_BYTES);
            }
        }
    }

    /// Takes note that the current instruction reads an unwritten word to which an undefined value was stored;
    /// `false` where it does not, or its result is not watched.
    pub(super) fn reads_undefined(&mut self, thread: usize, at: u64) -> bool {
        if !self.undefined_words.contains(&(at / WORD_BYTES)) {
            return false;
        }
        let watch = self.context.program.watches.get(&self.pc);
        let loads = watch.is_some_and(|watch| matches!(watch.rule, Rule::Loaded(_)));
        if loads {
            self.undefined_reads.push((thread % 32, at));
        }
        loads
    }

    /// Executes a load whose elements may be undefined.
    #[cold]
    pub(super) fn load_undefined(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        // The load may replace the register of its address.
        let starts = std::array::from_fn::<_, 32, _>(|lane| shared_address(w, m, lane));
        self.undefined_reads.clear();
        match w.shadows {
            Some(_) => self.load_shadowed(w, m, mask),
            None => self.load(w, m, mask),
        }
        let program = self.context.program;
        let watch = program.watches.get(&self.pc);
        let Some(Rule::Loaded(elements)) = watch.map(|watch| &watch.rule) else {
            return;
        };
        for (lane, word) in std::mem::take(&mut self.undefined_reads) {
            let Some(Some(start)) = starts.get(lane) else {
                continue;
            };
            for (n, element) in (0..).zip(elements) {
                let first = start + n * u64::from(m.width);
                let meets = first < word + WORD_BYTES && word < first + u64::from(m.width);
                if let (true, Some(register)) = (meets, element) {
                    w.set_undefined(*register, 1 << lane, u32::MAX);
                    w.origins[*register as usize] = self.pc;
                }
            }
        }
    }
}
