//! Tensor maps that the kernel itself changes. Copies read them through a proxy of their own.
//!
//! A change by ordinary stores is visible to a copy only if the writer, or a thread ordered behind it, released
//! it (`fence.proxy.tensormap::generic.release`, `tensormap.cp_fenceproxy`), and the copying thread, or one ordered
//! before it, acquired the map's address afterwards (PTX ISA, 8 and 9.7.13.4).

use super::access::split;
use super::cta::Cta;
use super::unchanged::Written;
use crate::hazard::clock::Seen;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, NONE};
use gpu_tensor_map::TENSOR_MAP_BYTES;

/// Maximum fences recorded per thread. Once a thread has as many, missing fences are not reported: later ones are
/// not known.
const FENCES_MAX: usize = 1024;

/// A `fence.proxy.tensormap` that was executed.
#[derive(Debug, Clone)]
pub(super) struct MapFence {
    /// Accesses that happen before it.
    seen: Seen,
    /// The map that it acquires; a release has none.
    acquires: Option<u64>,
}

impl Cta<'_> {
    /// Records a fence of a thread, which acquires the map at an address or releases all.
    pub(super) fn fence_maps(&mut self, thread: usize, acquires: Option<u64>) {
        let seen = self.clocks.mark(thread);
        let fences = &mut self.threads[thread].map_fences;
        if fences.len() < FENCES_MAX {
            fences.push(MapFence { seen, acquires });
        }
    }

    /// Reports a tensor map that a copy of a thread cannot use (PTX ISA, 5.5.8), or may see as it was.
    pub(super) fn check_map(&mut self, thread: usize, at: u64) {
        let place = Location::new(Space::Global, at);
        let why = match split(at).0 {
            Area::Local => {
                "a tensor map in local memory: declare the parameter as `const __grid_constant__ CUtensorMap`, so \
                 that it is not copied"
            }
            Area::Shared => {
                "a tensor map in shared memory: a copy takes it from global memory or from the kernel's parameters"
            }
            Area::Global => return self.check_map_fences(thread, place, at),
            _ => return,
        };
        self.hazard(HazardKind::Crashed, thread, place, NONE, || why.to_owned());
    }

    fn check_map_fences(&mut self, thread: usize, place: Location, at: u64) {
        if !self.context.checks.races || self.context.skip_unless != 0 {
            return;
        }
        let writes = self.writes_of_range(at, TENSOR_MAP_BYTES as u64);
        let writes = writes.unwrap_or_default();
        let found = writes.iter().flatten().find_map(|written| {
            let missing = self.missing_fence(thread, at, *written)?;
            Some((missing, (*written)?.0.pc))
        });
        if let Some((missing, pc)) = found {
            self.hazard(HazardKind::Race, thread, place, pc, || {
                format!(
                    "a copy uses a tensor map that ordinary stores of this launch wrote, without \
                     `fence.proxy.tensormap::generic.{missing}` between them"
                )
            });
        }
    }

    /// Returns the kind of fence that is missing between a write to the map at an address and the current point
    /// of a thread.
    fn missing_fence(&self, thread: usize, at: u64, written: Written) -> Option<&'static str> {
        let (stamp, of) = written?;
        if self
            .threads
            .iter()
            .any(|t| t.map_fences.len() >= FENCES_MAX)
        {
            return None;
        }
        // Other blocks cannot be asked for their fences.
        let own = of == self.block;
        let before = |acquires: Option<u64>| {
            let fences = self.threads.iter().flat_map(|t| &t.map_fences);
            fences.filter(move |fence| {
                let seen = &fence.seen;
                fence.acquires == acquires && self.clocks.ordered(thread, seen.thread, seen.segment)
            })
        };
        let releases: Vec<&Seen> = before(None)
            .map(|fence| &fence.seen)
            .filter(|seen| seen.covers(stamp.thread.into(), stamp.segment))
            .collect();
        // An acquire before the release sees the map as it was.
        let acquired = before(Some(at)).any(|fence| {
            let behind = |release: &&Seen| fence.seen.covers(release.thread, release.segment);
            !own || releases.iter().any(behind)
        });
        match () {
            () if own && releases.is_empty() => Some("release"),
            () if !acquired => Some("acquire"),
            () => None,
        }
    }
}
