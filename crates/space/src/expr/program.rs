//! Straight-line code over registers: the bytecode of all evaluation.
#![expect(
    clippy::indexing_slicing,
    reason = "registers are numbered by the compiler of the same program, which gives each operand a place first"
)]

use super::op::Op;
use super::ops::apply;
use super::terms::{Term, TermId, Terms};
use super::val::Val;
use std::collections::{HashMap, HashSet};

/// One instruction: applies `op` to registers and writes another.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) args: Box<[u32]>,
    pub(crate) dst: u32,
}

/// Straight-line code. Registers hold the inputs, then constants, then results.
#[derive(Debug, Clone)]
pub struct Program {
    registers: Vec<Val>,
    pub(crate) steps: Vec<Step>,
    /// Number of steps at the end of each phase.
    pub(crate) ends: Vec<usize>,
    /// Register of each requested term, phase after phase.
    pub(crate) outputs: Vec<u32>,
    /// For programs over a configuration: the parameter of each input register.
    pub(crate) vars: Vec<u32>,
}

/// Operands that compute a flattened sum or product from an input that contains part of it.
pub(crate) type Splits = HashMap<TermId, Vec<TermId>>;

impl Program {
    /// Compiles the terms of `phases` with `inputs` in the first registers. Each phase computes only
    /// results that earlier phases have not. `splits` replaces the operands of a sum or product.
    pub(crate) fn compile(
        terms: &Terms,
        phases: &[&[TermId]],
        inputs: &[TermId],
        splits: &Splits,
    ) -> Self {
        let mut program = Self {
            registers: vec![Val::Unset; inputs.len()],
            steps: Vec::new(),
            ends: Vec::new(),
            outputs: Vec::new(),
            vars: Vec::new(),
        };
        let mut place: HashMap<TermId, u32> = inputs
            .iter()
            .enumerate()
            .map(|(at, input)| (*input, at as u32))
            .collect();
        for roots in phases {
            program.phase(terms, roots, splits, &mut place);
            program.ends.push(program.steps.len());
            let outputs = roots.iter().map(|root| place[root]);
            program.outputs.extend(outputs);
        }
        program
    }

    fn phase(
        &mut self,
        terms: &Terms,
        roots: &[TermId],
        splits: &Splits,
        place: &mut HashMap<TermId, u32>,
    ) {
        let operands = |id: TermId| match (splits.get(&id), terms.term(id)) {
            (Some(args), _) => &args[..],
            (None, Term::Op(_, args)) => &args[..],
            (None, _) => &[],
        };
        let mut needed: Vec<TermId> = Vec::new();
        let mut seen: HashSet<TermId> = HashSet::new();
        let mut open: Vec<TermId> = roots.to_vec();
        while let Some(id) = open.pop() {
            if place.contains_key(&id) || !seen.insert(id) {
                continue;
            }
            match terms.term(id) {
                Term::Const(value) => {
                    place.insert(id, self.registers.len() as u32);
                    self.registers.push(value.clone());
                }
                #[expect(
                    clippy::unreachable,
                    reason = "`place` holds every parameter of the terms before this walk begins"
                )]
                Term::Var(_) => unreachable!("every parameter a program reads is an input"),
                Term::Op(..) => {
                    needed.push(id);
                    open.extend(operands(id));
                }
            }
        }
        // Operands have smaller indices than their terms, so ascending order is a valid order of
        // evaluation.
        needed.sort_unstable();
        for id in needed {
            let Term::Op(op, _) = terms.term(id) else {
                continue;
            };
            let dst = self.registers.len() as u32;
            self.registers.push(Val::Unset);
            self.steps.push(Step {
                op: *op,
                args: operands(id).iter().map(|arg| place[arg]).collect(),
                dst,
            });
            place.insert(id, dst);
        }
    }

    /// Compiles terms over a configuration; `vars` are the parameters that they read.
    pub fn over_config(terms: &mut Terms, roots: &[TermId]) -> Self {
        let mut vars = super::Bits::default();
        for root in roots {
            vars.union(terms.vars(*root));
        }
        let vars: Vec<u32> = vars.iter().collect();
        let inputs: Vec<TermId> = vars
            .iter()
            .map(|var| terms.var(*var, super::terms::Kind::Any))
            .collect();
        let mut program = Self::compile(terms, &[roots], &inputs, &Splits::new());
        program.vars = vars;
        program
    }

    /// Returns fresh registers with the constants set.
    pub(crate) fn registers(&self) -> Vec<Val> {
        self.registers.clone()
    }

    /// Runs all steps; the caller has written the input registers.
    pub(crate) fn run(&self, registers: &mut [Val]) {
        for step in &self.steps {
            registers[step.dst as usize] = step.run(registers);
        }
    }

    /// Evaluates over a configuration, given each parameter's value.
    pub fn evaluate(&self, value: impl Fn(u32) -> Val) -> Vec<Val> {
        let mut registers = self.registers();
        for (at, var) in self.vars.iter().enumerate() {
            registers[at] = value(*var);
        }
        self.run(&mut registers);
        self.outputs
            .iter()
            .map(|output| registers[*output as usize].clone())
            .collect()
    }
}

impl Step {
    /// Computes the result from the registers.
    #[inline]
    pub(crate) fn run(&self, registers: &[Val]) -> Val {
        match *self.args {
            [a] => apply(self.op, &[&registers[a as usize]]),
            [a, b] => {
                let (a, b) = (&registers[a as usize], &registers[b as usize]);
                let quick = match (a, b) {
                    (Val::Int(a), Val::Int(b)) => quick(self.op, *a, *b),
                    _ => None,
                };
                quick.unwrap_or_else(|| apply(self.op, &[a, b]))
            }
            ref many => self.run_many(many, registers),
        }
    }

    fn run_many(&self, args: &[u32], registers: &[Val]) -> Val {
        if let Op::Add | Op::Mul = self.op {
            let mut whole: Option<i128> = Some(i128::from(self.op == Op::Mul));
            for arg in args {
                whole = match (whole, &registers[*arg as usize]) {
                    (Some(so_far), Val::Int(next)) => match quick(self.op, so_far, *next) {
                        Some(Val::Int(result)) => Some(result),
                        _ => None,
                    },
                    _ => None,
                };
            }
            if let Some(result) = whole {
                return Val::Int(result);
            }
        }
        let args: Vec<&Val> = args.iter().map(|arg| &registers[*arg as usize]).collect();
        apply(self.op, &args)
    }
}

/// Computes the common operations on whole numbers within 64 bits, nearly all of a diagram's construction.
/// Returns `None` for others, for which `apply` returns the same results.
#[inline]
fn quick(op: Op, a: i128, b: i128) -> Option<Val> {
    let (x, y) = (i64::try_from(a).ok()?, i64::try_from(b).ok()?);
    Some(match op {
        Op::Add => Val::Int(a + b),
        Op::Mul => Val::Int(i128::from(x) * i128::from(y)),
        Op::Lt => Val::Bool(x < y),
        Op::Le => Val::Bool(x <= y),
        Op::Gt => Val::Bool(x > y),
        Op::Ge => Val::Bool(x >= y),
        Op::Eq => Val::Bool(x == y),
        Op::Ne => Val::Bool(x != y),
        Op::Mod if y > 0 => Val::Int(i128::from(x.rem_euclid(y))),
        _ => return None,
    })
}
