//! Operands of products and copies of tensor cores: matrices in shared memory, rows and scales in tensor
//! memory.

use super::access::Touch;
use super::cta::Cta;
use super::tensor_core::{Issue, ScaleVector};
use super::tensor_memory::{CellFindings, Region, TensorAddress, cell};
use crate::tensor_core::{Form, Side};
use crate::warpgroup::{Descriptor, Step};
use std::collections::BTreeSet;
use std::convert::Infallible;

impl Cta<'_> {
    /// Reads one step along K of some rows of A, or columns of B, of a block.
    pub(super) fn matrix(
        &mut self,
        issue: &Issue,
        rank: usize,
        bits: u64,
        rows: u32,
        side: Side,
    ) -> Vec<Step> {
        let Some(from) = self.matrix_descriptor(issue, bits) else {
            return vec![[0; 8]; rows as usize];
        };
        let mut read = BTreeSet::new();
        let chunk = |at: u32| {
            let (words, first) = self.descriptor_chunk(issue.thread, rank, at);
            read.extend(first);
            Ok::<_, Infallible>(words)
        };
        let bytes = side.transposed.then_some(side.element.bytes());
        let steps = match from.steps(0..rows, bytes, chunk) {
            Ok(steps) => steps,
            Err(never) => match never {},
        };
        self.read_sources(issue.thread, &read);
        steps
    }

    /// Decodes the descriptor of a matrix; reports one that is not valid.
    fn matrix_descriptor(&mut self, issue: &Issue, bits: u64) -> Option<Descriptor> {
        let decoded = Descriptor::decode_tensor_core(bits);
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
        let words: Vec<u32> = firsts
            .iter()
            .flat_map(|first| (*first..first + 4).map(|word| word as u32))
            .collect();
        let sources = self.sources_of(&words);
        self.threads[thread].issued.sources.extend(sources);
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
        // A has the lanes that D has in one block.
        let lane = |row| at.lane + form.cell(1, row, 0).0;
        let columns = at.column..at.column + 8;
        let region = Region {
            rank,
            lanes: at.lane..lane(rows - 1) + 1,
            columns: columns.clone(),
        };
        if !self.has_cells(issue.thread, &region) {
            return vec![[0; 8]; rows as usize];
        }
        let cells = |row| columns.clone().map(move |column| (lane(row), column));
        self.read_cells(issue, rank, (0..rows).flat_map(cells));
        let words = &self.tensor[rank].words;
        let step = |row| std::array::from_fn(|n| words[cell(lane(row), at.column + n as u32)]);
        (0..rows).map(step).collect()
    }

    /// Checks reads of a product from cells of a block.
    fn read_cells(&mut self, issue: &Issue, rank: usize, cells: impl Iterator<Item = (u32, u32)>) {
        let access = self.access_of(issue.thread, &Touch::read(0, 4));
        let own = issue.thread as u32 + 1;
        let mut findings = CellFindings::default();
        for (lane, column) in cells {
            let at = cell(lane, column);
            let memory = &self.tensor[rank];
            if !memory.written[at] {
                findings.unwritten.get_or_insert((lane, column));
            }
            if memory.products[at].0 != own && self.context.checks.races {
                let word = self.tensor_word(rank, lane, column);
                let conflict = self.shadow.check_read(word, &access, &self.clocks);
                findings.add((lane, column), conflict);
            }
        }
        self.report_cells(issue.thread, false, &findings);
    }

    /// Reads the scales of some rows of a block: those of 32 rows are in one column, a word each, the same in
    /// all quarters of the lanes.
    pub(super) fn scales(
        &mut self,
        issue: &Issue,
        rank: usize,
        form: &Form,
        scale: &ScaleVector,
    ) -> Vec<f32> {
        let TensorAddress { lane, column } = scale.at;
        let (rows, each) = (scale.rows, scale.each);
        let region = Region {
            rank,
            lanes: lane..lane + rows.min(32),
            columns: column..column + rows.div_ceil(32),
        };
        if !self.has_cells(issue.thread, &region) {
            return vec![1.0; rows as usize * each];
        }
        self.read_cells(issue, rank, region.cells());
        let words = &self.tensor[rank].words;
        let code = |row: u32, n: usize| {
            let word = words[cell(lane + row % 32, column + row / 32)];
            (word >> (8 * ((scale.byte + n as u32) % 4))) as u8
        };
        let codes = (0..rows).flat_map(|row| (0..each).map(move |n| (row, n)));
        codes.map(|(row, n)| form.scale(code(row, n))).collect()
    }

    /// Reads rows of 16 or 32 bytes.
    pub(super) fn matrix_rows(
        &mut self,
        issue: &Issue,
        rank: usize,
        bits: u64,
        rows: u32,
        bytes: u32,
    ) -> Vec<Step> {
        let mut steps = vec![[0; 8]; rows as usize];
        let Some(from) = self.matrix_descriptor(issue, bits) else {
            return steps;
        };
        let mut read = BTreeSet::new();
        for (row, step) in (0..).zip(&mut steps) {
            for (chunk, words) in (0..bytes / 16).zip(step.chunks_exact_mut(4)) {
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
