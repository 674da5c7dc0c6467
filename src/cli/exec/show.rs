//! The summary as text.

use virtual_driver::{FoldedHazard, Summary, shortened};

/// Prints the summary on standard error.
pub(super) fn print(summary: &Summary, device: &str, hazards_checked: bool) {
    say!("");
    say!("tuner exec: {device}, virtual; times are estimates");
    if summary.kernels.is_empty() {
        say!("no kernel was launched");
    } else {
        print_kernels(summary);
    }
    for function in &summary.unsupported {
        say!("not supported: {function}");
    }
    for note in &summary.notes {
        say!("note: {note}");
    }
    print_unsupported(summary);
    print_hazards(summary, hazards_checked);
}

/// Prints the launches that did not run: their results are missing from the program's output.
fn print_unsupported(summary: &Summary) {
    for launch in &summary.unsupported_launches {
        say!(
            "{} of {} did not run, so the results are not those of a GPU: {}",
            counted(launch.launches, "launch"),
            shortened(&launch.kernel),
            launch.reason
        );
    }
}

fn print_kernels(summary: &Summary) {
    let rows: Vec<[String; 5]> = summary
        .kernels
        .iter()
        .map(|kernel| {
            [
                shortened(&kernel.name),
                kernel.launches.to_string(),
                kernel.blocks.to_string(),
                count(kernel.lane_instructions),
                format!("{:.1}", kernel.time_us),
            ]
        })
        .collect();
    let header = [
        "kernel",
        "launches",
        "blocks",
        "lane instructions",
        "time, µs",
    ];
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(header.get(column).map_or(0, |cell| cell.chars().count()))
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: [&str; 5]| {
        let padded =
            cells
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(index, (cell, width))| match index {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                });
        padded.collect::<Vec<_>>().join("  ")
    };
    say!("{}", line(header));
    for row in &rows {
        say!("{}", line(row.each_ref().map(String::as_str)));
    }
}

/// Formats a large count with its unit: `1.2 G`.
fn count(value: u64) -> String {
    let scaled = |unit: f64, name: &str| format!("{:.1} {name}", value as f64 / unit);
    match value {
        0..10_000 => value.to_string(),
        10_000..10_000_000 => scaled(1e3, "k"),
        10_000_000..10_000_000_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

fn print_hazards(summary: &Summary, checked: bool) {
    if summary.hazards.is_empty() {
        say!(
            "{}",
            if checked {
                "no hazards"
            } else {
                "no faults (races and unwritten memory: not checked)"
            }
        );
        return;
    }
    say!("{}:", counted(summary.hazards.len() as u64, "hazard"));
    for hazard in &summary.hazards {
        say!("  {}", headline(hazard));
        say!("      {}", hazard.detail);
    }
}

/// Formats a number with its noun.
fn counted(number: u64, noun: &str) -> String {
    let ending = match (number, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Formats kind, locations and count of a hazard.
fn headline(hazard: &FoldedHazard) -> String {
    let mut text = hazard.kind.clone();
    if let Some(source) = &hazard.source {
        text.push_str(&format!(" at {source}"));
    }
    if let Some(other) = hazard
        .other
        .as_ref()
        .filter(|other| Some(*other) != hazard.source.as_ref())
    {
        text.push_str(&format!(" with {other}"));
    }
    if !hazard.kernel.is_empty() {
        text.push_str(&format!(" in {}", shortened(&hazard.kernel)));
        let [bx, by, bz] = hazard.block;
        let [tx, ty, tz] = hazard.thread;
        text.push_str(&format!(
            ", first block ({bx},{by},{bz}) thread ({tx},{ty},{tz})"
        ));
    }
    if hazard.count > 1 {
        text.push_str(&format!(
            ", {} in {}",
            counted(hazard.count, "time"),
            counted(hazard.launches, "launch")
        ));
    }
    text
}
