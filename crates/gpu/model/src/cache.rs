//! L1 cache with lines of four sectors and least-recently-used replacement.

/// Ways per set.
const WAYS: usize = 8;

/// A cache of 128-byte lines whose sectors are filled separately.
#[derive(Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    /// Number of accesses so far.
    clock: u64,
}

#[derive(Debug, Clone, Copy)]
struct Set {
    /// Line numbers plus one.
    tags: [u64; WAYS],
    /// Last access of each line, as an access number.
    used: [u64; WAYS],
    /// Arrival cycle of each sector; [`ABSENT`] if it was not requested.
    times: [[u64; 4]; WAYS],
}

/// Arrival cycle of a sector that is neither present nor requested.
const ABSENT: u64 = u64::MAX;
/// Arrival cycle of a requested sector before [`Cache::arrives`] sets it.
const REQUESTED: u64 = u64::MAX - 1;

impl Cache {
    /// Creates a cache of `bytes`; below the size of one set it holds nothing.
    pub(super) fn new(bytes: u64) -> Cache {
        let sets = (bytes / 128) as usize / WAYS;
        let empty = Set {
            tags: [0; WAYS],
            used: [0; WAYS],
            times: [[ABSENT; 4]; WAYS],
        };
        Cache {
            sets: vec![empty; sets],
            clock: 0,
        }
    }

    /// Returns the set of a line. Lines a power of two apart fall into different sets.
    fn set(&mut self, line: u64) -> Option<&mut Set> {
        let count = self.sets.len() as u64;
        let hash = line ^ line >> 7 ^ line >> 15;
        self.sets.get_mut(hash.checked_rem(count)? as usize)
    }

    /// Accesses a 32-byte sector and returns its arrival cycle if it is present or requested.
    /// Otherwise, if `fill`, it counts as requested, and [`Cache::arrives`] sets its arrival.
    pub(super) fn touch(&mut self, sector: u64, fill: bool) -> Option<u64> {
        self.clock += 1;
        let now = self.clock;
        let line = sector / 4;
        let set = self.set(line)?;
        let found = set.tags.iter().position(|t| *t == line + 1);
        let way = match found {
            Some(way) => way,
            None if !fill => return None,
            None => {
                let oldest = (0..WAYS).min_by_key(|way| set.used[*way])?;
                set.tags[oldest] = line + 1;
                set.times[oldest] = [ABSENT; 4];
                oldest
            }
        };
        set.used[way] = now;
        let time = &mut set.times[way][(sector % 4) as usize];
        let there = *time;
        if there == ABSENT && fill {
            *time = REQUESTED;
        }
        (there < REQUESTED).then_some(there)
    }

    /// Sets the arrival of a requested sector; accesses until then wait for it as well.
    pub(super) fn arrives(&mut self, sector: u64, time: u64) {
        let line = sector / 4;
        let Some(set) = self.set(line) else { return };
        let way = set.tags.iter().position(|t| *t == line + 1);
        // Another sector of the same access may have replaced the line.
        if let Some(way) = way {
            let part = &mut set.times[way][(sector % 4) as usize];
            if *part == REQUESTED {
                *part = time;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;

    #[test]
    fn a_sector_hits_after_it_was_filled_and_its_neighbours_do_not() {
        let mut cache = Cache::new(64 * 1024);
        assert_eq!(cache.touch(40, true), None);
        cache.arrives(40, 700);
        assert_eq!(cache.touch(40, true), Some(700));
        assert_eq!(cache.touch(41, true), None);
        assert_eq!(cache.touch(99, false), None);
        assert_eq!(cache.touch(99, true), None);
    }

    #[test]
    fn a_sector_on_its_way_comes_once_and_at_the_time_of_the_first() {
        let mut cache = Cache::new(64 * 1024);
        assert_eq!(cache.touch(7, true), None);
        cache.arrives(7, 500);
        cache.arrives(7, 900);
        assert_eq!(cache.touch(7, true), Some(500));
    }

    #[test]
    fn a_working_set_larger_than_the_cache_misses_every_time() {
        let mut cache = Cache::new(16 * 1024);
        let pass = |cache: &mut Cache| {
            (0..4096u64)
                .filter(|s| cache.touch(*s, true).is_some())
                .count()
        };
        pass(&mut cache);
        assert_eq!(pass(&mut cache), 0);
    }
}
