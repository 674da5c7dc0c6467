//! Undefined values in memory: a store to shared memory leaves its bytes unwritten, and a load of them makes its
//! result undefined, as does a load of unwritten bytes that a predicate may discard. As for registers, that is
//! an error only where the value decides something.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ptx::structs::Unwritten;

use super::access::split;
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::definedness::Rule;
use crate::lower::program::{Area, Inst, Mem, NONE, Op, STACK};

/// Bytes of a word of shared memory.
const WORD_BYTES: u64 = 4;

/// A word without a value that a lane of the current load reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct UndefinedRead {
    lane: usize,
    /// Address in its space.
    at: u64,
}

/// A read of unwritten bytes that counts where its value decides something.
#[derive(Debug, Clone)]
pub(super) struct DeferredRead {
    kind: HazardKind,
    place: Location,
    detail: Cow<'static, str>,
    reported: bool,
}

/// The last deferred reads by thread and load.
pub(super) type DeferredReads = BTreeMap<(u32, u32), DeferredRead>;

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

/// Returns the address of an access in its space.
fn start_of(w: &Warp, m: &Mem, lane: usize) -> u64 {
    let (area, at) = match (m.at.area, w.address(&m.at, lane)) {
        (Area::Generic, at) => split(at),
        other => other,
    };
    match area {
        Area::Local if at >= STACK => at - STACK,
        _ => at,
    }
}

/// Reports whether unwritten bytes that an instruction reads count later.
fn is_deferred(inst: &Inst) -> bool {
    matches!(&inst.op, Op::Load(m) if m.unwritten == Unwritten::Deferred)
}

impl Cta<'_> {
    /// Reports whether a watched load must look for words without a value.
    #[inline]
    pub(super) fn may_read_undefined(&self, m: &Mem) -> bool {
        m.unwritten == Unwritten::Deferred || !self.undefined_words.is_empty()
    }

    /// Reports whether unwritten bytes that the current instruction reads count later.
    pub(super) fn is_deferred(&self) -> bool {
        let inst = self.context.program.code.get(self.pc as usize);
        inst.is_some_and(is_deferred)
    }

    /// Reports a read of unwritten bytes by the current instruction, or keeps it until its value decides
    /// something.
    #[cold]
    pub(super) fn report_unwritten(
        &mut self,
        kind: HazardKind,
        thread: usize,
        place: Location,
        detail: impl FnOnce() -> Cow<'static, str>,
    ) {
        if !self.is_deferred() {
            self.hazard(kind, thread, place, NONE, || detail().into_owned());
            return;
        }
        // A sliced launch does not compute most values.
        if self.context.skip_unless != 0 {
            return;
        }
        self.undefined_reads.push(UndefinedRead {
            lane: thread % 32,
            at: place.address,
        });
        let key = (thread as u32, self.pc);
        self.deferred.entry(key).or_insert_with(|| DeferredRead {
            kind,
            place,
            detail: detail(),
            reported: false,
        });
    }

    /// Reports the deferred read of a thread, or of another lane, on which a decision depends; returns `false` if
    /// there is none. The load `origin` is that of one lane: another lane's value may come from another load.
    pub(super) fn report_deferred(&mut self, thread: usize, origin: u32) -> bool {
        let code = &self.context.program.code;
        if !code.get(origin as usize).is_some_and(is_deferred) {
            return false;
        }
        let number = thread as u32;
        let open = |keys: &mut dyn Iterator<Item = (u32, u32)>| {
            keys.filter_map(|key| Some((key, self.deferred.get(&key)?.reported)))
                .min_by_key(|(_, reported)| *reported)
                .map(|(key, _)| key)
        };
        let own = self.deferred.range((number, 0)..=(number, u32::MAX));
        let own: Vec<(u32, u32)> = own.map(|(key, _)| *key).collect();
        // A shuffled value is that of another lane.
        let warp = number / 32 * 32;
        let key = match self.deferred.contains_key(&(number, origin)) {
            true => Some((number, origin)),
            false => open(&mut own.into_iter())
                .or_else(|| open(&mut (warp..warp + 32).map(|lane| (lane, origin)))),
        };
        let Some((key, read)) = key.and_then(|key| Some((key, self.deferred.get_mut(&key)?)))
        else {
            return false;
        };
        if std::mem::replace(&mut read.reported, true) {
            return true;
        }
        let read = read.clone();
        // The hazard is the load's, which has the source line of the read.
        let here = std::mem::replace(&mut self.pc, key.1);
        let detail = || read.detail.into_owned();
        self.hazard(read.kind, key.0 as usize, read.place, NONE, detail);
        self.pc = here;
        true
    }

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
            let lane = thread % 32;
            self.undefined_reads.push(UndefinedRead { lane, at });
        }
        loads
    }

    /// Executes a load whose elements may be undefined.
    #[cold]
    pub(super) fn load_undefined(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let starts = |w: &Warp| std::array::from_fn::<_, 32, _>(|lane| start_of(w, m, lane));
        // The load may replace the register of its address.
        let before = m.data.contains(&m.at.base).then(|| starts(w));
        self.undefined_reads.clear();
        if !self.deferred.is_empty() {
            for lane in lanes(mask) {
                let thread = Self::thread(w, lane) as u32;
                self.deferred.remove(&(thread, self.pc));
            }
        }
        match w.shadows {
            Some(_) => self.load_shadowed(w, m, mask),
            None => self.load(w, m, mask),
        }
        if self.undefined_reads.is_empty() {
            return;
        }
        let program = self.context.program;
        let watch = program.watches.get(&self.pc).map(|watch| &watch.rule);
        let Some(Rule::Loaded(elements)) = watch else {
            return;
        };
        let starts = before.unwrap_or_else(|| starts(w));
        for UndefinedRead { lane, at } in std::mem::take(&mut self.undefined_reads) {
            let Some(start) = starts.get(lane) else {
                continue;
            };
            for (n, element) in (0..).zip(elements) {
                let first = start + n * u64::from(m.width);
                let meets = first < at + WORD_BYTES && at < first + u64::from(m.width);
                if let (true, Some(register)) = (meets, element) {
                    w.set_undefined(*register, 1 << lane, u32::MAX);
                    w.origins[*register as usize] = self.pc;
                }
            }
        }
    }
}
