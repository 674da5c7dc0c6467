//! Cases in which machine code and PTX leave different memory, kept for whoever looks into them.

use gpu_model::Withheld;
use std::io;
use std::path::{Path, PathBuf};
use tuner_core::plan::{Plan, PlanLaunch};
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Cases kept at most: what goes wrong in one of them does in most.
const MAX_CASES: usize = 100;

/// Writes PTX, machine code and what was launched into a folder of their own in `folder`, named by
/// their content; gives its path.
pub(super) fn keep(
    folder: &Path,
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
    let name = ContentHash::of(content);
    let path = folder.join(name.as_str().get(..16).unwrap_or_default());
    if path.join("case.json").exists() {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.count() >= MAX_CASES {
        let full = format!("it holds {MAX_CASES} cases already; remove some");
        return Err(io::Error::other(full));
    }
    std::fs::create_dir_all(&path)?;
    std::fs::write(path.join("kernel.ptx"), plan.code.ptx.as_bytes())?;
    std::fs::write(path.join("kernel.cubin"), &plan.code.cubin)?;
    std::fs::write(path.join("case.json"), text)?;
    Ok(path)
}
