//! The `mbarrier` object: phases, pending arrivals, transaction bytes of asynchronous copies.

use super::access::Touch;
use super::bulk_stores::BulkSource;
use super::cta::Cta;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::{Clock, join};
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, Area, Data, MbarOp, NONE, Synchronizes};

/// An `mbarrier` object.
#[derive(Debug, Clone, Default)]
pub(super) struct Mbarrier {
    expected: u32,
    pending: i64,
    bytes: i64,
    phase: u64,
    /// Clock joined from the arrivals of the current phase, and that of all finished phases.
    current: Option<Clock>,
    finished: Option<Clock>,
    /// The same of arrivals by the block of the object only, in a cluster of several: what an
    /// acquire of block scope orders.
    own: [Option<Clock>; 2],
    /// Bulk copies in flight.
    in_flight: Vec<Flight>,
}

/// A bulk copy that signals an `mbarrier`.
#[derive(Debug, Clone)]
struct Flight {
    /// Phase in which its bytes were counted, once they are.
    delivered: Option<u64>,
    bytes: u32,
    thread: usize,
    segment: u32,
    words: Vec<u32>,
    /// Instruction of the copy, if its thread is of another block.
    foreign: Option<u32>,
    /// Words of shared memory that it reads, if it does.
    sources: Vec<BulkSource>,
}

/// A finished copy that signals an `mbarrier`.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    pub(super) thread: usize,
    pub(super) bytes: u32,
    /// Words that it wrote, and their last writes that it read.
    pub(super) words: Vec<u32>,
    pub(super) sources: Vec<BulkSource>,
}

/// The objects of a block in ascending order of address: few, and searched at every poll.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(Vec<(u32, Mbarrier)>);

impl Mbarriers {
    fn find_slot(&self, at: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&at, |(address, _)| *address)
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut Mbarrier> {
        let place = self.find_slot(at).ok()?;
        Some(&mut self.0[place].1)
    }

    fn insert(&mut self, at: u32, fresh: Mbarrier) {
        match self.find_slot(at) {
            Ok(place) => self.0[place].1 = fresh,
            Err(place) => self.0.insert(place, (at, fresh)),
        }
    }

    fn remove(&mut self, at: u32) {
        if let Ok(place) = self.find_slot(at) {
            self.0.remove(place);
        }
    }
}

/// Operands of an arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    count: u32,
    bytes: i64,
    drop: bool,
    release: Synchronizes,
}

impl Arrival {
    /// One arrival that publishes to all.
    const ONE: Arrival = Arrival {
        count: 1,
        bytes: 0,
        drop: false,
        release: Synchronizes::Cluster,
    };
}

impl Mbarrier {
    /// Creates an object that expects a number of arrivals in each phase.
    fn new(expected: u32) -> Mbarrier {
        Mbarrier {
            expected,
            pending: expected.into(),
            ..Mbarrier::default()
        }
    }

    fn complete_if_done(&mut self) {
        if self.pending > 0 || self.bytes != 0 {
            return;
        }
        self.phase += 1;
        self.pending = self.expected.into();
        // A thread that observes the end of a phase has observed the ends of earlier ones.
        if let Some(clock) = self.current.take() {
            join(&mut self.finished, clock);
        }
        let [current, finished] = &mut self.own;
        if let Some(clock) = current.take() {
            join(finished, clock);
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
        if self.context.cluster.blocks > 1 && !self.reaches_barrier(w, at, op, mask) {
            return;
        }
        let place = |w: &Warp, lane| match (at.area, w.address(at, lane)) {
            (Area::Generic, address) => super::access::split(address).1,
            (_, address) => address,
        };
        // The lanes of a warp mostly name the same object.
        let first = place(w, mask.trailing_zeros() as usize & 31);
        if !init
            && lanes(mask).all(|lane| place(w, lane) == first)
            && self.touch_atomic_row(w, first, mask)
        {
            for lane in lanes(mask) {
                self.mbarrier_lane(w, first as u32, op, lane);
            }
            if let MbarOp::Wait { dest, .. } = op {
                // In a random schedule the drawn turn lengths are kept.
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
            if self.touch(w, Area::Cluster, address, touch).is_none() {
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
            self.version += 1;
            self.mbarriers.insert(at, Mbarrier::new(row(*count, 1)));
            return;
        }
        if self.mbarriers.find_slot(at).is_err() {
            self.hazard(
                HazardKind::Crashed,
                thread,
                Location::new(Space::Shared, at.into()),
                NONE,
                || "an mbarrier that was not initialised".to_owned(),
            );
            self.halted = Some(Halt(
                Stop::IllegalOperand,
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
                release,
            } => {
                let arrival = Arrival {
                    count: row(*count, 1),
                    bytes: row(*expect, 0).into(),
                    drop: *drop,
                    release: *release,
                };
                let token = self.arrive_mbarrier(at, thread, arrival);
                w.set(*state, lane, token);
            }
            MbarOp::ExpectTx { bytes } => self.expect(at, i64::from(row(*bytes, 0))),
            MbarOp::CompleteTx { bytes } => self.expect(at, -i64::from(row(*bytes, 0))),
            MbarOp::AsyncArrive { noinc } => {
                // Copies are complete at once. The count is incremented before the arrival, which then
                // leaves it unchanged (PTX ISA, `cp.async.mbarrier.arrive`).
                self.wait_group(w, NONE, 1 << lane);
                if !noinc && let Some(m) = self.mbarriers.get_mut(at) {
                    m.pending += 1;
                }
                self.arrive_mbarrier(at, thread, Arrival::ONE);
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

    fn arrive_mbarrier(&mut self, at: u32, thread: usize, arrival: Arrival) -> u64 {
        let foreign = self.is_foreign(at, thread);
        let several = self.context.cluster.blocks > 1;
        // The phase may complete, which ends the loops that test it.
        self.version += 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            return 0;
        };
        // The opaque state token: the phase, and the pending count for `mbarrier.pending_count`.
        let token = m.phase | (m.pending.max(0) as u64) << 32;
        m.bytes += arrival.bytes;
        m.pending -= i64::from(arrival.count);
        let releases = match arrival.release {
            Synchronizes::Nothing => false,
            Synchronizes::Block => !foreign,
            Synchronizes::Cluster => true,
        };
        if releases || !several {
            if several && !foreign {
                self.clocks.release_to(thread, &mut m.own[0]);
            }
            self.clocks.release_to(thread, &mut m.current);
        }
        if arrival.drop {
            m.expected = m.expected.saturating_sub(arrival.count);
        }
        if m.pending < 0 {
            self.hazard(
                HazardKind::Crashed,
                thread,
                Location::new(Space::Shared, at.into()),
                NONE,
                || "more arrivals at an mbarrier than its count".to_owned(),
            );
            return token;
        }
        m.complete_if_done();
        token
    }

    fn expect(&mut self, at: u32, bytes: i64) {
        self.version += 1;
        if let Some(m) = self.mbarriers.get_mut(at) {
            m.bytes += bytes;
            m.complete_if_done();
        }
    }

    /// Reports whether an address is in another block than a thread.
    fn is_foreign(&self, at: u32, thread: usize) -> bool {
        let cluster = &self.context.cluster;
        cluster.rank_of_address(at.into()) != cluster.rank(thread)
    }

    /// Reports operations on an object of another block that do not exist; returns whether there is
    /// none.
    fn reaches_barrier(&mut self, w: &Warp, at: &Address, op: &MbarOp, mask: u32) -> bool {
        let what = match op {
            MbarOp::Init { .. } => "initialises",
            MbarOp::Inval => "invalidates",
            MbarOp::Wait { .. } => "waits for",
            MbarOp::AsyncArrive { .. } => "counts copies at",
            MbarOp::Arrive { state, .. } if *state != Data::Nothing => "wants the state of",
            _ => return true,
        };
        let shared = |lane| match at.area {
            Area::Generic => super::access::split(w.address(at, lane)).1,
            _ => w.address(at, lane),
        };
        let Some(lane) = lanes(mask).find(|lane| self.leaves_block(w, shared(*lane))) else {
            return true;
        };
        let place = Location::new(Space::Shared, shared(lane));
        self.hazard(
            HazardKind::Crashed,
            w.index * 32 + lane,
            place,
            NONE,
            || {
                format!(
                    "a thread {what} an mbarrier of another block, which only its own block can"
                )
            },
        );
        self.halted = Some(Halt(Stop::IllegalOperand, "an mbarrier of another block"));
        false
    }

    /// Records that a bulk copy has written its bytes, which are visible to threads that wait for
    /// the phase.
    pub(super) fn bulk_done(&mut self, at: u32, done: Delivery) {
        let Delivery {
            thread,
            bytes,
            words,
            sources,
        } = done;
        let segment = self.clocks.segment[thread];
        let foreign = self.is_foreign(at, thread).then_some(self.pc);
        let several = self.context.cluster.blocks > 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            self.hazard(
                HazardKind::Crashed,
                thread,
                Location::new(Space::Shared, at.into()),
                NONE,
                || "a bulk copy signals an mbarrier that was not initialised".to_owned(),
            );
            return;
        };
        // The completion orders the copy itself; only for the own block, whose thread has started
        // it, also what the thread did before.
        if foreign.is_some() {
            self.clocks.release_own_to(thread, &mut m.own[0]);
            self.clocks.release_own_to(thread, &mut m.current);
        } else {
            if several {
                self.clocks.release_to(thread, &mut m.own[0]);
            }
            self.clocks.release_to(thread, &mut m.current);
        }
        m.in_flight.push(Flight {
            delivered: None,
            bytes,
            thread,
            segment,
            words,
            foreign,
            sources,
        });
    }

    /// Reports copies into a block by others for which it did not wait before its exit.
    pub(super) fn check_copies_at_exit(&mut self) {
        let mut late = Vec::new();
        for (at, m) in &mut self.mbarriers.0 {
            let flights = std::mem::take(&mut m.in_flight);
            let foreign = flights.iter().filter_map(|f| Some((f.thread, f.foreign?)));
            late.extend(foreign.map(|(thread, pc)| (*at, thread, pc)));
        }
        for (at, thread, pc) in late {
            let rank = self.context.cluster.rank_of_address(at.into());
            let (exit, block) = (self.exit_of(rank), self.block_name(rank));
            self.pc = pc;
            let place = Location::new(Space::Shared, at.into());
            self.hazard(HazardKind::Race, thread, place, exit, || {
                format!(
                    "an asynchronous copy into shared memory of {block}, which exits without a wait \
                     for it"
                )
            });
        }
    }

    /// Delivers the copies in flight. They complete only when a thread polls for them, so that a
    /// missing wait is detected.
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
        m.complete_if_done();
    }

    fn phase_done(
        &mut self,
        at: u32,
        thread: usize,
        parity: bool,
        wanted: u64,
        acquire: Synchronizes,
    ) -> bool {
        let several = self.context.cluster.blocks > 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            return false;
        };
        let done = if parity {
            m.phase & 1 != wanted & 1
        } else {
            // A token holds the phase in its low half; the phase of the token must have ended.
            m.phase > wanted & 0xffff_ffff
        };
        if !done {
            self.deliver(at);
            return false;
        }
        let phase = m.phase;
        // Copies of earlier phases are now visible to this thread; those of the current phase are
        // in flight.
        let clocks = match acquire {
            Synchronizes::Nothing => None,
            Synchronizes::Block if several => m.own[1].clone(),
            _ => m.finished.clone(),
        };
        let there = |f: &mut Flight| f.delivered.is_some_and(|p| p < phase);
        let landed: Vec<Flight> = m.in_flight.extract_if(.., there).collect();
        for flight in landed.iter().filter(|_| self.context.checks.races) {
            for word in &flight.words {
                self.shadow
                    .complete_copy(*word as usize, flight.thread, flight.segment);
            }
        }
        for flight in landed
            .into_iter()
            .filter(|flight| !flight.sources.is_empty())
        {
            self.check_sources(flight.thread, flight.sources);
        }
        if let Some(clock) = clocks
            && self.context.checks.races
        {
            self.clocks.acquire(thread, &clock);
        }
        true
    }
}
