//! Files with the contents of the outputs after a run.

use super::oracle::OracleError;
use super::verify::{Gate, Pass, Stop};
use std::path::Path;

impl Gate<'_> {
    /// Writes the contents of each compared argument to `INDEX.bin`, by its position in the list of
    /// arguments: a name is not always a valid file name.
    pub(super) fn write_outputs(&mut self, folder: &Path, pass: &Pass) -> Result<(), Stop> {
        // Elements that no block of a sample writes still hold the poison.
        if pass.sampled {
            return Ok(());
        }
        for (index, contents) in &pass.outputs {
            let bytes = self.bytes_of(contents)?;
            let path = folder.join(format!("{index}.bin"));
            std::fs::write(&path, &bytes).map_err(|error| {
                Stop::Oracle(OracleError::Data {
                    argument: self.plan.arguments[*index].name.clone(),
                    problem: self.plan.problem.clone(),
                    why: format!("cannot write {}: {error}", path.display()),
                })
            })?;
        }
        Ok(())
    }
}
