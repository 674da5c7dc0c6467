//! Run-time definedness of registers, for instructions that may read one that was never written.
//!
//! One bit per lane and watched register. Computing with an undefined value is not an error:
//! compilers leave such values where the result is unused. The value matters where it decides a
//! branch or an address, or is stored to global memory. A store to shared or local memory leaves
//! the bytes unwritten, so that a later load of them is checked.

use super::access::split;
use super::cta::Cta;
use super::step::enabled_lanes;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::definedness::{Condition, Product, Rule, Watch, Watched};
use crate::lower::program::{Address, Area, Inst, Mem, NONE, Op};

impl Warp {
    /// Reports whether a watched instruction can concern undefined values: some register is
    /// undefined, or becomes so in the function that begins here.
    #[inline]
    pub(super) fn is_watching(&self, inst: &Inst) -> bool {
        self.undefined_registers != 0 || matches!(inst.op, Op::Nop)
    }

    /// Returns the lanes in which a register is undefined.
    fn undefined_in(&self, register: Watched) -> u32 {
        register.map_or(0, |n| self.undefined[n as usize])
    }

    fn any_undefined(&self, registers: &[u32]) -> u32 {
        let masks = registers.iter().map(|n| self.undefined[*n as usize]);
        masks.fold(0, |all, mask| all | mask)
    }

    /// Sets the definedness of a register in the lanes of a mask.
    pub(super) fn set_undefined(&mut self, register: u32, mask: u32, undefined: u32) {
        let old = self.undefined[register as usize];
        let new = (old & !mask) | (undefined & mask & self.alive);
        self.undefined[register as usize] = new;
        self.undefined_registers += u32::from(new != 0);
        self.undefined_registers -= u32::from(old != 0);
    }

    /// Returns the lanes in which a predicate operand is defined and has this value.
    fn known(&self, condition: &Condition, value: bool) -> u32 {
        let row = self.regs.preds[condition.row as usize];
        let wanted = if value == condition.negated {
            !row
        } else {
            row
        };
        wanted & !self.undefined_in(condition.watched)
    }
}

impl Cta<'_> {
    /// Handles a watched instruction before its execution: reports undefined values that decide
    /// something, and propagates definedness to its results.
    #[cold]
    pub(super) fn watch(&mut self, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
        let program = self.context.program;
        // A sliced launch does not compute most values.
        if self.context.skip_unless != 0 {
            return;
        }
        let Some(watch) = program.watches.get(&pc) else {
            return;
        };
        self.pc = pc;
        let active = mask & enabled_lanes(w, inst);
        for (register, what) in &watch.deciding {
            // The guard of a branch is read by all lanes, also by those that it switches off.
            let is_guard = *what == "a branch";
            let counted = if is_guard {
                mask
            } else {
                active & watch.deciding_lanes
            };
            let undefined = w.undefined[*register as usize] & counted;
            if undefined != 0 {
                let origin = w.origins[*register as usize];
                self.undefined_value(w, undefined, origin, what);
            }
        }
        if let Rule::Entered(range) = &watch.rule {
            for register in range.clone() {
                w.set_undefined(register, mask, mask);
            }
        } else if !matches!(inst.op, Op::Warp { .. }) {
            self.pass_on(w, watch, active, mask);
        }
    }

    /// Propagates definedness to the results of an instruction that is not warp-wide.
    fn pass_on(&self, w: &mut Warp, watch: &Watch, active: u32, mask: u32) {
        if let Rule::Product(product) = &watch.rule {
            let results = undefined_results(w, product);
            for (register, undefined) in product.d.iter().zip(results) {
                if let Some(register) = register {
                    w.set_undefined(*register, active, undefined);
                    self.note_origin(w, *register, undefined, watch);
                }
            }
            return;
        }
        let undefined = result(w, &watch.rule);
        let by_guard = w.undefined_in(watch.guard) & mask;
        for register in &watch.destinations {
            w.set_undefined(*register, active, undefined);
            // Where the guard itself is undefined, so is the choice between old and new value.
            w.set_undefined(*register, by_guard, u32::MAX);
            self.note_origin(w, *register, undefined | by_guard, watch);
        }
    }

    /// Records where a value was first computed from an unwritten register.
    fn note_origin(&self, w: &mut Warp, register: u32, undefined: u32, watch: &Watch) {
        if undefined == 0 {
            return;
        }
        let origin_in = |mask: u32| {
            let sources = watch.sources().map(|n| n as usize);
            sources
                .filter(|n| w.undefined[*n] & mask != 0)
                .map(|n| w.origins[n])
                .find(|origin| *origin != NONE)
        };
        // A shuffled value is undefined in another lane than its source.
        let known = origin_in(undefined).or_else(|| origin_in(u32::MAX));
        w.origins[register as usize] = known.unwrap_or(self.pc);
    }

    /// Propagates definedness through a warp-wide operation; `from` is the source lane of each
    /// lane.
    #[cold]
    pub(super) fn watch_group(&mut self, w: &mut Warp, group: u32, from: &[u8; 32]) {
        let program = self.context.program;
        let (0, Some(watch)) = (self.context.skip_unless, program.watches.get(&self.pc)) else {
            return;
        };
        let undefined = match &watch.rule {
            Rule::Shuffle(source) => {
                let source = w.undefined[*source as usize];
                lanes(group).fold(0, |all, lane| all | (source >> from[lane] & 1) << lane)
            }
            Rule::Group(sources) if w.any_undefined(sources) & group != 0 => group,
            _ => 0,
        };
        for register in &watch.destinations {
            w.set_undefined(*register, group, undefined);
            self.note_origin(w, *register, undefined, watch);
        }
    }

    /// Executes a store of which some elements may be undefined. A lane that stores only undefined
    /// elements to global memory is reported; other undefined elements are left unwritten.
    #[cold]
    pub(super) fn store_defined(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let program = self.context.program;
        let watch = program.watches.get(&self.pc);
        let elements = match watch.map(|watch| &watch.rule) {
            Some(Rule::Stored(elements)) if self.context.skip_unless == 0 => elements,
            _ => return self.store(w, m, mask),
        };
        let masks: Vec<u32> = elements.iter().map(|e| w.undefined_in(*e) & mask).collect();
        let origins = elements.iter().flatten().map(|n| w.origins[*n as usize]);
        let origin = origins.min().unwrap_or(NONE);
        // A partly undefined vector is legal: compilers pad structs to a vector store.
        // So is a store of undefined bytes: they pad structs that are returned by value.
        let whole = match m.width {
            1 if !self.is_load(origin) => 0,
            _ => masks.iter().fold(mask, |all, mask| all & mask),
        };
        let global = lanes(whole).filter(|lane| is_global(w, &m.at, *lane));
        let global = global.fold(0u32, |all, lane| all | 1 << lane);
        if global != 0 {
            self.undefined_value(w, global, origin, "a stored value");
        }
        if masks.iter().all(|undefined| undefined & !global == 0) {
            return self.store(w, m, mask);
        }
        for ((n, data), undefined) in (0..).zip(&m.data).zip(masks) {
            self.note_undefined(w, m, n, undefined & !global);
            let element = Mem {
                at: Address {
                    offset: m.at.offset + n * i64::from(m.width),
                    ..m.at
                },
                data: vec![*data],
                ..m.clone()
            };
            let defined = mask & (!undefined | global);
            if defined != 0 {
                self.store(w, &element, defined);
            }
        }
    }

    /// Reports whether a value has its origin in a load.
    fn is_load(&self, origin: u32) -> bool {
        let first = self.context.program.code.get(origin as usize);
        first.is_some_and(|inst| matches!(inst.op, Op::Load(_)))
    }

    fn undefined_value(&mut self, w: &Warp, undefined: u32, origin: u32, what: &str) {
        let undefined = lanes(undefined)
            .filter(|lane| !self.report_deferred(Self::thread(w, *lane), origin))
            .fold(0u32, |all, lane| all | 1 << lane);
        if undefined == 0 {
            return;
        }
        let thread = w.index * 32 + undefined.trailing_zeros() as usize;
        let place = Location::NONE;
        if self.is_load(origin) {
            // The read is at fault, not what is done with it.
            let here = std::mem::replace(&mut self.pc, origin);
            self.hazard(HazardKind::Uninitialized, thread, place, NONE, || {
                format!("a load of shared memory that was never written, on which {what} depends")
            });
            self.pc = here;
            return;
        }
        let other = if origin == self.pc { NONE } else { origin };
        self.hazard(HazardKind::Uninitialized, thread, place, other, || {
            format!(
                "{what} depends on a register that was never written: a variable without a value, \
                 or an `asm` operand that is read and declared as an output only (`=` for `+`)"
            )
        });
    }
}

fn is_global(w: &Warp, at: &Address, lane: usize) -> bool {
    match at.area {
        Area::Global => true,
        Area::Generic => split(w.address(at, lane)).0 == Area::Global,
        _ => false,
    }
}

/// Returns the lanes in which the result of a rule is undefined.
fn result(w: &Warp, rule: &Rule) -> u32 {
    match rule {
        Rule::Any(sources) => w.any_undefined(sources),
        Rule::All(sources) => {
            let masks = sources.iter().map(|n| w.undefined[*n as usize]);
            masks.fold(u32::MAX, |all, mask| all & mask)
        }
        Rule::Select { values, condition } => {
            let [a, b] = values.map(|value| w.undefined_in(value));
            let chosen = w.known(condition, true) & a | w.known(condition, false) & b;
            chosen | w.undefined_in(condition.watched)
        }
        Rule::Logic {
            and,
            compared,
            conditions,
        } => {
            let masks = conditions.iter().map(|c| w.undefined_in(c.watched));
            let open = masks.fold(w.any_undefined(compared), |all, mask| all | mask);
            // `false and x` and `true or x` do not depend on `x`.
            let decided = conditions.iter().map(|c| w.known(c, !and));
            open & !decided.fold(0, |all, mask| all | mask)
        }
        _ => 0,
    }
}

impl Watch {
    fn sources(&self) -> impl Iterator<Item = u32> {
        let some = |list: &[Watched]| list.iter().flatten().copied().collect::<Vec<_>>();
        let mut all = match &self.rule {
            Rule::Any(list) | Rule::All(list) | Rule::Group(list) => list.clone(),
            Rule::Shuffle(source) => vec![*source],
            Rule::Select { values, condition } => some(&[values[0], values[1], condition.watched]),
            Rule::Logic {
                compared,
                conditions,
                ..
            } => {
                let conditions = conditions.iter().filter_map(|c| c.watched);
                compared.iter().copied().chain(conditions).collect()
            }
            Rule::Product(p) => some(&[&p.a[..], &p.b[..], &p.c[..]].concat()),
            Rule::Defined | Rule::Stored(_) | Rule::Loaded(_) | Rule::Entered(_) => Vec::new(),
        };
        all.extend(self.guard);
        all.into_iter()
    }
}

/// Returns the lanes in which each result register of a matrix product is undefined. In fragments
/// of 8 columns (PTX ISA 9.0, 9.7.14.5), lane `l` holds column `l / 4` of B, and columns `2 (l %
/// 4)` and the next of the result. It holds rows `l / 4` and `l / 4 + 8`: of A in even and odd
/// registers, of the result in the two halves of its registers.
fn undefined_results(w: &Warp, product: &Product) -> Vec<u32> {
    let Product { a, b, c, d } = product;
    let results = d.len();
    let per_quad = |registers: &[Watched], step: usize, first: usize| {
        let masks = registers.iter().skip(first).step_by(step);
        let all = masks.fold(0, |all, r| all | w.undefined_in(*r));
        // One bit per group of four lanes.
        (0..8).fold(0u32, |quads, g| {
            quads | u32::from(all >> (4 * g) & 15 != 0) << g
        })
    };
    let halves = if a.len() > 1 { 2 } else { 1 };
    let rows = [per_quad(a, halves, 0), per_quad(a, halves, halves - 1)];
    let columns = per_quad(b, 1, 0);
    let element = |register: usize| {
        let half = register * halves / results.max(1);
        let accumulated = c
            .get(register * c.len() / results.max(1))
            .copied()
            .flatten();
        let from = |lane: u32| {
            let column = lane % 4 * 2;
            let both = columns >> column & 3;
            let column = match results / halves {
                // One register holds both columns.
                0 | 1 => both,
                _ => both >> (register & 1) & 1,
            };
            rows[half.min(1)] >> (lane / 4) & 1 | u32::from(column != 0)
        };
        (0..32).fold(w.undefined_in(accumulated), |all, lane| {
            all | from(lane) << lane
        })
    };
    (0..results).map(element).collect()
}
