//! An oracle that uses all cores and caches its results: candidates of one problem are compared
//! with the same elements repeatedly.

use super::{Expected, Oracle};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tuner_core::cache::CacheFolder;
use tuner_core::panics::lock;
use tuner_core::units::ContentHash;

/// Called repeatedly during long computations.
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// Resources that an oracle may use.
#[derive(Clone, Default)]
pub(crate) struct Means {
    /// Expensive results are stored here across processes.
    pub(crate) folder: Option<Arc<CacheFolder>>,
    /// Called while the oracle computes.
    pub(crate) progress: Option<Progress>,
    /// Limit of the results that one oracle caches in memory, bytes.
    pub(crate) memory_bytes: u64,
}

/// Tiles by output, first element and number of elements.
type Tiles = HashMap<(usize, u64, u64), Arc<[Expected]>>;

pub(super) struct CachingOracle {
    oracle: Arc<dyn Oracle>,
    means: Means,
    /// Everything that the results depend on.
    identity: String,
    tiles: Mutex<Tiles>,
    bytes: AtomicU64,
}

/// Multiplications from which a second core pays off: a millisecond of one core.
const PARALLEL_WORK: u64 = 1 << 21;
/// Overhead of an element, in multiplications: an exponential and the bounds.
const ELEMENT_WORK: u64 = 16;
/// Multiplications from which a result is stored on disk: some tenths of a second of one core.
const DISK_WORK: u64 = 1 << 28;

impl CachingOracle {
    fn tiles(&self) -> std::sync::MutexGuard<'_, Tiles> {
        lock(&self.tiles)
    }

    /// Splits a range at whole tiles, the unit of the cache.
    fn parts(&self, output: usize, start: u64, count: u64) -> Vec<(u64, u64)> {
        let tile = self.oracle.tile(output).max(1);
        let (mut at, end) = (start, start + count);
        let mut parts = Vec::new();
        while at < end {
            let next = ((at / tile + 1) * tile).min(end);
            parts.push((at, next - at));
            at = next;
        }
        parts
    }

    fn known(&self, output: usize, parts: &[(u64, u64)], count: u64) -> Option<Vec<Expected>> {
        let tiles = self.tiles();
        let mut all = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for (start, count) in parts {
            all.extend_from_slice(tiles.get(&(output, *start, *count))?);
        }
        Some(all)
    }

    fn keep(&self, output: usize, parts: &[(u64, u64)], all: &[Expected]) {
        let bytes = size_of_val(all) as u64;
        // Reserved before the check, so that two threads cannot both pass it and exceed the limit.
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.means.memory_bytes {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        let mut tiles = self.tiles();
        let mut rest = all;
        for (start, count) in parts {
            let Some((tile, behind)) = rest.split_at_checked(usize::try_from(*count).unwrap_or(0))
            else {
                return;
            };
            tiles.insert((output, *start, *count), tile.into());
            rest = behind;
        }
    }

    /// Computes a range sequentially, or on all cores if it is large enough.
    fn work_out(&self, output: usize, start: u64, count: u64) -> Vec<Expected> {
        let cost = count.saturating_mul(self.oracle.work().max(ELEMENT_WORK));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let tile = self.oracle.tile(output).max(1);
        // Several pieces of whole tiles for each core, so that a slow core does not delay the
        // others.
        let piece = (count / (4 * cores as u64)).max(1).next_multiple_of(tile);
        if cores < 2 || cost < PARALLEL_WORK || piece >= count {
            return self.oracle.span(output, start, count);
        }
        let pieces = usize::try_from(count.div_ceil(piece)).unwrap_or(1);
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Vec<Expected>>>> = Mutex::new(vec![None; pieces]);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let from = number as u64 * piece;
                if from >= count {
                    return;
                }
                let part = self
                    .oracle
                    .span(output, start + from, piece.min(count - from));
                let mut done = lock(&done);
                if let Some(place) = done.get_mut(number) {
                    *place = Some(part);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..cores.min(pieces) {
                // If the system refuses further threads, the running ones do all the work.
                let started = std::thread::Builder::new().spawn_scoped(scope, work);
                if started.is_err() {
                    break;
                }
            }
            work();
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.into_iter().flatten().flatten().collect()
    }
}

impl Oracle for CachingOracle {
    fn span(&self, output: usize, start: u64, count: u64) -> Vec<Expected> {
        let parts = self.parts(output, start, count);
        if let Some(known) = self.known(output, &parts, count) {
            return known;
        }
        // The host ends a worker that is silent for too long.
        if let Some(progress) = &self.means.progress {
            progress();
        }
        let costly = count.saturating_mul(self.oracle.work()) >= DISK_WORK;
        let folder = self.means.folder.as_ref().filter(|_| costly);
        let key = || {
            let name = format!("{} {output} {start} {count}", self.identity);
            ContentHash::from_parts([name.as_bytes()])
        };
        let stored = folder.and_then(|folder| decoded(&folder.load(&key())?, count));
        let all = match stored {
            Some(stored) => stored,
            None => {
                let all = self.work_out(output, start, count);
                if let Some(folder) = folder {
                    folder.store(&key(), &encoded(&all));
                }
                all
            }
        };
        self.keep(output, &parts, &all);
        all
    }

    fn tile(&self, output: usize) -> u64 {
        self.oracle.tile(output)
    }

    fn work(&self) -> u64 {
        self.oracle.work()
    }

    fn bytes(&self) -> u64 {
        self.oracle.bytes() + self.bytes.load(Ordering::Relaxed)
    }
}

/// Bytes of an element on disk: value, tolerance and rms.
const ELEMENT_BYTES: usize = 24;

fn encoded(all: &[Expected]) -> Vec<u8> {
    let numbers = all.iter().flat_map(|it| [it.value, it.tolerance, it.rms]);
    numbers.flat_map(f64::to_le_bytes).collect()
}

/// Decodes `count` elements; `None` if the content has a different number.
fn decoded(content: &[u8], count: u64) -> Option<Vec<Expected>> {
    let (elements, _) = content.as_chunks::<ELEMENT_BYTES>();
    let number = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
    let element = |bytes: &[u8; ELEMENT_BYTES]| Expected {
        value: number(&bytes[..8]),
        tolerance: number(&bytes[8..16]),
        rms: number(&bytes[16..]),
    };
    let right = content.len() as u64 == count.checked_mul(ELEMENT_BYTES as u64)?;
    right.then(|| elements.iter().map(element).collect())
}

/// Wraps the oracle with these resources; `identity` covers everything that determines its results.
pub(crate) fn keeping(oracle: Arc<dyn Oracle>, identity: String, means: &Means) -> Arc<dyn Oracle> {
    Arc::new(CachingOracle {
        oracle,
        means: means.clone(),
        identity,
        tiles: Mutex::default(),
        bytes: AtomicU64::new(0),
    })
}

#[cfg(test)]
mod tests;
