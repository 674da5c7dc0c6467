//! Layout of shared memory: variables are separated by unowned bytes, so that an index beyond the
//! end is out of bounds instead of in the neighbour.
//!
//! The alignment of each is the one that ptxas gives it, which places variables in the order of their
//! declarations without gaps, and dynamic memory behind them (seen in the machine code of sm_80 and sm_90,
//! CUDA 13): an access wider than the declared alignment is misaligned here where it is on a GPU.

use std::collections::HashSet;

use super::Lower;
use super::program::{Extent, Op};
use ptx::ast::{Function, Operand, StateSpace, Variable};

/// Minimum number of unowned bytes after each shared variable.
const GAP_BYTES: u32 = 64;
/// Up to this power of two a variable's place has the remainder that it has on a GPU: the alignment of the
/// widest swizzle of a tensor map.
const LARGE_ALIGNMENT: u32 = 1024;
/// The same for variables of fewer bytes, which no tensor copy fills.
const SMALL_ALIGNMENT: u32 = 128;
/// Alignment of dynamic memory, whatever its declaration says.
const DYNAMIC_ALIGNMENT: u32 = 16;

/// Returns the first address from `least` on that has the remainder of `like` modulo `alignment`.
fn aligned_like(like: u32, least: u32, alignment: u32) -> u32 {
    least + like.wrapping_sub(least) % alignment
}

impl<'a> Lower<'a> {
    /// Places the module's shared variables that the entry's code (or a callee's) may name.
    pub(super) fn layout_shared(&mut self, entry: &'a Function<'a>) {
        let ast = self.ast;
        let named = names_used(&self.globals.functions.reached_by(entry));
        for v in ast
            .variables
            .iter()
            .filter(|v| v.space == StateSpace::Shared)
        {
            if !named.contains(v.name) || self.is_open_ended(v) {
                continue;
            }
            if v.bytes == 0 {
                self.program.uses_dynamic = true;
            } else {
                let at = self.place_shared(v);
                self.shared.insert(v.name, at);
            }
        }
        // Function-scope variables follow; the dynamic one starts beyond any of them.
        let dynamic = ast
            .variables
            .iter()
            .filter(|v| v.space == StateSpace::Shared && (v.bytes == 0 || self.is_open_ended(v)));
        // Variables of functions are placed later: their sizes are bounds for the space they take.
        let functions = self.globals.functions.reached_by(entry);
        let bodies = functions.iter().filter_map(|f| f.body.as_ref());
        let inside = bodies.flat_map(|body| &body.variables);
        let inside = inside.filter(|v| v.space == StateSpace::Shared && v.bytes > 0);
        let (mut end, mut packed) = (u64::from(self.shared_end()), self.packed_shared);
        for v in inside {
            end += v.bytes + u64::from(GAP_BYTES + LARGE_ALIGNMENT);
            packed = packed.next_multiple_of(v.align.max(1)) + v.bytes.min(1 << 24) as u32;
        }
        let dynamic: Vec<_> = dynamic.collect();
        let align = dynamic.iter().map(|v| v.align).max().unwrap_or(1);
        let packed = packed.next_multiple_of(align.max(DYNAMIC_ALIGNMENT));
        self.program.dynamic_at = aligned_like(packed, end.min(1 << 24) as u32, LARGE_ALIGNMENT);
        for v in dynamic {
            let at = if named.contains(v.name) {
                self.place_shared(v)
            } else {
                self.program.dynamic_at
            };
            self.shared.insert(v.name, at);
        }
    }

    /// Reports whether the launch decides a variable's size: an `.extern` array with a size, which
    /// is a lower bound, if it is the module's only `.extern` one.
    fn is_open_ended(&self, v: &Variable<'_>) -> bool {
        let bodies = self.ast.functions.iter().filter_map(|f| f.body.as_ref());
        let inside = bodies.flat_map(|body| &body.variables);
        let all = self.ast.variables.iter().chain(inside);
        let mut external = all.filter(|v| v.space == StateSpace::Shared && v.external);
        v.external && v.bytes > 0 && external.next().is_some() && external.next().is_none()
    }

    fn shared_end(&self) -> u32 {
        self.program
            .shared
            .last()
            .map_or(0, |e| e.start + e.bytes + GAP_BYTES)
    }

    pub(super) fn place_shared(&mut self, v: &Variable<'_>) -> u32 {
        let open_ended = self.is_open_ended(v);
        if v.bytes == 0 || open_ended {
            self.program.uses_dynamic = true;
            self.program.dynamic_least = self.program.dynamic_least.max(v.bytes as u32);
            return self.program.dynamic_at;
        }
        let packed = self.packed_shared.next_multiple_of(v.align.max(1));
        self.packed_shared = packed + v.bytes as u32;
        let alignment = match v.bytes < u64::from(LARGE_ALIGNMENT) {
            true => SMALL_ALIGNMENT,
            false => LARGE_ALIGNMENT,
        };
        let start = aligned_like(packed, self.shared_end(), alignment.max(v.align));
        let extent = Extent {
            start,
            bytes: v.bytes as u32,
        };
        self.program.shared.push(extent);
        if v.name == ptx::reserved::NAME {
            self.program.reserved = Some(extent);
        }
        start
    }

    /// Records whether an operation needs more than full barriers to order threads.
    pub(super) fn note_sync(&mut self, op: &Op) {
        match op {
            Op::Fence { .. } => {
                self.program.has_fences = true;
                self.program.partial_sync = true;
            }
            Op::Mbar(..) => self.program.partial_sync = true,
            _ => {}
        }
    }
}

/// Names in the code of an entry and of all that it may call.
fn names_used<'a>(functions: &[&'a Function<'a>]) -> HashSet<&'a str> {
    let bodies = functions.iter().filter_map(|f| f.body.as_ref());
    let operands = bodies
        .flat_map(|body| &body.instructions)
        .flat_map(|i| &i.operands);
    let name = |operand: &'a Operand<'a>| match operand {
        Operand::Name(name, _) => Some(*name),
        Operand::Address(base, _) => match &**base {
            Operand::Name(name, _) => Some(*name),
            _ => None,
        },
        _ => None,
    };
    operands.filter_map(name).collect()
}
