//! Shared memory that products of warp-groups read: it may be overwritten once a thread that has waited
//! for the product happens before the store. Any warp of the warp-group may have waited, since a product
//! is one operation of all four.

use super::wgmma::WARPS;
use crate::hazard::clock::Clocks;
use std::collections::HashMap;
use std::ops::Range;

/// One group of products of a warp-group.
#[derive(Debug)]
struct Group {
    /// Instruction of its last product.
    pc: u32,
    first_warp: usize,
    /// For each warp, the segments of its threads when they had waited.
    waits: [Option<Box<[u32]>>; WARPS],
}

/// Products of a block and the words that they read.
#[derive(Debug, Default)]
pub(super) struct Flights {
    groups: Vec<Group>,
    /// Number of a group plus 1, by warp-group and the group's place in the order of commits.
    numbers: HashMap<(usize, u32), u32>,
    /// By warp-group and word: number of the last group that read it plus 1, or 0.
    marks: Vec<Vec<u32>>,
    /// Groups committed, by warp.
    committed: Vec<u32>,
    /// Products issued, by warp.
    issued: Vec<u32>,
    /// Descriptors of A (if it has one) and B of the products of each warp-group whose four warps have
    /// not all issued them, by their place in the order of issue.
    open: HashMap<(usize, u32), (Descriptors, u32)>,
}

/// The descriptors of a product.
pub(super) type Descriptors = [Option<u64>; 2];

impl Flights {
    /// Returns the number plus 1 of a warp's group, to which the instruction adds a product.
    pub(super) fn begin(&mut self, warp: usize, group: u32, pc: u32) -> u32 {
        let (groups, key) = (&mut self.groups, (warp / WARPS, group));
        let number = *self.numbers.entry(key).or_insert_with(|| {
            groups.push(Group {
                pc,
                first_warp: warp / WARPS * WARPS,
                waits: Default::default(),
            });
            groups.len() as u32
        });
        if let Some(group) = self.groups.get_mut(number as usize - 1) {
            group.pc = pc;
        }
        number
    }

    /// Reports whether a warp's next product has the descriptors that the other warps of its
    /// warp-group gave for it.
    pub(super) fn agree(&mut self, warp: usize, own: Descriptors) -> bool {
        if self.issued.len() <= warp {
            self.issued.resize(warp + 1, 0);
        }
        let Some(issued) = self.issued.get_mut(warp) else {
            return true;
        };
        let key = (warp / WARPS, *issued);
        *issued += 1;
        let (first, warps) = self.open.entry(key).or_insert((own, 0));
        *warps += 1;
        let (same, complete) = (*first == own, *warps as usize == WARPS);
        if complete {
            self.open.remove(&key);
        }
        same
    }

    /// Records that the group reads four words of a block with `words` words.
    pub(super) fn mark(&mut self, warp: usize, first: usize, number: u32, words: usize) {
        let own = warp / WARPS;
        if self.marks.len() <= own {
            self.marks.resize_with(own + 1, Vec::new);
        }
        if let Some(marks) = self.marks.get_mut(own) {
            marks.resize(words, 0);
            if let Some(marks) = marks.get_mut(first..first + 4) {
                marks.fill(number);
            }
        }
    }

    /// Records the number of groups that a warp has committed.
    pub(super) fn commit(&mut self, warp: usize, committed: u32) {
        if self.committed.len() <= warp {
            self.committed.resize(warp + 1, 0);
        }
        if let Some(count) = self.committed.get_mut(warp) {
            *count = committed;
        }
    }

    /// Reports whether all these warps have committed so many groups.
    pub(super) fn have_committed(&self, mut warps: Range<usize>, groups: u32) -> bool {
        warps.all(|warp| {
            self.committed
                .get(warp)
                .is_some_and(|count| *count >= groups)
        })
    }

    /// Records that the threads of a warp, in these segments, have waited for all groups up to one.
    pub(super) fn wait(&mut self, warp: usize, until: u32, segments: &[u32]) {
        // Earlier groups were waited for earlier, or with this one.
        for group in (1..=until).rev() {
            let number = self.numbers.get(&(warp / WARPS, group));
            let group = number.and_then(|number| self.groups.get_mut(*number as usize - 1));
            let Some(group) = group else { continue };
            let Some(wait) = group.waits.get_mut(warp % WARPS) else {
                continue;
            };
            if wait.is_some() {
                break;
            }
            *wait = Some(segments.into());
        }
    }

    /// Reports whether no product has read anything.
    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Returns the instruction and the first thread of a product that may still read a word when
    /// `thread` stores to it.
    pub(super) fn unfinished(
        &mut self,
        word: usize,
        thread: usize,
        clocks: &Clocks,
    ) -> Option<(u32, usize)> {
        let groups = &self.groups;
        self.marks.iter_mut().find_map(|marks| {
            let mark = std::mem::take(marks.get_mut(word)?);
            let group = groups.get((mark as usize).checked_sub(1)?)?;
            (!group.is_before(thread, clocks)).then_some((group.pc, group.first_warp * 32))
        })
    }
}

impl Group {
    /// Reports whether a thread that waited for the group happens before the current point of `thread`.
    fn is_before(&self, thread: usize, clocks: &Clocks) -> bool {
        self.waits.iter().enumerate().any(|(warp, wait)| {
            let first = (self.first_warp + warp) * 32;
            let segments = wait.iter().flat_map(|segments| segments.iter());
            let mut waited = (first..).zip(segments);
            waited.any(|(waiter, segment)| clocks.ordered(thread, waiter, *segment))
        })
    }
}
