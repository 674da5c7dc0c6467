//! Operands of products and copies of tensor cores: matrices in shared memory, rows and scales in tensor
//! memory.

use super::access::Touch;
use super::cta::Cta;
use super::tensor_core::Issue;
use super::tensor_memory::{CellFindings, Region};
use crate::tensor_core::{Fill, Form, Scales, Side, TensorAddress, cell};
use crate::warpgroup::{Descriptor, Step};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;

impl Cta<'_> {
    /// Reads one step along K of some rows of A, or columns of B, of a block.
    pub(super) fn matrix(
        &mut self,
        issue: &Issue,
        rank: usize,
        bits: u64,
        rows: Range<u32>,
        side: Side,
    ) -> Vec<Step> {
        let bytes = side.transposed.then_some(side.element.bytes());
        let Some(from) = self.matrix_descriptor(issue, bits, bytes) else {
            return vec![[0; 8]; rows.len()];
        };
        let mut read = BTreeSet::new();
        let chunk = |at: u32| {
            let (words, first) = self.descriptor_chunk(issue.thread, rank, at);
            read.extend(first);
            Ok::<_, Infallible>(words)
        };
        let steps = match from.steps(rows, bytes, 0, chunk) {
            Ok(steps) => steps,
            Err(never) => match never {},
        };
        self.read_sources(issue.thread, &read);
        steps
    }

    /// Decodes the descriptor of a matrix; reports one that is not valid.
    fn matrix_descriptor(
        &mut self,
        issue: &Issue,
        bits: u64,
        transposed: Option<u32>,
    ) -> Option<Descriptor> {
        let decoded = Descriptor::decode_tensor_core(bits, transposed);
        let report = |why: String| {
            self.refuse(
                issue.thread,
                format!("the matrix descriptor 0x{bits:016x} of a tcgen05 instruction {why}"),
            );
        };
        decoded.map_err(report).ok()
    }

    /// Checks the words of shared memory that a product or copy reads, and records that they are read until
    /// a commit has arrived. `firsts`: the first of each four.
    fn read_sources(&mut self, thread: usize, firsts: &BTreeSet<usize>) {
        if !self.context.checks.races {
            return;
        }
        for first in firsts {
            self.check_product_source(thread, *first);
        }
        self.tensor_reads.mark(thread, self.pc, firsts);
    }

    /// Reads one step of the rows of A in the tensor memory of a block.
    pub(super) fn tensor_rows(
        &mut self,
        issue: &Issue,
        rank: usize,
        at: TensorAddress,
        form: &Form,
        blocks: u32,
    ) -> Vec<Step> {
        let rows = form.m / blocks;
        let region = Region::new(rank, form.left_extent(at, blocks));
        if !self.has_cells(issue.thread, &region) {
            return vec![[0; 8]; rows as usize];
        }
        let columns = region.columns;
        let lane = |row| form.left_lane(at, row);
        let cells = |row| columns.clone().map(move |column| (lane(row), column));
        self.read_cells(issue, rank, (0..rows).flat_map(cells));
        form.left_steps(at, blocks, &self.tensor[rank].words)
    }

    /// Checks reads of a product from cells of a block.
    pub(super) fn read_cells(
        &mut self,
        issue: &Issue,
        rank: usize,
        cells: impl Iterator<Item = (u32, u32)>,
    ) {
        let access = self.access_of(issue.thread, &Touch::read(0, 4));
        let own = issue.thread as u32 + 1;
        let mut findings = CellFindings::default();
        self.clocks.judge_execution(true);
        for (lane, column) in cells {
            let at = cell(lane, column);
            let memory = &self.tensor[rank];
            if !memory.written[at] {
                findings.unwritten.get_or_insert((lane, column));
            }
            // Products of one thread are executed in the order of issue (PTX ISA, "Pipelined
            // instructions"): its own earlier writes need no wait.
            if memory.products[at].0 != own && self.context.checks.races {
                let word = self.tensor_word(rank, lane, column);
                let conflict = self.shadow.check_read(word, &access, &self.clocks);
                findings.add((lane, column), conflict);
            }
        }
        self.clocks.judge_execution(false);
        self.report_cells(issue.thread, false, &findings);
    }

    /// Reads the scales of some rows of a block.
    pub(super) fn scales(
        &mut self,
        issue: &Issue,
        rank: usize,
        form: &Form,
        scales: &Scales,
    ) -> Vec<f32> {
        let region = Region::new(rank, scales.extent());
        if !self.has_cells(issue.thread, &region) {
            return vec![1.0; scales.rows as usize * scales.each];
        }
        self.read_cells(issue, rank, region.cells());
        scales.read(form, &self.tensor[rank].words)
    }

    /// Reads the rows of a copy.
    pub(super) fn matrix_rows(
        &mut self,
        issue: &Issue,
        rank: usize,
        bits: u64,
        fill: &Fill,
    ) -> Vec<Step> {
        let mut steps = vec![[0; 8]; fill.rows as usize];
        let Some(from) = self.matrix_descriptor(issue, bits, None) else {
            return steps;
        };
        let mut read = BTreeSet::new();
        for (row, step) in (0..).zip(&mut steps) {
            for (chunk, words) in (0..fill.bytes / 16).zip(step.chunks_exact_mut(4)) {
                let (found, first) =
                    self.descriptor_chunk(issue.thread, rank, from.along_k(row, chunk));
                words.copy_from_slice(&found);
                read.extend(first);
            }
        }
        self.read_sources(issue.thread, &read);
        steps
    }
}
