//! Best configurations, with compiler figures and counters of each.

use super::analysis::counter;
use super::document::{Block, code};
use super::model::Subject;
use super::overview::us;
use tuner_core::record::{ConfigValues, LeaderboardRow, value_of};

/// Formats a configuration without the parameters that have no choice.
pub(super) fn config_text(subject: &Subject, config: &ConfigValues) -> String {
    code(&subject.board.definition.varied(config))
}

/// Builds the best rows, and bank conflicts by the layout of shared memory.
pub(super) fn top_rows(subject: &Subject) -> Vec<Block> {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let trial = |row: &LeaderboardRow| subject.candidate(&row.config).map(|judged| &judged.trial);
    let rows: Vec<Vec<String>> = subject
        .board
        .rows
        .iter()
        .map(|row| {
            let conflicts = trial(row).and_then(|trial| {
                let all = counter(trial, "shared_wavefronts")?;
                let lost = counter(trial, "bank_conflicts")?;
                let part = if all > 0.0 { 100.0 * lost / all } else { 0.0 };
                Some(format!("{lost:.0} ({part:.1} %)"))
            });
            let occupancy = trial(row).and_then(|trial| counter(trial, "occupancy"));
            let tie = if row.tied_with_best && row.rank == 1 && subject.board.rows.len() > 1 {
                "="
            } else {
                ""
            };
            vec![
                format!("{}{tie}", row.rank),
                config_text(subject, &row.config),
                us(row.time_us_p50),
                us(row.time_us_p90),
                optional(row.registers.map(|n| n.to_string())),
                optional(row.spill_bytes.map(|n| n.to_string())),
                optional(row.shared_bytes.map(|n| n.to_string())),
                optional(occupancy.map(|share| format!("{:.0} %", 100.0 * share))),
                optional(conflicts),
            ]
        })
        .collect();
    let head = [
        "rank",
        "configuration",
        "p50, µs",
        "p90, µs",
        "registers",
        "spilled bytes",
        "shared bytes",
        "occupancy",
        "bank conflicts",
    ];
    let mut blocks = vec![Block::table(&head, 2, rows)];
    blocks.extend(padding(subject));
    blocks
}

/// Builds bank conflicts by the value of each parameter that chooses the layout of shared memory.
fn padding(subject: &Subject) -> Option<Block> {
    let layout = |name: &str| {
        let name = name.to_ascii_uppercase();
        name.contains("PAD") || name.contains("SWIZZLE")
    };
    let mut rows = Vec::new();
    for parameter in subject
        .board
        .definition
        .parameters
        .iter()
        .filter(|p| p.values.len() > 1 && layout(&p.name))
    {
        for wanted in &parameter.values {
            let mut shares: Vec<f64> = subject
                .candidates
                .iter()
                .filter(|c| value_of(&c.trial.config, &parameter.name) == Some(wanted))
                .filter_map(|c| {
                    let all = counter(&c.trial, "shared_wavefronts").filter(|all| *all > 0.0)?;
                    Some(100.0 * counter(&c.trial, "bank_conflicts")? / all)
                })
                .collect();
            shares.sort_by(f64::total_cmp);
            if let (Some(least), Some(middle)) = (shares.first(), shares.get(shares.len() / 2)) {
                rows.push(vec![
                    code(&format!("{}={wanted}", parameter.name)),
                    shares.len().to_string(),
                    format!("{least:.1} %"),
                    format!("{middle:.1} %"),
                ]);
            }
        }
    }
    (!rows.is_empty()).then(|| {
        let head = [
            "layout of shared memory",
            "candidates",
            "least conflicts",
            "median conflicts",
        ];
        Block::table(&head, 1, rows)
    })
}
