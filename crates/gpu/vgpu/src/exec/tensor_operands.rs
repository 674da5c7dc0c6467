//! Operands of products and copies of tensor cores: matrices in shared memory, rows and scales in tensor
//! memory.

use super::access::Touch;
use super::cta::Cta;
use super::tensor_core::{Issue, ScaleVector};
use super::tensor_memory::{Region, cell, tensor_place};
use crate::hazard::Space;
use crate::tensor_core::{Element, Form};
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
        (element, transposed): (Element, bool),
    ) -> Vec<Step> {
        let from = match Descriptor::decode_tensor_core(bits) {
            Ok(from) => from,
            Err(why) => {
                self.refuse(
                    issue.thread,
                    format!("the matrix descriptor 0x{bits:016x} of a tcgen05 instruction {why}"),
                );
                return vec![[0; 8]; rows as usize];
            }
        };
        let mut read = BTreeSet::new();
        let chunk = |at: u32| {
            let (words, first) = self.descriptor_chunk(issue.thread, rank, at);
            read.extend(first);
            Ok::<_, Infallible>(words)
        };
        let steps = match from.steps(0..rows, transposed.then_some(element.bytes()), chunk) {
            Ok(steps) => steps,
            Err(never) => match never {},
        };
        self.read_sources(issue.thread, &read);
        steps
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
        (lane, column): (u32, u32),
        form: &Form,
        blocks: u32,
    ) -> Vec<Step> {
        let rows = form.m / blocks;
        let region = Region {
            rank,
            lanes: lane..lane + if rows == 64 && blocks == 1 { 112 } else { rows },
            columns: column..column + 8,
        };
        if !self.has_cells(issue.thread, &region) {
            return vec![[0; 8]; rows as usize];
        }
        self.read_cells(issue, &region, |at| {
            rows != 64 || blocks != 1 || at % 32 < 16
        });
        let words = &self.tensor[rank].words;
        let step = |row| {
            std::array::from_fn(|n| words[cell(lane + form.cell(1, row, 0).0, column + n as u32)])
        };
        (0..rows).map(step).collect()
    }

    /// Checks reads of a product from the lanes of a region that it uses.
    fn read_cells(&mut self, issue: &Issue, region: &Region, uses: impl Fn(u32) -> bool) {
        let access = self.access_of(issue.thread, &Touch::read(0, 4));
        let own = issue.thread as u32 + 1;
        let (mut found, mut unwritten) = (None, None);
        for (lane, column) in region
            .cells()
            .filter(|(lane, _)| uses(lane - region.lanes.start))
        {
            let at = cell(lane, column);
            let memory = &self.tensor[region.rank];
            if !memory.written[at] {
                unwritten.get_or_insert((lane, column));
            }
            if memory.products[at].0 != own && self.context.checks.races {
                let word = self.tensor_word(region.rank, lane, column);
                let conflict = self.shadow.check_read(word, &access, &self.clocks);
                found = found.or_else(|| Some(((lane, column), conflict?)));
            }
        }
        if let Some(((lane, column), conflict)) = found {
            self.race(issue.thread, tensor_place(lane, column), false, conflict);
        }
        if let Some((lane, column)) = unwritten.filter(|_| self.context.checks.uninitialized) {
            self.unwritten(
                issue.thread,
                Space::Tensor,
                tensor_place(lane, column).address,
            );
        }
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
        let ((lane, column), rows, each) = (scale.at, scale.rows, scale.each);
        let region = Region {
            rank,
            lanes: lane..lane + rows.min(32),
            columns: column..column + rows.div_ceil(32),
        };
        if !self.has_cells(issue.thread, &region) {
            return vec![1.0; rows as usize * each];
        }
        self.read_cells(issue, &region, |_| true);
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
        let Ok(from) = Descriptor::decode_tensor_core(bits) else {
            return self.matrix(issue, rank, bits, rows, (Element::U8, false));
        };
        let mut read = BTreeSet::new();
        let mut steps = vec![[0; 8]; rows as usize];
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
