//! Shared memory that products and copies of tensor cores read: it may be overwritten by a thread that is ordered
//! behind a wait for a commit after them, at whichever of the objects that the commit arrived at.

use crate::hazard::clock::Clocks;
use std::collections::BTreeSet;

/// Products and copies that a thread committed together.
#[derive(Debug)]
struct Group {
    /// Instruction of the last one that read shared memory.
    pc: u32,
    /// Products and copies of the thread until the commit, once there was one.
    committed: Option<u32>,
    /// Waits for a commit that covers them: agent and segment.
    waits: Vec<(usize, u32)>,
}

/// Reads of the products and copies of one thread.
#[derive(Debug)]
struct Reads {
    thread: usize,
    groups: Vec<Group>,
    /// By word: number of the last group that read it plus 1, or 0.
    marks: Vec<u32>,
}

/// The words of shared memory that products and copies of a cluster read.
#[derive(Debug, Default)]
pub(super) struct TensorReads(Vec<Reads>);

impl TensorReads {
    /// Reports whether no product or copy has read anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of_thread(&mut self, thread: usize) -> Option<&mut Reads> {
        self.0.iter_mut().find(|reads| reads.thread == thread)
    }

    /// Records that an instruction of a thread reads words of shared memory, four from each of `firsts` on.
    pub(super) fn mark(&mut self, thread: usize, pc: u32, firsts: &BTreeSet<usize>) {
        let known = self.0.iter().position(|reads| reads.thread == thread);
        let place = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push(Reads {
                thread,
                groups: Vec::new(),
                marks: Vec::new(),
            });
        }
        let reads = &mut self.0[place];
        match reads.groups.last_mut() {
            Some(group) if group.committed.is_none() => group.pc = pc,
            _ => reads.groups.push(Group {
                pc,
                committed: None,
                waits: Vec::new(),
            }),
        }
        let number = reads.groups.len() as u32;
        let end = firsts.last().map_or(0, |first| first + 4);
        if reads.marks.len() < end {
            reads.marks.resize(end, 0);
        }
        for first in firsts {
            if let Some(marks) = reads.marks.get_mut(*first..first + 4) {
                marks.fill(number);
            }
        }
    }

    /// Records a commit of a thread, before which it had issued so many products and copies.
    pub(super) fn commit(&mut self, thread: usize, number: u32) {
        let last = self
            .of_thread(thread)
            .and_then(|reads| reads.groups.last_mut());
        if let Some(group) = last.filter(|group| group.committed.is_none()) {
            group.committed = Some(number);
        }
    }

    /// Records a wait for the products and copies of a thread up to a number.
    pub(super) fn wait(&mut self, thread: usize, number: u32, agent: usize, segment: u32) {
        let Some(reads) = self.of_thread(thread) else {
            return;
        };
        for group in reads.groups.iter_mut().rev() {
            if group.committed.is_none_or(|committed| committed > number) {
                continue;
            }
            // Earlier groups have the earlier event of this agent, too, which its later ones follow.
            if group.waits.iter().any(|(other, _)| *other == agent) {
                break;
            }
            group.waits.push((agent, segment));
        }
    }

    /// Returns the instruction and the thread of a product or copy that may still read a word when `thread`
    /// writes it.
    pub(super) fn unfinished(
        &mut self,
        word: usize,
        thread: usize,
        clocks: &Clocks,
    ) -> Option<(u32, usize)> {
        self.0.iter_mut().find_map(|reads| {
            let mark = std::mem::take(reads.marks.get_mut(word)?);
            let group = reads.groups.get((mark as usize).checked_sub(1)?)?;
            let mut waits = group.waits.iter();
            let over = waits.any(|(agent, segment)| clocks.ordered(thread, *agent, *segment));
            (!over).then_some((group.pc, reads.thread))
        })
    }
}
