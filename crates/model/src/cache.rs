//! The L1 cache: lines of four sectors, least recently used out first.

/// Ways of a set.
const WAYS: usize = 8;

/// A cache of 128-byte lines, each with its sectors filled on their own.
#[derive(Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    /// Touches so far.
    clock: u64,
}

#[derive(Debug, Clone, Copy)]
struct Set {
    /// Line numbers plus one.
    tags: [u64; WAYS],
    /// When each line was touched last, in touches.
    used: [u64; WAYS],
    /// When each sector is there; [`ABSENT`] where it was not asked for.
    times: [[u64; 4]; WAYS],
}

/// The time of a sector that is not there and not on its way.
const ABSENT: u64 = u64::MAX;
/// The time of a sector that was asked for just now.
const ASKED: u64 = u64::MAX - 1;

impl Cache {
    /// A cache of so many bytes; with too few it holds nothing.
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

    /// The set of a line; lines a power of two apart do not share one.
    fn set(&mut self, line: u64) -> Option<&mut Set> {
        let count = self.sets.len() as u64;
        let hash = line ^ line >> 7 ^ line >> 15;
        self.sets.get_mut(hash.checked_rem(count)? as usize)
    }

    /// Asks for a 32-byte sector: when it is or will be there, where it is known or on its way.
    /// Otherwise, if `fill`, it is asked for now, and [`Cache::arrives`] says when it comes.
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
            *time = ASKED;
        }
        (there < ASKED).then_some(there)
    }

    /// A sector that was asked for comes at `time`; those that ask for it until then wait as well.
    pub(super) fn arrives(&mut self, sector: u64, time: u64) {
        let line = sector / 4;
        let Some(set) = self.set(line) else { return };
        let way = set.tags.iter().position(|t| *t == line + 1);
        if let Some(way) = way {
            let part = &mut set.times[way][(sector % 4) as usize];
            if *part == ASKED {
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
