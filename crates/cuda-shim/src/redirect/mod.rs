//! Redirection of a CUDA runtime that is linked into a program (`nvcc` without `-cudart shared`).
//!
//! Calls of such a program reach no shared library. `LD_PRELOAD` loads the library of these sources, whose initializer
//! runs before all others. It looks for the functions of a runtime in the symbol tables of the program and of its
//! libraries, and overwrites the first instructions of each with a jump to a thunk ([`slots`]). The first call
//! loads the runtime library of the same version. A file without a symbol table (`strip`) keeps its runtime, and
//! so does one that is loaded later.
#![cfg_attr(
    shim,
    allow(
        unsafe_code,
        reason = "the instructions of the process are overwritten"
    )
)]

mod code;
mod loaded;
pub mod slots;
mod symbols;

pub use symbols::{Runtime, runtime_in};

use loaded::Object;
use symbols::Function;

/// Initializer of the library (`DT_INIT`).
#[cfg(shim)]
#[unsafe(no_mangle)]
extern "C" fn __tuner_redirect_runtimes() {
    redirect_runtimes();
}

/// Redirects the runtimes of all loaded files.
pub fn redirect_runtimes() {
    for object in loaded::list() {
        redirect(&object);
    }
}

/// Redirects the runtime of one file, if it has one of a known version.
fn redirect(object: &Object) {
    let Some((runtime, functions)) = symbols::find_runtime(&object.path) else {
        return;
    };
    let jump = |function: &Function| {
        let thunk = slots::thunk(runtime, &function.name)?;
        let place = object.base.wrapping_add(function.offset);
        Some((code::Jump { place, thunk }, function.room))
    };
    let jumps: Vec<_> = functions.iter().filter_map(jump).collect();
    // A runtime of which only a part is replaced would confuse its program.
    if jumps.iter().all(|(_, room)| *room >= code::JUMP_BYTES) {
        let jumps: Vec<code::Jump> = jumps.into_iter().map(|(jump, _)| jump).collect();
        code::write(&object.code, &jumps);
    }
}
