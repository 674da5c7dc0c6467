//! Tensor memory of the blocks of a cluster: allocation, loads, stores (PTX ISA, 9.7.16).
//!
//! Its cells have places in the shadow behind those of shared memory. A load reads at once; its registers
//! are in flight until `tcgen05.wait::ld`. A store is in flight until `tcgen05.wait::st`. Products and copies
//! are in flight until a wait for an `mbarrier` to which a `tcgen05.commit` after them arrives
//! (`tensor_core.rs`). All accesses of a warp count as those of its first thread, and the waits, for which the
//! whole warp comes together, order its threads.

use super::access::Touch;
use super::cta::Cta;
use super::regs::FULL;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::shadow::Conflict;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{
    Address, NONE, Op, ReduxNumbers, TensorMemoryOp, TensorReduction, TensorTransfer,
};
use crate::tensor_core::{CELLS, COLUMNS, Extent, LANES, Shape, TensorAddress, cell};
use gpu_arithmetic::single;
use std::ops::Range;

/// Smallest allocation, columns.
const LEAST_COLUMNS: u32 = 32;

/// Warps whose lanes of tensor memory differ.
const QUARTERS: usize = 4;

/// Cells of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) rank: usize,
    pub(super) lanes: Range<u32>,
    pub(super) columns: Range<u32>,
}

impl Region {
    /// Creates the region of some lanes and columns of a block.
    pub(super) fn new(rank: usize, extent: Extent) -> Self {
        Self {
            rank,
            lanes: extent.lanes,
            columns: extent.columns,
        }
    }

    /// Iterates over lanes and columns.
    pub(super) fn cells(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let columns = self.columns.clone();
        let lanes = self.lanes.clone();
        lanes.flat_map(move |lane| columns.clone().map(move |column| (lane, column)))
    }
}

/// The first findings of an access to several cells, which is reported once.
#[derive(Debug, Default)]
pub(super) struct CellFindings {
    conflict: Option<((u32, u32), Conflict)>,
    /// A cell that nothing wrote.
    pub(super) unwritten: Option<(u32, u32)>,
}

impl CellFindings {
    /// Adds the conflict of a cell, if there is one.
    pub(super) fn add(&mut self, cell: (u32, u32), conflict: Option<Conflict>) {
        if let (None, Some(conflict)) = (&self.conflict, conflict) {
            self.conflict = Some((cell, conflict));
        }
    }
}

/// Tensor memory of one block.
#[derive(Debug, Default)]
pub(super) struct TensorMemory {
    pub(super) words: Vec<u32>,
    pub(super) written: Vec<bool>,
    /// By cell: thread plus 1 whose product or copy wrote it last, and the number of that.
    pub(super) products: Vec<(u32, u32)>,
    /// Columns, each with the instruction that allocated them.
    allocated: Vec<(Range<u32>, u32)>,
    relinquished: bool,
    /// By buffer of weight-stationary products: the descriptor of the matrix B that it holds.
    pub(super) buffers: [Option<u64>; 4],
}

impl TensorMemory {
    fn allocate(&mut self, columns: u32, pc: u32) -> Option<u32> {
        let firsts = (0..COLUMNS).step_by(LEAST_COLUMNS as usize);
        let free = |first: &u32| {
            let all = *first..*first + columns;
            let apart =
                |(other, _): &(Range<u32>, u32)| other.end <= all.start || all.end <= other.start;
            all.end <= COLUMNS && self.allocated.iter().all(apart)
        };
        let first = firsts.into_iter().find(free)?;
        self.allocated.push((first..first + columns, pc));
        if self.words.is_empty() {
            self.words = vec![0; CELLS];
            self.written = vec![false; CELLS];
            self.products = vec![(0, 0); CELLS];
        }
        Some(first)
    }

    /// Returns the first column of a range that is not allocated.
    fn first_free(&self, columns: Range<u32>) -> Option<u32> {
        let is_free = |column: &u32| !self.allocated.iter().any(|(all, _)| all.contains(column));
        columns.into_iter().find(is_free)
    }
}

impl Cta<'_> {
    /// Executes a product, a copy or a commit of each active lane.
    pub(super) fn issue_tensor_core(&mut self, w: &mut Warp, op: &TensorMemoryOp, active: u32) {
        match op {
            TensorMemoryOp::Product(product) => self.tensor_product(w, product, active),
            TensorMemoryOp::Fill { .. } => self.tensor_fill(w, op, active),
            TensorMemoryOp::Shift { at, blocks } => self.tensor_shift(w, at, *blocks, active),
            TensorMemoryOp::Commit { at, multicast } => {
                self.tensor_commit(w, at, *multicast, active);
            }
            _ => {}
        }
    }

    /// Executes an operation of a whole warp; returns `false` where it has to wait.
    pub(super) fn tensor_memory(&mut self, w: &mut Warp, op: &TensorMemoryOp) -> bool {
        match op {
            TensorMemoryOp::Allocate { at, columns } => {
                return self.tensor_allocate(w, at, *columns);
            }
            TensorMemoryOp::Free { first, columns } => self.tensor_free(w, *first, *columns),
            TensorMemoryOp::Relinquish => self.own_tensor_memory(w).relinquished = true,
            TensorMemoryOp::Load(load) => self.tensor_load(w, load),
            TensorMemoryOp::Store(store) => self.tensor_store(w, store),
            TensorMemoryOp::WaitLoads => {
                self.finish_loads(w);
                self.warp_barrier(w, FULL);
            }
            TensorMemoryOp::WaitStores => {
                self.finish_stores(w.index * 32);
                self.warp_barrier(w, FULL);
            }
            // Each thread issues these for itself.
            TensorMemoryOp::Product(_)
            | TensorMemoryOp::Fill { .. }
            | TensorMemoryOp::Shift { .. }
            | TensorMemoryOp::Commit { .. } => {}
        }
        true
    }

    fn own_tensor_memory(&mut self, w: &Warp) -> &mut TensorMemory {
        let rank = self.context.cluster.rank(w.index * 32);
        &mut self.tensor[rank]
    }

    /// Returns the place of a cell in the shadow.
    pub(super) fn tensor_word(&self, rank: usize, lane: u32, column: u32) -> usize {
        self.shared.len() + rank * CELLS + cell(lane, column)
    }

    /// Returns the address of an operand: its lane and column.
    pub(super) fn tensor_address(&self, w: &Warp, at: &Address, lane: usize) -> TensorAddress {
        TensorAddress::decode((w.value(at.base, lane) as u32).wrapping_add(at.offset as u32))
    }

    fn tensor_allocate(&mut self, w: &mut Warp, at: &Address, columns: u32) -> bool {
        let columns = w.regs.r32[columns as usize][0];
        let (pc, thread) = (self.pc, w.index * 32);
        let memory = self.own_tensor_memory(w);
        let problem = if !columns.is_power_of_two() || !(LEAST_COLUMNS..=COLUMNS).contains(&columns)
        {
            Some(format!(
                "tcgen05.alloc of {columns} columns: a power of two from {LEAST_COLUMNS} to {COLUMNS}"
            ))
        } else if memory.relinquished {
            Some("tcgen05.alloc after `tcgen05.relinquish_alloc_permit`".to_owned())
        } else {
            None
        };
        if let Some(problem) = problem {
            self.refuse(thread, problem);
            return true;
        }
        let Some(first) = memory.allocate(columns, pc) else {
            // Another warp may free some.
            self.polled = self.context.seed.is_none();
            return false;
        };
        let address = w.address(at, 0);
        if let Some(place) = self.touch(w, at.area, address, Touch::write(0, 4)) {
            self.put(w, place, 0, 4, first.into());
        }
        true
    }

    fn tensor_free(&mut self, w: &mut Warp, first: u32, columns: u32) {
        let [first, columns] = [first, columns].map(|row| w.regs.r32[row as usize][0]);
        let (thread, rank) = (w.index * 32, self.context.cluster.rank(w.index * 32));
        let all = first..first.saturating_add(columns);
        let memory = &mut self.tensor[rank];
        let Some(place) = memory.allocated.iter().position(|(range, _)| *range == all) else {
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                format!("tcgen05.dealloc of {columns} columns from {first} on, which were not allocated together")
            });
            return;
        };
        memory.allocated.remove(place);
        let region = Region {
            rank,
            lanes: 0..LANES,
            columns: all,
        };
        // Other warps may use the columns until then: it is as a write of all.
        self.order_cells(thread, &region, Touch::write(0, 4));
        for (lane, column) in region.cells() {
            self.tensor[rank].written[cell(lane, column)] = false;
        }
        self.version += 1;
    }

    /// Reports whether an instruction is `tcgen05.alloc`.
    pub(super) fn allocates_columns(&self, pc: u32) -> bool {
        let inst = self.context.program.code.get(pc as usize);
        inst.is_some_and(|inst| match &inst.op {
            Op::TensorMemory(op) => matches!(**op, TensorMemoryOp::Allocate { .. }),
            _ => false,
        })
    }

    /// Reports columns of a block that all its threads leave allocated.
    pub(super) fn check_tensor_memory_at_exit(&mut self, rank: usize, thread: usize) {
        let Some(memory) = self.tensor.get_mut(rank) else {
            return;
        };
        for (columns, pc) in std::mem::take(&mut memory.allocated) {
            self.pc = pc;
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                let count = columns.len();
                format!("{count} columns of tensor memory are never freed with `tcgen05.dealloc`")
            });
        }
    }

    /// Reports cells that do not exist or are not allocated; returns whether all are.
    pub(super) fn has_cells(&mut self, thread: usize, region: &Region) -> bool {
        let memory = self.tensor.get(region.rank);
        let outside = region.lanes.end > LANES || region.columns.end > COLUMNS;
        let free = memory.and_then(|memory| memory.first_free(region.columns.clone()));
        let column = match (outside, free) {
            (true, _) => region.columns.start,
            (false, Some(column)) => column,
            (false, None) => return memory.is_some(),
        };
        let place = tensor_place(region.lanes.start, column);
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || {
            let Range { start, end } = region.columns;
            let lanes = region.lanes.end;
            format!(
                "an access to columns {start} to {} of tensor memory, up to lane {}: column {column} is not \
                 allocated",
                end.saturating_sub(1),
                lanes.saturating_sub(1)
            )
        });
        false
    }

    /// Checks the order of an access of a thread to all cells of a region.
    pub(super) fn order_cells(&mut self, thread: usize, region: &Region, touch: Touch) {
        if !self.context.checks.races {
            return;
        }
        let access = self.access_of(thread, &touch);
        let mut findings = CellFindings::default();
        self.clocks.judge_execution(true);
        for (lane, column) in region.cells() {
            let word = self.tensor_word(region.rank, lane, column);
            let conflict = self.shadow.access(word, 15, &access, &self.clocks);
            findings.add((lane, column), conflict);
        }
        self.clocks.judge_execution(false);
        self.report_cells(thread, touch.write, &findings);
    }

    /// Reports the first cell of a region that was never written.
    pub(super) fn check_written(&mut self, thread: usize, region: &Region) {
        let memory = &self.tensor[region.rank];
        let unwritten = |(lane, column): &(u32, u32)| !memory.written[cell(*lane, *column)];
        let findings = CellFindings {
            unwritten: region.cells().find(unwritten),
            ..CellFindings::default()
        };
        self.report_cells(thread, false, &findings);
    }

    /// Reports the findings of an access, which `writes` or reads.
    pub(super) fn report_cells(&mut self, thread: usize, writes: bool, findings: &CellFindings) {
        if let Some(((lane, column), conflict)) = findings.conflict {
            self.race(thread, tensor_place(lane, column), writes, conflict);
        }
        if let Some((lane, column)) = findings.unwritten
            && self.context.checks.uninitialized
        {
            self.unwritten(thread, Space::Tensor, tensor_place(lane, column).address);
        }
    }

    /// Returns the regions of a transfer, or nothing where one is not accessible.
    fn transfer_regions(&mut self, w: &Warp, t: &TensorTransfer) -> Option<Vec<Region>> {
        let thread = w.index * 32;
        let TensorAddress { lane, column } = self.tensor_address(w, &t.at, 0);
        let rank = self.context.cluster.rank(thread);
        let warp = self.context.cluster.thread_in_block(thread) / 32;
        // A warp reaches a quarter of the lanes, by its place in its warpgroup (PTX ISA,
        // `tcgen05.ld`).
        let own = (warp % QUARTERS) as u32 * 32;
        if lane < own || lane + t.shape.lanes() > own + 32 {
            self.hazard(HazardKind::Crashed, thread, tensor_place(lane, column), NONE, || {
                format!(
                    "warp {warp} accesses tensor memory from lane {lane} on, and only lanes {own} to {} are its own",
                    own + 31
                )
            });
            return None;
        }
        let last = t.data.len() as u32 - 1;
        let wide = 1 + u32::from(t.packed);
        let columns = |from: u32, threads: [u32; 2]| {
            let ends = threads.map(|thread| t.shape.cell(last, thread).1);
            let end = ends.into_iter().max().unwrap_or_default() + 1;
            column + from * wide..column + end * wide
        };
        let parts = match t.shape {
            Shape::Halves(distance) => {
                vec![columns(0, [0, 0]), columns(distance, [16, 16])]
            }
            _ => vec![columns(0, [30, 31])],
        };
        let region = |columns| Region {
            rank,
            lanes: lane..lane + t.shape.lanes(),
            columns,
        };
        let regions: Vec<Region> = parts.into_iter().map(region).collect();
        let all = regions.iter().all(|region| self.has_cells(thread, region));
        all.then_some(regions)
    }

    /// Returns the cell of each register of each thread of a transfer.
    fn transfer_cells(&self, w: &Warp, t: &TensorTransfer) -> Vec<[TensorAddress; 32]> {
        let at = self.tensor_address(w, &t.at, 0);
        t.shape.cells(at, t.data.len() as u32, t.packed)
    }

    fn tensor_load(&mut self, w: &mut Warp, t: &TensorTransfer) {
        let thread = w.index * 32;
        let Some(regions) = self.transfer_regions(w, t) else {
            t.data
                .iter()
                .for_each(|row| w.regs.r32[*row as usize] = [0; 32]);
            return;
        };
        for region in &regions {
            self.order_cells(thread, region, Touch::read(0, 4));
            self.check_written(thread, region);
        }
        let cells = self.transfer_cells(w, t);
        let words = &self.own_tensor_memory(w).words;
        for (row, cells) in t.data.iter().zip(cells) {
            w.regs.r32[*row as usize] = cells.map(|cell| Shape::load(cell, t.packed, words));
        }
        if let Some(reduction) = &t.reduction {
            w.regs.r32[reduction.dest as usize] = reduced(w, reduction, &t.data);
        }
        self.begin_load(w, &t.fragments);
    }

    fn tensor_store(&mut self, w: &mut Warp, t: &TensorTransfer) {
        let thread = w.index * 32;
        let Some(regions) = self.transfer_regions(w, t) else {
            return;
        };
        let touch = Touch {
            in_flight: true,
            ..Touch::write(0, 4)
        };
        for region in regions {
            self.order_cells(thread, &region, touch);
            self.threads[thread].tensor_stores.push(region);
        }
        let cells = self.transfer_cells(w, t);
        let memory = self.own_tensor_memory(w);
        for (row, cells) in t.data.iter().zip(cells) {
            for (value, first) in w.regs.r32[*row as usize].into_iter().zip(cells) {
                Shape::store(first, t.packed, value, &mut memory.words);
                for column in first.column..=first.column + u32::from(t.packed) {
                    memory.written[cell(first.lane, column)] = true;
                    memory.products[cell(first.lane, column)] = (0, 0);
                }
            }
        }
    }

    /// Completes the stores of a warp, whose first thread has them.
    fn finish_stores(&mut self, thread: usize) {
        let segment = self.clocks.segment[thread];
        for region in std::mem::take(&mut self.threads[thread].tensor_stores) {
            if !self.context.checks.races {
                continue;
            }
            for (lane, column) in region.cells() {
                let word = self.tensor_word(region.rank, lane, column);
                self.shadow.complete_copy(word, thread, segment);
            }
        }
    }
}

/// Returns the smallest or largest of the values of some registers.
fn reduced(w: &Warp, reduction: &TensorReduction, rows: &[u32]) -> [u32; 32] {
    let TensorReduction { max, numbers, .. } = *reduction;
    let of_two = |x: u32, y: u32| match numbers {
        ReduxNumbers::Floats { nan, .. } => {
            let [x, y] = [x, y].map(f32::from_bits);
            single::extreme(x, y, max, nan).to_bits()
        }
        ReduxNumbers::Signed if max => (x as i32).max(y as i32) as u32,
        ReduxNumbers::Signed => (x as i32).min(y as i32) as u32,
        ReduxNumbers::Unsigned if max => x.max(y),
        ReduxNumbers::Unsigned => x.min(y),
    };
    let magnitude = |x: u32| match numbers {
        ReduxNumbers::Floats { absolute: true, .. } => x & 0x7fff_ffff,
        _ => x,
    };
    std::array::from_fn(|lane| {
        let values = rows.iter().map(|row| w.regs.r32[*row as usize][lane]);
        values.map(magnitude).reduce(of_two).unwrap_or_default()
    })
}

/// Returns the location of a cell: its address in tensor memory.
fn tensor_place(lane: u32, column: u32) -> Location {
    Location::new(Space::Tensor, u64::from(lane << 16 | column))
}
