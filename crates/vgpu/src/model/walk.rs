//! The way of a warp through the machine code, found from its way through the PTX.
//!
//! Each piece of machine code names PTX instructions, and the trace says when the warp executed
//! these. Where the code branches, the warp goes where the PTX instructions come first that it has
//! not executed yet; so loops that the assembler unrolled, code that it moved and branches that it
//! turned round need no special case.

use super::map::{Map, PROBES};
use crate::exec::trace::{Access, WarpTrace};
use crate::sass::{Instr, Jump, Kernel};

/// Never.
const NEVER: u64 = u64::MAX;
/// Pieces without any PTX instruction that are looked through.
const DEPTH: u32 = 4;

/// When a warp executed each PTX instruction that has a slot, and its accesses there.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Boundaries of straight pieces of PTX, sorted.
    cuts: Vec<u32>,
    /// Times at which each was entered.
    visits: Vec<Vec<u64>>,
    /// Piece of PTX of each slot.
    piece_of: Vec<u32>,
    /// Accesses of each slot, in order.
    accesses: Vec<Vec<u32>>,
    /// PTX instructions executed in all.
    pub(super) executed: u64,
}

impl History {
    pub(super) fn new(trace: &WarpTrace, map: &Map) -> History {
        let mut cuts: Vec<u32> = trace.runs.iter().flat_map(|r| [r.start, r.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let index = |pc: u32| cuts.partition_point(|c| *c <= pc).saturating_sub(1);
        let mut visits = vec![Vec::new(); cuts.len()];
        let mut before = None;
        for run in &trace.runs {
            let again = before.replace((run.start, run.end)) == Some((run.start, run.end));
            if again && map.spins(run) {
                continue;
            }
            let (first, last) = (index(run.start), index(run.end));
            for piece in first..last {
                visits[piece].push(run.at + u64::from(cuts[piece] - run.start));
            }
        }
        let piece_of = map.pcs.iter().map(|pc| index(*pc) as u32).collect();
        let mut slot_of = std::collections::HashMap::new();
        for (slot, pc) in map.pcs.iter().enumerate() {
            slot_of.insert(*pc, slot);
        }
        let mut accesses = vec![Vec::new(); map.pcs.len()];
        for (i, access) in trace.accesses.iter().enumerate() {
            if let Some(slot) = slot_of.get(&access.pc) {
                accesses[*slot].push(i as u32);
            }
        }
        History {
            piece_of,
            visits,
            accesses,
            executed: trace.executed,
            cuts,
        }
    }

    fn visit(&self, slot: u32, which: u32) -> u64 {
        let visits = self
            .piece_of
            .get(slot as usize)
            .and_then(|p| self.visits.get(*p as usize));
        visits
            .and_then(|v| v.get(which as usize))
            .copied()
            .unwrap_or(NEVER)
    }

    /// First time from `since` on at which the PTX instruction `pc` was executed: [`NEVER`] if it
    /// was not at all, none if only before.
    fn next(&self, pc: u32, since: u64) -> Option<u64> {
        let piece = self.cuts.partition_point(|c| *c <= pc).saturating_sub(1);
        let visits = self.visits.get(piece).map_or(&[][..], Vec::as_slice);
        match visits {
            [] => Some(NEVER),
            _ => visits.get(visits.partition_point(|v| *v < since)).copied(),
        }
    }
}

/// PTX instructions by which a piece may come before what its anchors say, for some were moved.
const SLACK: u64 = 32;

/// What a piece of machine code tells of the time at which it would be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEvidence {
    /// The anchors in it were executed then.
    Anchors(u64),
    /// The PTX instructions that it is named after were executed then.
    Lines(u64),
    /// The PTX instructions that it is named after have been executed for the last time: the
    /// assembler moved them here from elsewhere, out of a loop or before a branch.
    Moved,
    /// Nothing.
    Nothing,
}

/// A place where split lanes meet, and where the others might still go.
#[derive(Debug, Clone, Default)]
struct Scope {
    meet: u32,
    others: Vec<u32>,
}

/// The time that this share of them is before.
fn quantile(times: impl Iterator<Item = u64>, share: f64) -> u64 {
    let mut all = [NEVER; PROBES];
    let mut count = 0;
    for (place, time) in all.iter_mut().zip(times) {
        *place = time;
        count += 1;
    }
    let sorted = &mut all[..count];
    sorted.sort_unstable();
    let at = (count as f64 * share) as usize;
    sorted
        .get(at.min(count.saturating_sub(1)))
        .copied()
        .unwrap_or(NEVER)
}

/// The piece behind another one, where there is one: it is certain to be next if `always` is given,
/// else it may be left out by a jump.
fn follower(piece: u32, kernel: &Kernel, always: bool) -> Option<u32> {
    let last = kernel.flow.pieces[piece as usize].end - 1;
    let instr = &kernel.code[last as usize];
    let next = match instr.jump {
        Jump::To(to) if !instr.guarded => to,
        Jump::Exit | Jump::Return => return None,
        Jump::To(_) | Jump::Call(_) if always => return None,
        _ => last + 1,
    };
    kernel.flow.piece(next)
}

/// A warp on its way.
#[derive(Debug)]
pub(super) struct SassAligner {
    /// The instruction that is next.
    pub(super) at: u32,
    /// Executions of each slot so far.
    used: Vec<u32>,
    /// Accesses of each slot so far.
    accessed: Vec<u32>,
    /// When a piece without anchors was entered last.
    entered: Vec<Option<u64>>,
    scopes: Vec<Scope>,
    calls: Vec<u32>,
    /// When the PTX entered what the piece at hand stands for, as most of its anchors say: single
    /// ones may have been moved, or taken for those of another copy.
    time: u64,
    pub(super) done: bool,
    steps: u64,
    /// Passes of anchors that the PTX was not executed often enough for.
    beyond: u64,
}

/// Executions of PTX instructions that the walk missed, and all of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Missed {
    pub(super) all: (u64, u64),
    /// Of each kind of [`super::map::Few`].
    pub(super) few: [(u64, u64); 2],
}

impl Missed {
    /// The greatest share.
    pub(super) fn share(&self) -> f64 {
        let share = |(missed, all): (u64, u64)| missed as f64 / all.max(1) as f64;
        (self.few.iter().map(|few| share(*few))).fold(share(self.all), f64::max)
    }
}

impl SassAligner {
    pub(super) fn new(map: &Map) -> SassAligner {
        SassAligner {
            at: 0,
            used: vec![0; map.pcs.len()],
            accessed: vec![0; map.pcs.len()],
            entered: vec![None; map.pieces.len()],
            scopes: Vec::new(),
            calls: Vec::new(),
            time: 0,
            done: false,
            steps: 0,
            beyond: 0,
        }
    }

    /// Adds to `missed` the executions of anchors that the way has not passed, or passed too often;
    /// some are few beside arithmetic, and are counted once more for themselves.
    pub(super) fn account(&self, map: &Map, history: &History, missed: &mut Missed) {
        missed.all.0 += self.beyond;
        for (slot, used) in self.used.iter().enumerate() {
            let piece = history.piece_of[slot] as usize;
            let visits = history.visits.get(piece).map_or(0, Vec::len) as u64;
            let wrong = u64::from(*used).abs_diff(visits).min(visits);
            missed.all.0 += wrong;
            missed.all.1 += visits;
            if let Some(few) = map.few[slot] {
                let kind = &mut missed.few[few as usize];
                kind.0 += wrong;
                kind.1 += visits;
            }
        }
    }

    /// Share of the anchors' executions that were passed so far.
    pub(super) fn progress(&self, history: &History) -> f64 {
        let (mut used, mut all) = (0.0, 0.0);
        for (slot, passed) in self.used.iter().enumerate() {
            used += f64::from(*passed);
            let piece = history.piece_of[slot] as usize;
            all += history.visits.get(piece).map_or(0, Vec::len) as f64;
        }
        if all == 0.0 { 0.0 } else { used / all }
    }

    /// What a piece itself tells of when it would be entered.
    fn told(&self, piece: u32, map: &Map, history: &History) -> LineEvidence {
        let found = &map.pieces[piece as usize];
        let visit =
            |(slot, which): &(u32, u32)| history.visit(*slot, self.used[*slot as usize] + which);
        if !found.probes.is_empty() {
            // Of a loop that the assembler unrolled, all copies must be to come; the first one
            // tells when.
            let last = quantile(found.probes.iter().map(visit), 0.7);
            let first = found.probes.iter().filter(|(_, which)| *which == 0);
            return LineEvidence::Anchors(match last {
                NEVER => NEVER,
                last => last.min(quantile(first.map(visit), 0.7)),
            });
        }
        let taken = found.guarded.iter().map(visit).min().unwrap_or(NEVER);
        if taken != NEVER {
            return LineEvidence::Anchors(taken);
        }
        let since = self.entered[piece as usize].map_or(0, |entered| entered + 1);
        let since = since.max(self.time.saturating_sub(SLACK));
        let mut times = (found.weak.iter())
            .filter_map(|pc| history.next(*pc, since))
            .peekable();
        match times.peek() {
            None if found.weak.is_empty() => LineEvidence::Nothing,
            None => LineEvidence::Moved,
            Some(_) => LineEvidence::Lines(quantile(times, 0.5)),
        }
    }

    /// When a piece would be entered.
    fn score(&self, piece: u32, kernel: &Kernel, map: &Map, history: &History, depth: u32) -> u64 {
        let at = |next: u32, depth: u32| self.score(next, kernel, map, history, depth);
        let told = self.told(piece, map, history);
        match told {
            LineEvidence::Anchors(time) => time,
            LineEvidence::Lines(time) if depth == 0 => time,
            LineEvidence::Lines(time) => {
                // Better evidence of what follows in any case is evidence of this piece too.
                let sure = follower(piece, kernel, true);
                let sure = sure.filter(|next| !map.pieces[*next as usize].probes.is_empty());
                sure.map_or(time, |next| time.max(at(next, 0)))
            }
            LineEvidence::Moved | LineEvidence::Nothing if depth == 0 => NEVER,
            LineEvidence::Nothing => {
                follower(piece, kernel, false).map_or(NEVER, |p| at(p, depth - 1))
            }
            // What follows counts, a little later than if it were next.
            LineEvidence::Moved => follower(piece, kernel, false)
                .map(|p| at(p, depth - 1))
                .filter(|time| *time >= self.time.saturating_sub(SLACK))
                .map_or(NEVER, |time| time.saturating_add(1)),
        }
    }

    /// The access of the instruction at hand, if the warp made it.
    pub(super) fn access<'t>(
        &mut self,
        map: &Map,
        history: &History,
        trace: &'t WarpTrace,
    ) -> Found<'t> {
        let Some(anchor) = map.anchors[self.at as usize] else {
            return Found::Unknown;
        };
        let slot = anchor.slot as usize;
        let visit = if anchor.first {
            self.used[slot]
        } else {
            self.used[slot].saturating_sub(1)
        };
        let (from, until) = (
            history.visit(anchor.slot, visit),
            history.visit(anchor.slot, visit + 1),
        );
        if from == NEVER {
            return Found::Nothing;
        }
        let list = &history.accesses[slot];
        let mut next = self.accessed[slot] as usize;
        let access = |i: usize| list.get(i).map(|a| &trace.accesses[*a as usize]);
        while access(next).is_some_and(|a| a.at < from) {
            next += 1;
        }
        self.accessed[slot] = next as u32;
        match access(next) {
            Some(a) if a.at < until => {
                // An asynchronous copy reads global memory and writes shared memory.
                let pair = access(next + 1).filter(|b| b.at == a.at && b.pc == a.pc);
                Found::Access(a, pair)
            }
            Some(_) => Found::Nothing,
            None if trace.accesses.last().is_some_and(|last| last.at < from) => Found::Unknown,
            None => Found::Nothing,
        }
    }

    /// Passes the instruction at hand.
    pub(super) fn step(&mut self, kernel: &Kernel, map: &Map, history: &History) {
        if let Some(anchor) = map.anchors[self.at as usize]
            && anchor.first
        {
            let used = &mut self.used[anchor.slot as usize];
            let visit = history.visit(anchor.slot, *used);
            if visit == NEVER {
                // A guarded one stands for a branch that the PTX did not take.
                self.beyond += u64::from(!kernel.code[self.at as usize].guarded);
            } else {
                *used += 1;
            }
        }
        self.steps += 1;
        let instr = kernel.code[self.at as usize];
        let next = self.after(&instr, kernel, map, history);
        let limit = 64 * history.executed + 4096;
        match next {
            Some(next) if (next as usize) < kernel.code.len() && self.steps < limit => {
                self.enter(next, kernel, map, history);
            }
            _ => self.done = true,
        }
    }

    fn enter(&mut self, next: u32, kernel: &Kernel, map: &Map, history: &History) {
        self.at = next;
        let piece = kernel.flow.of[next as usize];
        if kernel.flow.pieces[piece as usize].start != next {
            return;
        }
        let time = self.score(piece, kernel, map, history, 0);
        if time != NEVER {
            self.time = time;
            if map.pieces[piece as usize].probes.is_empty() {
                self.entered[piece as usize] = Some(time);
            }
        }
    }

    fn score_at(&self, to: u32, kernel: &Kernel, map: &Map, history: &History) -> u64 {
        let piece = kernel.flow.piece(to);
        piece.map_or(NEVER, |p| self.score(p, kernel, map, history, DEPTH))
    }

    /// The instruction behind `instr`, or none at the end.
    fn after(
        &mut self,
        instr: &Instr,
        kernel: &Kernel,
        map: &Map,
        history: &History,
    ) -> Option<u32> {
        let on = self.at + 1;
        match instr.jump {
            Jump::None | Jump::Indirect => Some(on),
            Jump::Split(meet) => {
                self.scopes.push(Scope {
                    meet,
                    others: Vec::new(),
                });
                Some(on)
            }
            Jump::Meet => Some(self.meet(on, kernel, map, history)),
            // A branch too far for a branch.
            Jump::Call(to) if instr.guarded => Some(self.choose(on, to, kernel, map, history)),
            Jump::Call(to) => {
                self.calls.push(on);
                Some(to)
            }
            Jump::Return => self.calls.pop(),
            Jump::To(to) if !instr.guarded => Some(to),
            Jump::To(to) => Some(self.choose(on, to, kernel, map, history)),
            Jump::Exit if !instr.guarded => self.leave(kernel, map, history),
            Jump::Exit => {
                let more = self.score_at(on, kernel, map, history) != NEVER;
                if more {
                    Some(on)
                } else {
                    self.leave(kernel, map, history)
                }
            }
        }
    }

    /// At an exit: lanes that went another way may be left.
    fn leave(&mut self, kernel: &Kernel, map: &Map, history: &History) -> Option<u32> {
        while let Some(mut scope) = self.scopes.pop() {
            while let Some(other) = scope.others.pop() {
                if self.score_at(other, kernel, map, history) != NEVER {
                    self.scopes.push(scope);
                    return Some(other);
                }
            }
        }
        None
    }

    fn choose(&mut self, on: u32, to: u32, kernel: &Kernel, map: &Map, history: &History) -> u32 {
        let (a, b) = (
            self.score_at(on, kernel, map, history),
            self.score_at(to, kernel, map, history),
        );
        let back = to <= self.at;
        let (next, other, left) = if a == NEVER && b == NEVER {
            let forward = if back { on } else { to };
            (forward, forward, NEVER)
        } else if a <= b {
            (on, to, b)
        } else {
            (to, on, a)
        };
        if left != NEVER
            && !self.moved(other, kernel, map, history)
            && let Some(scope) = self.scopes.last_mut()
            && scope.meet != other
            && !scope.others.contains(&other)
        {
            scope.others.push(other);
        }
        next
    }

    /// Whether a piece tells nothing of its own: lanes that left may not be looked for there.
    fn moved(&self, to: u32, kernel: &Kernel, map: &Map, history: &History) -> bool {
        let piece = kernel.flow.piece(to);
        piece.is_some_and(|p| self.told(p, map, history) == LineEvidence::Moved)
    }

    /// Where split lanes meet: those that went another way come first.
    fn meet(&mut self, on: u32, kernel: &Kernel, map: &Map, history: &History) -> u32 {
        let Some(mut scope) = self.scopes.pop() else {
            return on;
        };
        let here = self.score_at(scope.meet, kernel, map, history);
        while let Some(other) = scope.others.pop() {
            if self.score_at(other, kernel, map, history) < here
                && !self.moved(other, kernel, map, history)
            {
                self.scopes.push(scope);
                return other;
            }
        }
        on
    }
}

/// What became of a memory instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'t> {
    /// It went there (and there, for a copy).
    Access(&'t Access, Option<&'t Access>),
    /// No lane took part.
    Nothing,
    /// The trace does not say.
    Unknown,
}
