//! Copies and stores into shared memory of a cluster that an `mbarrier` there counts: the destinations
//! of a multicast, `st.async`, `red.async` (PTX ISA, 9.7.9.12, 9.7.13.9, 9.7.9.25).

use super::access::Touch;
use super::atomics::BulkElement;
use super::cta::Cta;
use super::phases::Delivery;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, AsyncStore, NONE};

/// Destination of a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyTarget {
    /// Shared addresses of the data and of the `mbarrier`.
    pub(super) to: u32,
    pub(super) barrier: u32,
    /// Blocks that receive it at the same places, a bit each; `None` for that of the addresses.
    pub(super) multicast: Option<u32>,
    /// The `mbarrier` may be that of the other block of a pair.
    pub(super) pair: bool,
}

impl Cta<'_> {
    /// Returns the mask of a multicast from its row, if the copy is one.
    pub(super) fn multicast(&self, w: &Warp, row: u32, lane: usize) -> Option<u32> {
        // The mask of a multicast has 16 bits (PTX ISA, `cp.async.bulk`), and its row 32.
        (row != NONE).then(|| w.regs.r32[row as usize][lane] & 0xffff)
    }

    /// Returns the addresses of the data and of the `mbarrier` in each block that receives a copy.
    pub(super) fn copy_targets(&mut self, thread: usize, target: CopyTarget) -> Vec<(u32, u32)> {
        let cluster = self.context.cluster;
        let place = Location::new(Space::Shared, target.to.into());
        let [to, at] = [target.to, target.barrier].map(u64::from);
        let [of_data, of_barrier] = [to, at].map(|at| cluster.rank_of_address(at));
        // Ranks of a pair differ in their last bit.
        let near = match target.pair {
            true => of_data / 2 == of_barrier / 2,
            false => of_data == of_barrier,
        };
        if !near {
            self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                "an asynchronous copy whose mbarrier is in another block than its destination"
                    .to_owned()
            });
            return Vec::new();
        }
        let Some(mask) = target.multicast else {
            return vec![(target.to, target.barrier)];
        };
        let ranks = self.multicast_ranks(thread, place, mask);
        let (to, at) = (cluster.offset(to), cluster.offset(at));
        let addresses = |rank: usize| {
            let signalled = match target.pair {
                true => rank & !1 | of_barrier & 1,
                false => rank,
            };
            (
                cluster.address(rank, to) as u32,
                cluster.address(signalled, at) as u32,
            )
        };
        ranks.into_iter().map(addresses).collect()
    }

    /// Returns the ranks of the blocks in the mask of a multicast, and reports those that do not exist.
    pub(super) fn multicast_ranks(
        &mut self,
        thread: usize,
        place: Location,
        mask: u32,
    ) -> Vec<usize> {
        let blocks = self.context.cluster.blocks;
        if mask >> blocks != 0 || mask == 0 {
            self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                format!("a multicast to the blocks 0b{mask:b} of a cluster of {blocks}")
            });
        }
        (0..blocks).filter(|rank| mask >> rank & 1 == 1).collect()
    }

    /// Executes `st.async` and `red.async`.
    pub(super) fn async_store(&mut self, w: &mut Warp, s: &AsyncStore, mask: u32) {
        let blocks = self.context.cluster.blocks;
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let target = CopyTarget {
                to: w.address(&s.to, lane) as u32,
                barrier: w.address(&s.mbarrier, lane) as u32,
                multicast: s.everywhere.then_some((1 << blocks) - 1),
                pair: false,
            };
            for (to, at) in self.copy_targets(thread, target) {
                let bytes = s.width * s.data.len() as u32;
                let words = match s.reduce {
                    Some(_) => self.reduce_shared(w, s, lane, to),
                    None => self.store_shared(w, s, lane, to),
                };
                let done = Delivery {
                    thread,
                    bytes,
                    words,
                    ..Delivery::default()
                };
                self.bulk_done(at, done);
            }
        }
    }

    /// Stores the elements of one lane; returns the words that are in flight.
    fn store_shared(&mut self, w: &mut Warp, s: &AsyncStore, lane: usize, to: u32) -> Vec<u32> {
        let bytes = s.width * s.data.len() as u32;
        let touch = Touch {
            // Only a wait for the phase of the `mbarrier` orders the store before a read (PTX ISA,
            // `st.async`).
            in_flight: true,
            ..Touch::write(lane, bytes)
        };
        let Some(place) = self.touch(w, Area::Cluster, to.into(), touch) else {
            return Vec::new();
        };
        for (n, data) in (0..).zip(&s.data) {
            let value = w.value(*data, lane);
            self.put(w, place, n * s.width, s.width, value);
        }
        (to / 4..(to + bytes) / 4).collect()
    }

    /// Performs the reduction of one lane, which is relaxed and atomic in the cluster.
    fn reduce_shared(&mut self, w: &mut Warp, s: &AsyncStore, lane: usize, to: u32) -> Vec<u32> {
        if let (Some((op, ty)), Some(data)) = (s.reduce, s.data.first()) {
            let value = w.value(*data, lane);
            let at = to.into();
            self.reduce_element(w, lane, Area::Cluster, BulkElement { op, ty, at, value });
        }
        // Its order is that of an atomic, which the wait of its phase gives: nothing is left in
        // flight.
        Vec::new()
    }
}
