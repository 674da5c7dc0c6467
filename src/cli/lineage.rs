//! Family trees of changed code: `leaderboard --lineage`, and the section of the report.

use super::output::{self, Column, Format, or};
use super::results::{Selection, kernels_named};
use super::{CliError, usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tuner_evolve::lineage::{self, outcome};
use tuner_report::family::FamilyTree;
use tuner_store::{Change, DeviceFilter, EvolutionStart, Lineage, Store};

/// Change of an evolution.
struct Row {
    evolution: String,
    start: EvolutionStart,
    change: Change,
}

const COLUMNS: [Column<Row>; 10] = [
    ("evolution", |row| row.evolution.clone()),
    ("kernel", |row| row.start.kernel.clone()),
    ("device", |row| row.start.device.clone()),
    ("timing", |row| row.start.timing.to_string()),
    ("change", |row| row.change.id.to_string()),
    ("parent", |row| or("shipped", row.change.parent)),
    ("outcome", |row| row.change.outcome.clone()),
    ("verdict", |row| or("", row.change.verdict.as_ref())),
    ("note", |row| row.change.note.clone()),
    ("found", |row| lineage::found(&row.change)),
];

/// Returns the text of the evolutions of these kernels.
///
/// # Errors
/// The database cannot be read, or has no evolution of them.
pub(super) async fn text(
    kernels: &[String],
    selection: &Selection,
    format: Format,
) -> Result<String, CliError> {
    let store = selection.open().await?;
    let all = read(&store, kernels, selection).await?;
    if all.is_empty() {
        return Err(usage(format!(
            "{} has no changed code of {}; `tuner evolve KERNEL --mutator scripted` makes some",
            selection.db.display(),
            if kernels.is_empty() {
                "any kernel".to_owned()
            } else {
                kernels.join(", ")
            }
        )));
    }
    let text = match format {
        Format::Table => {
            let mut text = String::new();
            for one in &all {
                let speedups = speedups(&store, one).await?;
                text.push_str(&lineage::tree(one, speedups.as_deref()).text());
            }
            text
        }
        Format::Json => {
            let mut values = Vec::new();
            for one in &all {
                let speedups = speedups(&store, one).await?;
                values.push(value(one, speedups.as_deref()));
            }
            output::json(&values)?
        }
        format => {
            let rows = all.iter().flat_map(|lineage| {
                lineage.changes.iter().map(|change| Row {
                    evolution: lineage.name.clone(),
                    start: lineage.start.clone(),
                    change: change.clone(),
                })
            });
            let rows: Vec<Row> = rows.collect();
            output::in_columns(format, &COLUMNS, &rows)
        }
    };
    store.close().await?;
    Ok(text)
}

/// Returns the family trees for a report.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn family_trees(
    store: &Store,
    kernels: &[String],
    selection: &Selection,
) -> Result<Vec<FamilyTree>, CliError> {
    let mut trees = Vec::new();
    for one in read(store, kernels, selection).await? {
        let speedups = speedups(store, &one).await?;
        trees.push(lineage::tree(&one, speedups.as_deref()));
    }
    Ok(trees)
}

async fn read(
    store: &Store,
    kernels: &[String],
    selection: &Selection,
) -> Result<Vec<Lineage>, CliError> {
    let device = match selection.query(None, None).device {
        Some(DeviceFilter::Name(name)) => Some(name),
        _ => None,
    };
    let mut all = Vec::new();
    for kernel in kernels_named(kernels)? {
        all.extend(store.lineages(kernel.as_deref(), device.as_deref()).await?);
    }
    Ok(all)
}

async fn speedups(store: &Store, lineage: &Lineage) -> Result<Option<Vec<Option<f64>>>, CliError> {
    let boards = store.boards(&lineage::boards_query(lineage)).await?;
    Ok(lineage::speedups(lineage, &boards))
}

/// Returns an evolution as JSON.
fn value(lineage: &Lineage, speedups: Option<&[Option<f64>]>) -> Value {
    let start = &lineage.start;
    let changes = lineage.changes.iter().map(|change| {
        let times = change.times.iter().map(|time| {
            json!({
                "problem": time.problem,
                "time_us": time.us,
                "incumbent_us": time.incumbent_us,
                "shipped_us": time.shipped_us,
                "config": time.config.iter().cloned().collect::<BTreeMap<_, _>>(),
            })
        });
        json!({
            "change": change.id,
            "round": change.round,
            "parent": change.parent,
            "mutator": change.mutator,
            "note": change.note,
            "outcome": outcome(change),
            "verdict": change.verdict,
            "detail": change.detail,
            "tokens": change.tokens,
            "cost": change.cost,
            "seconds": change.seconds,
            "diff": change.diff,
            "times": times.collect::<Vec<Value>>(),
        })
    });
    json!({
        "evolution": lineage.name,
        "kernel": start.kernel,
        "device": start.device,
        "timing": start.timing,
        "seed": start.seed,
        "mutator": start.mutator,
        "state": lineage.state,
        "settings": start.settings,
        "figures": lineage::figures(&lineage.changes, speedups),
        "changes": changes.collect::<Vec<Value>>(),
    })
}
