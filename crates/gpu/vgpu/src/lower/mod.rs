//! Lowering of the syntax tree to a flat program: rows for registers, jumps for labels, loops for
//! opcodes.
#![expect(
    clippy::indexing_slicing,
    reason = "registers, blocks and instructions are numbered by the parser of the same function, operands counted by the tables of instructions"
)]

pub(crate) mod program;
mod cfg;
mod operand;
mod instruction;
mod int;
mod video;
mod float;
mod pairs;
mod random;
mod shadow_values;
mod select;
mod set_packed;
mod convert;
mod convert_mode;
mod small;
mod stack;
mod stochastic;
mod memory;
mod sync;
mod matrix;
mod matrix_words;
mod wgmma;
mod tensor;
mod tensor_core;
mod texture;
mod control;
mod calls;
mod cluster;
mod external;
mod headers;
mod layout;
mod launch_control;
pub(crate) mod definedness;

pub(crate) use calls::FunctionTable;
pub use external::is_runtime_function;

use std::collections::{HashMap, HashSet};

use crate::counters::Class;
use crate::exec::regs::Alu;
use crate::hazard::SourceLine;
use crate::module::Unsupported;
use program::{Constant, Extent, Inst, NONE, Op, Program};
use ptx::ast::{Ast, Function, Instruction, Type};
use ptx::skeleton::{ADDRESSES, CONTROL};
use ptx::stores::Roots;

/// A register-only operation chosen for an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Picked {
    pub(crate) alu: Alu,
    pub(crate) imm: u32,
    pub(crate) class: Class,
    pub(crate) flops: u8,
}

/// Modifiers of an instruction.
pub(crate) struct Mods<'a>(pub(crate) &'a [&'a str]);

impl<'a> Mods<'a> {
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn types(&self) -> impl Iterator<Item = Type> + use<'a> {
        self.0.iter().filter_map(|w| Type::parse(w))
    }

    /// Returns the first type.
    fn ty(&self) -> Option<Type> {
        self.types().next()
    }
}

/// Reason why an instruction was not lowered.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The instruction, or this form of it, is not supported; with a reason where one helps.
    Unsupported(&'static str),
    /// An operand does not fit the instruction.
    Operand(String),
}

pub(crate) type Lowered<T> = Result<T, Fail>;

/// Variables of a module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Globals<'a> {
    /// Index by name, for `.global` and `.const` variables.
    pub(crate) index: &'a HashMap<String, u32>,
    /// Functions that can be called.
    pub(crate) functions: &'a FunctionTable<'a>,
}

/// Call parameters of a lowered function.
#[derive(Debug, Clone, Default)]
struct Frame {
    /// Its place in [`Program::functions`].
    number: u32,
    params: Vec<(u32, u32)>,
    returns: Vec<(u32, u32)>,
}

/// State while one entry is lowered.
pub(crate) struct Lower<'a> {
    ast: &'a Ast<'a>,
    globals: Globals<'a>,
    /// Requested form of the code.
    form: Form,
    program: Program,
    constants: HashMap<(bool, Constant), u32>,
    frames: HashMap<&'a str, Frame>,
    /// Functions called but not yet laid out.
    pending: Vec<&'a Function<'a>>,
    /// Functions that others may call, as far as requested.
    reached: HashMap<&'a str, HashSet<&'a str>>,
    shared: HashMap<&'a str, u32>,
    /// End of the shared variables as ptxas places them.
    packed_shared: u32,
    sources: HashMap<SourceLine, u32>,
    function: control::Scope<'a>,
    /// Guard, line and source of the current instruction.
    now: Now,
}

#[derive(Debug, Clone, Copy)]
struct Now {
    guard: u32,
    guard_negated: bool,
    line: u32,
    source: u32,
    keep: u8,
}

/// Mark of an instruction: paths may reconverge here.
pub(crate) const JOIN: u8 = 1;
/// Mark of an instruction: it is in [`Program::watches`].
pub(crate) const WATCHED: u8 = 2;

/// Mark of an instruction: it is in [`Program::fragment_uses`].
pub(crate) const FRAGMENT: u8 = 4;

/// Row of the carry flag among the predicates; the constants true and false, and scratch rows
/// follow.
pub(crate) const CARRY: u32 = 0;
const TRUE: u32 = 1;
const FALSE: u32 = 2;
const FIRST_PRED: u32 = 3;

/// Form of a lowered program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All instructions, as in the PTX.
    Plain,
    /// The slice with these roots.
    Slice(Roots),
    /// All instructions, with randomly rounded results.
    RandomlyRounded,
    /// All instructions, with shadow values.
    Shadowed,
}

/// Lowers one entry with every function it calls.
pub(crate) fn lower<'a>(
    ast: &'a Ast<'a>,
    globals: Globals<'a>,
    entry: &'a Function<'a>,
    form: Form,
) -> Result<Program, Unsupported> {
    let mut l = Lower {
        ast,
        globals,
        form,
        program: Program {
            preds: FIRST_PRED,
            addresses_only: matches!(form, Form::Slice(_)),
            ..Program::default()
        },
        constants: HashMap::new(),
        frames: HashMap::new(),
        pending: Vec::new(),
        reached: HashMap::new(),
        shared: HashMap::new(),
        packed_shared: 0,
        sources: HashMap::new(),
        function: control::Scope::default(),
        now: Now {
            guard: NONE,
            guard_negated: false,
            line: entry.line,
            source: 0,
            keep: ADDRESSES | CONTROL,
        },
    };
    if entry.cluster.grid_of_clusters {
        return Err(l.unsupported("a grid of clusters (.blocksareclusters)", entry.line, 0));
    }
    l.program.cluster = entry.cluster;
    l.program.bounds_registers = entry.min_blocks.is_some() || entry.max_registers.is_some();
    l.layout_shared(entry);
    l.function(entry)?;
    // Functions are lowered once each, however often they are called.
    while let Some(callee) = l.pending.pop() {
        l.function(callee)?;
    }
    // Only now: joins are positions in the finished code.
    cfg::mark_joins(&mut l.program.code);
    Ok(l.program)
}

impl<'a> Lower<'a> {
    fn push(&mut self, op: Op, class: Class) {
        self.push_flops(op, class, 0);
    }

    fn push_flops(&mut self, op: Op, class: Class, flops: u8) {
        let Now {
            guard,
            guard_negated,
            line,
            source,
            keep,
        } = self.now;
        self.program.code.push(Inst {
            op,
            guard,
            guard_negated,
            class,
            flops,
            marks: 0,
            keep,
            line,
            source,
        });
    }

    fn unsupported(&self, what: &str, line: u32, source: u32) -> Unsupported {
        let source_line = source
            .checked_sub(1)
            .and_then(|i| self.program.sources.get(i as usize))
            .cloned();
        Unsupported {
            instruction: what.to_owned(),
            line,
            source_line,
        }
    }

    /// Lowers one instruction, or reports it as unsupported.
    fn instruction(&mut self, i: &'a Instruction<'a>) -> Result<(), Unsupported> {
        self.now.line = i.line;
        self.now.source = self.source_of(i.location);
        self.now.guard = NONE;
        let result = match self.guard(i) {
            Ok(()) => self.dispatch(i),
            Err(fail) => Err(fail),
        };
        result.map_err(|fail| {
            let mut text = i.opcode.to_owned();
            for m in &i.modifiers {
                text.push('.');
                text.push_str(m);
            }
            match fail {
                Fail::Unsupported("") => {}
                Fail::Unsupported(why) => text = format!("{text} ({why})"),
                Fail::Operand(why) => text = format!("{text} ({why})"),
            }
            self.unsupported(&text, i.line, self.now.source)
        })
    }

    fn guard(&mut self, i: &Instruction<'_>) -> Lowered<()> {
        if let Some((reg, negated)) = i.guard {
            self.now.guard = self.pred_row(reg)?;
            self.now.guard_negated = negated;
        }
        Ok(())
    }

    /// Returns the CUDA line of a `.loc`: that of the innermost frame that is not in a header of
    /// the toolkit, because the kernel's author wrote that line.
    fn source_at(&self, location: u32) -> Option<SourceLine> {
        let mut at = location;
        let mut chosen = None;
        // A chain of inlined frames is finite; the limit guards against cycles in a malformed
        // module.
        for _ in 0..64 {
            let Some(loc) = at
                .checked_sub(1)
                .and_then(|i| self.ast.locations.get(i as usize))
            else {
                break;
            };
            if let Some(file) = self.ast.files.get(&loc.file)
                && loc.line > 0
            {
                let toolkit = headers::is_toolkit(file);
                if !toolkit || chosen.is_none() {
                    chosen = Some(SourceLine {
                        file: (*file).into(),
                        line: loc.line,
                    });
                }
                if !toolkit {
                    break;
                }
            }
            at = loc.inlined_at;
        }
        chosen
    }

    /// Returns the line's index plus 1 among the program's lines; 0 where there is none.
    fn source_of(&mut self, location: u32) -> u32 {
        let Some(line) = self.source_at(location) else {
            return 0;
        };
        if let Some(index) = self.sources.get(&line) {
            return *index;
        }
        self.program.sources.push(line.clone());
        let index = self.program.sources.len() as u32;
        self.sources.insert(line, index);
        index
    }
}

/// Returns the size of the shared variables without gaps: a lower bound of what a GPU reserves.
pub(crate) fn shared_bytes(extents: &[Extent]) -> u32 {
    extents.iter().map(|e| e.bytes).sum()
}
