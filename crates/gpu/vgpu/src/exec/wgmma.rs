//! Products of a warp-group, which run asynchronously.
//!
//! Each warp computes its quarter at once. In flight are the registers, until the warp waits for the
//! group, and the shared memory that was read, until some warp of the warp-group has waited: the product
//! is one operation of all four. A wait returns only when all four have issued what it waits for.

use super::access::Touch;
use super::cta::{Cta, EXISTS_SHIFT};
use super::regs::{FULL, Row};
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::shadow::Conflict;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{FragmentUse, NONE, Wgmma, WgmmaSource};
use crate::warpgroup::{
    CHUNK_BYTES, Descriptor, Places, Step, fragment_a, multiply, multiply_sparse,
};
use std::convert::Infallible;
use std::ops::Range;

/// Warps of a warp-group.
pub(super) const WARPS: usize = 4;

/// State of the products of one warp.
#[derive(Debug, Default)]
pub(super) struct Products {
    /// Groups that were committed, and those of them that are complete.
    committed: u32,
    completed: u32,
    /// A `wgmma.fence` was executed.
    fenced: bool,
    /// By fragment: the last group that accumulates in it, and the last that reads it as A.
    accumulates: Vec<u32>,
    reads: Vec<u32>,
    /// By fragment: the product that used it last.
    products: Vec<u32>,
    /// By fragment: instruction plus 1 that changed it after the last fence.
    changed: Vec<u32>,
}

/// A step along K of the product with a number.
#[derive(Debug, Clone, Copy)]
struct Read {
    step: u32,
    number: u32,
}

impl Products {
    fn in_flight(&self, group: u32) -> bool {
        group > self.completed
    }
}

/// Returns the entry of a fragment.
fn value_of(list: &[u32], number: u32) -> u32 {
    list.get(number as usize).copied().unwrap_or_default()
}

fn set(list: &mut [u32], number: u32, value: u32) {
    if let Some(place) = list.get_mut(number as usize) {
        *place = value;
    }
}

impl Cta<'_> {
    fn products<'w>(&self, w: &'w mut Warp) -> &'w mut Products {
        let count = self.context.program.fragments as usize;
        w.products.get_or_insert_with(|| {
            Box::new(Products {
                accumulates: vec![0; count],
                reads: vec![0; count],
                products: vec![0; count],
                changed: vec![0; count],
                ..Products::default()
            })
        })
    }

    /// Begins a `tcgen05.ld` into registers, which are in flight until the warp waits for its loads.
    pub(super) fn begin_load(&mut self, w: &mut Warp, fragments: &[u32]) {
        let pc = self.pc;
        let products = self.products(w);
        let group = products.committed + 1;
        for number in fragments {
            set(&mut products.accumulates, *number, group);
            set(&mut products.products, *number, pc);
        }
    }

    /// Completes the loads of a warp from tensor memory.
    pub(super) fn finish_loads(&mut self, w: &mut Warp) {
        let products = self.products(w);
        products.committed += 1;
        products.completed = products.committed;
    }

    /// Executes `wgmma.fence`: changes of registers before it are visible to products after it.
    pub(super) fn wgmma_fence(&mut self, w: &mut Warp) {
        let products = self.products(w);
        products.fenced = true;
        products.changed.fill(0);
    }

    /// Executes `wgmma.commit_group`.
    pub(super) fn wgmma_commit(&mut self, w: &mut Warp) {
        let products = self.products(w);
        products.committed += 1;
        let committed = products.committed;
        self.flights.commit(w.index, committed);
        self.version += 1;
    }

    /// Executes `wgmma.wait_group`; returns `false` where another warp of the warp-group has not issued
    /// the products yet.
    pub(super) fn wgmma_wait(&mut self, w: &mut Warp, left: u32) -> bool {
        let cluster = &self.context.cluster;
        let block = cluster.rank(w.index * 32) * cluster.warps;
        let warps = block + self.context.threads / 32;
        let products = self.products(w);
        let (until, completed) = (products.committed.saturating_sub(left), products.completed);
        let first = w.index / WARPS * WARPS;
        let peers = first..(first + WARPS).min(warps);
        if until > completed && !self.flights.have_committed(peers, until) {
            // In a random schedule the drawn turn lengths are kept.
            self.polled = self.context.seed.is_none();
            return false;
        }
        if until > completed {
            self.products(w).completed = until;
            let threads = w.index * 32..(w.index * 32 + 32).min(self.clocks.threads);
            let segments = self.clocks.segment.get(threads).unwrap_or_default();
            self.flights.wait(w.index, until, segments);
        }
        true
    }

    /// Executes the warp's part of `wgmma.mma_async`.
    pub(super) fn wgmma(&mut self, w: &mut Warp, m: &Wgmma, active: u32) {
        let thread = w.index * 32;
        // Warps beyond the last whole group, such as producers, do not matter to the others.
        let local = self.context.cluster.thread_in_block(w.index * 32) / 32;
        let whole = (local / WARPS + 1) * WARPS * 32 <= self.context.threads;
        if active != FULL || !whole {
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                "a wgmma needs all threads of four aligned warps".to_owned()
            });
            return;
        }
        self.check_fragments(w, m);
        let group = self.products(w).committed + 1;
        let number = self.flights.begin(w.index, group, self.pc);
        let descriptor = |row: u32| w.regs.r64[row as usize][0];
        let a = match &m.a {
            WgmmaSource::Registers(_) => None,
            WgmmaSource::Descriptor(row) => Some(descriptor(*row)),
        };
        if !self.flights.agree(w.index, [a, Some(descriptor(m.b))]) {
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                "the warps of a warp-group have different matrix descriptors".to_owned()
            });
        }
        let part = (w.index % WARPS) as u32 * 16;
        let a: Vec<Row> = match &m.a {
            WgmmaSource::Registers(rows) => {
                rows.iter().map(|row| w.regs.r32[*row as usize]).collect()
            }
            WgmmaSource::Descriptor(row) => {
                let Some(from) = self.descriptor(w, *row) else {
                    return;
                };
                let rows = part..part + 16;
                let steps = self.steps(w, from, rows, m.transposed[0], Read { step: 0, number });
                fragment_a(&steps).to_vec()
            }
        };
        let Some(from) = self.descriptor(w, m.b) else {
            return;
        };
        // A sparse A has twice as many elements of B beside it.
        let count = 1 + u32::from(m.places.is_some());
        let mut columns = Vec::new();
        for step in 0..count {
            let read = Read { step, number };
            columns.push(self.steps(w, from, 0..m.columns, m.transposed[1], read));
        }
        let adds = match m.adds {
            NONE => !m.adds_negated,
            row => {
                let p = w.regs.preds[row as usize] & 1 == 1;
                p != m.adds_negated
            }
        };
        self.multiply(w, m, &a, &columns, adds);
        let pc = self.pc;
        let products = self.products(w);
        for number in &m.fragments_d {
            set(&mut products.accumulates, *number, group);
            set(&mut products.products, *number, pc);
        }
        for number in &m.fragments_a {
            set(&mut products.reads, *number, group);
            set(&mut products.products, *number, pc);
        }
    }

    fn multiply(&mut self, w: &mut Warp, m: &Wgmma, a: &[Row], columns: &[Vec<Step>], adds: bool) {
        let before = m.d.iter().map(|row| match adds {
            true => w.regs.r32[*row as usize],
            false => [0; 32],
        });
        let mut values: Vec<Row> = before.collect();
        match (columns, &m.places) {
            ([first, second], Some(places)) => {
                let places = Places {
                    metadata: &w.regs.r32[places.metadata as usize],
                    selector: places.selector,
                };
                multiply_sparse(m.form, a, [first, second], places, m.negate, &mut values);
            }
            ([columns, ..], _) => multiply(m.form, a, columns, m.negate, &mut values),
            ([], _) => {}
        }
        for (row, value) in m.d.iter().zip(values) {
            w.regs.r32[*row as usize] = value;
        }
        // The warp has 16 of the 64 rows.
        self.counters.tensor_flops += 2 * 16 * u64::from(m.columns) * m.form.k as u64;
    }

    /// Returns the descriptor of the warp, which all its threads must have in common.
    fn descriptor(&mut self, w: &Warp, row: u32) -> Option<Descriptor> {
        let values = &w.regs.r64[row as usize];
        if values.iter().any(|value| *value != values[0]) {
            self.hazard(
                HazardKind::Crashed,
                w.index * 32,
                Location::NONE,
                NONE,
                || "the threads of a warp have different matrix descriptors".to_owned(),
            );
            return None;
        }
        Some(Descriptor::decode(values[0]))
    }

    /// Reads one step along K of some rows of A, or columns of B.
    fn steps(
        &mut self,
        w: &Warp,
        from: Descriptor,
        rows: Range<u32>,
        transposed: bool,
        of: Read,
    ) -> Vec<Step> {
        let read = |at| Ok::<_, Infallible>(self.read_chunk(w, at, of.number));
        match from.steps(rows, transposed.then_some(2), of.step, read) {
            Ok(steps) => steps,
            Err(never) => match never {},
        }
    }

    /// Reads 16 bytes of shared memory for the product with a number.
    fn read_chunk(&mut self, w: &Warp, at: u32, number: u32) -> [u32; 4] {
        let thread = w.index * 32;
        let rank = self.context.cluster.rank(thread);
        let (words, first) = self.descriptor_chunk(thread, rank, at);
        if let Some(first) = first {
            self.flights.mark(w.index, first, number, self.shared.len());
            self.check_product_source(thread, first);
        }
        words
    }

    /// Reads 16 bytes of the shared memory of a block, at an address that a descriptor means; returns them
    /// with the index of the first word where all exist.
    pub(super) fn descriptor_chunk(
        &mut self,
        thread: usize,
        rank: usize,
        at: u32,
    ) -> ([u32; 4], Option<usize>) {
        let cluster = &self.context.cluster;
        let own = cluster.blocks == 1 || at < cluster.stride;
        // A descriptor names a place in one block.
        let at = cluster.address(rank, at.into()) as u32;
        let first = at as usize / 4;
        let place = Location::new(Space::Shared, at.into());
        let Some(words) = self.shared.get(first..first + 4).filter(|_| own) else {
            self.leaves_shared(thread, place);
            return ([0; 4], None);
        };
        let words = [words[0], words[1], words[2], words[3]];
        let states: [u8; 4] = std::array::from_fn(|n| self.shared_state[first + n]);
        if states.iter().any(|state| state >> EXISTS_SHIFT != 15) {
            self.leaves_shared(thread, place);
            return (words, None);
        }
        if self.context.checks.uninitialized && states.iter().any(|state| state & 15 != 15) {
            self.unwritten(thread, Space::Shared, at.into());
        }
        (words, Some(first))
    }

    /// Checks that four words were written before the product, and for its proxy.
    pub(super) fn check_product_source(&mut self, thread: usize, first: usize) {
        if !self.context.checks.races {
            return;
        }
        let read = Touch::read(0, 4);
        let access = self.access_of(thread, &read);
        for word in first..first + 4 {
            if let Some(conflict) = self.shadow.check_read(word, &access, &self.clocks) {
                let place = Location::new(Space::Shared, word as u64 * 4);
                self.race(thread, place, false, conflict);
                return;
            }
        }
        let words: [u32; 4] = std::array::from_fn(|n| (first + n) as u32);
        self.check_proxy(thread, &words);
    }

    fn leaves_shared(&mut self, thread: usize, place: Location) {
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || {
            format!(
                "a matrix descriptor leaves the shared memory of the block: a read of {CHUNK_BYTES} bytes \
                 outside all arrays"
            )
        });
    }

    /// Reports registers of a product that changed without a fence, or that others still use.
    fn check_fragments(&mut self, w: &mut Warp, m: &Wgmma) {
        let thread = w.index * 32;
        if !self.context.checks.races {
            return;
        }
        let products = self.products(w);
        let changed = |number: &u32| {
            let by = value_of(&products.changed, *number);
            (by != 0).then(|| by - 1)
        };
        let all = m.fragments_d.iter().chain(&m.fragments_a);
        let unfenced = match products.fenced {
            false => Some(self.pc),
            true => all.clone().find_map(changed),
        };
        let result = m
            .fragments_a
            .iter()
            .find(|number| products.in_flight(value_of(&products.accumulates, **number)));
        let result = result.map(|number| value_of(&products.products, *number));
        if let Some(by) = unfenced {
            self.hazard(HazardKind::Race, thread, Location::NONE, by, || {
                "a wgmma uses registers that changed after the last `wgmma.fence`, or without one"
                    .to_owned()
            });
            // Reported once.
            self.wgmma_fence(w);
        }
        if let Some(by) = result {
            self.hazard(HazardKind::Race, thread, Location::NONE, by, || {
                "a wgmma reads rows of A from accumulators of another that was not waited for"
                    .to_owned()
            });
        }
    }

    /// Checks an instruction that uses registers of products.
    pub(super) fn use_fragments(&mut self, w: &mut Warp, pc: u32, uses: &FragmentUse) {
        let Some(products) = w.products.as_deref_mut() else {
            return;
        };
        let accumulates =
            |number: &u32| products.in_flight(value_of(&products.accumulates, *number));
        let reads = |number: &u32| products.in_flight(value_of(&products.reads, *number));
        if uses.copies {
            // The registers of a copy become one in the machine code.
            if let ([from], [to]) = (uses.reads.as_slice(), uses.writes.as_slice()) {
                for list in [
                    &mut products.accumulates,
                    &mut products.reads,
                    &mut products.products,
                    &mut products.changed,
                ] {
                    let value = value_of(list, *from);
                    set(list, *to, value);
                }
            }
            return;
        }
        let early = [
            (&uses.reads, true, "reads", "the accumulators"),
            (&uses.writes, true, "overwrites", "the accumulators"),
            (&uses.writes, false, "overwrites", "the rows of A"),
        ];
        let early = early.iter().find_map(|(used, result, act, what)| {
            let mut used = used.iter();
            let number = used.find(|n| if *result { accumulates(n) } else { reads(n) })?;
            Some((*act, *what, value_of(&products.products, *number)))
        });
        if !uses.constant {
            for number in &uses.writes {
                set(&mut products.changed, *number, pc + 1);
            }
        }
        let Some((act, what, by)) = early else { return };
        // Reported once: the products count as waited for.
        products.completed = products.committed + 1;
        let thread = w.index * 32;
        if self.context.checks.races {
            self.pc = pc;
            let product = self.is_product(by);
            self.hazard(
                HazardKind::Race,
                thread,
                Location::NONE,
                by,
                || match product {
                    true => format!(
                        "{act} {what} of a wgmma that was not waited for with `wgmma.wait_group`"
                    ),
                    false => format!(
                        "{act} registers of a tcgen05.ld that was not waited for with \
                     `tcgen05.wait::ld`"
                    ),
                },
            );
        }
    }

    /// Reports whether products have read shared memory.
    #[inline]
    pub(super) fn have_products_read(&self) -> bool {
        !self.flights.is_empty() || !self.tensor_reads.is_empty()
    }

    /// Reports a store to shared memory that a product still reads.
    pub(super) fn check_product_reads(&mut self, thread: usize, word: usize) {
        let warp_group = self.flights.unfinished(word, thread, &self.clocks);
        // Who has seen the end of a product comes after its reads, whatever else that orders.
        self.clocks.judge_execution(true);
        let tensor_core = self.tensor_reads.unfinished(word, thread, &self.clocks);
        self.clocks.judge_execution(false);
        let Some((pc, reader)) = warp_group.or(tensor_core) else {
            return;
        };
        let conflict = Conflict {
            pc,
            thread: reader,
            block: None,
            was_write: false,
            in_flight: true,
        };
        let place = Location::new(Space::Shared, word as u64 * 4);
        self.race(thread, place, true, conflict);
    }
}
