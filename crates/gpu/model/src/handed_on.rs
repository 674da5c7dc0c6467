//! State that blocks hand on to one another: tickets, locks, flags, counters of a work queue.
//!
//! A grid changes it once. The model executes some blocks several times, so that without a restoration
//! the traced block would take a ticket beyond the last tile, or find a lock held by a block that
//! was cut short.

use vgpu::Module;
use vgpu::memory::{BufferId, GlobalMemory};

/// Largest buffer that counts as such state, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Contents of the module's variables and of small buffers.
pub(crate) struct HandedOn(Vec<(BufferId, Vec<u8>)>);

impl HandedOn {
    /// Saves the contents.
    pub(crate) fn save(module: &Module, memory: &mut GlobalMemory) -> Self {
        // Places the variables. Where there is no room for them, the launch says so.
        let _ = module.variables(memory);
        let small = memory.buffers().filter(|id| memory.len(*id) <= MAX_BYTES);
        Self(small.map(|id| (id, memory.read(id))).collect())
    }

    /// Restores what has changed.
    pub(crate) fn restore(&self, memory: &mut GlobalMemory) {
        for (id, bytes) in &self.0 {
            if !memory.holds(*id, bytes) {
                memory.write(*id, 0, bytes);
            }
        }
    }
}
