//! `mbarrier`: phases, pending arrivals, bytes expected of asynchronous copies.

use super::access::Touch;
use super::cta::Cta;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::{Clock, join};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, Area, MbarOp, NONE};

/// One `mbarrier` object.
#[derive(Debug, Clone, Default)]
pub(super) struct Mbarrier {
    expected: u32,
    pending: i64,
    bytes: i64,
    phase: u64,
    /// What the arrivals of the current phase had seen and done, and those of all finished ones.
    current: Option<Clock>,
    finished: Option<Clock>,
    /// Bulk copies on their way.
    in_flight: Vec<Flight>,
}

/// A bulk copy that signals an `mbarrier`.
#[derive(Debug, Clone)]
struct Flight {
    /// Phase it belongs to, once its bytes were counted.
    delivered: Option<u64>,
    bytes: u32,
    thread: usize,
    segment: u32,
    words: Vec<u32>,
}

/// The objects of a block by address, in ascending order: they are few, and asked for at every poll.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(Vec<(u32, Mbarrier)>);

impl Mbarriers {
    fn place(&self, at: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&at, |(address, _)| *address)
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut Mbarrier> {
        let place = self.place(at).ok()?;
        Some(&mut self.0[place].1)
    }

    fn insert(&mut self, at: u32, fresh: Mbarrier) {
        match self.place(at) {
            Ok(place) => self.0[place].1 = fresh,
            Err(place) => self.0.insert(place, (at, fresh)),
        }
    }

    fn remove(&mut self, at: u32) {
        if let Ok(place) = self.place(at) {
            self.0.remove(place);
        }
    }
}

impl Mbarrier {
    fn settle(&mut self) {
        if self.pending > 0 || self.bytes != 0 {
            return;
        }
        self.phase += 1;
        self.pending = self.expected.into();
        // Whoever sees a phase end has seen the earlier ones end.
        if let Some(clock) = self.current.take() {
            join(&mut self.finished, clock);
        }
    }
}

impl Cta<'_> {
    pub(super) fn mbarrier(&mut self, w: &mut Warp, at: &Address, op: &MbarOp, mask: u32) {
        if let MbarOp::PendingCount { state, dest } = op {
            for lane in lanes(mask) {
                w.regs.r32[*dest as usize][lane] = (w.value(*state, lane) >> 32) as u32;
            }
            return;
        }
        let init = matches!(op, MbarOp::Init { .. });
        let place = |w: &Warp, lane| match (at.area, w.address(at, lane)) {
            (Area::Generic, address) => super::access::split(address).1,
            (_, address) => address,
        };
        // The lanes of a warp nearly always mean the same object.
        let first = place(w, mask.trailing_zeros() as usize & 31);
        if !init
            && lanes(mask).all(|lane| place(w, lane) == first)
            && self.touch_atomic_row(w, first, mask)
        {
            for lane in lanes(mask) {
                self.mbarrier_lane(w, first as u32, op, lane);
            }
            if let MbarOp::Wait { dest, .. } = op {
                // Orders of warps that are drawn keep the turns that were drawn.
                let in_vain = w.regs.preds[*dest as usize] & mask == 0;
                self.polled = in_vain && self.context.seed.is_none();
            }
            return;
        }
        for lane in lanes(mask) {
            let address = place(w, lane);
            let touch = Touch {
                strong: !init,
                needs_written: !init,
                observes: !init,
                ..Touch::write(lane, 8)
            };
            if self.touch(w, Area::Shared, address, touch).is_none() {
                continue;
            }
            self.mbarrier_lane(w, address as u32, op, lane);
        }
    }

    fn mbarrier_lane(&mut self, w: &mut Warp, at: u32, op: &MbarOp, lane: usize) {
        let thread = w.index * 32 + lane;
        let row = |r: u32, none: u32| {
            if r == NONE {
                none
            } else {
                w.regs.r32[r as usize][lane]
            }
        };
        if let MbarOp::Init { count } = op {
            let n = row(*count, 1);
            self.version += 1;
            let fresh = Mbarrier {
                expected: n,
                pending: n.into(),
                ..Mbarrier::default()
            };
            self.mbarriers.insert(at, fresh);
            return;
        }
        if self.mbarriers.place(at).is_err() {
            self.hazard(
                HazardKind::Crashed,
                thread,
                (Space::Shared, at.into()),
                NONE,
                || "an mbarrier that was not initialised".to_owned(),
            );
            self.halted = Some(Halt(
                Stop::IllegalBarrier,
                "an mbarrier that was not initialised",
            ));
            return;
        }
        match op {
            MbarOp::Inval => {
                self.mbarriers.remove(at);
            }
            MbarOp::Arrive {
                count,
                expect,
                state,
                drop,
            } => {
                let (n, bytes) = (row(*count, 1), row(*expect, 0));
                let token = self.arrive_mbarrier(at, thread, n, bytes.into(), *drop);
                w.set(*state, lane, token);
            }
            MbarOp::ExpectTx { bytes } => self.expect(at, i64::from(row(*bytes, 0))),
            MbarOp::CompleteTx { bytes } => self.expect(at, -i64::from(row(*bytes, 0))),
            MbarOp::AsyncArrive { noinc } => {
                self.wait_group(w, NONE, 1 << lane);
                if !noinc && let Some(m) = self.mbarriers.get_mut(at) {
                    m.pending += 1;
                }
                self.arrive_mbarrier(at, thread, 1, 0, false);
            }
            MbarOp::Wait {
                parity,
                state,
                dest,
                acquire,
            } => {
                let wanted = w.value(*state, lane);
                let done = self.phase_done(at, thread, *parity, wanted, *acquire);
                let p = &mut w.regs.preds[*dest as usize];
                *p = (*p & !(1 << lane)) | u32::from(done) << lane;
            }
            MbarOp::Init { .. } | MbarOp::PendingCount { .. } => {}
        }
    }

    fn arrive_mbarrier(&mut self, at: u32, thread: usize, n: u32, bytes: i64, drop: bool) -> u64 {
        // What a loop that tests the phase waits for may have come.
        self.version += 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            return 0;
        };
        let token = m.phase | (m.pending.max(0) as u64) << 32;
        m.bytes += bytes;
        m.pending -= i64::from(n);
        self.clocks.release_to(thread, &mut m.current);
        if drop {
            m.expected = m.expected.saturating_sub(n);
        }
        if m.pending < 0 {
            self.hazard(
                HazardKind::Crashed,
                thread,
                (Space::Shared, at.into()),
                NONE,
                || "more arrivals at an mbarrier than its count".to_owned(),
            );
            return token;
        }
        m.settle();
        token
    }

    fn expect(&mut self, at: u32, bytes: i64) {
        self.version += 1;
        if let Some(m) = self.mbarriers.get_mut(at) {
            m.bytes += bytes;
            m.settle();
        }
    }

    /// A bulk copy has written its bytes; they are visible to whoever waits for the phase.
    pub(super) fn bulk_done(&mut self, at: u32, thread: usize, bytes: u32, words: Vec<u32>) {
        let segment = self.clocks.segment[thread];
        let Some(m) = self.mbarriers.get_mut(at) else {
            self.hazard(
                HazardKind::Crashed,
                thread,
                (Space::Shared, at.into()),
                NONE,
                || "a bulk copy signals an mbarrier that was not initialised".to_owned(),
            );
            return;
        };
        self.clocks.release_to(thread, &mut m.current);
        m.in_flight.push(Flight {
            delivered: None,
            bytes,
            thread,
            segment,
            words,
        });
    }

    /// Lets the copies arrive: they do when somebody has to wait for them, not sooner, so that a
    /// wait that is not one is seen.
    fn deliver(&mut self, at: u32) {
        let Some(m) = self.mbarriers.get_mut(at) else {
            return;
        };
        for i in 0..m.in_flight.len() {
            if m.in_flight[i].delivered.is_none() {
                m.in_flight[i].delivered = Some(m.phase);
                m.bytes -= i64::from(m.in_flight[i].bytes);
                self.version += 1;
            }
        }
        m.settle();
    }

    fn phase_done(
        &mut self,
        at: u32,
        thread: usize,
        parity: bool,
        wanted: u64,
        acquire: bool,
    ) -> bool {
        let Some(m) = self.mbarriers.get_mut(at) else {
            return false;
        };
        let done = if parity {
            m.phase & 1 != wanted & 1
        } else {
            m.phase > wanted & 0xffff_ffff
        };
        if !done {
            self.deliver(at);
            return false;
        }
        let phase = m.phase;
        let clocks = m.finished.clone();
        let there = |f: &mut Flight| f.delivered.is_some_and(|p| p < phase);
        let landed: Vec<Flight> = m.in_flight.extract_if(.., there).collect();
        for flight in landed.iter().filter(|_| self.context.checks.races) {
            for word in &flight.words {
                self.shadow
                    .landed(*word as usize, flight.thread, flight.segment);
            }
        }
        if let Some(clock) = clocks
            && acquire
            && self.context.checks.races
        {
            self.clocks.acquire(thread, &clock);
        }
        true
    }
}
