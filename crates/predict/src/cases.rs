//! Cases in which SASS and PTX produce different memory contents, saved for debugging.

use gpu_model::Withheld;
use std::io;
use std::path::{Path, PathBuf};
use tuner_core::plan::{Plan, PlanLaunch};
use tuner_core::private;
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Maximum number of saved cases: most of them share a cause.
const MAX_CASES: usize = 100;

/// Name of the folder of cases in the user's folder of caches.
const FOLDER: &str = "cases";

/// Writes PTX, SASS and the launch into a folder of `cases`, inside the folder `caches`, named by
/// content; returns its path.
pub(super) fn keep(
    caches: &Path,
    arch: &Arch,
    plan: &Plan,
    launch: &PlanLaunch,
    why: &Withheld,
) -> io::Result<PathBuf> {
    let case = serde_json::json!({
        "device": arch.name,
        "entry": launch.entry,
        "grid": launch.grid,
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "arguments": plan.arguments,
        "taken": launch.arguments,
        "variables": plan.variables,
        "why": why.to_string(),
    });
    let text = format!("{case:#}\n");
    let content = [plan.code.ptx.as_bytes(), &plan.code.cubin, text.as_bytes()];
    let name = ContentHash::from_parts(content);
    let name = name.as_str().get(..16).unwrap_or_default();
    let folder = private::create_folder(caches, &[FOLDER])?;
    if folder.join(name).join("case.json").exists() {
        return Ok(folder.join(name));
    }
    if std::fs::read_dir(&folder)?.count() >= MAX_CASES {
        let full = format!("it holds {MAX_CASES} cases already; remove some");
        return Err(io::Error::other(full));
    }
    let path = private::create_folder(caches, &[FOLDER, name])?;
    private::write_file(&path.join("kernel.ptx"), &[plan.code.ptx.as_bytes()])?;
    private::write_file(&path.join("kernel.cubin"), &[&plan.code.cubin])?;
    // Last, because its presence marks a complete case.
    private::write_file(&path.join("case.json"), &[text.as_bytes()])?;
    Ok(path)
}
