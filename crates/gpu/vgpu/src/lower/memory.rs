//! Loads, stores, atomics, asynchronous copies.

use super::program::{
    Area, Atom, AtomHalves, Bulk, CpAsync, Data, Mem, NONE, Op, Order, every_byte,
};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use gpu_arithmetic::atomic::{AtomOp, AtomType};
use ptx::ast::{Instruction, Operand, Type};
use ptx::structs::Unwritten;
use ptx::vector_atomics::vector_length;

fn class_of(area: Area) -> Class {
    match area {
        Area::Shared | Area::Cluster => Class::Shared,
        Area::Local => Class::Local,
        Area::KernelParam | Area::CallParam => Class::Const,
        Area::Global | Area::Generic => Class::Global,
    }
}

/// Returns the operation that an atomic names.
pub(super) fn atomic_operation(m: &Mods<'_>) -> Lowered<AtomOp> {
    [
        ("add", AtomOp::Add),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
        ("xor", AtomOp::Xor),
        ("exch", AtomOp::Exch),
        ("cas", AtomOp::Cas),
        ("inc", AtomOp::Inc),
        ("dec", AtomOp::Dec),
    ]
    .iter()
    .find(|(name, _)| m.has(name))
    .map(|(_, op)| *op)
    .ok_or(Fail::Unsupported(""))
}

pub(super) fn atomic_type(ty: Type, op: AtomOp) -> Lowered<AtomType> {
    Ok(match ty {
        Type::U32 | Type::B32 => AtomType::U32,
        Type::S32 => AtomType::S32,
        Type::U64 | Type::B64 => AtomType::U64,
        Type::S64 => AtomType::S64,
        Type::F32 => AtomType::F32,
        Type::F64 => AtomType::F64,
        Type::F16 => AtomType::F16,
        Type::Bf16 => AtomType::Bf16,
        Type::F16x2 => AtomType::F16x2,
        Type::Bf16x2 => AtomType::Bf16x2,
        Type::B16 if matches!(op, AtomOp::Cas | AtomOp::Exch) => AtomType::B16,
        _ => return Err(Fail::Unsupported("this type")),
    })
}

fn order_of(m: &Mods<'_>, default: Order) -> Order {
    match () {
        () if m.has("acq_rel") => Order::AcqRel,
        () if m.has("acquire") => Order::Acquire,
        () if m.has("release") => Order::Release,
        () if m.has("relaxed") || m.has("mmio") => Order::Relaxed,
        () if m.has("volatile") => Order::Volatile,
        () => default,
    }
}

/// Reports whether the scope of an access includes threads of other clusters.
pub(super) fn is_device_wide(m: &Mods<'_>) -> bool {
    !m.has("cta") && !m.has("cluster")
}

impl<'a> Lower<'a> {
    /// Lowers memory instructions; returns `false` for any other.
    pub(super) fn memory(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        match i.opcode {
            "ld" | "ldu" => self.load(i, m)?,
            // Those to global memory release by themselves: nothing else tells when they are complete.
            "st" | "red" if m.has("async") && m.has("mbarrier::complete_tx::bytes") => {
                self.async_store(i, m)?;
            }
            "st" => self.store(i, m)?,
            "atom" => self.atom(i, m, true)?,
            "red" => self.atom(i, m, false)?,
            "mapa" => self.map_address(i, m)?,
            "getctarank" => self.block_rank(i, m)?,
            "cp" => return self.copy(i, m),
            "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" => {
                self.hint(i)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Lowers hints, which have no effect; `createpolicy` writes a policy that is never read.
    fn hint(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        if i.opcode == "createpolicy"
            && let Some(dest) = i.operands.first()
        {
            let row = self.constant(Kind::R64, super::program::Constant::Value(0));
            let (d, _) = self.dest(dest, Kind::R64)?;
            let slots = crate::exec::regs::Slots {
                d,
                s: [row, 0, 0, 0],
                imm: 0,
            };
            let alu = crate::exec::regs::alu!(|a: U64| -> U64 a);
            self.push(Op::Alu(alu.run, slots), Class::Move);
        } else {
            self.push(Op::Nop, Class::Move);
        }
        Ok(())
    }

    // Relaxed accesses order nothing by themselves: the epoch still decides.
    fn strong(&mut self, order: Order) {
        self.program.has_strong |= !matches!(order, Order::Weak | Order::Volatile);
        if !matches!(order, Order::Weak | Order::Relaxed | Order::Volatile) {
            self.program.has_fences = true;
            self.program.partial_sync = true;
        }
    }

    fn access(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>, at: usize) -> Lowered<Mem> {
        let ty = m.ty().ok_or(Fail::Unsupported(""))?;
        // The parser has already split loads and stores of 128 bits.
        if ty.bytes() == 0 || ty.bytes() > 8 {
            return Err(Fail::Unsupported("this type"));
        }
        let area = self.area(m)?;
        let operand = i.operands.get(at).ok_or(Fail::Unsupported(""))?;
        let order = order_of(m, Order::Weak);
        self.strong(order);
        Ok(Mem {
            at: self.address(operand, area)?,
            width: ty.bytes(),
            signed: ty.signed(),
            data: Vec::new(),
            order,
            device_wide: is_device_wide(m),
            unwritten: Unwritten::Hazard,
            read_only: i.opcode == "ldu" || m.has("nc"),
            used: u32::MAX,
            counted: u32::MAX,
        })
    }

    fn load(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let mut mem = self.access(i, m, 1)?;
        let place = std::ptr::from_ref(i).addr();
        // Compilers emit flags that are polled as plain or volatile loads: `ptx::intent` has found
        // them.
        if matches!(mem.order, Order::Weak | Order::Volatile)
            && self.function.relaxed.contains(&place)
        {
            mem.order = Order::Relaxed;
        }
        mem.unwritten = self
            .function
            .unwritten
            .get(&place)
            .copied()
            .unwrap_or_default();
        mem.data = match &i.operands[0] {
            Operand::Vector(list) => list
                .iter()
                .map(|o| match o {
                    // A destination that no other operand names is unused: its bytes need not be
                    // checked.
                    Operand::Reg(r) if self.function.named_once.contains(r) => Ok(Data::Nothing),
                    _ => self.data(o),
                })
                .collect::<Lowered<Vec<_>>>()?,
            single => vec![self.data(single)?],
        };
        mem.counted = self.counted_bytes(&i.operands[0], &mem);
        // The widest vector of PTX has 8 elements or 32 bytes.
        if mem.data.len() > 8 || mem.data.len() as u32 * mem.width > 32 {
            return Err(Fail::Unsupported("a vector of this size"));
        }
        // The mask of used bytes applies to plain loads only: strong ones access all of their word.
        if matches!(mem.order, Order::Weak | Order::Volatile) {
            mem.used = i.used_bytes.unwrap_or(u32::MAX);
            for (n, d) in (0..).zip(&mem.data) {
                if *d == Data::Nothing && mem.data.len() > 1 {
                    mem.used &= !(every_byte(mem.width) << (n * mem.width));
                }
            }
        }
        let class = class_of(mem.at.area);
        self.push(Op::Load(Box::new(mem)), class);
        Ok(())
    }

    /// The bytes of a load whose values the function uses.
    fn counted_bytes(&self, destination: &Operand<'_>, mem: &Mem) -> u32 {
        let elements = match destination {
            Operand::Vector(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let every = every_byte(mem.width);
        let bytes = elements.iter().map(|element| match element {
            Operand::Reg(r) => self.function.used_bits.bytes_of(*r, mem.width, mem.signed),
            _ => every,
        });
        let places = bytes.zip((0..32).step_by(mem.width as usize));
        places.fold(0, |all, (bytes, at)| all | bytes << at)
    }

    fn store(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        if m.has("bulk") {
            return self.clear(i, m);
        }
        let mut mem = self.access(i, m, 0)?;
        let width = mem.width;
        let source = i.operands.get(1).ok_or(Fail::Unsupported(""))?;
        mem.data = match source {
            Operand::Vector(list) => list
                .iter()
                .map(|o| self.data_source(o, width))
                .collect::<Lowered<Vec<_>>>()?,
            single => vec![self.data_source(single, width)?],
        };
        if mem.data.len() > 8 || mem.data.len() as u32 * mem.width > 32 {
            return Err(Fail::Unsupported("a vector of this size"));
        }
        let class = class_of(mem.at.area);
        self.push(Op::Store(Box::new(mem)), class);
        Ok(())
    }

    /// Lowers `st.bulk`, whose value is zero.
    fn clear(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [at, bytes, Operand::Int(0)] = i.operands.as_slice() else {
            return Err(Fail::Operand(
                "an address, a size and zero are needed".to_owned(),
            ));
        };
        let at = self.address(at, self.area(m)?)?;
        let bytes = self.source(bytes, Kind::R64)?;
        self.push(Op::Clear { at, bytes }, Class::Shared);
        Ok(())
    }

    fn atom(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>, returns: bool) -> Lowered<()> {
        let ty = m.types().last().ok_or(Fail::Unsupported(""))?;
        let elements = m.0.iter().find_map(|word| vector_length(word));
        let is_vector = |operand: &Operand<'_>| matches!(operand, Operand::Vector(_));
        if elements.is_some() && i.operands.iter().any(is_vector) {
            return Err(Fail::Unsupported("a vector that replaces its own values"));
        }
        let op = atomic_operation(m)?;
        let wide = ty == Type::B128 && matches!(op, AtomOp::Cas | AtomOp::Exch);
        let ty = if wide {
            AtomType::U64
        } else {
            atomic_type(ty, op)?
        };
        let operands = &i.operands[usize::from(returns).min(i.operands.len())..];
        let (Some(address), Some(b)) = (operands.first(), operands.get(1)) else {
            return Err(Fail::Operand(
                "an address and a value are needed".to_owned(),
            ));
        };
        let area = self.area(m)?;
        // An atomic without an order is relaxed (PTX ISA, `atom`).
        let order = order_of(m, Order::Relaxed);
        self.strong(order);
        let dest = i.operands.first().filter(|_| returns);
        let mut halves = Vec::new();
        for half in 0..=usize::from(wide) {
            let part = |operand: &'a Operand<'a>| match operand {
                Operand::Vector(parts) if wide => {
                    parts.get(half).ok_or(Fail::Unsupported("this vector"))
                }
                operand => Ok(operand),
            };
            halves.push(AtomHalves {
                dest: match dest.map(part).transpose()? {
                    // An atomic whose result is unused is a reduction.
                    Some(Operand::Reg(r)) if self.function.named_once.contains(r) => Data::Nothing,
                    Some(dest) => self.data(dest)?,
                    None => Data::Nothing,
                },
                b: self.data_source(part(b)?, ty.bytes())?,
                c: match operands.get(2) {
                    Some(c) if op == AtomOp::Cas => self.data_source(part(c)?, ty.bytes())?,
                    None if op == AtomOp::Cas => return Err(Fail::Unsupported("")),
                    _ => Data::Nothing,
                },
            });
        }
        let mut halves = halves.into_iter();
        let AtomHalves { dest, b, c } = halves.next().ok_or(Fail::Unsupported(""))?;
        let atom = Atom {
            at: self.address(address, area)?,
            op,
            ty,
            dest,
            b,
            c,
            order,
            device_wide: is_device_wide(m),
            vector_bytes: elements.map_or(0, |elements| elements as u32 * ty.bytes()),
            upper: halves.next(),
        };
        self.push(Op::Atom(Box::new(atom)), Class::Atomic);
        Ok(())
    }

    /// Lowers `cp.async` in all its forms.
    fn copy(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        if let ["reduce", "async", words @ ..] = m.0 {
            let op = atomic_operation(m)?;
            if words.contains(&"tensor") {
                return self.tensor_copy(i, m, Some(op)).map(|()| true);
            }
            let ty = m.types().last().ok_or(Fail::Unsupported(""))?;
            let reduce = Some((op, atomic_type(ty, op)?));
            return self.bulk(i, words, reduce).map(|()| true);
        }
        if m.0.first() != Some(&"async") {
            return Ok(false);
        }
        let words = &m.0[1..];
        let number = |o: Option<&Operand<'_>>| match o {
            Some(Operand::Int(n)) => Ok(*n as u32),
            _ => Err(Fail::Operand("a constant is needed".to_owned())),
        };
        match words.first().copied() {
            Some("commit_group") => self.push(Op::CommitGroup, Class::Sync),
            Some("wait_group") => {
                let n = number(i.operands.first())?;
                self.push(Op::WaitGroup(n), Class::Sync);
            }
            Some("wait_all") => self.push(Op::WaitGroup(NONE), Class::Sync),
            // Lowered with the barriers, whose operand it has.
            Some("mbarrier") => return Ok(false),
            Some("bulk") => self.bulk(i, words, None)?,
            Some("ca" | "cg") => self.copy_async(i)?,
            _ => return Err(Fail::Unsupported("")),
        }
        Ok(true)
    }

    fn copy_async(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        let [to, from, Operand::Int(bytes), rest @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand(
                "two addresses and a size are needed".to_owned(),
            ));
        };
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(Fail::Operand("the size must be 4, 8 or 16".to_owned()));
        }
        let (mut source_bytes, mut ignore) = (NONE, NONE);
        match rest.first() {
            // The optional operands are a source size, an ignore predicate, or a 64-bit cache
            // policy, which has no effect.
            Some(Operand::Reg(r)) if matches!(self.register(*r)?, (Kind::P, _)) => {
                ignore = self.pred_row(*r)?;
            }
            Some(Operand::Reg(r)) if matches!(self.register(*r)?, (Kind::R64, _)) => {}
            Some(size) => source_bytes = self.source(size, Kind::R32)?,
            None => {}
        }
        let copy = CpAsync {
            to: self.address_in(to, Area::Shared)?,
            from: self.address_in(from, Area::Global)?,
            bytes: *bytes as u32,
            source_bytes,
            ignore,
        };
        self.push(Op::CpAsync(Box::new(copy)), Class::Global);
        Ok(())
    }

    fn bulk(
        &mut self,
        i: &'a Instruction<'a>,
        words: &[&str],
        reduce: Option<(AtomOp, AtomType)>,
    ) -> Lowered<()> {
        let second = words.get(1).copied().unwrap_or_default();
        match second {
            "commit_group" => {
                self.push(Op::CommitBulk, Class::Sync);
                return Ok(());
            }
            "wait_group" => {
                let Some(Operand::Int(left)) = i.operands.first() else {
                    return Err(Fail::Operand("a constant is needed".to_owned()));
                };
                let (left, read) = (*left as u32, words.contains(&"read"));
                self.push(Op::WaitBulk { left, read }, Class::Sync);
                return Ok(());
            }
            "prefetch" => {
                self.push(Op::Nop, Class::Global);
                return Ok(());
            }
            "tensor" => {
                let reduce = reduce.map(|(op, _)| op);
                return self.tensor_copy(i, &Mods(words), reduce);
            }
            _ => {}
        }
        self.bulk_copy(i, words, reduce)
    }

    /// Lowers `cp.async.bulk` and `cp.reduce.async.bulk` of a range of bytes.
    fn bulk_copy(
        &mut self,
        i: &'a Instruction<'a>,
        words: &[&str],
        reduce: Option<(AtomOp, AtomType)>,
    ) -> Lowered<()> {
        let second = words.get(1).copied().unwrap_or_default();
        let area = |w: &str| match w {
            "shared::cluster" => Some(Area::Cluster),
            "shared::cta" => Some(Area::Shared),
            "global" => Some(Area::Global),
            _ => None,
        };
        let (Some(to), Some(from)) = (area(second), words.get(2).and_then(|w| area(w))) else {
            return Err(Fail::Unsupported(""));
        };
        if from == Area::Cluster || to == from {
            return Err(Fail::Unsupported("between these state spaces"));
        }
        if reduce.is_some() && from != Area::Shared {
            return Err(Fail::Unsupported("reductions of global memory"));
        }
        let [d, s, size, rest @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand(
                "two addresses and a size are needed".to_owned(),
            ));
        };
        let mbarrier = match rest.first() {
            Some(a @ Operand::Address(..)) if to != Area::Global => Some(self.address(a, to)?),
            _ => None,
        };
        let multicast = match words.contains(&"multicast::cluster") {
            false => NONE,
            true => {
                let mask = rest
                    .get(1)
                    .ok_or(Fail::Operand("a mask is needed".to_owned()))?;
                self.source(mask, Kind::R32)?
            }
        };
        // The mask follows the cache policy, if there is one.
        let byte_mask = match words.contains(&"cp_mask") {
            false => NONE,
            true => {
                let at = usize::from(words.contains(&"L2::cache_hint"));
                let mask = rest
                    .get(at)
                    .ok_or(Fail::Operand("a mask of bytes is needed".to_owned()))?;
                self.source(mask, Kind::R32)?
            }
        };
        // Bulk copies complete at `mbarrier`s or bulk groups, which order single threads.
        self.program.partial_sync = true;
        let bulk = Bulk {
            to: self.address(d, to)?,
            from: self.address(s, from)?,
            bytes: self.source(size, Kind::R32)?,
            mbarrier,
            multicast,
            reduce,
            byte_mask,
        };
        self.push(Op::Bulk(Box::new(bulk)), Class::Global);
        Ok(())
    }
}
