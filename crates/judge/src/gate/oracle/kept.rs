//! An oracle that works on all cores and remembers its answers: candidates of one problem are
//! compared with the same elements over and over.

use super::store::Folder;
use super::{Expected, Oracle};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Told now and then while something takes long.
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// What an oracle may use.
#[derive(Clone, Default)]
pub(crate) struct Means {
    /// Answers that cost much are kept here from one process to the next.
    pub(crate) folder: Option<Folder>,
    /// Told while the oracle works.
    pub(crate) progress: Option<Progress>,
    /// Bytes of answers that one oracle keeps in memory.
    pub(crate) memory_bytes: u64,
}

/// Tiles by output, first element and number of elements.
type Tiles = HashMap<(usize, u64, u64), Arc<[Expected]>>;

pub(super) struct Kept {
    oracle: Arc<dyn Oracle>,
    means: Means,
    /// What the answers depend on.
    identity: String,
    tiles: Mutex<Tiles>,
    bytes: AtomicU64,
}

/// Multiplications from which on a second core is worth starting: a millisecond of one.
const PARALLEL_WORK: u64 = 1 << 21;
/// An element costs more than its multiplications: an exponential, say, and the bounds.
const ELEMENT_WORK: u64 = 16;
/// Multiplications from which on an answer is kept on disk: some tenths of a second of one core.
const DISK_WORK: u64 = 1 << 28;

impl Kept {
    fn tiles(&self) -> std::sync::MutexGuard<'_, Tiles> {
        self.tiles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a range by whole tiles, which is how they are kept.
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

    /// The parts one after the other, or on all cores where they are worth it.
    fn work_out(&self, output: usize, start: u64, count: u64) -> Vec<Expected> {
        let cost = count.saturating_mul(self.oracle.work().max(ELEMENT_WORK));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let tile = self.oracle.tile(output).max(1);
        // Several pieces a core, each of whole tiles, so that a slow core holds nobody up.
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
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(place) = done.get_mut(number) {
                    *place = Some(part);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..cores.min(pieces) {
                scope.spawn(work);
            }
            work();
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.into_iter().flatten().flatten().collect()
    }
}

impl Oracle for Kept {
    fn span(&self, output: usize, start: u64, count: u64) -> Vec<Expected> {
        let parts = self.parts(output, start, count);
        if let Some(known) = self.known(output, &parts, count) {
            return known;
        }
        if let Some(progress) = &self.means.progress {
            progress();
        }
        let costly = count.saturating_mul(self.oracle.work()) >= DISK_WORK;
        let folder = self.means.folder.as_ref().filter(|_| costly);
        let name = || format!("{} {output} {start} {count}", self.identity);
        let stored = folder.and_then(|folder| folder.read(&name(), count));
        let all = match stored {
            Some(stored) => stored,
            None => {
                let all = self.work_out(output, start, count);
                if let Some(folder) = folder {
                    folder.write(&name(), &all);
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

/// The oracle with these means; `identity` is what its answers depend on.
pub(crate) fn keeping(oracle: Arc<dyn Oracle>, identity: String, means: &Means) -> Arc<dyn Oracle> {
    Arc::new(Kept {
        oracle,
        means: means.clone(),
        identity,
        tiles: Mutex::default(),
        bytes: AtomicU64::new(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread::ThreadId;

    /// Counts elements that were worked out, and who did it.
    #[derive(Default)]
    struct Counting {
        elements: AtomicU64,
        threads: Mutex<BTreeSet<String>>,
    }

    impl Counting {
        fn note(&self, id: ThreadId, count: u64) {
            self.elements.fetch_add(count, Ordering::Relaxed);
            self.threads.lock().unwrap().insert(format!("{id:?}"));
        }
    }

    impl Oracle for Counting {
        fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
            self.note(std::thread::current().id(), count);
            // As slow as real work, so that every core gets some.
            std::thread::sleep(std::time::Duration::from_millis(5));
            let expected = |at: u64| Expected {
                value: at as f64 * 0.1,
                tolerance: at as f64,
                rms: 1.0 / (at + 1) as f64,
            };
            (start..start + count).map(expected).collect()
        }

        fn tile(&self, _output: usize) -> u64 {
            64
        }

        fn work(&self) -> u64 {
            1 << 20
        }
    }

    fn means(folder: Option<Folder>, progress: Option<Progress>) -> Means {
        Means {
            folder,
            progress,
            memory_bytes: 1 << 20,
        }
    }

    #[test]
    fn a_large_range_is_worked_out_on_all_cores_and_in_order() {
        let counting = Arc::new(Counting::default());
        let oracle = keeping(counting.clone(), String::new(), &means(None, None));
        let all = oracle.span(0, 10, 1000);
        assert_eq!(all, Counting::default().span(0, 10, 1000));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = counting.threads.lock().unwrap().len();
        assert!(threads > 1 || cores == 1, "{threads} of {cores} cores");
    }

    #[test]
    fn tiles_are_remembered_and_shared_by_ranges_that_overlap() {
        let counting = Arc::new(Counting::default());
        let oracle = keeping(counting.clone(), String::new(), &means(None, None));
        let _ = oracle.span(0, 0, 256);
        let _ = (oracle.span(0, 64, 128), oracle.span(0, 0, 256));
        assert_eq!(counting.elements.load(Ordering::Relaxed), 256);
        assert_eq!(oracle.bytes(), 256 * 24);
    }

    #[test]
    fn what_costs_much_is_read_from_disk_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Some(Folder::new(folder.path().to_owned(), 1 << 20));
        let first = Arc::new(Counting::default());
        let told = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&told);
        let progress: Progress = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let with = |oracle: &Arc<Counting>, identity: &str| {
            let means = means(folder.clone(), Some(Arc::clone(&progress)));
            keeping(oracle.clone(), identity.to_owned(), &means).span(0, 0, 512)
        };
        let all = with(&first, "one");
        let second = Arc::new(Counting::default());
        assert_eq!(with(&second, "one"), all);
        assert_eq!(second.elements.load(Ordering::Relaxed), 0);
        let _ = with(&second, "another");
        assert_eq!(second.elements.load(Ordering::Relaxed), 512);
        assert!(told.load(Ordering::Relaxed) >= 2);
    }
}
