//! Variables of a module (`__device__`, `__constant__`) in a memory.

use super::globals::masked;
use super::{Module, is_named};
use crate::memory::{BufferId, GlobalMemory, MemoryError};

impl Module {
    /// Returns the module's variables in a memory, all or none.
    fn placed(&self, memory: &GlobalMemory) -> Option<Vec<BufferId>> {
        let placed = memory.of_module(self.id);
        (placed.len() == self.globals.len()).then(|| placed.to_vec())
    }

    /// Returns the bytes of each of the module's variables in a memory, in the order of the text.
    /// Places them there as a launch does, if none did.
    ///
    /// # Errors
    /// The memory has no room for them.
    pub fn variables(&self, memory: &mut GlobalMemory) -> Result<Vec<Vec<u8>>, MemoryError> {
        self.place_globals(memory)?;
        let placed = self.placed(memory).unwrap_or_default();
        Ok(placed.into_iter().map(|id| memory.read(id)).collect())
    }

    /// Sets the module's variables, in a memory without launches of it since they were loaded, to the values that
    /// [`Module::variables`] returned for another memory: variables outlive a launch. Reading a
    /// byte that differs from its loaded value before writing it is a hazard
    /// ([`crate::HazardKind::ModuleState`]).
    ///
    /// # Errors
    /// The memory has no room for them.
    pub fn set_variables(
        &self,
        memory: &mut GlobalMemory,
        values: &[Vec<u8>],
    ) -> Result<(), MemoryError> {
        self.place_globals(memory)?;
        let placed = self.placed(memory).unwrap_or_default();
        for (id, value) in placed.into_iter().zip(values) {
            let bytes = value.len().min(memory.len(id) as usize);
            memory.write_stale(id, &value[..bytes]);
        }
        Ok(())
    }

    /// Sets the variable of that name, in the same memory. Returns its size, or `None` if the
    /// module does not have it. A variable of another size is not changed.
    ///
    /// # Errors
    /// The memory has no room for the module's variables.
    pub fn set_variable(
        &self,
        memory: &mut GlobalMemory,
        name: &str,
        value: &[u8],
    ) -> Result<Option<u64>, MemoryError> {
        let Some((id, size)) = self.place_variable(memory, name)? else {
            return Ok(None);
        };
        if size == value.len() as u64 {
            memory.write(id, 0, value);
        }
        Ok(Some(size))
    }

    /// Returns the buffer of the variable of that name in a memory, and its size, bytes; `None` if
    /// the module does not have it. Places the module's variables there, if no launch did.
    ///
    /// # Errors
    /// The memory has no room for them.
    pub fn place_variable(
        &self,
        memory: &mut GlobalMemory,
        name: &str,
    ) -> Result<Option<(BufferId, u64)>, MemoryError> {
        let Some(index) = self.globals.iter().position(|g| is_named(&g.name, name)) else {
            return Ok(None);
        };
        self.place_globals(memory)?;
        let placed = self.placed(memory).unwrap_or_default();
        Ok(placed.get(index).map(|id| (*id, memory.len(*id))))
    }

    /// Returns the module's variables in a memory, by name. Places them there as a launch does.
    ///
    /// # Errors
    /// [`MemoryError`] where they do not fit.
    pub fn named_variables(
        &self,
        memory: &mut GlobalMemory,
    ) -> Result<Vec<(&str, BufferId)>, MemoryError> {
        self.place_globals(memory)?;
        let placed = self.placed(memory).unwrap_or_default();
        Ok(self
            .globals
            .iter()
            .map(|g| g.name.as_str())
            .zip(placed)
            .collect())
    }

    /// Returns the addresses of the module's variables in a memory, which are allocated at the
    /// first launch.
    pub(crate) fn place_globals(&self, memory: &mut GlobalMemory) -> Result<Vec<u64>, MemoryError> {
        if let Some(placed) = self.placed(memory) {
            return Ok(placed.into_iter().map(|id| memory.address(id)).collect());
        }
        let mut ids = Vec::new();
        for g in &self.globals {
            ids.push(memory.alloc_module(self.id, g.bytes.len() as u64, &g.name, g.unset)?);
        }
        self.load_globals(memory, &ids);
        Ok(ids.iter().map(|id| memory.address(*id)).collect())
    }

    /// Resets the module's variables in a memory to their state in a newly loaded module.
    pub fn reload_variables(&self, memory: &mut GlobalMemory) {
        if let Some(placed) = self.placed(memory) {
            self.load_globals(memory, &placed);
        }
    }

    fn load_globals(&self, memory: &mut GlobalMemory, ids: &[BufferId]) {
        for (g, id) in self.globals.iter().zip(ids) {
            // Variables without an initializer are zero (PTX ISA, "Initializers").
            let mut bytes = g.bytes.clone();
            for p in &g.pointers {
                let address = memory.address(ids[p.target]).wrapping_add(p.offset);
                let value = masked(address, p.mask).to_le_bytes();
                if let Some(slot) = bytes.get_mut(p.at..p.at + p.bytes) {
                    slot.copy_from_slice(&value[..p.bytes]);
                }
            }
            memory.write(*id, 0, &bytes);
            if g.unset {
                // Without a pattern the zeros stay, as on a GPU, and only count as unwritten: the
                // host has to set the variable.
                memory.fill_uninitialised(*id, &[]);
            }
        }
    }
}
