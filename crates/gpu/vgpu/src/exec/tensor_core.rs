//! Products and copies of tensor cores, `tcgen05.mma` and `tcgen05.cp`, and `tcgen05.commit`.
//!
//! They are executed when they are issued. Those of one thread are executed in order, whatever they share
//! (PTX ISA, "Pipelined instructions"); to others they are in flight until a commit after them has arrived
//! at an `mbarrier`, which happens when a thread polls it.

use super::access::Touch;
use super::cta::Cta;
use super::phases::{Delivery, Flight};
use super::stop::{Halt, Stop};
use super::tensor_memory::{CellFindings, Region};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, NONE, TensorMemoryOp, TensorProduct, TensorSource};
use crate::tensor_core::{Form, Operand, Scales, Shifted, Target, cell};
use crate::warpgroup::Step;

/// Products and copies that a thread has issued.
#[derive(Debug, Clone, Default)]
pub(super) struct Issued {
    /// Their number.
    count: u32,
    /// Cells that they write.
    regions: Vec<Region>,
    /// By agent: the last segment at which it got some of them.
    events: Vec<(usize, u32)>,
    /// By block: the number up to which it has waited for them.
    awaited: Vec<(usize, u32)>,
}

/// A product or copy of one thread.
pub(super) struct Issue {
    pub(super) thread: usize,
    pub(super) lane: usize,
    /// Blocks that take part, the one with the first rows first.
    pub(super) ranks: Vec<usize>,
}

impl Issued {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.regions.clear();
        self.events.clear();
        self.awaited.clear();
    }
}

impl Cta<'_> {
    /// Executes a product of each active lane.
    pub(super) fn tensor_product(&mut self, w: &mut Warp, m: &TensorProduct, active: u32) {
        for lane in lanes(active) {
            let issue = self.issue(w, lane, m.blocks);
            let Some(issue) = issue else { continue };
            let bits = w.regs.r32[m.form as usize][lane];
            let form = match m.stationary {
                Some(_) => Form::decode_stationary(m.kind, bits),
                None => Form::decode(m.kind, bits, m.blocks),
            };
            match form {
                Ok(form) => self.product(w, m, &issue, &form),
                Err(why) => {
                    let thread = issue.thread;
                    self.refuse(
                        thread,
                        format!("the instruction descriptor 0x{bits:08x} of a tcgen05.mma {why}"),
                    );
                }
            }
        }
    }

    /// Ends the kernel at an instruction that is not valid.
    pub(super) fn refuse(&mut self, thread: usize, why: String) {
        self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || why);
        self.halted = Some(Halt(Stop::IllegalOperand, "a tcgen05 instruction"));
    }

    /// Begins a product or copy of a lane; reports a pair of blocks that does not exist.
    pub(super) fn issue(&mut self, w: &Warp, lane: usize, blocks: u32) -> Option<Issue> {
        let thread = w.index * 32 + lane;
        let rank = self.context.cluster.rank(thread);
        let ranks = match blocks {
            1 => vec![rank],
            // The ranks of a pair differ in their last bit (PTX ISA, "CTA Pair").
            _ => vec![rank & !1, rank | 1],
        };
        if ranks
            .iter()
            .any(|rank| *rank >= self.context.cluster.blocks)
        {
            self.refuse(
                thread,
                "`.cta_group::2` needs a cluster with pairs of blocks".to_owned(),
            );
            return None;
        }
        self.threads[thread].issued.count += 1;
        Some(Issue {
            thread,
            lane,
            ranks,
        })
    }

    fn product(&mut self, w: &mut Warp, m: &TensorProduct, issue: &Issue, form: &Form) {
        if let Some(why) = unknown_form(m, form) {
            return self.refuse(issue.thread, why.to_owned());
        }
        let b = w.regs.r64[m.b as usize][issue.lane];
        let steps = match m.stationary {
            Some(stationary) => {
                let Some(steps) = self.stationary_columns(w, &stationary, issue, form, b) else {
                    return;
                };
                steps
            }
            None => {
                let mut steps = Vec::new();
                for rank in &issue.ranks {
                    let columns = 0..form.n / m.blocks;
                    steps.extend(self.matrix(issue, *rank, b, columns, form.sides()[1]));
                }
                steps
            }
        };
        for number in 0..issue.ranks.len() {
            self.product_of_block(w, m, issue, number, form, &steps);
        }
        let depth = u64::from(form.a.step_elements());
        self.counters.tensor_flops += 2 * u64::from(form.m) * u64::from(form.n) * depth;
    }

    /// Computes the rows of the block with a number among those that take part.
    fn product_of_block(
        &mut self,
        w: &mut Warp,
        m: &TensorProduct,
        issue: &Issue,
        number: usize,
        form: &Form,
        columns: &[Step],
    ) {
        let (lane, rank, rows) = (issue.lane, issue.ranks[number], form.m / m.blocks);
        let a = match &m.a {
            TensorSource::Descriptor(at) => {
                let bits = w.regs.r64[*at as usize][lane];
                self.matrix(issue, rank, bits, 0..rows, form.sides()[0])
            }
            TensorSource::Memory(at) => {
                let at = self.tensor_address(w, at, lane);
                self.tensor_rows(issue, rank, at, form, m.blocks)
            }
        };
        let mut scales = [Vec::new(), Vec::new()];
        if let Some(places) = &m.scales {
            for (side, count) in [rows, form.n].into_iter().enumerate() {
                let scale = Scales {
                    at: self.tensor_address(w, &places[side], lane),
                    rows: count,
                    byte: form.scale_bytes[side],
                    each: m.scales_each,
                };
                scales[side] = self.scales(issue, rank, form, &scale);
            }
        }
        let [scale_a, scale_b] = scales;
        let element = form.left_element(matches!(m.a, TensorSource::Memory(_)));
        let left = Operand::new(element, &a, scale_a);
        let right = Operand::new(form.b, columns, scale_b);
        let adds = match m.adds {
            NONE => !m.adds_negated,
            row => (w.regs.preds[row as usize] >> lane & 1 == 1) != m.adds_negated,
        };
        // Each block has its part of the masks.
        let masks = m
            .disabled
            .iter()
            .skip(number * m.disabled.len() / issue.ranks.len());
        let target = Target {
            at: self.tensor_address(w, &m.d, lane),
            blocks: m.blocks,
            adds,
            shift: m.shift,
            disabled: masks.map(|row| w.regs.r32[*row as usize][lane]).collect(),
        };
        let region = Region::new(rank, target.extent(form));
        if !self.has_cells(issue.thread, &region) {
            return;
        }
        let rows = target.rows(form);
        let cells = rows.iter().flat_map(|(_, cells)| cells.iter().copied());
        self.write_cells(issue, rank, cells, adds);
        target.write(form, [&left, &right], &rows, &mut self.tensor[rank].words);
        self.note_region(issue.thread, region);
        if let (true, TensorSource::Memory(at)) = (m.shifts, &m.a) {
            let at = self.tensor_address(w, at, lane);
            let lanes = form.m / m.blocks;
            self.shift_rows(issue, rank, Shifted { at, lanes });
        }
    }

    /// Checks and records a write of a product or copy to cells of a block, which `adds` to them or not.
    pub(super) fn write_cells(
        &mut self,
        issue: &Issue,
        rank: usize,
        cells: impl Iterator<Item = (u32, u32)>,
        adds: bool,
    ) {
        let (thread, number) = (issue.thread, self.threads[issue.thread].issued.count);
        let touch = Touch {
            in_flight: true,
            ..Touch::write(0, 4)
        };
        let [write, read] = [touch, Touch::read(0, 4)].map(|touch| self.access_of(thread, &touch));
        let own = thread as u32 + 1;
        let mut findings = CellFindings::default();
        self.clocks.judge_execution(true);
        for (lane, column) in cells {
            let (at, word) = (cell(lane, column), self.tensor_word(rank, lane, column));
            let memory = &mut self.tensor[rank];
            let pipelined = memory.products[at].0 == own;
            if adds && !memory.written[at] {
                findings.unwritten.get_or_insert((lane, column));
            }
            memory.written[at] = true;
            memory.products[at] = (own, number);
            if !self.context.checks.races {
                continue;
            }
            let conflict = match pipelined {
                true => self.shadow.overwrite_own(word, &write, &self.clocks),
                false => {
                    let early = match adds {
                        true => self.shadow.check_read(word, &read, &self.clocks),
                        false => None,
                    };
                    early.or(self.shadow.access(word, 15, &write, &self.clocks))
                }
            };
            findings.add((lane, column), conflict);
        }
        self.clocks.judge_execution(false);
        self.report_cells(thread, true, &findings);
        self.version += 1;
    }

    pub(super) fn note_region(&mut self, thread: usize, region: Region) {
        let issued = &mut self.threads[thread].issued;
        if !issued.regions.contains(&region) {
            issued.regions.push(region);
        }
    }

    /// Executes `tcgen05.cp` of each active lane.
    pub(super) fn tensor_fill(&mut self, w: &mut Warp, op: &TensorMemoryOp, active: u32) {
        let TensorMemoryOp::Fill {
            at,
            descriptor,
            fill,
            blocks,
        } = op
        else {
            return;
        };
        for lane in lanes(active) {
            let Some(issue) = self.issue(w, lane, *blocks) else {
                continue;
            };
            let at = self.tensor_address(w, at, lane);
            let bits = w.regs.r64[*descriptor as usize][lane];
            for rank in issue.ranks.clone() {
                let steps = self.matrix_rows(&issue, rank, bits, fill);
                for copy in fill.copies {
                    let region = Region::new(rank, fill.extent(at, *copy));
                    if !self.has_cells(issue.thread, &region) {
                        continue;
                    }
                    self.write_cells(&issue, rank, fill.cells(at, *copy), false);
                    fill.write(at, *copy, &steps, &mut self.tensor[rank].words);
                    self.note_region(issue.thread, region);
                }
            }
        }
    }

    /// Executes `tcgen05.commit`: its `mbarrier` gets an arrival when all products and copies of the thread
    /// so far are complete.
    pub(super) fn tensor_commit(
        &mut self,
        w: &mut Warp,
        at: &Address,
        multicast: u32,
        active: u32,
    ) {
        let cluster = self.context.cluster;
        for lane in lanes(active) {
            let thread = w.index * 32 + lane;
            let address = w.shared_place(at, lane);
            let targets: Vec<u64> = match self.multicast(w, multicast, lane) {
                None => vec![address],
                Some(mask) => {
                    let place = Location::new(Space::Shared, address);
                    let ranks = self.multicast_ranks(thread, place, mask);
                    let offset = cluster.offset(address);
                    let addresses = ranks.into_iter().map(|rank| cluster.address(rank, offset));
                    addresses.collect()
                }
            };
            let number = self.threads[thread].issued.count;
            self.tensor_reads.commit(thread, number);
            for at in targets {
                let done = Delivery {
                    thread,
                    commits: Some(number),
                    ..Delivery::default()
                };
                self.bulk_done(at as u32, done);
            }
        }
    }

    /// Records that the block of an object has waited for the commits among some signals.
    pub(super) fn note_awaited(&mut self, at: u32, landed: &[Flight]) {
        let rank = self.context.cluster.rank_of_address(at.into());
        for flight in landed {
            let Some(number) = flight.commits else {
                continue;
            };
            let awaited = &mut self.threads[flight.thread].issued.awaited;
            awaited.retain(|(by, until)| *by != rank || *until > number);
            awaited.push((rank, number));
        }
    }

    /// Reports whether a commit has arrived at an object whose block did not wait there: it has waited for a
    /// later commit of the thread.
    pub(super) fn has_arrived(&self, at: u32, flight: &Flight) -> bool {
        let rank = self.context.cluster.rank_of_address(at.into());
        let mut awaited = self.threads[flight.thread].issued.awaited.iter();
        awaited.any(|(by, until)| *by == rank && flight.commits.is_some_and(|n| n <= *until))
    }

    /// Hands the products and copies of a thread up to a number to those who wait for a phase; returns all
    /// events that its products belong to.
    pub(super) fn complete_products(
        &mut self,
        thread: usize,
        number: u32,
        event: (usize, u32),
    ) -> Vec<(usize, u32)> {
        let (agent, segment) = event;
        self.tensor_reads.wait(thread, number, agent, segment);
        let own = thread as u32 + 1;
        let regions = self.threads[thread].issued.regions.clone();
        for region in regions {
            for (lane, column) in region.cells() {
                let (by, at) = self.tensor[region.rank].products[cell(lane, column)];
                if by == own && at <= number {
                    let word = self.tensor_word(region.rank, lane, column);
                    self.shadow.give_to_agent(word, thread, event, false);
                }
            }
        }
        let events = &mut self.threads[thread].issued.events;
        events.retain(|(agent, _)| *agent != event.0);
        events.push(event);
        events.clone()
    }
}

/// Returns why a product is not one that the PTX ISA describes.
fn unknown_form(m: &TensorProduct, form: &Form) -> Option<&'static str> {
    let in_memory = matches!(m.a, TensorSource::Memory(_));
    match form.m {
        32 | 64 if m.shifts => Some("`.ashift` needs 128 or 256 rows"),
        32 | 64 if m.stationary.is_some() && in_memory => Some(
            "A in tensor memory with less than 128 rows of a weight-stationary product is not executed: the PTX ISA \
             does not say where they are",
        ),
        _ => None,
    }
}
