//! Variables of a module (`__device__`, `__constant__`) between the runs of a session.

use super::VirtualGpu;
use std::sync::Arc;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Code;
use tuner_core::record::Verdict;
use vgpu::{MemoryError, Module};

/// A variable that the space sets.
pub(super) struct SetVariable {
    name: String,
    bytes: Vec<u8>,
}

/// Restores the kept values of a module's variables at its first run since the last reset.
pub(super) fn restore_kept(
    gpu: &mut VirtualGpu,
    code: &Code,
    module: &Module,
) -> Result<(), Judgement> {
    if find_values(&gpu.found, code).is_some() {
        return Ok(());
    }
    if let Some(values) = find_values(&gpu.kept, code) {
        let set = module.set_variables(&mut gpu.memory, values);
        set.map_err(|error| no_room(&error))?;
    }
    note_found(gpu, code, module)
}

/// Implements [`tuner_judge::session::Session::restore_variables`].
pub(super) fn restore(gpu: &mut VirtualGpu, code: &Code) -> Result<(), Judgement> {
    if find_values(&gpu.found, code).is_none_or(<[_]>::is_empty) {
        return Ok(());
    }
    let module = gpu.module(code, None)?;
    // A byte is state of an earlier launch if it differs from its loaded value, but not from the value that
    // the undone runs left there.
    module.reload_variables(&mut gpu.memory);
    if let Some(values) = find_values(&gpu.kept, code) {
        let set = module.set_variables(&mut gpu.memory, values);
        set.map_err(|error| no_room(&error))?;
    }
    for SetVariable { name, bytes } in &gpu.set {
        let set = module.set_variable(&mut gpu.memory, name, bytes);
        set.map_err(|error| no_room(&error))?;
    }
    Ok(())
}

/// Implements [`tuner_judge::session::Session::keep_variables`].
pub(super) fn keep(gpu: &mut VirtualGpu, code: &Code) -> Result<bool, Judgement> {
    let Some(found) = find_values(&gpu.found, code).filter(|found| !found.is_empty()) else {
        return Ok(false);
    };
    let found = found.to_vec();
    let module = gpu.module(code, None)?;
    let now = module.variables(&mut gpu.memory);
    let now = now.map_err(|error| no_room(&error))?;
    let differs = now != found;
    gpu.kept = Some((Arc::clone(&code.ptx), now));
    Ok(differs)
}

/// Implements [`tuner_judge::session::Session::set_variable`].
pub(super) fn set(
    gpu: &mut VirtualGpu,
    code: &Code,
    name: &str,
    bytes: &[u8],
) -> Result<bool, Judgement> {
    let module = gpu.module(code, None)?;
    restore_kept(gpu, code, &module)?;
    let set = module.set_variable(&mut gpu.memory, name, bytes);
    let size = set.map_err(|error| no_room(&error))?;
    let Some(size) = size else {
        return Ok(false);
    };
    if size != bytes.len() as u64 {
        return Err(other_size(name, bytes.len() as u64, size));
    }
    gpu.set.push(SetVariable {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    });
    note_found(gpu, code, &module)?;
    Ok(true)
}

/// Records the values with which later runs start.
fn note_found(gpu: &mut VirtualGpu, code: &Code, module: &Module) -> Result<(), Judgement> {
    let now = module.variables(&mut gpu.memory);
    let now = now.map_err(|error| no_room(&error))?;
    gpu.found = Some((Arc::clone(&code.ptx), now));
    Ok(())
}

/// Builds the judgement for a variable whose size differs from that in the space.
pub(crate) fn other_size(name: &str, given: u64, size: u64) -> Judgement {
    Judgement::new(
        Verdict::LaunchFailed,
        format!(
            "the variable `{name}` has {size} bytes in the template, and the space gives {given}: \
             see to its type and shape under `variables`"
        ),
    )
}

/// Builds the judgement for variables that do not fit into the memory.
pub(super) fn no_room(error: &MemoryError) -> Judgement {
    Judgement::new(
        Verdict::OutOfMemory,
        format!("variables of the module: {error}"),
    )
}

/// Returns the values of this code.
fn find_values<'a>(
    values: &'a Option<(Arc<str>, Vec<Vec<u8>>)>,
    code: &Code,
) -> Option<&'a [Vec<u8>]> {
    let (text, values) = values.as_ref()?;
    Arc::ptr_eq(text, &code.ptx).then_some(values)
}
