//! Functions: registers, variables, labels, calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::operand::{VariableStorage, in_device_memory, kind_of};
use super::program::{Data, NONE, Op, PointerSource};
use super::wgmma::Fragments;
use super::{Fail, Form, Lower, Lowered};
use crate::counters::Class;
use crate::exec::regs::Kind;
use crate::exec::stop::Stop;
use crate::module::Unsupported;
use ptx::ast::{Body, Function, Instruction, Operand, Reg, StateSpace, Variable};
use ptx::definedness::MaybeUndefined;
use ptx::pointers::{Pointer, pointers};
use ptx::skeleton::{ADDRESSES, CONTROL, UNUSED, skeleton};
use ptx::stores::{self, Step};
use ptx::structs::Unwritten;
use ptx::used_bits::UsedBits;

/// The function being lowered.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) registers: Vec<Option<(Kind, u32)>>,
    pub(super) variables: Vec<VariableStorage>,
    /// Offset of each parameter, and whether it is a kernel parameter.
    params: HashMap<&'a str, (u32, bool)>,
    labels: HashMap<(u32, &'a str), usize>,
    scopes: Vec<u32>,
    tables: HashMap<&'a str, Vec<&'a str>>,
    entry: bool,
    pub(super) name: &'a str,
    pub(super) definition: Option<&'a Function<'a>>,
    /// Its place in [`super::program::Program::functions`].
    pub(super) number: u32,
    /// Row of the address of its frame, or `NONE`.
    pub(super) frame_row: u32,
    /// Row of the top of the stack at its beginning, if it allocates memory there; else `NONE`.
    pub(super) stack_row: u32,
    /// Parameters of a function whose address is taken: the variables that hold them.
    pub(super) copied: HashMap<&'a str, VariableStorage>,
    /// Addresses of plain loads that synchronise.
    pub(super) relaxed: HashSet<usize>,
    /// Addresses of loads that may read unwritten bytes.
    pub(super) unwritten: HashMap<usize, Unwritten>,
    /// Registers that occur in one operand only: as a load's destination, they are never read.
    pub(super) named_once: HashSet<Reg>,
    /// Bits of registers that the function uses.
    pub(super) used_bits: UsedBits,
    /// Registers of `wgmma`.
    pub(super) fragments: Fragments,
}

impl Scope<'_> {
    pub(super) fn param(&self, name: &str) -> Option<(u32, bool)> {
        self.params.get(name).copied()
    }

    /// Reports whether the function is a kernel.
    pub(super) fn is_entry(&self) -> bool {
        self.entry
    }

    /// Returns the instruction after a label, searched from the innermost scope outwards.
    fn label(&self, scope: u32, name: &str) -> Option<u32> {
        let mut scope = scope;
        loop {
            if let Some(at) = self.labels.get(&(scope, name)) {
                return Some(*at as u32);
            }
            if scope == 0 {
                return None;
            }
            scope = self.scopes[scope as usize];
        }
    }
}

impl<'a> Lower<'a> {
    /// Lowers one function to the end of the code.
    pub(super) fn function(&mut self, f: &'a Function<'a>) -> Result<(), Unsupported> {
        let Some(body) = &f.body else {
            return Err(self.unsupported(
                &format!("call of {}, which has no body", f.name),
                f.line,
                0,
            ));
        };
        let before = self.program.extent();
        self.enter(f, body);
        if f.entry {
            self.note_pointers(body);
        }
        let first = self.program.code.len() as u32;
        self.copy_parameters_in(f);
        self.save_stack(f, body);
        let mut starts = Vec::with_capacity(body.instructions.len() + 1);
        let slices = skeleton(body);
        self.program.by_block |= slices.by_block;
        self.program.by_others |= slices.by_others;
        let steps = self.steps(f)?;
        let undefined = self.find_undefined(body);
        let watching =
            self.watch_registers(&undefined, ptx::definedness::carry_flag(body), f.entry);
        self.function.fragments = Fragments::find(body, self.program.fragments);
        self.program.fragments += self.function.fragments.len();
        for (at, (i, keep)) in body.instructions.iter().zip(&slices.keep).enumerate() {
            // Instructions of the tree and of the code are numbered differently: an operand may
            // need a conversion before the operation.
            let start = self.program.code.len();
            starts.push(start as u32);
            let step = steps.get(at).copied();
            self.now.keep = match step {
                None => *keep,
                Some(Step::Touch) => UNUSED,
                Some(_) => 0,
            };
            self.lower_step(i, step.unwrap_or(Step::Keep))?;
            if undefined.instructions.contains(&at) {
                self.watch(i, start, &watching);
            }
            self.mark_fragments(i, start);
        }
        starts.push(self.program.code.len() as u32);
        self.now.guard = NONE;
        self.now.keep = CONTROL | ADDRESSES;
        // Reaching the end leaves the function, as `ret` does.
        match f.entry {
            true => self.push(Op::Exit, Class::Control),
            false => self.leave(),
        }
        // Branches hold indices of the tree until all positions are known.
        for inst in &mut self.program.code[first as usize..] {
            match &mut inst.op {
                Op::Branch { target, .. } => *target = starts[*target as usize],
                Op::BranchTable { targets, .. } => {
                    *targets = targets.iter().map(|t| starts[*t as usize]).collect();
                }
                _ => {}
            }
        }
        let after = self.program.extent();
        let number = self.function.number;
        if let Some(target) = self.program.functions.get_mut(number as usize) {
            target.start = first;
            target.own = before..after;
        }
        Ok(())
    }

    /// Finds the registers of a function that must be watched.
    fn find_undefined(&mut self, body: &Body<'a>) -> MaybeUndefined {
        // A slice omits instructions that write registers.
        if let Form::Slice(_) = self.form {
            return MaybeUndefined::default();
        }
        let unwritten = &mut self.function.unwritten;
        let is_deferred = |i: &Instruction<'_>| {
            unwritten.get(&std::ptr::from_ref(i).addr()) == Some(&Unwritten::Deferred)
        };
        let code = (0..).zip(&body.instructions);
        let deferred = code.filter(|(_, i)| is_deferred(i)).map(|(at, _)| at);
        let found = ptx::definedness::find_undefined(body, deferred.collect());
        if found.instructions.is_empty() {
            // The flow of values is unknown: the loads read what they find.
            unwritten.retain(|_, may| *may != Unwritten::Deferred);
        }
        found
    }

    /// Lowers one instruction as its slice says.
    fn lower_step(&mut self, i: &'a Instruction<'a>, step: Step) -> Result<(), Unsupported> {
        match step {
            Step::Keep | Step::Touch => self.instruction(i)?,
            Step::Skip => {}
            Step::Goto(to) => {
                self.now.guard = NONE;
                let (target, join) = (to as u32, NONE);
                self.push(Op::Branch { target, join }, Class::Control);
            }
        }
        Ok(())
    }

    /// Returns the steps of the requested slice; empty for the whole function.
    fn steps(&self, f: &'a Function<'a>) -> Result<Vec<Step>, Unsupported> {
        let Form::Slice(roots) = self.form else {
            return Ok(Vec::new());
        };
        stores::slice(self.ast, f, roots).map_err(|refusal| {
            let source = self.source_at(refusal.location);
            Unsupported {
                instruction: refusal.instruction,
                line: refusal.line,
                source_line: source,
            }
        })
    }

    /// Records the pointers from which a kernel computes its addresses.
    fn note_pointers(&mut self, body: &Body<'a>) {
        for (line, pointer) in pointers(body) {
            let place = match pointer {
                Pointer::Parameter(name, bytes) => {
                    let start = self.function.param(name).map(|(start, _)| start);
                    start.map(|start| PointerSource::Parameter(start + bytes as u32))
                }
                Pointer::Variable(name) => {
                    let index = self.globals.index.get(name).copied();
                    index.map(PointerSource::Variable)
                }
            };
            self.program
                .pointers
                .extend(place.map(|place| (line, place)));
        }
    }

    /// Assigns rows to a function's registers. Registers whose live ranges do not overlap share a
    /// row, so that the working set of a warp stays in the host's caches.
    fn rows_of_registers(&mut self, body: &Body<'_>) -> Vec<Option<(Kind, u32)>> {
        let kinds: Vec<Option<Kind>> = body
            .registers
            .iter()
            .map(|ty| ty.and_then(kind_of))
            .collect();
        let places = ptx::regalloc::merge_registers(body, |reg| {
            // Predicates are one word each: sharing gains nothing.
            kinds[reg.0 as usize].filter(|kind| *kind != Kind::P)
        });
        let mut rows = vec![None; kinds.len()];
        let found = kinds.iter().zip(places).map(|(kind, place)| {
            let kind = (*kind)?;
            let row = rows[place.0 as usize].get_or_insert_with(|| self.new_row(kind));
            Some((kind, *row))
        });
        found.collect()
    }

    fn enter(&mut self, f: &'a Function<'a>, body: &'a Body<'a>) {
        let mut scope = Scope {
            entry: f.entry,
            name: f.name,
            definition: Some(f),
            number: NONE,
            frame_row: NONE,
            stack_row: NONE,
            scopes: body.scopes.clone(),
            ..Scope::default()
        };
        let (relaxed, polling) = ptx::intent::relaxed_loads(body);
        self.program.polls |= polling;
        // Instructions are identified by address: lowering sees each one without its index.
        let place = |at: usize| std::ptr::from_ref(&body.instructions[at]).addr();
        scope.relaxed = relaxed.into_iter().map(place).collect();
        let unwritten = ptx::structs::unwritten(body);
        let unwritten = unwritten.into_iter();
        scope.unwritten = unwritten.map(|(at, may)| (place(at), may)).collect();
        scope.named_once = ptx::intent::named_once(body);
        scope.used_bits = UsedBits::find(body);
        scope.registers = self.rows_of_registers(body);
        if f.entry {
            let mut at = 0u32;
            for p in &f.params {
                // Offsets as in the parameter buffer that the driver passes: naturally aligned, in
                // order.
                at = at.next_multiple_of(p.align.max(1));
                scope.params.insert(p.name, (at, true));
                at += p.bytes as u32;
            }
        } else {
            let frame = self.frame(f);
            scope.number = frame.number;
            scope.frame_row = self.program.functions[frame.number as usize].frame_row;
            let formal = f
                .params
                .iter()
                .zip(&frame.params)
                .chain(f.returns.iter().zip(&frame.returns));
            for (p, (at, _)) in formal {
                scope.params.insert(p.name, (*at, false));
            }
        }
        let mut frame_bytes = 0;
        let taken = addressed_parameters(f, body);
        for p in &taken {
            let place = self.place_local(p, scope.frame_row, &mut frame_bytes);
            scope.copied.insert(p.name, place);
        }
        for v in &body.variables {
            let bytes = v.bytes as u32;
            let place = match v.space {
                StateSpace::Shared => VariableStorage::Shared(self.place_shared(v)),
                StateSpace::Local => self.place_local(v, scope.frame_row, &mut frame_bytes),
                StateSpace::Param => {
                    let at = bump(&mut self.program.param_bytes, bytes, v.align);
                    VariableStorage::Param(at, bytes)
                }
                _ if in_device_memory(v.space) => {
                    // Qualified by the function: two functions may have a variable of the same
                    // name.
                    let key = format!("{}::{}", f.name, v.name);
                    VariableStorage::Global(self.globals.index.get(&key).copied().unwrap_or(0))
                }
                _ => VariableStorage::Local(0),
            };
            scope.variables.push(place);
        }
        if let Some(target) = self.program.functions.get_mut(scope.number as usize) {
            target.frame_bytes = frame_bytes.next_multiple_of(16);
        }
        for (s, name, at) in &body.labels {
            scope.labels.insert((*s, name), *at);
        }
        scope.tables = body.tables.iter().cloned().collect();
        self.function = scope;
    }

    /// Places a local variable: in a frame where the function has one.
    fn place_local(
        &mut self,
        v: &Variable<'_>,
        frame_row: u32,
        frame_bytes: &mut u32,
    ) -> VariableStorage {
        let bytes = v.bytes as u32;
        match frame_row {
            NONE => VariableStorage::Local(bump(&mut self.program.local_bytes, bytes, v.align)),
            _ => VariableStorage::Frame(bump(frame_bytes, bytes, v.align)),
        }
    }

    /// Copies the parameters whose address is taken to local memory: that is where PTX has them then.
    fn copy_parameters_in(&mut self, f: &Function<'_>) {
        let mut copies = Vec::new();
        for p in &f.params {
            let from = self.function.param(p.name);
            if let (Some(place), Some((from, _))) = (self.function.copied.get(p.name), from) {
                let to = match place {
                    VariableStorage::Local(to) | VariableStorage::Frame(to) => *to,
                    _ => continue,
                };
                copies.push((from, to, p.bytes as u32));
            }
        }
        if !copies.is_empty() {
            let frame = self.function.frame_row;
            self.now.guard = NONE;
            self.push(Op::CopyIn { frame, copies }, Class::Move);
        }
    }

    /// Lowers `bra`, `brx.idx`, `ret`, `exit`, `trap` and calls.
    pub(super) fn control(&mut self, i: &'a Instruction<'a>) -> Lowered<bool> {
        let op = match i.opcode {
            "bra" => {
                let Some(Operand::Name(label, 0)) = i.operands.first() else {
                    return Err(Fail::Operand("a label is needed".to_owned()));
                };
                Op::Branch {
                    target: self.label(i, label)?,
                    join: NONE,
                }
            }
            "brx" => {
                let [index, Operand::Name(table, 0)] = i.operands.as_slice() else {
                    return Err(Fail::Operand("an index and a table are needed".to_owned()));
                };
                let index = self.source(index, Kind::R32)?;
                let names = self.function.tables.get(table).cloned().unwrap_or_default();
                let targets: Lowered<Vec<u32>> = names.iter().map(|n| self.label(i, n)).collect();
                Op::BranchTable {
                    index,
                    targets: Arc::from(targets?),
                    join: NONE,
                }
            }
            "ret" if self.function.entry => Op::Exit,
            "ret" => {
                self.leave();
                return Ok(true);
            }
            "alloca" | "stacksave" | "stackrestore" => return self.stack(i).map(|()| true),
            "exit" => Op::Exit,
            "trap" => Op::Trap(Stop::Trap),
            "brkpt" => Op::Trap(Stop::Breakpoint),
            "call" => return self.call(i).map(|()| true),
            _ => return Ok(false),
        };
        self.push(op, Class::Control);
        Ok(true)
    }

    fn label(&self, i: &Instruction<'_>, name: &str) -> Lowered<u32> {
        self.function
            .label(i.scope, name)
            .ok_or_else(|| Fail::Operand(format!("label `{name}` is not declared")))
    }

    pub(super) fn copies(
        &mut self,
        actual: &[Operand<'a>],
        formal: &[(u32, u32)],
        inward: bool,
    ) -> Lowered<Vec<(u32, u32, u32)>> {
        if actual.len() != formal.len() {
            return Err(Fail::Operand(format!(
                "{} arguments for {} parameters",
                actual.len(),
                formal.len()
            )));
        }
        let own = self.call_variables(actual)?;
        let pairs = own.into_iter().zip(formal);
        let copies = pairs.map(|((own, own_bytes), (at, bytes))| {
            // The prototype of a call may disagree with the function: a copy must stay inside both
            // variables.
            let bytes = own_bytes.min(*bytes);
            match inward {
                true => (own, *at, bytes),
                false => (*at, own, bytes),
            }
        });
        Ok(copies.collect())
    }

    /// Returns the data rows of a list of registers that all have 32 bits.
    pub(super) fn rows_of(&mut self, operand: &Operand<'a>) -> Lowered<Vec<u32>> {
        let list = match operand {
            Operand::Vector(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        list.iter()
            .map(|o| match o {
                Operand::Reg(_) => match self.data(o)? {
                    Data::R32(row) => Ok(row),
                    _ => Err(Fail::Operand("32-bit registers are needed".to_owned())),
                },
                _ => self.source(o, Kind::R32),
            })
            .collect()
    }
}

/// Returns the parameters of a called function whose address is used as a value.
fn addressed_parameters<'a>(f: &'a Function<'a>, body: &Body<'_>) -> Vec<&'a Variable<'a>> {
    if f.entry {
        return Vec::new();
    }
    let operands = || body.instructions.iter().flat_map(|i| &i.operands);
    let taken = |p: &&Variable<'_>| {
        operands().any(|o| matches!(o, Operand::Name(name, _) if *name == p.name))
    };
    f.params.iter().filter(taken).collect()
}

pub(super) fn bump(total: &mut u32, bytes: u32, align: u32) -> u32 {
    let at = total.next_multiple_of(align.max(1));
    *total = at + bytes;
    at
}
