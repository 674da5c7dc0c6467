//! Operations on `mbarrier` objects.

use super::access::Touch;
use super::cta::Cta;
use super::phases::{Arrival, Delivery, FailedPoll, Flight, Mbarrier};
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::{INIT_AGENT, copy_agent};
use crate::hazard::report::Location;
use crate::hazard::shadow::{LastWrite, Strength};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, Area, Data, MbarOp, NONE, Op, Synchronizes};

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
        let place = |w: &Warp, lane| w.shared_place(at, lane);
        // The lanes of a warp mostly name the same object.
        let first = place(w, mask.trailing_zeros() as usize & 31);
        if !init
            && !self.leaves_block(w, first)
            && lanes(mask).all(|lane| place(w, lane) == first)
            && self.touch_atomic_row(w, first, mask)
        {
            for lane in lanes(mask) {
                self.mbarrier_lane(w, first as u32, op, lane);
            }
            self.note_poll(w, Some(first as u32), op, mask);
            self.deliver_after_poll(w, first as u32, op, mask);
            return;
        }
        for lane in lanes(mask) {
            let address = place(w, lane);
            if !init
                && self.context.checks.races
                && self.mbarriers.find_slot(address as u32).is_ok()
            {
                self.check_overwritten(address as u32, w.index * 32 + lane);
            }
            let touch = Touch {
                strength: if init {
                    Strength::Plain
                } else {
                    Strength::Strong
                },
                needs_written: !init,
                observes: !init,
                ..Touch::write(lane, 8)
            };
            if self.touch(w, Area::Cluster, address, touch).is_none() {
                continue;
            }
            self.mbarrier_lane(w, address as u32, op, lane);
        }
        let same = lanes(mask).all(|lane| place(w, lane) == first);
        self.note_poll(w, same.then_some(first as u32), op, mask);
        for lane in lanes(mask) {
            let address = place(w, lane) as u32;
            self.deliver_after_poll(w, address, op, 1 << lane);
        }
    }

    /// Ends the turn of a warp that waits in vain, so that others reach the object in the meantime. `at`: the
    /// object, where all lanes wait for the same.
    fn note_poll(&mut self, w: &Warp, at: Option<u32>, op: &MbarOp, mask: u32) {
        let MbarOp::Wait { dest, .. } = op else {
            return;
        };
        // In a random schedule the drawn turn lengths are kept.
        let in_vain = w.regs.preds[*dest as usize] & mask == 0;
        self.polled = in_vain && self.context.seed.is_none();
        let polled = self.polled;
        let m = at.and_then(|at| self.mbarriers.get_mut(at).filter(|_| polled));
        self.failed_poll = m.zip(at).map(|(m, at)| FailedPoll {
            mbarrier: at,
            phase: m.phase,
            pc: self.pc,
        });
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
            self.threads[thread].inits.push(at);
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
                completes,
            } => {
                let arrival = Arrival {
                    count: row(*count, 1),
                    bytes: row(*expect, 0).into(),
                    drop: *drop,
                    release: *release,
                };
                if !completes {
                    self.check_incomplete(at, thread, arrival.count);
                }
                let token = self.arrive_mbarrier(at, thread, arrival);
                w.set(*state, lane, token);
            }
            MbarOp::ExpectTx { bytes } => self.expect(at, i64::from(row(*bytes, 0))),
            MbarOp::CompleteTx { bytes } => self.expect(at, -i64::from(row(*bytes, 0))),
            MbarOp::AsyncArrive { noinc } => {
                // Copies are complete at once, and visible to those who wait for the phase. The count is
                // incremented before the arrival, which then leaves it unchanged (PTX ISA,
                // `cp.async.mbarrier.arrive`).
                self.count_copies(at, thread);
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
                w.awaits = (!done).then_some(at);
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
        if releases || !several && arrival.release != Synchronizes::Nothing {
            if several && !foreign {
                self.clocks.release_to(thread, &mut m.own[0]);
            }
            self.clocks.release_to(thread, &mut m.current);
        } else {
            self.clocks.release_execution_to(thread, &mut m.current);
        }
        if arrival.drop {
            m.expected = m.expected.saturating_sub(arrival.count);
        }
        if m.pending < 0 {
            self.too_many_arrivals(thread, at);
            return token;
        }
        m.complete_if_done();
        token
    }

    fn too_many_arrivals(&mut self, thread: usize, at: u32) {
        let place = Location::new(Space::Shared, at.into());
        self.hazard(HazardKind::Crashed, thread, place, NONE, || {
            "more arrivals at an mbarrier than its count".to_owned()
        });
    }

    /// Reports an arrival that completes a phase though it says that it does not, which is undefined
    /// (PTX ISA, `mbarrier.arrive`).
    fn check_incomplete(&mut self, at: u32, thread: usize, count: u32) {
        let pending = self.mbarriers.get_mut(at).map_or(0, |m| m.pending);
        if pending <= i64::from(count) {
            let place = Location::new(Space::Shared, at.into());
            self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                "an arrival with `.noComplete` that completes the phase".to_owned()
            });
        }
    }

    /// Releases the objects that a thread initialised by its later arrivals at the barrier of the
    /// cluster, `.relaxed` ones included (PTX ISA, `fence.mbarrier_init`).
    pub(super) fn fence_inits(&mut self, thread: usize) {
        let inits = std::mem::take(&mut self.threads[thread].inits);
        if inits.is_empty() {
            return;
        }
        let event = self.clocks.agent_segment(INIT_AGENT);
        self.issuers[INIT_AGENT] = thread;
        for word in inits.iter().flat_map(|at| [at / 4, at / 4 + 1]) {
            self.shadow
                .give_to_agent(word as usize, thread, event, true);
        }
        self.clocks.learn(thread, event);
    }

    /// Reports an object that an ordinary access has overwritten since its initialisation.
    fn check_overwritten(&mut self, at: u32, thread: usize) {
        let written = [at / 4, at / 4 + 1].map(|word| self.shadow.last_writes(word as usize));
        let by = written.as_flattened().iter().flatten().find(|write| {
            let inst = self.context.program.code.get(write.pc as usize);
            inst.is_some_and(|inst| {
                matches!(
                    inst.op,
                    Op::Store(_) | Op::CpAsync(_) | Op::Bulk(_) | Op::Tensor(_) | Op::Clear { .. }
                )
            })
        });
        if let Some(LastWrite { pc, .. }) = by {
            let place = Location::new(Space::Shared, at.into());
            self.hazard(HazardKind::Crashed, thread, place, *pc, || {
                "an mbarrier whose memory was overwritten after its initialisation".to_owned()
            });
        }
    }

    /// Describes what an object waits for, for a deadlock.
    pub(super) fn describe_wait(&mut self, at: u32) -> Option<String> {
        let m = self.mbarriers.get_mut(at)?;
        let (pending, expected) = (m.pending.max(0), m.expected);
        let mut missing = Vec::new();
        if pending > 0 {
            missing.push(format!("{pending} of {expected} arrivals"));
        }
        if m.bytes > 0 {
            missing.push(format!("{} of the expected bytes", m.bytes));
        }
        let what = match (missing.as_slice(), m.bytes) {
            ([], bytes) if bytes < 0 => format!("{} bytes more came than were expected", -bytes),
            ([], _) => {
                "nothing is missing in it, so its parity is not the one waited for".to_owned()
            }
            (all, bytes) if bytes < 0 => {
                let more = -bytes;
                format!(
                    "{} are missing, and {more} bytes more came than were expected",
                    all.join(" and ")
                )
            }
            (all, _) => format!("{} are missing", all.join(" and ")),
        };
        let phase = m.phase;
        Some(format!(
            "threads wait for the mbarrier at byte {at} of shared memory, whose phase {phase} does not end: {what}"
        ))
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
        let shared = |lane| w.shared_place(at, lane);
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
            ranges,
            sources,
            commits,
        } = done;
        let foreign = self.is_foreign(at, thread).then_some(self.pc);
        let several = self.context.cluster.blocks > 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            self.hazard(
                HazardKind::Crashed,
                thread,
                Location::new(Space::Shared, at.into()),
                NONE,
                || {
                    let what = if commits.is_some() {
                        "tcgen05.commit"
                    } else {
                        "a bulk copy"
                    };
                    format!("{what} signals an mbarrier that was not initialised")
                },
            );
            return;
        };
        // The completion orders the copy itself; only for the own block, whose thread has started
        // it, also what the thread did before. A commit comes after the products, which have read what the
        // thread waited for, in all blocks.
        if foreign.is_some() && commits.is_none() {
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
            words,
            foreign,
            ranges,
            sources,
            commits,
        });
    }

    /// Delivers copies after lanes have polled in vain: all lanes of an instruction get one answer.
    fn deliver_after_poll(&mut self, w: &Warp, at: u32, op: &MbarOp, mask: u32) {
        if let MbarOp::Wait { dest, .. } = op
            && w.regs.preds[*dest as usize] & mask != mask
        {
            self.deliver(at);
        }
    }

    /// Delivers the copies in flight. They complete only when a thread polls for them, so that a
    /// missing wait is detected.
    fn deliver(&mut self, at: u32) {
        let Some(m) = self.mbarriers.get_mut(at) else {
            return;
        };
        let mut late = None;
        for flight in &mut m.in_flight {
            if flight.delivered.is_none() {
                flight.delivered = Some(m.phase);
                m.bytes -= i64::from(flight.bytes);
                m.pending -= i64::from(flight.commits.is_some());
                if m.pending < 0 {
                    late = Some(flight.thread);
                }
                self.version += 1;
            }
        }
        m.complete_if_done();
        if let Some(thread) = late {
            self.too_many_arrivals(thread, at);
        }
    }

    fn phase_done(
        &mut self,
        at: u32,
        thread: usize,
        parity: bool,
        wanted: u64,
        acquire: Synchronizes,
    ) -> bool {
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
            return false;
        }
        let phase = m.phase;
        // Copies of earlier phases have landed; those of the current phase are in flight.
        let there = |f: &mut Flight| f.delivered.is_some_and(|p| p < phase);
        let landed: Vec<Flight> = m.in_flight.extract_if(.., there).collect();
        self.note_awaited(at, &landed);
        let races = self.context.checks.races;
        if let Some(last) = landed.last().filter(|_| races) {
            // Only those see the bytes who wait for the phase: not the thread that copies, nor those
            // ordered behind it.
            let event = self.clocks.agent_segment(copy_agent(at));
            self.issuers[event.0 - self.clocks.threads] = last.thread;
            for flight in &landed {
                for word in &flight.words {
                    self.shadow
                        .give_to_agent(*word as usize, flight.thread, event, false);
                }
            }
            let mut events = vec![event];
            for flight in &landed {
                if let Some(number) = flight.commits {
                    events.extend(self.complete_products(flight.thread, number, event));
                }
            }
            if let Some(m) = self.mbarriers.get_mut(at) {
                for event in events {
                    self.clocks.publish(event, &mut m.finished);
                    self.clocks.publish(event, &mut m.own[1]);
                }
            }
        }
        let Some(m) = self.mbarriers.get_mut(at) else {
            return false;
        };
        // A token says only that its own phase has ended.
        let seen = if parity {
            phase
        } else {
            (wanted & 0xffff_ffff) + 1
        };
        m.observed = m.observed.max(seen);
        for flight in landed {
            for range in &flight.ranges {
                self.check_range(flight.thread, range);
            }
            self.check_sources(flight.thread, flight.sources);
        }
        if races {
            self.acquire_phase(at, thread, acquire);
        }
        true
    }
}
