//! An access to check.

/// Accesses that do not race with an unordered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// None.
    Plain,
    /// Strong ones. Volatile accesses are strong too (PTX ISA 8.7), but code that shares volatile data
    /// with volatile data relies on an order that the ISA does not give.
    Volatile,
    /// All that are not plain.
    Strong,
}

/// An access to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) thread: usize,
    pub(crate) segment: u32,
    pub pc: u32,
    pub write: bool,
    pub(crate) strength: Strength,
    /// A volatile write in a kernel that polls volatile flags: it does not race with others.
    pub(crate) sets_flag: bool,
    /// Atomic within its own block only (`.cta`).
    pub(crate) narrow: bool,
    /// An asynchronous copy: in flight until its wait.
    pub(crate) in_flight: bool,
    /// The bytes already hold the value, and equal stores are allowed.
    pub(crate) same_value: bool,
    /// It returns the value it replaced: the atomic writes that produced it happen before the thread's
    /// next accesses (PTX ISA, 8.9.5), so that this access stands for them.
    pub(crate) observes: bool,
    /// Not zero: an atomic without a result, whose order among those of the same class makes no
    /// difference.
    pub(crate) commutes: u8,
}
