//! Execution units of instructions.

/// Execution unit of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Single-precision multiply-add and 32-bit integer multiply-add.
    Fma,
    /// Integer, logic, compare, select, minimum.
    Alu,
    /// Packed half precision.
    Half,
    /// Double precision.
    Double,
    /// Approximations and conversions.
    Special,
    /// Matrix instructions; the number of multiply-adds per warp depends on the form.
    Tensor,
    /// The uniform datapath.
    Uniform,
    /// Branches and other control flow.
    Branch,
    /// Block-wide barriers.
    Barrier,
    /// Waits for a number of outstanding operations.
    Depbar,
    /// Loads and stores of global memory.
    Global,
    /// Asynchronous copies from global to shared memory.
    CopyAsync,
    /// Loads and stores of shared memory, and matrices from it.
    Shared,
    /// Loads and stores of local memory: spills, and indexed arrays.
    Local,
    /// Loads of constants through the load path.
    Constant,
    /// Atomics on global memory.
    Atomic,
    /// Atomics on shared memory.
    SharedAtomic,
    /// Exchanges between lanes.
    Shuffle,
    /// Reads of special registers, and other small requests to the memory input queue.
    Misc,
    /// Textures.
    Texture,
    /// No unit; only an issue slot.
    Nop,
    /// Unknown unit.
    Unknown,
}

impl Unit {
    /// Returns the unit with this name in the table.
    pub(crate) fn from_name(name: &str) -> Option<Unit> {
        Some(match name {
            "Fma" => Unit::Fma,
            "Alu" => Unit::Alu,
            "Half" => Unit::Half,
            "Double" => Unit::Double,
            "Special" => Unit::Special,
            "Tensor" => Unit::Tensor,
            "Uniform" => Unit::Uniform,
            "Branch" => Unit::Branch,
            "Barrier" => Unit::Barrier,
            "Depbar" => Unit::Depbar,
            "Global" => Unit::Global,
            "CopyAsync" => Unit::CopyAsync,
            "Shared" => Unit::Shared,
            "Local" => Unit::Local,
            "Constant" => Unit::Constant,
            "Atomic" => Unit::Atomic,
            "SharedAtomic" => Unit::SharedAtomic,
            "Shuffle" => Unit::Shuffle,
            "Misc" => Unit::Misc,
            "Texture" => Unit::Texture,
            "Nop" => Unit::Nop,
            "Unknown" => Unit::Unknown,
            _ => return None,
        })
    }
}
