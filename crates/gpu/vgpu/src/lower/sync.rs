//! Barriers, fences, warp-wide operations, `mbarrier`.

use super::memory::is_device_wide;
use super::program::{
    Area, Bar, Data, MbarOp, NONE, Op, ProxyFence, ReduxNumbers, Shuffle, Synchronizes, WarpOp,
};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use gpu_arithmetic::atomic::AtomOp;
use ptx::ast::{Instruction, Operand, Type};

/// Returns the threads that an operation on an `mbarrier` may order.
fn synchronizes(m: &Mods<'_>) -> Synchronizes {
    match () {
        () if m.has("relaxed") => Synchronizes::Nothing,
        () if m.has("cta") => Synchronizes::Block,
        () => Synchronizes::Cluster,
    }
}

impl<'a> Lower<'a> {
    /// Lowers synchronisation and warp-wide instructions; returns `false` for any other.
    pub(super) fn sync(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        match i.opcode {
            "bar" | "barrier" if m.has("warp") => {
                let mask = self.member_mask(i.operands.first())?;
                self.warp_op(mask, WarpOp::Barrier, Class::Sync);
            }
            "barrier" if m.has("cluster") => self.cluster_barrier(m)?,
            "bar" | "barrier" => self.barrier(i, m)?,
            "membar" | "fence" => self.fence(i, m)?,
            "shfl" => self.shuffle(i, m)?,
            "vote" => self.vote(i, m)?,
            "match" => self.matching(i, m)?,
            "redux" => self.redux(i, m)?,
            "elect" => self.elect(i)?,
            "activemask" => {
                let dest = i.operands.first().ok_or(Fail::Unsupported(""))?;
                let (dest, _) = self.dest(dest, Kind::R32)?;
                self.push(Op::ActiveMask { dest }, Class::Shuffle);
            }
            "mbarrier" => self.mbarrier(i, m)?,
            "cp" if m.has("mbarrier") => {
                let at = i.operands.first().ok_or(Fail::Unsupported(""))?;
                let area = self.area(m)?;
                let at = self.address(at, area)?;
                let op = MbarOp::AsyncArrive {
                    noinc: m.has("noinc"),
                };
                self.program.partial_sync = true;
                self.push(Op::Mbar(at, Box::new(op)), Class::Sync);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn fence(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let proxy = m.0.iter().any(|word| word.starts_with("proxy"));
        let fence = match () {
            () if m.has("mbarrier_init") => Some(ProxyFence::MbarrierInit),
            () if m.has("tensormap::generic") => Some(match i.operands.first() {
                Some(at) => ProxyFence::MapAcquire(self.address(at, Area::Generic)?),
                None => ProxyFence::MapRelease,
            }),
            () if proxy && m.has("async") => Some(ProxyFence::Async {
                shared: !m.has("global"),
                global: !m.0.iter().any(|word| word.starts_with("shared")),
            }),
            () => None,
        };
        if proxy || fence.is_some() {
            // Aliases of addresses have no proxy of their own here.
            self.push(fence.map_or(Op::Nop, Op::ProxyFence), Class::Sync);
            return Ok(());
        }
        let op = Op::Fence {
            device_wide: is_device_wide(m),
        };
        self.note_sync(&op);
        self.push(op, Class::Sync);
        Ok(())
    }

    fn member_mask(&mut self, operand: Option<&Operand<'a>>) -> Lowered<u32> {
        let operand = operand.ok_or(Fail::Operand("a member mask is needed".to_owned()))?;
        if !matches!(operand, Operand::Int(v) if *v as u32 == u32::MAX) {
            // A mask in a register is mostly a full one; only the barrier depends on it.
            self.program.partial_sync = true;
        }
        self.source(operand, Kind::R32)
    }

    fn warp_op(&mut self, mask: u32, op: WarpOp, class: Class) {
        self.push(
            Op::Warp {
                mask,
                op: Box::new(op),
            },
            class,
        );
    }

    fn barrier(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let red = m.has("red");
        let (dest, rest) = if red {
            let (d, rest) = i.operands.split_first().ok_or(Fail::Unsupported(""))?;
            (Some(d), rest)
        } else {
            (None, i.operands.as_slice())
        };
        let id = rest
            .first()
            .ok_or(Fail::Operand("a barrier number is needed".to_owned()))?;
        let mut rest = &rest[1..];
        let mut reduction = None;
        if let Some(dest) = dest {
            // The predicate is the last operand; a thread count may precede it.
            let (source, before) = rest.split_last().ok_or(Fail::Unsupported(""))?;
            rest = before;
            let (source, negated) = match source {
                Operand::Not(reg) => (self.pred_row(*reg)?, true),
                other => (self.source(other, Kind::P)?, false),
            };
            reduction = Some(if m.has("popc") {
                (2, self.dest(dest, Kind::R32)?.0, source, negated)
            } else {
                (
                    u8::from(m.has("or")),
                    self.dest(dest, Kind::P)?.0,
                    source,
                    negated,
                )
            });
        }
        let count = match rest.first() {
            Some(c) => self.source(c, Kind::R32)?,
            None => NONE,
        };
        // Barrier 0 without a count is `__syncthreads()`, which the block's floor covers.
        if count != NONE || !matches!(id, Operand::Int(0)) || m.has("arrive") {
            self.program.partial_sync = true;
        }
        let bar = Bar {
            id: self.source(id, Kind::R32)?,
            count,
            arrive: m.has("arrive"),
            // `bar` is `barrier.aligned` (PTX ISA, `bar`).
            aligned: i.opcode == "bar" || m.has("aligned"),
            red: reduction,
        };
        self.push(Op::Bar(Box::new(bar)), Class::Sync);
        Ok(())
    }

    fn shuffle(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let mode = match () {
            () if m.has("up") => Shuffle::Up,
            () if m.has("down") => Shuffle::Down,
            () if m.has("bfly") => Shuffle::Bfly,
            () => Shuffle::Idx,
        };
        let [dest, a, b, c, mask @ ..] = i.operands.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        // Shuffles without `.sync` do not exist from sm_70 on.
        if !m.has("sync") {
            return Err(Fail::Unsupported("without .sync"));
        }
        let (dest, pred) = self.pair(dest, Kind::R32)?;
        let (a, b, c) = (
            self.source(a, Kind::R32)?,
            self.source(b, Kind::R32)?,
            self.source(c, Kind::R32)?,
        );
        let mask = self.plain_mask(mask.first())?;
        self.warp_op(
            mask,
            WarpOp::Shfl {
                mode,
                dest,
                pred,
                a,
                b,
                c,
            },
            Class::Shuffle,
        );
        Ok(())
    }

    /// Returns the row of the member mask of an operation that orders nothing.
    fn plain_mask(&mut self, operand: Option<&Operand<'a>>) -> Lowered<u32> {
        let operand = operand.ok_or(Fail::Operand("a member mask is needed".to_owned()))?;
        self.source(operand, Kind::R32)
    }

    /// Lowers `d|p` or `d`; a missing predicate is `NONE`.
    fn pair(&mut self, operand: &Operand<'a>, kind: Kind) -> Lowered<(u32, u32)> {
        match operand {
            Operand::Pair(d, p) => {
                let p = self.dest(p, Kind::P)?.0;
                Ok((self.dest(d, kind)?.0, p))
            }
            d => Ok((self.dest(d, kind)?.0, NONE)),
        }
    }

    fn vote(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [dest, source, mask] = i.operands.as_slice() else {
            return Err(Fail::Unsupported("without .sync"));
        };
        let mode = match () {
            () if m.has("all") => 0,
            () if m.has("any") => 1,
            () if m.has("uni") => 2,
            () => 3,
        };
        let kind = if mode == 3 { Kind::R32 } else { Kind::P };
        let (source, negated) = match source {
            Operand::Not(reg) => (self.pred_row(*reg)?, true),
            other => (self.source(other, Kind::P)?, false),
        };
        let dest = self.dest(dest, kind)?.0;
        let mask = self.plain_mask(Some(mask))?;
        self.warp_op(
            mask,
            WarpOp::Vote {
                mode,
                dest,
                source,
                negated,
            },
            Class::Shuffle,
        );
        Ok(())
    }

    fn matching(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [dest, a, mask] = i.operands.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        let bytes = m.ty().map_or(4, ptx::ast::Type::bytes);
        let (dest, pred) = self.pair(dest, Kind::R32)?;
        let a = self.data_source(a, bytes)?;
        let mask = self.plain_mask(Some(mask))?;
        self.warp_op(
            mask,
            WarpOp::Match {
                all: m.has("all"),
                dest,
                pred,
                a,
            },
            Class::Shuffle,
        );
        Ok(())
    }

    fn redux(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ([dest, a, mask], Some(ty)) = (i.operands.as_slice(), m.ty()) else {
            return Err(Fail::Unsupported(""));
        };
        let op = match () {
            () if m.has("add") => AtomOp::Add,
            () if m.has("min") => AtomOp::Min,
            () if m.has("max") => AtomOp::Max,
            () if m.has("and") => AtomOp::And,
            () if m.has("or") => AtomOp::Or,
            () if m.has("xor") => AtomOp::Xor,
            () => return Err(Fail::Unsupported("")),
        };
        let numbers = match ty {
            Type::F32 if matches!(op, AtomOp::Min | AtomOp::Max) => ReduxNumbers::Floats {
                nan: m.has("NaN"),
                absolute: m.has("abs"),
            },
            _ if ty.float() => return Err(Fail::Unsupported("floats")),
            _ if ty.signed() => ReduxNumbers::Signed,
            _ => ReduxNumbers::Unsigned,
        };
        let dest = self.dest(dest, Kind::R32)?.0;
        let a = self.source(a, Kind::R32)?;
        let mask = self.plain_mask(Some(mask))?;
        self.warp_op(
            mask,
            WarpOp::Redux {
                op,
                numbers,
                dest,
                a,
            },
            Class::Shuffle,
        );
        Ok(())
    }

    fn elect(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        let [dest, mask] = i.operands.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        let (dest, pred) = self.pair(dest, Kind::R32)?;
        let mask = self.plain_mask(Some(mask))?;
        self.warp_op(mask, WarpOp::Elect { dest, pred }, Class::Shuffle);
        Ok(())
    }

    fn mbarrier(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        self.program.partial_sync = true;
        let area = match self.area(m)? {
            Area::Global => return Err(Fail::Unsupported("")),
            area => area,
        };
        let ops = i.operands.as_slice();
        let missing = || Fail::Operand("operands are missing".to_owned());
        let (at, op) = match m.0.first().copied().unwrap_or_default() {
            "init" => (
                ops.first(),
                MbarOp::Init {
                    count: self.optional_word(ops.get(1))?,
                },
            ),
            "inval" => (ops.first(), MbarOp::Inval),
            kind @ ("arrive" | "arrive_drop") => self.mbarrier_arrive(ops, m, kind)?,
            "expect_tx" => (
                ops.first(),
                MbarOp::ExpectTx {
                    bytes: self.optional_word(ops.get(1))?,
                },
            ),
            "complete_tx" => (
                ops.first(),
                MbarOp::CompleteTx {
                    bytes: self.optional_word(ops.get(1))?,
                },
            ),
            "test_wait" | "try_wait" => {
                let [dest, at, state, ..] = ops else {
                    return Err(missing());
                };
                let parity = m.has("parity");
                // A phase parity is a 32-bit operand, a state token has 64 bits.
                let op = MbarOp::Wait {
                    parity,
                    state: self.data_source(state, if parity { 4 } else { 8 })?,
                    dest: self.dest(dest, Kind::P)?.0,
                    acquire: synchronizes(m),
                };
                (Some(at), op)
            }
            "pending_count" => {
                let [dest, state] = ops else {
                    return Err(missing());
                };
                let op = MbarOp::PendingCount {
                    state: self.data_source(state, 8)?,
                    dest: self.dest(dest, Kind::R32)?.0,
                    // It reads the state only; the address is unused.
                };
                let at = super::program::Address {
                    area,
                    base: Data::Nothing,
                    offset: 0,
                };
                self.push(Op::Mbar(at, Box::new(op)), Class::Sync);
                return Ok(());
            }
            _ => return Err(Fail::Unsupported("")),
        };
        let at = self.address(at.ok_or_else(missing)?, area)?;
        self.push(Op::Mbar(at, Box::new(op)), Class::Sync);
        Ok(())
    }

    /// Returns the barrier's address and the arrival, which may return a state.
    fn mbarrier_arrive<'o>(
        &mut self,
        ops: &'o [Operand<'a>],
        m: &Mods<'_>,
        kind: &str,
    ) -> Lowered<(Option<&'o Operand<'a>>, MbarOp)> {
        let (state, rest) = match ops {
            [Operand::Address(..), ..] => (Data::Nothing, ops),
            [state, rest @ ..] => (self.data(state)?, rest),
            [] => return Err(Fail::Operand("operands are missing".to_owned())),
        };
        let value = self.optional_word(rest.get(1))?;
        // With `expect_tx`, the operand is a byte count and the arrival count is one.
        let expecting = m.has("expect_tx");
        let op = MbarOp::Arrive {
            count: if expecting { NONE } else { value },
            expect: if expecting { value } else { NONE },
            state,
            drop: kind == "arrive_drop",
            completes: !m.has("noComplete"),
            release: synchronizes(m),
        };
        Ok((rest.first(), op))
    }

    /// Returns the row of an optional operand, or `NONE`.
    fn optional_word(&mut self, operand: Option<&Operand<'a>>) -> Lowered<u32> {
        operand.map_or(Ok(NONE), |operand| self.source(operand, Kind::R32))
    }
}
