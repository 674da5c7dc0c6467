//! Plain loads that take part in synchronisation, found by the use of their value.
//!
//! Two idioms of CUDA code are outside the letter of the memory model. A thread polls a `volatile`
//! flag in a loop: flags were written this way before `cuda::atomic`, and the ISA performs volatile
//! operations as relaxed ones. The loop around an `atomicCAS` starts with a plain load of the same
//! word, as in the programming guide: a stale value only costs an iteration. All other volatile
//! accesses are data: volatile is not a fence, and warps do not run in lockstep.

use std::collections::{HashMap, HashSet};

use crate::ast::{Body, Instruction, Operand, Reg};

/// Returns the indices of the loads in `body` that count as relaxed, and whether any of them polls.
pub fn relaxed_loads<'a>(body: &'a Body<'a>) -> (HashSet<usize>, bool) {
    let code = &body.instructions;
    let volatile = |i: &&Instruction<'_>| i.opcode == "ld" && i.modifiers.contains(&"volatile");
    let mut found = HashSet::new();
    // Only volatile loads need the loop analysis.
    if code.iter().any(|i| volatile(&i)) {
        let loops = Loops::from_body(body);
        found.extend(loops.polls());
    }
    let polling = !found.is_empty();
    found.extend(seeds(code));
    (found, polling)
}

/// Returns registers that occur once in a function, in a vector load or as the result of an atomic:
/// their values are unused.
pub fn named_once(body: &Body<'_>) -> HashSet<Reg> {
    let vector = |o: Option<&Operand<'_>>| matches!(o, Some(Operand::Vector(_)));
    let loads = body.instructions.iter();
    if !loads
        .clone()
        .any(|i| i.opcode == "atom" || i.opcode == "ld" && vector(i.operands.first()))
    {
        return HashSet::new();
    }
    let mut times: HashMap<Reg, u32> = HashMap::new();
    let mut named = Vec::new();
    for i in loads {
        i.operands.iter().for_each(|o| registers(o, &mut named));
        named.extend(i.guard.map(|(p, _)| p));
        named
            .drain(..)
            .for_each(|r| *times.entry(r).or_default() += 1);
    }
    times.retain(|_, n| *n == 1);
    times.into_keys().collect()
}

/// Address of a memory operand: its base, traced back through copies, and its offset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum MemoryAddress<'a> {
    Register(Reg, i64),
    Variable(u32, i64),
    Name(&'a str, i64),
}

impl MemoryAddress<'_> {
    /// Returns the bytes between two addresses with the same base.
    pub(crate) fn distance(&self, other: &MemoryAddress<'_>) -> Option<u64> {
        match (self, other) {
            (MemoryAddress::Register(a, x), MemoryAddress::Register(b, y)) if a == b => {
                Some(x.abs_diff(*y))
            }
            (MemoryAddress::Variable(a, x), MemoryAddress::Variable(b, y)) if a == b => {
                Some(x.abs_diff(*y))
            }
            (MemoryAddress::Name(a, x), MemoryAddress::Name(b, y)) if a == b => {
                Some(x.abs_diff(*y))
            }
            _ => None,
        }
    }
}

/// Registers that are set once, by a copy of another register or of a variable's address.
pub(crate) struct Copies<'a>(HashMap<Reg, &'a Operand<'a>>);

impl<'a> Copies<'a> {
    pub(crate) fn from_code(code: &'a [Instruction<'a>]) -> Copies<'a> {
        let mut sets: HashMap<Reg, usize> = HashMap::new();
        let mut from = HashMap::new();
        for i in code {
            for d in destinations(i) {
                *sets.entry(d).or_default() += 1;
            }
            if let ("mov" | "cvta", [Operand::Reg(d), source]) = (i.opcode, &i.operands[..]) {
                from.insert(*d, source);
            }
        }
        // A register that is set again equals its source in a part of the code only.
        from.retain(|d, _| sets.get(d) == Some(&1));
        Copies(from)
    }

    pub(crate) fn resolve_address(&self, operand: &Operand<'a>) -> Option<MemoryAddress<'a>> {
        let (mut base, offset) = match operand {
            Operand::Address(base, offset) => (&**base, *offset),
            other => (other, 0),
        };
        // A chain has at most as many links as the map; the bound ends cyclic copies.
        for _ in 0..=self.0.len() {
            match base {
                Operand::Reg(r) if self.0.contains_key(r) => base = self.0[r],
                _ => break,
            }
        }
        match base {
            Operand::Reg(r) => Some(MemoryAddress::Register(*r, offset)),
            Operand::Variable(v, more) => Some(MemoryAddress::Variable(*v, offset + more)),
            Operand::Name(n, more) => Some(MemoryAddress::Name(n, offset + more)),
            _ => None,
        }
    }
}

/// Returns plain loads whose value reaches, through copies, the comparand of an `atom.cas` on their
/// word.
fn seeds<'a>(code: &'a [Instruction<'a>]) -> Vec<usize> {
    let cas: Vec<&Instruction<'a>> = code
        .iter()
        .filter(|i| i.opcode == "atom" && i.modifiers.contains(&"cas"))
        .collect();
    if cas.is_empty() {
        return Vec::new();
    }
    let copies = Copies::from_code(code);
    let plain = |i: &Instruction<'_>| i.opcode == "ld" && !i.modifiers.contains(&"param");
    let mut found = Vec::new();
    for (at, load) in code.iter().enumerate().filter(|(_, i)| plain(i)) {
        let Some(spot) = load.operands.get(1).and_then(|o| copies.resolve_address(o)) else {
            continue;
        };
        let here = |c: &&&'a Instruction<'a>| {
            c.operands
                .get(1)
                .and_then(|o| copies.resolve_address(o))
                .as_ref()
                == Some(&spot)
        };
        let Some(same) = cas.iter().find(here) else {
            continue;
        };
        let value = reached(code, destinations(load), |i| i.opcode == "mov");
        if matches!(same.operands.get(2), Some(Operand::Reg(r)) if value.contains(r)) {
            found.push(at);
        }
    }
    found
}

/// Returns the registers that the value of `from` reaches through instructions that `through`
/// accepts.
fn reached<'a>(
    code: impl IntoIterator<Item = &'a Instruction<'a>> + Clone,
    from: Vec<Reg>,
    through: impl Fn(&Instruction<'_>) -> bool,
) -> HashSet<Reg> {
    let mut reached: HashSet<Reg> = from.into_iter().collect();
    loop {
        let before = reached.len();
        for i in code.clone() {
            if through(i) && sources(i).iter().any(|r| reached.contains(r)) {
                reached.extend(destinations(i));
            }
        }
        if reached.len() == before {
            return reached;
        }
    }
}

pub(crate) fn destinations(i: &Instruction<'_>) -> Vec<Reg> {
    let mut out = Vec::new();
    if !matches!(
        i.opcode,
        "st" | "red" | "bra" | "bar" | "barrier" | "call" | "ret" | "exit" | "stackrestore"
    ) && let Some(first) = i.operands.first()
    {
        registers(first, &mut out);
    }
    out
}

fn sources(i: &Instruction<'_>) -> Vec<Reg> {
    let mut out = Vec::new();
    i.operands
        .iter()
        .skip(1)
        .for_each(|o| registers(o, &mut out));
    out.extend(i.guard.map(|(p, _)| p));
    out
}

/// Adds the registers that an operand names, in their order.
pub fn registers(operand: &Operand<'_>, out: &mut Vec<Reg>) {
    match operand {
        Operand::Reg(r) | Operand::Not(r) => out.push(*r),
        Operand::Address(base, _) => registers(base, out),
        Operand::Vector(list) | Operand::List(list) => {
            list.iter().for_each(|o| registers(o, out));
        }
        Operand::Pair(a, b) => {
            registers(a, out);
            registers(b, out);
        }
        _ => {}
    }
}

/// Returns a look-up of a label's position from a scope.
pub(crate) fn labels<'a>(body: &'a Body<'a>) -> impl Fn(u32, &str) -> Option<usize> + 'a {
    let at = body.labels.iter();
    let labels: HashMap<(u32, &str), usize> =
        at.map(|(scope, name, at)| ((*scope, *name), *at)).collect();
    move |mut scope, name| {
        loop {
            match labels.get(&(scope, name)) {
                Some(at) => return Some(*at),
                None if scope == 0 => return None,
                None => scope = *body.scopes.get(scope as usize)?,
            }
        }
    }
}

/// The loops of a function, as ranges of instructions that a backward branch closes.
struct Loops<'a> {
    code: &'a [Instruction<'a>],
    /// Target of each branch.
    targets: HashMap<usize, usize>,
}

impl<'a> Loops<'a> {
    fn from_body(body: &'a Body<'a>) -> Loops<'a> {
        let resolve = labels(body);
        let target = |(at, i): (usize, &Instruction<'_>)| match i.operands.first() {
            Some(Operand::Name(name, 0)) if i.opcode == "bra" => {
                resolve(i.scope, name).map(|to| (at, to))
            }
            _ => None,
        };
        let targets = body
            .instructions
            .iter()
            .enumerate()
            .filter_map(target)
            .collect();
        Loops {
            code: &body.instructions,
            targets,
        }
    }

    /// Returns volatile loads in a loop whose exit depends on them, and further loads of the same
    /// words (the first iteration is often laid out before the loop).
    fn polls(&self) -> HashSet<usize> {
        let volatile = |i: &Instruction<'_>| i.opcode == "ld" && i.modifiers.contains(&"volatile");
        let mut found = HashSet::new();
        for (&end, &start) in self.targets.iter().filter(|(at, to)| to <= at) {
            let range = &self.code[start..=end];
            for (at, load) in range.iter().enumerate().filter(|(_, i)| volatile(i)) {
                let value = reached(range, destinations(load), |_| true);
                if self.leaves(start, end, &value) {
                    found.insert(start + at);
                }
            }
        }
        if found.is_empty() {
            return found;
        }
        let copies = Copies::from_code(self.code);
        let spot = |at: usize| {
            self.code[at]
                .operands
                .get(1)
                .and_then(|o| copies.resolve_address(o))
        };
        let spots: HashSet<_> = found.iter().filter_map(|at| spot(*at)).collect();
        let same =
            |at: &usize| volatile(&self.code[*at]) && spot(*at).is_some_and(|s| spots.contains(&s));
        found.extend((0..self.code.len()).filter(same));
        found
    }

    /// Reports whether one of these registers guards a branch out of the loop `start..=end`, or the
    /// one that closes it.
    fn leaves(&self, start: usize, end: usize, value: &HashSet<Reg>) -> bool {
        (start..=end).any(|at| {
            let Some((guard, _)) = self.code[at].guard else {
                return false;
            };
            let Some(&to) = self.targets.get(&at) else {
                return false;
            };
            value.contains(&guard) && (at == end || !(start..=end).contains(&to))
        })
    }
}

#[cfg(test)]
mod tests;
