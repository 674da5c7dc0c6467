//! Products in tensor memory (`tcgen05`), and the tensor memory of the blocks of a cluster.
//!
//! They are executed when they are issued, once for a warp: a loop of the assembler repeats them for each thread
//! that issues them. The state of a block's allocations has a bit for each 32 columns.

use super::memory::{Memory, RANK_SHIFT};
use super::registers::{Dest, Origin, Pred};
use super::tensor_cells::TensorMemory;
use super::warp::Warp;
use std::ops::Range;
use vgpu::exec::trace::SignalKind;
use vgpu::tensor_core::{
    CELLS, COLUMNS, ColumnMask, Extent, Fill, Form, LANES, Operand, ProductKind, Scales, Shape,
    Shifted, Side, Target, TensorAddress,
};
use vgpu::warpgroup::{Descriptor, Step};

/// Columns of a bit of the allocations.
const UNIT_COLUMNS: u32 = 32;
const UNITS: u32 = COLUMNS / UNIT_COLUMNS;

/// Place of the barrier with which the two blocks of a pair agree on an allocation, in the system's part of
/// shared memory.
const PAIR_BARRIER: u64 = 0x48;
/// A barrier of one arrival in its first phase, and in its second.
const ONE_ARRIVAL: u64 = 0xf_ffff << 43 | 0xf_ffff << 1;
const SECOND_PHASE: u64 = 1 << 63;

/// Address of tensor memory: a uniform register and an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorPlace {
    pub(super) register: u8,
    pub(super) offset: u32,
}

/// A product.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorProduct {
    pub(super) kind: ProductKind,
    /// Two blocks take part.
    pub(super) pair: bool,
    /// First uniform register of the descriptor of A, or its address in tensor memory.
    pub(super) a: TensorSource,
    /// First uniform register of the descriptor of B.
    pub(super) b: u8,
    pub(super) d: u8,
    pub(super) form: u8,
    /// First of the uniform registers with the addresses of the scales, and the scales of a row.
    pub(super) scales: Option<(u8, usize)>,
    /// First of the uniform registers with the masks of lanes that are not written.
    pub(super) disabled: Option<u8>,
    /// False where the accumulators begin at zero.
    pub(super) adds: Pred,
    pub(super) shift: u32,
    /// The rows of A move by a lane afterwards.
    pub(super) shifts: bool,
    /// Weight-stationary, perhaps with the first uniform register of a mask of columns.
    pub(super) stationary: Option<Option<u8>>,
}

/// Operand A of a product, by uniform register.
#[derive(Debug, Clone, Copy)]
pub(super) enum TensorSource {
    Descriptor(u8),
    Memory(u8),
}

/// A load or store of the registers of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorTransfer {
    pub(super) shape: Shape,
    /// Threads that take part.
    pub(super) threads: u32,
    pub(super) packed: bool,
    pub(super) at: TensorPlace,
    pub(super) registers: u8,
    /// First register.
    pub(super) data: u8,
    pub(super) stores: bool,
}

/// An operation of tensor cores.
#[derive(Debug, Clone)]
pub(super) enum TensorCoreOp {
    /// Allocates units, and reports whether there were enough.
    Allocate {
        pair: bool,
        granted: Pred,
        first: Dest,
        units: Origin,
    },
    /// Keeps the units of a mask.
    Keep(Origin),
    Transfer(TensorTransfer),
    Fill {
        at: TensorPlace,
        descriptor: u8,
        fill: Fill,
        pair: bool,
    },
    Product(TensorProduct),
    /// Moves 32 rows of 32 bytes by a lane.
    Shift {
        at: TensorPlace,
        pair: bool,
    },
    /// Arrives at a barrier; the second register has the mask of blocks.
    Commit {
        at: u8,
        blocks: Option<u8>,
    },
    /// Asks for the work of another block, which is refused as by PTX.
    RequestBlock {
        at: u8,
        barrier: u8,
        /// All blocks of the cluster have the answer.
        everywhere: bool,
    },
}

/// Blocks that take part in an operation.
fn ranks(w: &Warp, pair: bool) -> Range<usize> {
    let own = w.registers.place.rank as usize;
    match pair {
        false => own..own + 1,
        true => own & !1..(own | 1) + 1,
    }
}

fn uniform(w: &Warp, register: u8) -> u32 {
    w.registers.uniform[usize::from(register)]
}

fn uniform_wide(w: &Warp, register: u8) -> u64 {
    w.registers.raw_wide(Origin::Uniform(register))[0]
}

impl TensorPlace {
    fn address(self, w: &Warp) -> TensorAddress {
        TensorAddress::decode(uniform(w, self.register).wrapping_add(self.offset))
    }
}

impl TensorProduct {
    fn blocks(&self) -> u32 {
        1 + u32::from(self.pair)
    }

    /// Decodes the instruction descriptor, which says which of two kinds it is that have one instruction.
    fn decode_form(&self, w: &Warp) -> Result<Form, String> {
        let bits = uniform(w, self.form);
        let kind = match (self.kind, bits >> 7 & 7) {
            (ProductKind::F16, 2) => ProductKind::Tf32,
            (kind, _) => kind,
        };
        let form = match self.stationary {
            Some(_) => Form::decode_stationary(kind, bits),
            None => Form::decode(kind, bits, self.blocks()),
        };
        form.map_err(|why| format!("the instruction descriptor {bits:#010x} {why}"))
    }
}

impl Memory<'_> {
    /// Executes an operation.
    pub(super) fn tensor_core(&mut self, w: &mut Warp, op: &TensorCoreOp) -> Result<(), String> {
        match op {
            TensorCoreOp::Allocate {
                pair,
                granted,
                first,
                units,
            } => {
                let units = w.registers.raw(*units)[0];
                let found = self.allocate_units(w, *pair, units)?;
                w.note_tensor_core(units * UNIT_COLUMNS, 0);
                let all = w.registers.active;
                w.registers
                    .set(*first, all, &[found.unwrap_or_default(); 32]);
                let truth = if found.is_some() { u32::MAX } else { 0 };
                w.registers.set_truth(*granted, all, truth);
            }
            TensorCoreOp::Keep(mask) => {
                let mask = w.registers.raw(*mask)[0];
                self.tensor_of(w.registers.place.rank as usize)?.units &= mask;
            }
            TensorCoreOp::Transfer(transfer) => self.transfer(w, transfer)?,
            TensorCoreOp::Fill {
                at,
                descriptor,
                fill,
                pair,
            } => self.fill(w, at.address(w), uniform_wide(w, *descriptor), fill, *pair)?,
            TensorCoreOp::Product(product) => self.tensor_product(w, product)?,
            TensorCoreOp::Shift { at, pair } => {
                let at = at.address(w);
                for rank in ranks(w, *pair) {
                    self.shift_rows(rank, Shifted { at, lanes: 32 })?;
                }
            }
            TensorCoreOp::Commit { at, blocks } => {
                let at = u64::from(uniform(w, *at));
                let blocks = blocks.map(|register| uniform(w, register) & 0xffff);
                for (_, barrier) in self.receivers(at, at, blocks) {
                    w.note_signal(
                        || self.phases.present(barrier),
                        SignalKind::ArrivesAfterProducts,
                    );
                    self.progress(barrier, 1, 0)?;
                }
            }
            TensorCoreOp::RequestBlock {
                at,
                barrier,
                everywhere,
            } => {
                let [at, barrier] = [at, barrier].map(|register| uniform(w, *register).into());
                let count = (self.shared.len() as u64).checked_div(self.stride);
                let blocks = everywhere.then_some((1 << count.unwrap_or(1)) - 1);
                for (at, barrier) in self.receivers(at, barrier, blocks) {
                    self.store_shared(at, 16, [0; 4])?;
                    self.complete_bytes(w, barrier, 16)?;
                }
            }
        }
        Ok(())
    }

    /// Initialises what the system sets up for allocations of pairs of blocks before a cluster begins: the
    /// second block waits first.
    pub(super) fn begin_tensor_memory(&mut self) -> Result<(), String> {
        for rank in 0..self.tensor.len() as u64 {
            let phase = if rank % 2 == 0 { SECOND_PHASE } else { 0 };
            let word = phase | ONE_ARRIVAL;
            let words = [word as u32, (word >> 32) as u32, 0, 0];
            self.store_shared(rank << RANK_SHIFT | PAIR_BARRIER, 8, words)?;
        }
        Ok(())
    }

    fn tensor_of(&mut self, rank: usize) -> Result<&mut TensorMemory, String> {
        let tensor = self.tensor.get_mut(rank);
        tensor.ok_or_else(|| "a pair of blocks without a second one".to_owned())
    }

    /// Returns the first of some free units in all blocks.
    fn allocate_units(&mut self, w: &Warp, pair: bool, units: u32) -> Result<Option<u32>, String> {
        if !units.is_power_of_two() || units > UNITS {
            return Err(format!("an allocation of {units} times 32 columns"));
        }
        let mut taken = 0;
        for rank in ranks(w, pair) {
            taken |= self.tensor_of(rank)?.units;
        }
        let mask = |first: u32| (u32::MAX >> (32 - units)) << first;
        let mut firsts = (0..UNITS).step_by(units as usize);
        let Some(first) = firsts.find(|first| taken & mask(*first) == 0) else {
            return Ok(None);
        };
        for rank in ranks(w, pair) {
            let tensor = self.tensor_of(rank)?;
            tensor.units |= mask(first);
            tensor.words.resize(CELLS, 0);
        }
        Ok(Some(first))
    }

    /// Returns the cells of a block if it has all of some lanes and columns.
    fn cells(&mut self, rank: usize, extent: Extent) -> Result<&mut [u32], String> {
        let Extent { lanes, columns } = extent;
        let words = &mut self.tensor_of(rank)?.words;
        if lanes.end > LANES || columns.end > COLUMNS || words.is_empty() {
            return Err(format!(
                "an access to lanes {lanes:?} and columns {columns:?} of tensor memory"
            ));
        }
        Ok(words)
    }

    fn transfer(&mut self, w: &mut Warp, t: &TensorTransfer) -> Result<(), String> {
        let at = t.at.address(w);
        let rank = w.registers.place.rank as usize;
        let rows = t.shape.cells(at, t.registers.into(), t.packed);
        let ends = rows.iter().flatten().map(|cell| cell.column + 1);
        // A packed register has two columns.
        let end = ends.max().unwrap_or_default() + u32::from(t.packed);
        let extent = Extent {
            lanes: at.lane..at.lane + t.shape.lanes(),
            columns: at.column..end,
        };
        let words = self.cells(rank, extent)?;
        for (n, cells) in (0u8..).zip(rows) {
            let register = t.data.saturating_add(n);
            if t.stores {
                let values = w.registers.raw(Origin::Row(register));
                for lane in super::memory::lanes(t.threads) {
                    Shape::store(cells[lane], t.packed, values[lane], words);
                }
            } else {
                let values = cells.map(|cell| Shape::load(cell, t.packed, words));
                w.registers.set(Dest::Row(register), t.threads, &values);
            }
        }
        Ok(())
    }

    fn fill(
        &mut self,
        w: &mut Warp,
        at: TensorAddress,
        descriptor: u64,
        fill: &Fill,
        pair: bool,
    ) -> Result<(), String> {
        let from = Descriptor::decode_tensor_core(descriptor, None)?;
        w.note_tensor_core(0, fill.rows * fill.bytes);
        for rank in ranks(w, pair) {
            let mut steps: Vec<Step> = vec![[0; 8]; fill.rows as usize];
            for (row, step) in (0..).zip(&mut steps) {
                for (chunk, words) in (0..fill.bytes / 16).zip(step.chunks_exact_mut(4)) {
                    let at = from.along_k(row, chunk);
                    words.copy_from_slice(&self.load_shared(own_shared(rank, at), 16)?);
                }
            }
            for copy in fill.copies {
                let words = self.cells(rank, fill.extent(at, *copy))?;
                fill.write(at, *copy, &steps, words);
            }
        }
        Ok(())
    }

    /// Reads one step along K of rows of A, or columns of B, of a block.
    fn matrix(
        &self,
        rank: usize,
        descriptor: u64,
        rows: Range<u32>,
        side: Side,
    ) -> Result<Vec<Step>, String> {
        let bytes = side.transposed.then_some(side.element.bytes());
        Descriptor::decode_tensor_core(descriptor, bytes)?.steps(rows, bytes, 0, |at| {
            self.load_shared(own_shared(rank, at), 16)
        })
    }

    fn tensor_product(&mut self, w: &mut Warp, p: &TensorProduct) -> Result<(), String> {
        let form = p.decode_form(w)?;
        let (blocks, b) = (p.blocks(), uniform_wide(w, p.b));
        let [side_a, side_b] = form.sides();
        let rows = form.m / blocks;
        // Each block of a pair has a part of B.
        let mask = match p.stationary.flatten() {
            Some(mask) => ColumnMask(uniform_wide(w, mask)),
            None => ColumnMask(0),
        };
        let first = mask.shift(&form)?;
        let mut columns = Vec::new();
        for rank in ranks(w, p.pair) {
            let all = first..first + form.n / blocks;
            columns.extend(self.matrix(rank, b, all, side_b)?);
        }
        if p.stationary.is_some() {
            let all = (0..).zip(&mut columns);
            all.filter(|(column, _)| mask.zeroes(&form, *column))
                .for_each(|(_, step)| step.fill(0));
        }
        let in_memory = match p.a {
            TensorSource::Descriptor(_) => rows,
            TensorSource::Memory(_) => 0,
        };
        // A row of a step has 32 bytes.
        let (_, width) = form.extent(blocks);
        w.note_tensor_core(width, 32 * (in_memory + form.n / blocks));
        for (number, rank) in ranks(w, p.pair).enumerate() {
            let a = match p.a {
                TensorSource::Descriptor(a) => {
                    self.matrix(rank, uniform_wide(w, a), 0..rows, side_a)?
                }
                TensorSource::Memory(a) => {
                    let at = TensorAddress::decode(uniform(w, a));
                    form.left_steps(at, blocks, self.cells(rank, form.left_extent(at, blocks))?)
                }
            };
            let mut scales = [Vec::new(), Vec::new()];
            if let Some((first, each)) = p.scales {
                for (side, count) in (0u8..).zip([rows, form.n]) {
                    let scale = Scales {
                        at: TensorAddress::decode(uniform(w, first.saturating_add(side))),
                        rows: count,
                        byte: form.scale_bytes[usize::from(side)],
                        each,
                    };
                    let words = self.cells(rank, scale.extent())?;
                    scales[usize::from(side)] = scale.read(&form, words);
                }
            }
            let [scale_a, scale_b] = scales;
            let element = form.left_element(matches!(p.a, TensorSource::Memory(_)));
            let left = Operand::new(element, &a, scale_a);
            let right = Operand::new(form.b, &columns, scale_b);
            let target = Target {
                at: TensorAddress::decode(uniform(w, p.d)),
                blocks,
                adds: w.registers.truth(p.adds) != 0,
                shift: p.shift,
                disabled: disabled_lanes(w, p, number as u8),
            };
            let written = target.rows(&form);
            let words = self.cells(rank, target.extent(&form))?;
            target.write(&form, [&left, &right], &written, words);
            if let (true, TensorSource::Memory(a)) = (p.shifts, p.a) {
                let at = TensorAddress::decode(uniform(w, a));
                self.shift_rows(rank, Shifted { at, lanes: rows })?;
            }
        }
        Ok(())
    }

    /// Moves rows of a block.
    fn shift_rows(&mut self, rank: usize, rows: Shifted) -> Result<(), String> {
        rows.write(self.cells(rank, rows.extent())?);
        Ok(())
    }
}

/// Returns the masks of lanes that a product does not write in the block with a number.
fn disabled_lanes(w: &Warp, p: &TensorProduct, number: u8) -> Vec<u32> {
    let Some(first) = p.disabled else {
        return Vec::new();
    };
    let words = (LANES / 32) as u8;
    (0..words)
        .map(|n| uniform(w, first.saturating_add(number * words + n)))
        .collect()
}

/// Returns the address of a place in the shared memory of a block.
fn own_shared(rank: usize, at: u32) -> u64 {
    (rank as u64) << RANK_SHIFT | u64::from(at)
}
