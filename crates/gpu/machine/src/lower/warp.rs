//! Warp-level exchange and control flow.

use sass::{Instruction, Operand, ZERO};

use super::{Form, Run};
use crate::op::{Barrier, Control, Op};
use crate::registers::{Dest, Origin, Pred, Registers, Source};
use gpu_arithmetic::{Lanes as Row, single};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "SHFL" => shuffle(i),
        "VOTE" | "VOTEU" => vote(i),
        "MATCH" => matching(i),
        "REDUX" | "CREDUX" => reduce(i),
        "ELECT" => elect(i),
        "USETMAXREG" => set_registers(i),
        _ => None,
    }
}

/// Returns the lanes of a mask, ascending.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

fn shuffle(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let out = form.out(0);
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let mode = *i.modifiers.first()?;
    if !matches!(mode, "IDX" | "UP" | "DOWN" | "BFLY") {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (r.int(&a), r.int(&b), r.int(&c));
        let mut row = a;
        let mut within = 0u32;
        for lane in 0..32u32 {
            let l = lane as usize;
            // As in `c` of `shfl.sync`: the clamp is in bits 0 to 4, the segment mask in bits 8 to
            // 12.
            let (amount, segment, clamp) = (b[l] & 31, c[l] >> 8 & 31, c[l] & 31);
            let last = lane & segment | clamp & !segment;
            let first = lane & segment;
            let (from, inside) = match mode {
                "IDX" => {
                    let from = first | amount & !segment;
                    (from, from <= last)
                }
                "UP" => {
                    let from = lane.wrapping_sub(amount);
                    (from, from as i32 >= last as i32)
                }
                "DOWN" => {
                    let from = lane + amount;
                    (from, from <= last)
                }
                _ => {
                    let from = lane ^ amount;
                    (from, from <= last)
                }
            };
            if inside {
                row[l] = a[(from & 31) as usize];
                within |= 1 << lane;
            }
        }
        r.set(d, mask, &row);
        r.set_truth(out, mask, within);
    }))
}

fn vote(i: &Instruction) -> Option<Run> {
    let mut d = None;
    let mut truths = Vec::new();
    for operand in &i.operands {
        match operand {
            Operand::Register(_) => d = Dest::from_operand(operand),
            Operand::Predicate(p) => truths.push(Pred::predicate(p)),
            _ => return None,
        }
    }
    let &[ref outs @ .., asked] = truths.as_slice() else {
        return None;
    };
    let out = outs.first().copied().unwrap_or(Pred::ALWAYS);
    let mode = *i.modifiers.first()?;
    if !matches!(mode, "ALL" | "ANY" | "EQ") {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let votes = r.truth(asked) & mask;
        let truth = match mode {
            "ALL" => votes == mask,
            "ANY" => votes != 0,
            _ => votes == mask || votes == 0,
        };
        if let Some(d) = d {
            r.set(d, mask, &[votes; 32]);
        }
        r.set_truth(out, mask, if truth { u32::MAX } else { 0 });
    }))
}

fn matching(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, a) = (form.dest?, form.source(0)?);
    let (all, wide) = (i.has("ALL"), i.has("U64"));
    let out = form.out(0);
    if !all && !i.has("ANY") {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let values = match wide {
            true => r.wide(&a),
            false => r.int(&a).map(u64::from),
        };
        let same = |lane: usize| -> u32 {
            lanes(mask)
                .filter(|l| values[*l] == values[lane])
                .map(|l| 1 << l)
                .sum()
        };
        let mut row: Row = [0; 32];
        let mut agreed = 0;
        for lane in lanes(mask) {
            let with = same(lane);
            if !all || with == mask {
                row[lane] = with;
                agreed |= 1 << lane;
            }
        }
        r.set(d, mask, &row);
        r.set_truth(out, mask, agreed);
    }))
}

fn reduce(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, a) = (form.dest?, form.source(0)?);
    let signed = i.has("S32");
    let kind = i
        .modifiers
        .iter()
        .copied()
        .find(|m| !matches!(*m, "S32" | "F32" | "NAN"))
        .unwrap_or("AND");
    if i.has("F32") {
        return reduce_floats(d, a, kind, i.has("NAN"));
    }
    let f: fn(u32, u32) -> u32 = match (kind, signed) {
        ("SUM", _) => u32::wrapping_add,
        ("AND", _) => |a, b| a & b,
        ("OR", _) => |a, b| a | b,
        ("XOR", _) => |a, b| a ^ b,
        ("MIN", true) => |a, b| (a as i32).min(b as i32) as u32,
        ("MAX", true) => |a, b| (a as i32).max(b as i32) as u32,
        ("MIN", false) => u32::min,
        ("MAX", false) => u32::max,
        _ => return None,
    };
    Some(Box::new(move |r, mask| {
        let a = r.int(&a);
        if let Some(value) = lanes(mask).map(|l| a[l]).reduce(f) {
            r.set(d, mask, &[value; 32]);
        }
    }))
}

/// Lowers the minimum or maximum of the floats of a warp, or of their absolute values.
fn reduce_floats(d: Dest, a: Source, kind: &str, nan: bool) -> Option<Run> {
    let max = match kind {
        "MIN" | "MINABS" => false,
        "MAX" | "MAXABS" => true,
        _ => return None,
    };
    let sign = if kind.ends_with("ABS") {
        u32::MAX >> 1
    } else {
        u32::MAX
    };
    Some(Box::new(move |r, mask| {
        let a = r.float(&a).map(|bits| f32::from_bits(bits & sign));
        let values = lanes(mask).map(|l| a[l]);
        if let Some(value) = values.reduce(|a, b| single::extreme(a, b, max, nan)) {
            r.set(d, mask, &[value.to_bits(); 32]);
        }
    }))
}

/// Lowers the election of the first active lane.
fn elect(i: &Instruction) -> Option<Run> {
    let out = Pred::from_operand(i.operands.first()?)?;
    let d = Dest::from_operand(i.operands.get(1)?)?;
    Some(Box::new(move |r: &mut Registers, mask| {
        let first = mask & mask.wrapping_neg();
        r.set(d, mask, &[mask.trailing_zeros(); 32]);
        r.set_truth(out, mask, first);
    }))
}

/// Lowers a change of a warp's number of registers. Each has all of them here, so a request
/// succeeds at once; whether those of the block suffice is a matter of the PTX.
fn set_registers(i: &Instruction) -> Option<Run> {
    let Some(granted) = i.operands.first().and_then(Pred::from_operand) else {
        return Some(Box::new(|_, _| {}));
    };
    Some(Box::new(move |r: &mut Registers, mask| {
        r.set_truth(granted, mask, u32::MAX);
    }))
}

/// Returns the instruction index of an address; instructions have 16 bytes.
fn target(i: &Instruction) -> Option<u32> {
    i.operands.iter().find_map(|operand| match operand {
        Operand::Target(address) => u32::try_from(address / 16).ok(),
        _ => None,
    })
}

/// Returns the operand predicate on which a jump is taken.
fn condition(i: &Instruction) -> Pred {
    i.operands
        .iter()
        .find_map(Pred::from_operand)
        .unwrap_or(Pred::ALWAYS)
}

/// Returns a mask operand; all lanes if it is absent or `~URZ`.
fn lanes_named(i: &Instruction) -> Option<Source> {
    let all = Source::value(u64::from(u32::MAX));
    let found = i
        .operands
        .iter()
        .find(|o| matches!(o, Operand::Register(_) | Operand::Immediate(_)));
    Some(match found {
        None => all,
        Some(Operand::Register(r)) if r.index == ZERO && r.invert => all,
        Some(operand) => Source::from_operand(operand)?,
    })
}

pub(super) fn control(i: &Instruction) -> Option<Op> {
    let control = match i.opcode {
        "BRA" => branch(i)?,
        "CALL" if i.has("ABS") => Control::Call(called(i)?),
        // Functions of the kernel return through a register, so a direct call is a branch.
        "CALL" if !i.operands.iter().any(|o| matches!(o, Operand::Register(_))) => {
            Control::Branch(target(i)?, condition(i))
        }
        "CALL" => indirect(i)?,
        "BPT" if i.has("TRAP") => Control::Trap,
        "BRX" | "RET" | "JMX" | "BRXU" => indirect(i)?,
        "EXIT" => Control::Exit,
        "BSSY" => Control::Join(convergence(i)?),
        "BSYNC" => Control::Sync(convergence(i)?),
        "BREAK" => Control::Break(convergence(i)?, condition(i)),
        "WARPSYNC" if i.has("ALL") => Control::Members(None),
        "WARPSYNC" => Control::Members(Some(lanes_named(i)?)),
        // A kernel sleeps where it waits for another thread, which may be one of this warp.
        "YIELD" | "NANOSLEEP" => Control::Yield,
        "BAR" => Control::Barrier(Box::new(barrier(i)?)),
        "UCGABAR_ARV" => Control::ClusterArrive,
        "UCGABAR_WAIT" => Control::ClusterWait,
        _ => return nothing(i),
    };
    Some(Op::Control(control))
}

/// Lowers instructions without effect here: memory is in order, and copies complete at once.
fn nothing(i: &Instruction) -> Option<Op> {
    // The proxies see one memory, which is in order.
    if i.opcode == "FENCE" {
        return i.has("ASYNC").then_some(Op::Nothing);
    }
    let idle = matches!(
        i.opcode,
        "NOP"
            | "DEPBAR"
            | "MEMBAR"
            | "ERRBAR"
            | "CGAERRBAR"
            | "CCTL"
            | "CCTLL"
            | "LDGDEPBAR"
            | "UTMACMDFLUSH"
            | "ENDCOLLECTIVE"
            | "PMTRIG"
            | "CCTLT"
            | "UBLKPF"
            // A tensor map is read anew for each copy.
            | "UTMACCTL"
            | "UTMAPF"
            | "ACQBULK"
            | "PREEXIT"
            | "DEPBAR.LE"
    );
    idle.then_some(Op::Nothing)
}

fn branch(i: &Instruction) -> Option<Control> {
    let to = target(i)?;
    Some(match () {
        () if i.has("DIV") => Control::Diverged(to, lanes_named(i)?),
        () if i.has("CONV") => Control::Converged(to, lanes_named(i)?),
        () if i.has("ANY") => Control::BranchAny(to, condition(i)),
        () => Control::Branch(to, condition(i)),
    })
}

/// Returns the origin of the address of a function.
fn called(i: &Instruction) -> Option<Origin> {
    let mut sources = i.operands.iter();
    sources.find_map(|operand| match operand {
        Operand::Register(_) => Some(Source::from_operand(operand)?.from),
        Operand::Immediate(address) => Some(Origin::Value(*address as u64)),
        _ => None,
    })
}

/// Lowers a jump to a register's value plus an offset.
fn indirect(i: &Instruction) -> Option<Control> {
    let mut base = 0i64;
    let mut from = None;
    for operand in &i.operands {
        match operand {
            Operand::Register(_) => from = Some(Source::from_operand(operand)?.from),
            Operand::Target(address) => base = *address as i64,
            Operand::Immediate(offset) if i.has("ABS") => base = *offset,
            // The offset counts from the next instruction.
            Operand::Immediate(offset) => base = i64::from(i.address) + 16 + offset,
            _ => {}
        }
    }
    Some(Control::Indirect(from?, base))
}

fn convergence(i: &Instruction) -> Option<u8> {
    i.operands.iter().find_map(|operand| match operand {
        Operand::Barrier(index) => Some(index & 15),
        _ => None,
    })
}

fn barrier(i: &Instruction) -> Option<Barrier> {
    let mut numbers = Vec::new();
    let mut registers = Vec::new();
    let mut asked = None;
    for operand in &i.operands {
        if let Operand::Register(register) = operand {
            registers.push(register.index);
        }
        match operand {
            Operand::Predicate(p) => asked = Some(Pred::predicate(p)),
            _ => numbers.push(Source::from_operand(operand)?),
        }
    }
    // This form names no barrier.
    if i.has("SYNCALL") {
        numbers = vec![Source::value(0)];
    }
    let reduction = match () {
        () if i.has("POPC") => Some(0),
        () if i.has("AND") => Some(1),
        () if i.has("OR") => Some(2),
        () => None,
    };
    Some(Barrier {
        index: *numbers.first()?,
        threads: numbers.get(1).copied(),
        // The form with a register for both has the barrier in its low half and the threads in its
        // high half, as ptxas' code before each such instruction shows.
        packed: matches!(registers[..], [index, threads] if index == threads),
        waits: !i.has("ARV"),
        reduction: reduction.zip(asked),
    })
}
