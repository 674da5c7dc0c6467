//! Kernels whose code is in several sections or has addresses of variables (relocatable device code): they are
//! linked at their launch, when the addresses are known.

use vgpu::Module;
use vgpu::exec::launch::Launch;
use vgpu::memory::{GlobalMemory, MemoryError};

use super::program::{Program, SYSTEM_NOTHING, SYSTEM_STOPS};
use super::{Machine, MachineError, SassError};

impl Machine {
    /// Returns the program of a kernel that must be linked, for the variables of a memory.
    pub(super) fn link(
        &self,
        module: &Module,
        memory: &mut GlobalMemory,
        launch: &Launch,
    ) -> Result<Option<Program>, MachineError> {
        let Some(cubin) = &self.image.unlinked else {
            return Ok(None);
        };
        if launch.trace {
            let what = "code in several sections, or with addresses of variables, is not traced";
            return Err(SassError(what.to_owned()).into());
        }
        let variables = self.variable_addresses(module, memory)?;
        let address = |name: &str| {
            let found = variables.iter().find(|(variable, _)| variable == name);
            found.map(|(_, at)| *at).or_else(|| system_address(name))
        };
        let linked = cubin.link(&launch.entry, address);
        let linked = linked.map_err(|error| SassError(error.to_string()))?;
        let mut program = Program::new(&linked.code);
        program.start = linked.start as u32;
        Ok(Some(program))
    }

    fn variable_addresses(
        &self,
        module: &Module,
        memory: &mut GlobalMemory,
    ) -> Result<Vec<(String, u64)>, MemoryError> {
        let variables = module.named_variables(memory)?;
        let variables = variables
            .into_iter()
            .map(|(name, id)| (name.to_owned(), memory.address(id)));
        Ok(variables.collect())
    }

    /// Returns the address of a function.
    pub(super) fn function_address(&self, name: &str) -> Option<u64> {
        let own = self.image.functions.get(name).copied();
        own.or_else(|| system_address(name))
    }
}

/// Returns the address that stands for a function of the system.
fn system_address(name: &str) -> Option<u64> {
    match name {
        "vprintf" => Some(SYSTEM_NOTHING),
        "__assertfail" => Some(SYSTEM_STOPS),
        _ => None,
    }
}
