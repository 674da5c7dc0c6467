//! Accesses of one kind to a word, one per thread.

use std::collections::VecDeque;

use super::shadow::Stamp;

/// Accesses of one kind that a word records. A thread has one, so only grids with more threads on
/// one word reach it; the lowest blocks are then forgotten.
const MAX_ACCESSES: usize = 1 << 16;

/// An access, its block, and its sequence number among those to the word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PastAccess {
    pub(super) block: u32,
    pub(super) stamp: Stamp,
    pub(super) place: u32,
}

impl PastAccess {
    /// Returns the key of the record: one per thread.
    fn thread(&self) -> (u32, u16) {
        (self.block, self.stamp.thread)
    }
}

/// Accesses in ascending order of threads, which is nearly their order in time: up to `N` inline,
/// which is enough for nearly all words, or any number on the heap.
#[derive(Debug, Clone)]
pub(super) enum AccessList<const N: usize> {
    Few { len: u32, all: [PastAccess; N] },
    Many(VecDeque<PastAccess>),
}

impl<const N: usize> Default for AccessList<N> {
    fn default() -> Self {
        AccessList::Few {
            len: 0,
            all: [PastAccess::default(); N],
        }
    }
}

impl<const N: usize> AccessList<N> {
    pub(super) fn clear(&mut self) {
        match self {
            AccessList::Few { len, .. } => *len = 0,
            AccessList::Many(all) => all.clear(),
        }
    }

    /// Returns all accesses, in two consecutive parts.
    #[inline]
    pub(super) fn parts(&self) -> (&[PastAccess], &[PastAccess]) {
        match self {
            AccessList::Few { len, all } => (&all[..*len as usize], &[]),
            AccessList::Many(all) => all.as_slices(),
        }
    }

    /// Records an access, replacing the last one of its thread.
    #[inline]
    pub(super) fn add(&mut self, new: PastAccess) {
        let AccessList::Few { len, all } = self else {
            return self.add_to_many(new);
        };
        let used = *len as usize;
        let before = |past: &&PastAccess| past.thread() < new.thread();
        // Searched from the end: threads mostly come in ascending order.
        let at = used - all[..used].iter().rev().take_while(|p| !before(p)).count();
        if all[at..used]
            .first()
            .is_some_and(|p| p.thread() == new.thread())
        {
            all[at] = new;
        } else if used < N {
            all.copy_within(at..used, at + 1);
            all[at] = new;
            *len += 1;
        } else {
            *self = AccessList::Many(all.iter().copied().collect());
            self.add_to_many(new);
        }
    }

    fn add_to_many(&mut self, new: PastAccess) {
        let AccessList::Many(all) = self else { return };
        if all.back().is_none_or(|last| last.thread() < new.thread()) {
            all.push_back(new);
        } else {
            match all.binary_search_by_key(&new.thread(), PastAccess::thread) {
                Ok(at) => all[at] = new,
                Err(at) => all.insert(at, new),
            }
        }
        if all.len() > MAX_ACCESSES {
            all.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
