//! What `tuner gate` says when the template of a tuned kernel turns wrong.

use crate::user_kernels::case::{Case, Kind, Project};
use crate::user_kernels::judge::Outcomes;
use crate::user_kernels::program::tuner;
use std::path::Path;

/// Mistakes of a project that are tried: judging one is what `check` does already.
const TRIED: usize = 1;

const DEVICE: [&str; 4] = ["--device", "vgpu:h100", "--db", "results.db"];

/// Tunes a right kernel, makes its template wrong, and asks the gate.
pub(crate) fn gate(project: &Project) -> Outcomes {
    let right = |wrong: &Case| {
        let mut cases = project.cases.iter();
        cases.find(|case| case.kind == Kind::Right && case.differs_in_the_kernel_only(wrong))
    };
    let whole = |case: &&Case| !case.is_partly_right() && case.exit.is_none() && !case.alone;
    let pairs = project.cases.iter().filter(whole);
    let pairs = pairs.filter_map(|wrong| Some((right(wrong)?, wrong)));
    pairs
        .take(TRIED)
        .map(|(right, wrong)| {
            let folder = tempfile::tempdir().unwrap();
            let outcome = turned_wrong(right, wrong, folder.path());
            (format!("{} (gate)", wrong.name), outcome)
        })
        .collect()
}

fn turned_wrong(right: &Case, wrong: &Case, folder: &Path) -> Result<String, String> {
    let file = [right.write(folder)];
    let run = tuner(
        folder,
        "run",
        &file,
        &[&["--evals", "4"], &DEVICE[..]].concat(),
    );
    let before = tuner(folder, "gate", &file, &DEVICE);
    right.take_kernel_of(wrong, folder);
    let after = tuner(folder, "gate", &file, &DEVICE);
    let codes = [&run, &before, &after].map(|output| output.status.code());
    if codes != [Some(0), Some(0), Some(4)] {
        let story = String::from_utf8_lossy(&after.stderr);
        return Err(format!(
            "run, gate, gate of the wrong one: {codes:?}: {story}"
        ));
    }
    let said = String::from_utf8_lossy(&after.stderr);
    match wrong
        .verdicts
        .iter()
        .find(|verdict| said.contains(&**verdict))
    {
        Some(verdict) => Ok(format!("the gate says {verdict}")),
        None => Err(format!(
            "the gate does not say {:?}: {said}",
            wrong.verdicts
        )),
    }
}
