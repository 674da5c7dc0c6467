//! Exchange of memory that host and device share.

use std::os::unix::fs::FileExt;

use crate::device::Device;
use crate::pages::differences;

impl Device {
    /// Reports whether a range starts in memory that the host shares. A program that uses both interfaces
    /// copies such memory of one through the other.
    pub(crate) fn is_shared(&self, address: u64) -> bool {
        let found = self.allocations.by_address.range(..=address).next_back();
        found.is_some_and(|(base, allocation)| {
            allocation.shared.is_some() && address - base < allocation.bytes
        })
    }

    /// Reports whether a module has a managed variable.
    pub(crate) fn has_managed_variable(&self) -> bool {
        let mut allocations = self.allocations.by_address.values();
        allocations.any(|allocation| allocation.variable)
    }

    /// Imports the host's writes to shared memory, before a launch.
    pub(crate) fn take_shared(&mut self) {
        let memory = &mut self.memory;
        for allocation in self.allocations.by_address.values_mut() {
            let Some(shared) = &mut allocation.shared else {
                continue;
            };
            let mut now = vec![0; allocation.bytes as usize];
            if shared.file.read_exact_at(&mut now, shared.offset).is_err() {
                continue;
            }
            for range in differences(&shared.known, &now) {
                let part = now.get(range.clone()).unwrap_or_default();
                memory.write(allocation.buffer, range.start as u64, part);
            }
            shared.known = now;
        }
    }

    /// Marks all memory as written: the SASS machine does not report its writes.
    pub(crate) fn mark_written(&mut self) {
        if !self.options.hazards || self.modules.iter().flatten().all(|module| module.sass_only) {
            return;
        }
        for allocation in self.allocations.by_address.values() {
            // A write of the same bytes marks them as written.
            let bytes = self.memory.read(allocation.buffer);
            self.memory.write(allocation.buffer, 0, &bytes);
        }
    }

    /// Exports a launch's writes to shared memory to the host.
    pub(crate) fn give_shared(&mut self) {
        let memory = &self.memory;
        for allocation in self.allocations.by_address.values_mut() {
            let Some(shared) = &mut allocation.shared else {
                continue;
            };
            let now = memory.read(allocation.buffer);
            for range in differences(&shared.known, &now) {
                let part = now.get(range.clone()).unwrap_or_default();
                let offset = shared.offset + range.start as u64;
                if let Err(error) = shared.file.write_all_at(part, offset) {
                    self.summary
                        .add_note(format!("shared memory cannot be written: {error}"));
                }
            }
            shared.known = now;
        }
    }
}
