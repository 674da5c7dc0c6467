//! Reasons for which a launch ends before all of its blocks have run to their ends.

use std::fmt;

/// Why a launch was stopped, for a runtime that has to return an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stop {
    /// `assert` failed: [`super::launch::LaunchReport::assertions`].
    Assertion,
    /// `trap`: `__trap()`, or an error of the C++ runtime.
    Trap,
    /// `brkpt`: `__brkpt()`.
    Breakpoint,
    /// A branch or a call to an address that is not code of the kernel.
    IllegalTarget,
    /// A barrier, an mbarrier or a tensor map that the hardware refuses.
    IllegalOperand,
    /// The stack of a thread is used up.
    StackOverflow,
    /// No thread can make progress, or a barrier is never complete.
    Deadlock,
    /// A block used up [`super::launch::Launch::instruction_budget`].
    InstructionBudget,
    /// The launch used up [`super::launch::Launch::lane_budget`].
    LaneBudget,
    /// [`super::launch::Launch::wall_deadline`] passed.
    Deadline,
    /// Stopped together with another block.
    Cancelled,
}

/// The end of a block that did not run to its end, with one sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halt(pub(crate) Stop, pub(crate) &'static str);

impl Halt {
    /// A block that ends because the launch does.
    pub(crate) const CANCELLED: Halt = Halt(Stop::Cancelled, "the launch was stopped");
}

/// A failed `assert` of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Block index.
    pub block: [u32; 3],
    /// Thread index in its block.
    pub thread: [u32; 3],
    /// The expression.
    pub message: String,
    /// Source file, as the compiler names it.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// Signature of the function.
    pub function: String,
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            "{}:{}: {}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{}` failed.",
            self.file, self.line, self.function, self.message
        )
    }
}
