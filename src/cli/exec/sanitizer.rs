//! The summary in the format of compute-sanitizer, for scripts that parse it.

use virtual_driver::{FoldedHazard, Summary};

/// Prints the summary on standard error.
pub(super) fn print(summary: &Summary) {
    say!("========= COMPUTE-SANITIZER");
    for hazard in &summary.hazards {
        for (index, line) in lines(hazard).iter().enumerate() {
            let indent = if index == 0 { "" } else { "    " };
            say!("========= {indent}{line}");
        }
        say!("=========");
    }
    for launch in &summary.unsupported_launches {
        say!("========= Error: launch of {} did not run", launch.kernel);
        say!("=========     {}", launch.reason);
        say!("=========");
    }
    let count = summary.hazards.len() + summary.unsupported_launches.len();
    let noun = if count == 1 { "error" } else { "errors" };
    say!("========= ERROR SUMMARY: {count} {noun}");
}

/// Formats the first line and the details of a hazard.
fn lines(hazard: &FoldedHazard) -> Vec<String> {
    let [bx, by, bz] = hazard.block;
    let [tx, ty, tz] = hazard.thread;
    let place = hazard.source.as_deref().unwrap_or("unknown source");
    let thread = format!("by thread ({tx},{ty},{tz}) in block ({bx},{by},{bz})");
    let located = |first: String| {
        vec![
            first,
            format!("at {} in {place}", hazard.kernel),
            thread.clone(),
            hazard.detail.clone(),
        ]
    };
    match hazard.kind.as_str() {
        "out_of_bounds" => located(format!("Invalid {} {}", space(hazard), access(hazard))),
        "misaligned" => located(format!("Misaligned {} {}", space(hazard), access(hazard))),
        "uninitialized" => {
            let size = hazard.bytes.map(|bytes| format!(" of size {bytes} bytes"));
            let size = size.unwrap_or_default();
            located(format!("Uninitialized {} memory read{size}", space(hazard)))
        }
        "barrier_divergence" => {
            located("Barrier error detected. Divergent thread(s) in block.".to_owned())
        }
        "race" | "unordered" => {
            let other = hazard.other.as_deref().unwrap_or(place);
            vec![
                format!(
                    "Error: Race reported between access at {} in {place}",
                    hazard.kernel
                ),
                format!(
                    "and access at {} in {other} [{} hazards]",
                    hazard.kernel, hazard.count
                ),
                hazard.detail.clone(),
            ]
        }
        kind => located(format!("Error: {kind}")),
    }
}

fn space(hazard: &FoldedHazard) -> String {
    format!("__{}__", hazard.space)
}

/// Formats direction and size of an access, such as `write of size 4 bytes`.
fn access(hazard: &FoldedHazard) -> String {
    let verb = if hazard.write { "write" } else { "read" };
    match hazard.bytes {
        Some(bytes) => format!("{verb} of size {bytes} bytes"),
        None => verb.to_owned(),
    }
}
