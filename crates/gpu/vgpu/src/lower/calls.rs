//! Calls: by name, through pointers, and of functions that call themselves.
//!
//! A register is a fixed row and a variable a fixed byte of local memory, so a function that may be
//! entered again before it returns needs more: its caller saves what it has (see `exec::calls`), and its
//! variables are in a frame on a stack.

use std::collections::{HashMap, HashSet};

use super::program::{Call, CallPointer, Function as Target, NONE, Op};
use super::{Fail, Frame, Lower, Lowered};
use crate::counters::Class;
use crate::exec::regs::Kind;
use ptx::ast::{Ast, Function, Init, Instruction, Operand};

/// Address of the first function; each has 16 bytes. No variable is there.
const FUNCTIONS: u64 = 0x7400_0000_0000;

/// Address of the first kernel, as pointers to kernels hold it.
const KERNELS: u64 = 0x7500_0000_0000;

/// The functions of a module that can be called.
#[derive(Debug, Default)]
pub(crate) struct FunctionTable<'a> {
    bodies: HashMap<&'a str, (u64, &'a Function<'a>)>,
    /// Functions whose address is taken somewhere in the module, in the order of the text.
    taken: Vec<&'a Function<'a>>,
    /// Kernels with their addresses.
    kernels: HashMap<&'a str, (u64, &'a Function<'a>)>,
}

impl<'a> FunctionTable<'a> {
    pub(crate) fn new(ast: &'a Ast<'a>) -> FunctionTable<'a> {
        let functions = ast.functions.iter();
        let functions = functions.filter(|f| !f.entry && f.body.is_some());
        let numbered = (0u64..).zip(functions);
        let bodies: HashMap<_, _> = numbered
            .map(|(n, f)| (f.name, (FUNCTIONS + 16 * n, f)))
            .collect();
        let mut names: HashSet<&str> = HashSet::new();
        if !bodies.is_empty() {
            for body in ast.functions.iter().filter_map(|f| f.body.as_ref()) {
                // A direct call names its function without taking the address.
                for i in body.instructions.iter().filter(|i| i.opcode != "call") {
                    names.extend(i.operands.iter().filter_map(named));
                }
                names.extend(
                    body.variables
                        .iter()
                        .flat_map(|v| &v.init)
                        .filter_map(symbol),
                );
            }
            let outside = ast.variables.iter().flat_map(|v| &v.init);
            names.extend(outside.filter_map(symbol));
        }
        let mut taken: Vec<(u64, &Function<'_>)> = bodies
            .values()
            .filter(|(_, f)| names.contains(f.name))
            .copied()
            .collect();
        // The map has a random order, which would decide the numbers of the functions and so the
        // reports.
        taken.sort_unstable_by_key(|(address, _)| *address);
        FunctionTable {
            bodies,
            taken: taken.into_iter().map(|(_, f)| f).collect(),
            kernels: (0u64..)
                .zip(ast.functions.iter().filter(|f| f.entry))
                .map(|(n, f)| (f.name, (KERNELS + 16 * n, f)))
                .collect(),
        }
    }

    /// The address that a pointer to the function or kernel holds.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let found = self.bodies.get(name).or_else(|| self.kernels.get(name));
        found.map(|(address, _)| *address)
    }

    /// Name and bytes of parameters of each kernel, by its address.
    pub(super) fn kernels(&self) -> HashMap<u64, (String, u32)> {
        let bytes = |f: &Function<'_>| {
            f.params.iter().fold(0u64, |end, v| {
                end.next_multiple_of(v.align.max(1).into()) + v.bytes
            }) as u32
        };
        let kernels = self.kernels.values();
        kernels
            .map(|(address, f)| (*address, (f.name.to_owned(), bytes(f))))
            .collect()
    }

    fn body(&self, name: &str) -> Option<&'a Function<'a>> {
        self.bodies.get(name).map(|(_, f)| *f)
    }

    /// The functions that an instruction may call.
    fn callees(&self, f: &'a Function<'a>, i: &'a Instruction<'a>) -> Vec<&'a Function<'a>> {
        match parts(i) {
            Some(Parts {
                callee: Operand::Name(name, 0),
                ..
            }) => self.body(name).into_iter().collect(),
            Some(parts) => self.candidates(f, &parts),
            None => Vec::new(),
        }
    }

    /// The functions whose address is taken and that have parameters of these sizes.
    fn candidates(&self, f: &Function<'a>, parts: &Parts<'_, 'a>) -> Vec<&'a Function<'a>> {
        let sizes = |operands: &[Operand<'_>]| -> Option<Vec<u64>> {
            let body = f.body.as_ref()?;
            let size = |operand: &Operand<'_>| match operand {
                Operand::Variable(index, 0) => body.variables.get(*index as usize).map(|v| v.bytes),
                _ => None,
            };
            operands.iter().map(size).collect()
        };
        let (Some(arguments), Some(results)) = (sizes(parts.arguments), sizes(parts.results))
        else {
            return Vec::new();
        };
        let has = |formal: &[ptx::ast::Variable<'_>], actual: &[u64]| {
            formal.iter().map(|v| v.bytes).eq(actual.iter().copied())
        };
        let all = self.taken.iter().copied();
        all.filter(|g| has(&g.params, &arguments) && has(&g.returns, &results))
            .collect()
    }

    /// The functions that a function may call, itself or through others.
    fn reachable(&self, f: &'a Function<'a>) -> HashSet<&'a str> {
        let mut reached = HashSet::new();
        let mut next = vec![f];
        while let Some(f) = next.pop() {
            let code = f.body.iter().flat_map(|body| &body.instructions);
            for i in code.filter(|i| i.opcode == "call") {
                let new = self.callees(f, i).into_iter();
                next.extend(new.filter(|g| reached.insert(g.name)));
            }
        }
        reached
    }

    /// The entry and all functions that it may call.
    pub(super) fn reached_by(&self, entry: &'a Function<'a>) -> Vec<&'a Function<'a>> {
        let mut names: Vec<&str> = self.reachable(entry).into_iter().collect();
        // A set has a random order, which would decide the place of dynamic shared memory.
        names.sort_unstable();
        let called = names.into_iter().filter_map(|name| self.body(name));
        std::iter::once(entry).chain(called).collect()
    }
}

fn named<'a>(operand: &Operand<'a>) -> Option<&'a str> {
    match operand {
        Operand::Name(name, _) => Some(name),
        _ => None,
    }
}

fn symbol<'a>(init: &Init<'a>) -> Option<&'a str> {
    match init {
        Init::Address { symbol, .. } => Some(symbol),
        _ => None,
    }
}

/// Operands of a call.
struct Parts<'i, 'a> {
    results: &'i [Operand<'a>],
    callee: &'i Operand<'a>,
    arguments: &'i [Operand<'a>],
}

fn parts<'i, 'a>(i: &'i Instruction<'a>) -> Option<Parts<'i, 'a>> {
    let mut operands = i.operands.as_slice();
    let mut results: &[Operand<'a>] = &[];
    if let [Operand::List(list), rest @ ..] = operands {
        (results, operands) = (list, rest);
    }
    let (callee, rest) = operands.split_first()?;
    let arguments = match rest.first() {
        Some(Operand::List(list)) => list.as_slice(),
        _ => &[],
    };
    Some(Parts {
        results,
        callee,
        arguments,
    })
}

impl<'a> Lower<'a> {
    /// Reports whether a call of one function may lead to the other.
    fn reaches(&mut self, from: &'a Function<'a>, to: &str) -> bool {
        let functions = self.globals.functions;
        let reached = self.reached.entry(from.name);
        reached
            .or_insert_with(|| functions.reachable(from))
            .contains(to)
    }

    /// Reports whether a function may be entered again before it returns.
    pub(super) fn is_recursive(&mut self, f: &'a Function<'a>) -> bool {
        self.reaches(f, f.name)
    }

    /// Lowers a call.
    pub(super) fn call(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        let Some(call) = parts(i) else {
            return Err(Fail::Operand("a function is needed".to_owned()));
        };
        let name = match call.callee {
            Operand::Name(name, 0) => *name,
            Operand::Reg(_) => return self.call_pointer(i, &call),
            _ => return Err(Fail::Operand("a function is needed".to_owned())),
        };
        let Some(callee) = self.globals.functions.body(name) else {
            if self.external(name, call.arguments, call.results)? {
                return Ok(());
            }
            let of_runtime = name.starts_with("cuda") || name.starts_with("__cuda");
            let whose = if of_runtime {
                " of the device runtime"
            } else {
                ""
            };
            return Err(Fail::Operand(format!(
                "call of the external function `{name}`{whose}"
            )));
        };
        let frame = self.called(callee);
        let arguments = self.copies(call.arguments, &frame.params, true)?;
        let results = self.copies(call.results, &frame.returns, false)?;
        let saves = self.reaches(callee, self.function.name);
        let call = Call {
            function: frame.number,
            arguments,
            results,
            caller: if saves { self.function.number } else { NONE },
        };
        self.push(Op::Call(Box::new(call)), Class::Control);
        Ok(())
    }

    /// Lowers a call through a pointer: to any function whose address is taken and that has such
    /// parameters.
    fn call_pointer(&mut self, i: &'a Instruction<'a>, call: &Parts<'_, 'a>) -> Lowered<()> {
        let Some(caller) = self.function.definition else {
            return Err(Fail::Unsupported("an indirect call"));
        };
        let mut saves = false;
        for callee in self.globals.functions.callees(caller, i) {
            let number = self.called(callee).number;
            let address = self.globals.functions.address(callee.name).unwrap_or(0);
            self.program.pointed.insert(address, number);
            saves |= self.reaches(callee, caller.name);
        }
        let call = CallPointer {
            address: self.source(call.callee, Kind::R64)?,
            arguments: self.call_variables(call.arguments)?,
            results: self.call_variables(call.results)?,
            caller: if saves { self.function.number } else { NONE },
        };
        self.push(Op::CallPointer(Box::new(call)), Class::Control);
        Ok(())
    }

    /// The parameter frame of a function that is called; it is laid out later.
    fn called(&mut self, f: &'a Function<'a>) -> Frame {
        if let Some(frame) = self.frames.get(f.name) {
            return frame.clone();
        }
        self.pending.push(f);
        self.frame(f)
    }

    /// Returns the parameter frame of a function, created on first use.
    pub(super) fn frame(&mut self, f: &'a Function<'a>) -> Frame {
        if let Some(frame) = self.frames.get(f.name) {
            return frame.clone();
        }
        let first = self.program.param_bytes;
        let mut place = |v: &ptx::ast::Variable<'_>| {
            let at = super::control::bump(&mut self.program.param_bytes, v.bytes as u32, v.align);
            (at, v.bytes as u32)
        };
        let params: Vec<(u32, u32)> = f.params.iter().map(&mut place).collect();
        let returns: Vec<(u32, u32)> = f.returns.iter().map(&mut place).collect();
        let number = self.program.functions.len() as u32;
        let frame_row = match self.is_recursive(f) {
            true => self.row64(),
            false => NONE,
        };
        self.program.functions.push(Target {
            name: f.name.to_owned(),
            params: params.clone(),
            returns: returns.clone(),
            frame_row,
            formals: first..self.program.param_bytes,
            ..Target::default()
        });
        let frame = Frame {
            number,
            params,
            returns,
        };
        self.frames.insert(f.name, frame.clone());
        frame
    }
}
