//! A portfolio on the terminal and as JSON.

use super::Portfolio;
use crate::cli::output::{self, Format};
use crate::cli::{CliError, usage};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use tuner_core::record::assignments;
use tuner_core::units::counted;
use tuner_report::portfolio::{
    AxisValues, Lookup, Node, TreeText, Untuned, Variant, percent, variants,
};

/// Row of a variant.
struct Row {
    variant: usize,
    part: Variant,
    config: String,
}

const COLUMNS: [output::Column<Row>; 6] = [
    ("variant", |row| row.variant.to_string()),
    ("shapes", |row| row.part.shapes.to_string()),
    ("worst", |row| percent(row.part.worst)),
    ("mean", |row| percent(row.part.mean)),
    ("without it", |row| match row.part.without.is_finite() {
        true => percent(row.part.without),
        false => "a shape has none".to_owned(),
    }),
    ("config", |row| row.config.clone()),
];

/// Variant for sizes of `--at`.
pub(super) struct Answer {
    sizes: String,
    lookup: Lookup,
}

/// Returns the variants for the sizes of `--at`.
pub(super) fn lookups(portfolio: &Portfolio<'_>) -> Result<Vec<Answer>, CliError> {
    let table = &portfolio.source.table;
    let known = |name: &str| table.axes.iter().any(|axis| axis.name == name);
    let one = |sizes: &std::collections::BTreeMap<String, String>| {
        let pairs = sizes.iter().map(|(name, value)| format!("{name}={value}"));
        let shown = pairs.collect::<Vec<_>>().join(" ");
        if let Some(name) = sizes.keys().find(|name| !known(name)) {
            let names: Vec<&str> = table.axes.iter().map(|axis| &*axis.name).collect();
            refuse!(
                "--at: `{name}` is not in the grid; it has {}",
                names.join(", ")
            );
        }
        let members = &portfolio.choice.members;
        let found = portfolio
            .tree
            .lookup(table, &portfolio.losses, members, sizes);
        let lookup = found.map_err(|error| usage(format!("--at {shown}: {error}")))?;
        Ok(Answer {
            sizes: shown,
            lookup,
        })
    };
    portfolio.args.at.iter().map(one).collect()
}

/// Formats the portfolio.
pub(super) fn text(portfolio: &Portfolio<'_>, answers: &[Answer]) -> Result<String, CliError> {
    if portfolio.args.format == Format::Json {
        return Ok(output::json(&document(portfolio, answers))?);
    }
    let rows: Vec<Row> = rows(portfolio);
    let mut text = output::in_columns(portfolio.args.format, &COLUMNS, &rows);
    // Lines after the table would not be valid CSV.
    if portfolio.args.format == Format::Csv {
        return Ok(text);
    }
    let table = &portfolio.source.table;
    let (choice, timing) = (&portfolio.choice, table.timing);
    let _ = writeln!(
        text,
        "\n{} on {}: {} of {} configurations for {} shapes, worst loss {}, mean {} ({timing} times)",
        portfolio.source.kernel,
        portfolio.source.device,
        choice.members.len(),
        table.configs.len(),
        table.shapes.len(),
        percent(choice.worst),
        percent(choice.mean),
    );
    if let Some(least) = portfolio
        .least
        .filter(|least| *least < choice.members.len())
    {
        let _ = writeln!(
            text,
            "not proven to be the smallest: at least {least} are needed"
        );
    }
    let _ = writeln!(text, "\nloss against the best of each shape:");
    for (size, choice) in &portfolio.curve {
        let _ = write!(
            text,
            "  {}: worst {}, mean {}",
            counted(*size, "variant"),
            percent(choice.worst),
            percent(choice.mean)
        );
        match choice.is_exact() {
            true => text.push('\n'),
            false => {
                let _ = writeln!(text, " (no set is below {})", percent(choice.bound));
            }
        }
    }
    let leaves = portfolio.tree.leaves;
    let _ = writeln!(
        text,
        "\ndecision tree, {}:",
        if leaves == 1 {
            "1 leaf".to_owned()
        } else {
            format!("{leaves} leaves")
        }
    );
    let tree = TreeText {
        tree: &portfolio.tree,
        table,
    };
    let _ = write!(text, "{tree}");
    for answer in answers {
        let _ = writeln!(text, "\n{}", answer.text(portfolio));
    }
    Ok(text)
}

fn rows(portfolio: &Portfolio<'_>) -> Vec<Row> {
    let parts = variants(&portfolio.losses, &portfolio.choice.members);
    let configs = &portfolio.source.table.configs;
    let rows = parts.into_iter().enumerate();
    rows.map(|(place, part)| Row {
        variant: place + 1,
        config: configs
            .get(part.config)
            .map_or_else(String::new, |config| assignments(config, " ")),
        part,
    })
    .collect()
}

impl Answer {
    fn text(&self, portfolio: &Portfolio<'_>) -> String {
        let names = &portfolio.source.table.shapes;
        let around = self.lookup.neighbours.iter().map(|(shape, loss)| {
            let name = names.get(*shape).map_or("", |shape| &shape.name);
            match loss {
                Some(loss) => format!("{} at {name}", percent(*loss)),
                None => format!("does not work at {name}"),
            }
        });
        format!(
            "{}: variant {}; known around it: {}",
            self.sizes,
            self.lookup.variant + 1,
            around.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Builds the JSON document.
fn document(portfolio: &Portfolio<'_>, answers: &[Answer]) -> Json {
    let table = &portfolio.source.table;
    let finite = |loss: f64| loss.is_finite().then_some(loss);
    let variants = rows(portfolio).into_iter().map(|row| {
        let config = table.configs.get(row.part.config);
        let config = config.into_iter().flatten();
        json!({
            "variant": row.variant,
            "config": config.map(|(name, value)| (name.clone(), json!(value)))
                .collect::<serde_json::Map<_, _>>(),
            "shapes": row.part.shapes,
            "worst_loss": row.part.worst,
            "mean_loss": row.part.mean,
            "worst_loss_without": finite(row.part.without),
        })
    });
    let curve = portfolio.curve.iter().map(|(size, choice)| {
        json!({
            "variants": size,
            "worst_loss": choice.worst,
            "mean_loss": choice.mean,
            "worst_loss_bound": choice.bound,
        })
    });
    let lookups = answers.iter().map(|answer| {
        let around = answer.lookup.neighbours.iter().map(|(shape, loss)| {
            let name = table.shapes.get(*shape).map(|shape| &shape.name);
            json!({ "shape": name, "loss": loss })
        });
        json!({
            "sizes": answer.sizes,
            "variant": answer.lookup.variant + 1,
            "neighbours": around.collect::<Vec<_>>(),
        })
    });
    json!({
        "kernel": portfolio.source.kernel,
        "device": portfolio.source.device,
        "timing": table.timing,
        "shapes": table.shapes.len(),
        "configurations": table.configs.len(),
        "loss": portfolio.args.loss,
        "within_loss": portfolio.least.is_some(),
        "least_variants": portfolio.least,
        "worst_loss": portfolio.choice.worst,
        "mean_loss": portfolio.choice.mean,
        "variants": variants.collect::<Vec<_>>(),
        "curve": curve.collect::<Vec<_>>(),
        "tree": tree(portfolio, &portfolio.tree.root),
        "lookups": lookups.collect::<Vec<_>>(),
    })
}

fn tree(portfolio: &Portfolio<'_>, node: &Node) -> Json {
    match node {
        Node::Leaf(leaf) => json!({
            "variant": leaf.variant + 1,
            "shapes": leaf.shapes,
            "worst_loss": leaf.worst,
            "worst_loss_between": match leaf.untuned {
                Untuned::UpTo(loss) => Some(loss),
                Untuned::None | Untuned::Unknown => None,
            },
            "known_between": leaf.untuned != Untuned::Unknown,
        }),
        Node::Split {
            axis,
            from,
            first,
            below,
            above,
        } => {
            let table = &portfolio.source.table;
            let axis = table.axes.get(*axis);
            let names = match axis.map(|axis| &axis.values) {
                Some(AxisValues::Names(names)) => names.get(*from..*first),
                _ => None,
            };
            let cut = match names {
                Some(names) => ("in", json!(names)),
                None => ("at_most", json!(portfolio.tree.limit(table, node))),
            };
            json!({
                "size": axis.map(|axis| &axis.name),
                (cut.0): cut.1,
                "then": tree(portfolio, below),
                "else": tree(portfolio, above),
            })
        }
    }
}
