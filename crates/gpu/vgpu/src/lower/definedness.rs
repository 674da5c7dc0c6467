//! Watches: effects of an instruction on registers that may never have been written.

use super::program::{Inst, NONE, Op, Program};
use super::{Lower, WATCHED};
use crate::counters::Class;
use ptx::ast::{Instruction, Operand, Reg};
use ptx::definedness::{MaybeUndefined, destinations, reads_carry, sets_carry, sources};
use ptx::intent::registers;
use std::collections::HashMap;

/// Number of a watched register in a program; `None` is a register (or constant) that is always
/// defined.
pub(crate) type Watched = Option<u32>;

/// A predicate operand: its watch number, its row, and whether it is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) watched: Watched,
    pub(crate) row: u32,
    pub(crate) negated: bool,
}

/// Fragments of a matrix product: A by rows, B by columns, the accumulator by elements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Product {
    pub(crate) a: Vec<Watched>,
    pub(crate) b: Vec<Watched>,
    pub(crate) c: Vec<Watched>,
    pub(crate) d: Vec<Watched>,
}

/// Rule by which the result of an instruction is undefined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    /// The result is defined: it comes from memory, or there is none.
    Defined,
    /// Undefined where one of these is.
    Any(Vec<u32>),
    /// Undefined where all of these are: the parts of a packed value.
    All(Vec<u32>),
    /// Undefined where the selected value is, or the predicate.
    Select {
        values: [Watched; 2],
        condition: Condition,
    },
    /// `and` (or `or`) of predicates: one false (true) operand decides the result. `compared` are
    /// the operands of the comparison that `setp` combines with the condition.
    Logic {
        and: bool,
        compared: Vec<u32>,
        conditions: Vec<Condition>,
    },
    /// Undefined in all lanes of a group if one lane's source is: votes, `redux`, `match`.
    Group(Vec<u32>),
    /// Undefined where the source of the lane that a shuffle reads is.
    Shuffle(u32),
    /// A product of 8-column fragments.
    Product(Product),
    /// The elements of a store.
    Stored(Vec<Watched>),
    /// The elements of a load that may find unwritten bytes.
    Loaded(Vec<Watched>),
    /// Entry of a function: these of its registers become undefined again.
    Entered(std::ops::Range<u32>),
}

/// A watched instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watch {
    pub(crate) rule: Rule,
    /// Registers that it sets.
    pub(crate) destinations: Vec<u32>,
    /// Guard of an instruction that only computes: where it is undefined, so is the result.
    pub(crate) guard: Watched,
    /// Registers that decide control flow or an access, and the name of the decision.
    pub(crate) deciding: Vec<(u32, &'static str)>,
    /// Lanes whose deciding registers count.
    pub(crate) deciding_lanes: u32,
}

impl Watch {
    fn new(rule: Rule) -> Watch {
        Watch {
            rule,
            destinations: Vec::new(),
            guard: None,
            deciding: Vec::new(),
            deciding_lanes: u32::MAX,
        }
    }
}

/// Watched registers of the function being lowered, by their numbers in the program.
#[derive(Debug, Default)]
pub(super) struct Watching {
    numbers: HashMap<Reg, u32>,
    carry: Watched,
}

impl Watching {
    fn number(&self, reg: Reg) -> Watched {
        self.numbers.get(&reg).copied()
    }

    fn operand(&self, operand: &Operand<'_>) -> Watched {
        match operand {
            Operand::Reg(reg) | Operand::Not(reg) => self.number(*reg),
            _ => None,
        }
    }

    /// Returns the numbers of the watched registers among some operands.
    fn list_numbers(&self, operands: &[Operand<'_>]) -> Vec<u32> {
        let mut named = Vec::new();
        operands.iter().for_each(|o| registers(o, &mut named));
        named.iter().filter_map(|reg| self.number(*reg)).collect()
    }

    /// Returns one number for each element of a vector operand.
    fn elements(&self, operand: Option<&Operand<'_>>) -> Vec<Watched> {
        match operand {
            Some(Operand::Vector(list)) => list.iter().map(|o| self.operand(o)).collect(),
            Some(single) => vec![self.operand(single)],
            None => Vec::new(),
        }
    }
}

impl<'a> Lower<'a> {
    /// Begins to watch the registers of a function. In a called function they become undefined at
    /// each call.
    pub(super) fn watch_registers(
        &mut self,
        found: &MaybeUndefined,
        carry: Reg,
        entry: bool,
    ) -> Watching {
        let first = self.program.watched;
        let count = found.registers.len() as u32;
        self.program.watched += count;
        if entry {
            self.program.undefined_at_entry = found.at_entry;
        }
        if !entry && count > 0 {
            // A no-op at the entry carries the watch, since the first instruction may have one
            // already.
            self.now.guard = NONE;
            self.push(Op::Nop, Class::Control);
            let watch = Watch::new(Rule::Entered(first..first + found.at_entry));
            self.program.watch(self.program.code.len() - 1, watch);
        }
        let numbers = found.registers.iter().map(|(reg, n)| (*reg, first + n));
        let numbers: HashMap<Reg, u32> = numbers.collect();
        Watching {
            carry: numbers.get(&carry).copied(),
            numbers,
        }
    }

    /// Watches an instruction that was lowered to the code from `first` on.
    pub(super) fn watch(&mut self, i: &Instruction<'a>, first: usize, watching: &Watching) {
        let code = &self.program.code;
        // Conversions of operands surround the operation itself.
        let plain = |inst: &Inst| matches!(inst.op, Op::Alu(..) | Op::Shadowed(_));
        let main = (first..code.len()).find(|at| !plain(&code[*at]));
        let Some(at) = main.or_else(|| (first < code.len()).then_some(first)) else {
            return;
        };
        let mut watch = Watch::new(self.rule(i, watching));
        let set = destinations(i);
        watch.destinations = set.iter().filter_map(|r| watching.number(*r)).collect();
        let carry = watching.carry.filter(|_| sets_carry(i));
        watch.destinations.extend(carry);
        let guard = i.guard.and_then(|(reg, _)| watching.number(reg));
        let deciding = deciding(i, watching);
        // An undefined guard of an instruction that only computes makes its result undefined.
        match (guard, deciding) {
            (guard, None) => watch.guard = guard,
            (guard, Some(more)) => {
                watch.deciding = more;
                watch.deciding.extend(guard.map(|g| (g, "a branch")));
            }
        }
        // Only the first lanes hold addresses: eight per matrix.
        if let Op::LdMatrix { count, .. } | Op::StMatrix { count, .. } = &self.program.code[at].op {
            watch.deciding_lanes = u32::MAX >> (32 - 8 * u32::from(*count)).min(31);
        }
        self.program.watch(at, watch);
    }

    fn condition(&self, operand: &Operand<'a>, watching: &Watching) -> Option<Condition> {
        let (reg, negated) = match operand {
            Operand::Reg(reg) => (*reg, false),
            Operand::Not(reg) => (*reg, true),
            _ => return None,
        };
        Some(Condition {
            watched: watching.number(reg),
            row: self.pred_row(reg).ok()?,
            negated,
        })
    }

    fn rule(&self, i: &Instruction<'a>, watching: &Watching) -> Rule {
        let read = sources(i);
        let any = || Rule::Any(watching.list_numbers(read));
        let has = |word: &str| i.modifiers.contains(&word);
        match i.opcode {
            "st" if !has("param") && !has("bulk") => {
                Rule::Stored(watching.elements(i.operands.get(1)))
            }
            "ld" | "ldu" if !has("param") => {
                let elements = watching.elements(i.operands.first());
                match elements.iter().any(Option::is_some) {
                    true => Rule::Loaded(elements),
                    false => Rule::Defined,
                }
            }
            "ld" | "ldu" | "atom" | "ldmatrix" | "activemask" | "elect" | "mbarrier" | "st"
            | "bar" | "barrier" | "wgmma" | "tcgen05" => Rule::Defined,
            "wmma" if !has("mma") => Rule::Defined,
            "shfl" => match read.first().and_then(|a| watching.operand(a)) {
                Some(source) => Rule::Shuffle(source),
                None => Rule::Defined,
            },
            "vote" | "redux" | "match" => {
                Rule::Group(watching.list_numbers(read.get(..1).unwrap_or(read)))
            }
            "movmatrix" => Rule::Group(watching.list_numbers(read)),
            "mma" => {
                let [a, b, c] = [0, 1, 2].map(|n| watching.elements(read.get(n)));
                let d = watching.elements(i.operands.first());
                Rule::Product(Product { a, b, c, d })
            }
            "selp" => match read {
                [a, b, p] => self.condition(p, watching).map_or_else(any, |condition| {
                    let values = [watching.operand(a), watching.operand(b)];
                    Rule::Select { values, condition }
                }),
                _ => any(),
            },
            "and" | "or" if has("pred") => self.logic(i.opcode == "and", &[], read, watching),
            "setp" if (has("and") || has("or")) && read.len() == 3 => {
                self.logic(has("and"), &read[..2], &read[2..], watching)
            }
            "prmt" | "bfi" | "shf" => packed(read, watching),
            "mov" if matches!(read, [Operand::Vector(_)]) => packed(read, watching),
            // Random bits decide all parts of a result.
            "cvt" if read.len() > 1 && !has("rs") => packed(read, watching),
            _ if reads_carry(i) => {
                let mut read = watching.list_numbers(read);
                read.extend(watching.carry);
                Rule::Any(read)
            }
            _ => any(),
        }
    }

    fn logic(
        &self,
        and: bool,
        compared: &[Operand<'a>],
        conditions: &[Operand<'a>],
        watching: &Watching,
    ) -> Rule {
        let conditions = conditions.iter();
        Rule::Logic {
            and,
            compared: watching.list_numbers(compared),
            conditions: conditions
                .filter_map(|o| self.condition(o, watching))
                .collect(),
        }
    }
}

/// Returns the rule of a value packed from several registers: undefined only if all of them are,
/// because a part may be unused padding.
fn packed(read: &[Operand<'_>], watching: &Watching) -> Rule {
    let mut named = Vec::new();
    read.iter().for_each(|o| registers(o, &mut named));
    let numbers: Option<Vec<u32>> = named.iter().map(|reg| watching.number(*reg)).collect();
    numbers.map_or(Rule::Defined, Rule::All)
}

/// Returns the registers that decide the control flow or the accesses of threads; `None` for an
/// instruction that only computes.
fn deciding(i: &Instruction<'_>, watching: &Watching) -> Option<Vec<(u32, &'static str)>> {
    let has = |word: &str| i.modifiers.contains(&word);
    let addresses = || {
        let mut named = Vec::new();
        let bases = i.operands.iter();
        let bases = bases.filter(|o| matches!(o, Operand::Address(..)));
        bases.for_each(|o| registers(o, &mut named));
        let numbers = named.iter().filter_map(|reg| watching.number(*reg));
        numbers.map(|n| (n, "an address")).collect::<Vec<_>>()
    };
    let values = |operands: &[Operand<'_>], what| {
        let numbers = watching.list_numbers(operands).into_iter();
        numbers.map(|n| (n, what)).collect::<Vec<_>>()
    };
    let with_values = |operands, what| {
        let mut all = addresses();
        all.extend(values(operands, what));
        all
    };
    Some(match i.opcode {
        "ld" | "ldu" | "st" if has("param") => return None,
        "alloca" => values(sources(i), "a number of bytes"),
        "stackrestore" => values(sources(i), "an address"),
        "st" if has("bulk") => with_values(i.operands.get(1..)?, "a number of bytes"),
        "ld" | "ldu" | "st" | "ldmatrix" | "stmatrix" => addresses(),
        "atom" => with_values(i.operands.get(2..)?, "a stored value"),
        "red" => with_values(i.operands.get(1..)?, "a stored value"),
        "wmma" if has("store") => with_values(i.operands.get(1..)?, "a stored value"),
        "wmma" if has("load") => addresses(),
        "cp" => with_values(sources(i), "a copy"),
        "mbarrier" => with_values(sources(i), "a barrier"),
        "bar" | "barrier" => values(sources(i), "a barrier"),
        "bra" | "brx" | "ret" | "exit" | "trap" | "call" | "membar" | "fence" => {
            values(&i.operands, "a branch")
        }
        // Their values decide nothing, but their guard does: it decides which lanes take part.
        "shfl" | "vote" | "redux" | "match" | "elect" => Vec::new(),
        _ => return None,
    })
}

impl Program {
    fn watch(&mut self, at: usize, watch: Watch) {
        self.code[at].marks |= WATCHED;
        self.watches.insert(at as u32, watch);
    }
}
