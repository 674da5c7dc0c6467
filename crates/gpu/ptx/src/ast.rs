//! Syntax tree: names are resolved to registers and variables. Instructions keep their modifiers as
//! written, because their meaning depends on the opcode.

use std::collections::BTreeMap;

/// Fundamental types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the PTX ISA")]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    E2m1x2,
    E2m3x2,
    E3m2x2,
    Ue8m0x2,
    U16x2,
    S16x2,
    F32x2,
}

impl Type {
    /// Returns the type that a modifier names.
    pub fn parse(name: &str) -> Option<Type> {
        Some(match name {
            "pred" => Type::Pred,
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" => Type::B32,
            "b64" => Type::B64,
            "b128" => Type::B128,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "s8" => Type::S8,
            "s16" => Type::S16,
            "s32" => Type::S32,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "bf16" => Type::Bf16,
            "f16x2" => Type::F16x2,
            "bf16x2" => Type::Bf16x2,
            "tf32" => Type::Tf32,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "e4m3" => Type::E4m3,
            "e5m2" => Type::E5m2,
            "e4m3x2" => Type::E4m3x2,
            "e5m2x2" => Type::E5m2x2,
            "e2m1x2" => Type::E2m1x2,
            "e2m3x2" => Type::E2m3x2,
            "e3m2x2" => Type::E3m2x2,
            "ue8m0x2" => Type::Ue8m0x2,
            "u16x2" => Type::U16x2,
            "s16x2" => Type::S16x2,
            "f32x2" => Type::F32x2,
            _ => return None,
        })
    }

    /// Returns the size in memory, bytes; 0 for a predicate.
    pub fn bytes(self) -> u32 {
        match self {
            Type::Pred => 0,
            Type::B8 | Type::U8 | Type::S8 | Type::E4m3 | Type::E5m2 | Type::E2m1x2 => 1,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 2,
            Type::E4m3x2 | Type::E5m2x2 | Type::E2m3x2 | Type::E3m2x2 | Type::Ue8m0x2 => 2,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 | Type::F32x2 => 8,
            Type::B128 => 16,
            _ => 4,
        }
    }

    /// Reports whether the type is a signed integer.
    pub fn signed(self) -> bool {
        matches!(
            self,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2
        )
    }

    /// Reports whether the type is a single floating-point number.
    pub fn float(self) -> bool {
        matches!(
            self,
            Type::F16 | Type::Bf16 | Type::F32 | Type::F64 | Type::Tf32
        )
    }
}

/// State space of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the PTX ISA")]
pub enum StateSpace {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// One element of an initialiser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init<'a> {
    /// Bits of a number, to be truncated to the element's size; decimal doubles are marked.
    Bits(u64),
    /// A single by its bits.
    F32(u32),
    /// A double by its bits.
    F64(u64),
    /// The address of a variable or function.
    Address {
        /// Its name.
        symbol: &'a str,
        /// Bytes added.
        offset: i64,
        /// The address is written inside `generic()`.
        generic: bool,
        /// The bits of it that the element holds, from the lowest one on: `0xFF00(symbol)`.
        mask: u64,
    },
}

/// A variable (or a parameter).
#[derive(Debug, Clone, PartialEq)]
pub struct Variable<'a> {
    /// Name.
    pub name: &'a str,
    /// State space.
    pub space: StateSpace,
    /// Element type.
    pub ty: Type,
    /// Alignment, bytes.
    pub align: u32,
    /// Size, bytes; 0 for an `extern` array without a size.
    pub bytes: u64,
    /// Declared `extern`.
    pub external: bool,
    /// Initial elements.
    pub init: Vec<Init<'a>>,
    /// PTX line.
    pub line: u32,
}

/// Index of a register in [`Body::registers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register.
    Reg(Reg),
    /// A negated predicate, `!%p1`.
    Not(Reg),
    /// An integer; its sign is in two's complement.
    Int(u64),
    /// A single by its bits.
    F32(u32),
    /// A double by its bits.
    F64(u64),
    /// A special register, with its component if it has one.
    Special(&'a str, &'a str),
    /// A variable of the function body: index in [`Body::variables`], and an offset.
    Variable(u32, i64),
    /// A module variable, parameter, function, label or table, plus an offset.
    Name(&'a str, i64),
    /// `[base + offset]`.
    Address(Box<Operand<'a>>, i64),
    /// `{a, b, c, d}`.
    Vector(Vec<Operand<'a>>),
    /// `a|b`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `(a, b)` of a call, or `[a, {x, y}]`: an address in a tensor or texture.
    List(Vec<Operand<'a>>),
    /// `_`.
    Sink,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction<'a> {
    /// Guard: predicate, and whether it is negated.
    pub guard: Option<(Reg, bool)>,
    /// First word.
    pub opcode: &'a str,
    /// The words after the opcode, without dots.
    pub modifiers: Vec<&'a str>,
    /// Operands.
    pub operands: Vec<Operand<'a>>,
    /// Parts of registers that a video instruction names, without dots, by the operand's index; `-` is that of a negated
    /// operand.
    pub parts: Vec<(usize, &'a str)>,
    /// PTX line.
    pub line: u32,
    /// Index of the scope, for labels.
    pub scope: u32,
    /// Index in [`Ast::locations`], plus 1; 0 when there is none.
    pub location: u32,
    /// Used bytes of a load, by the pragma before it: bit 0 is the first byte.
    pub used_bytes: Option<u32>,
}

/// A source location from `.loc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// File number.
    pub file: u32,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Index of the location that it was inlined at, plus 1; 0 for none.
    pub inlined_at: u32,
}

/// The body of a function.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body<'a> {
    /// Types of the registers.
    pub registers: Vec<Option<Type>>,
    /// Variables declared inside.
    pub variables: Vec<Variable<'a>>,
    /// Instructions in order.
    pub instructions: Vec<Instruction<'a>>,
    /// Labels: scope, name, index of the instruction that follows.
    pub labels: Vec<(u32, &'a str, usize)>,
    /// Branch tables: name and labels.
    pub tables: Vec<(&'a str, Vec<&'a str>)>,
    /// Parent of each scope.
    pub scopes: Vec<u32>,
}

/// A function or an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    /// Name.
    pub name: &'a str,
    /// The function is a kernel.
    pub entry: bool,
    /// Return values.
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// The body; `None` for a declaration.
    pub body: Option<Body<'a>>,
    /// `.maxntid`.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_blocks: Option<u32>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
    /// Thread block clusters.
    pub cluster: ClusterDirectives,
    /// PTX line.
    pub line: u32,
}

/// Directives of an entry about thread block clusters (PTX ISA, 11.8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterDirectives {
    /// `.reqnctapercluster`: the shape that a launch must have.
    pub required: Option<[u32; 3]>,
    /// `.explicitcluster`: a launch must name a shape, unless one is required here.
    pub explicit: bool,
    /// `.maxclusterrank`: the maximum number of blocks in a cluster.
    pub max_blocks: Option<u32>,
    /// `.blocksareclusters`: the grid counts clusters.
    pub grid_of_clusters: bool,
}

/// A whole module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ast<'a> {
    /// ISA version, major and minor.
    pub version: (u32, u32),
    /// First word of `.target`.
    pub target: &'a str,
    /// Files by number.
    pub files: BTreeMap<u32, &'a str>,
    /// Source locations.
    pub locations: Vec<Location>,
    /// Module variables.
    pub variables: Vec<Variable<'a>>,
    /// Functions and entries.
    pub functions: Vec<Function<'a>>,
}
