//! A portfolio as a report: Markdown, HTML and a plot of loss over size.

use super::{Choice, DecisionTree, Losses, Table, TreeText, percent, variants};
use crate::document::{Block, code, plain};
use crate::svg::{Canvas, Drawing, Scale, short};
use crate::{Files, collect, html, markdown};
use tuner_core::record::{TimingKind, assignments};
use tuner_core::units::counted;

/// A chosen portfolio with its table.
pub struct PortfolioInput<'a> {
    /// Kernel.
    pub kernel: &'a str,
    /// Devices of the times.
    pub device: &'a str,
    /// Requested loss.
    pub loss: f64,
    /// Times.
    pub table: &'a Table,
    /// Losses of the table.
    pub losses: &'a Losses,
    /// The portfolio.
    pub choice: &'a Choice,
    /// Best sets of several sizes.
    pub curve: &'a [(usize, Choice)],
    /// Dispatch over the sizes.
    pub tree: &'a DecisionTree,
}

/// Writes the report of a portfolio.
#[must_use]
pub fn write_portfolio(input: &PortfolioInput<'_>) -> Files {
    let blocks = blocks(input);
    let mut plots = Vec::new();
    collect(&blocks, &mut plots);
    Files {
        markdown: markdown::write(&blocks),
        html: html::write("Portfolio", &blocks),
        plots,
    }
}

fn blocks(input: &PortfolioInput<'_>) -> Vec<Block> {
    let table = input.table;
    let kind = match table.timing {
        TimingKind::Predicted => "predicted times (no measurement)",
        TimingKind::Recorded => "recorded times",
        TimingKind::Measured => "measured times",
    };
    let mut blocks = vec![
        Block::Heading(1, format!("Portfolio of {}", code(input.kernel))),
        Block::text(format!(
            "{} for {} on {}, from {kind} of {}: worst loss {}, mean {}, against the best known of each \
             shape.",
            counted(input.choice.members.len(), "variant"),
            counted(table.shapes.len(), "shape"),
            plain(input.device),
            counted(table.configs.len(), "configuration"),
            percent(input.choice.worst),
            percent(input.choice.mean),
        )),
        Block::table(
            &[
                "variant",
                "configuration",
                "shapes",
                "worst",
                "mean",
                "without it",
            ],
            2,
            variant_rows(input),
        ),
        Block::Heading(2, "Loss against the number of variants".to_owned()),
        Block::Plot {
            name: "portfolio".to_owned(),
            svg: draw_curve(input),
            caption: "Worst and mean loss of the best set of each size".to_owned(),
        },
        Block::table(
            &["variants", "worst", "mean", "proven bound of the worst"],
            0,
            curve_rows(input.curve),
        ),
        Block::Heading(2, "Decision tree".to_owned()),
    ];
    let tree = TreeText {
        tree: input.tree,
        table,
    };
    blocks.push(Block::Code("text", tree.to_string()));
    blocks.push(Block::Heading(2, "Shapes".to_owned()));
    blocks.push(Block::table(
        &["shape", "best, µs", "variant", "loss"],
        1,
        shape_rows(input),
    ));
    blocks
}

fn variant_rows(input: &PortfolioInput<'_>) -> Vec<Vec<String>> {
    let all = variants(input.losses, &input.choice.members);
    let row = |(place, variant): (usize, &super::Variant)| {
        let config = input.table.configs.get(variant.config);
        vec![
            (place + 1).to_string(),
            code(&config.map_or_else(String::new, |config| assignments(config, " "))),
            variant.shapes.to_string(),
            percent(variant.worst),
            percent(variant.mean),
            without(variant.without),
        ]
    };
    all.iter().enumerate().map(row).collect()
}

/// Formats the worst loss without a variant.
#[must_use]
pub(super) fn without(loss: f64) -> String {
    if loss.is_finite() {
        percent(loss)
    } else {
        "a shape has none".to_owned()
    }
}

fn curve_rows(curve: &[(usize, Choice)]) -> Vec<Vec<String>> {
    let row = |(size, choice): &(usize, Choice)| {
        vec![
            size.to_string(),
            percent(choice.worst),
            percent(choice.mean),
            percent(choice.bound),
        ]
    };
    curve.iter().map(row).collect()
}

fn shape_rows(input: &PortfolioInput<'_>) -> Vec<Vec<String>> {
    let best = input.table.best_times();
    let shapes = input.table.shapes.iter().enumerate();
    let row = |(index, shape): (usize, &super::Shape)| {
        let (member, loss) = input.losses.best_member(&input.choice.members, index)?;
        let place = input.choice.members.iter().position(|one| *one == member)?;
        let best = best.get(index).copied().flatten()?;
        Some(vec![
            plain(&shape.name),
            format!("{best:.3}"),
            (place + 1).to_string(),
            percent(loss),
        ])
    };
    shapes.filter_map(row).collect()
}

/// Draws worst and mean loss over the number of variants.
fn draw_curve(input: &PortfolioInput<'_>) -> Drawing {
    let curve = input.curve;
    let (width, height) = (640.0, 300.0);
    let most = curve.iter().map(|(size, _)| *size).max().unwrap_or(1) as f64;
    let high = curve.iter().map(|(_, choice)| choice.worst);
    let high = 100.0 * high.fold(input.loss, f64::max).max(0.001);
    let x = Scale::linear(0.0..most + 0.5, 64.0..width - 90.0);
    let y = Scale::linear(0.0..high * 1.08, height - 46.0..14.0);
    let mut canvas = Canvas::new(width, height);
    for mark in y.marks(6) {
        let level = y.position(mark);
        canvas.line("grid", (64.0, level), (width - 90.0, level));
        canvas.text(
            "soft",
            (58.0, level + 4.0),
            "end",
            &format!("{} %", short(mark)),
        );
    }
    let limit = y.position(100.0 * input.loss);
    canvas.line("dash", (64.0, limit), (width - 90.0, limit));
    canvas.text("soft", (width - 86.0, limit + 4.0), "start", "allowed");
    for (size, _) in curve {
        let at = x.position(*size as f64);
        canvas.text("soft", (at, height - 30.0), "middle", &size.to_string());
    }
    canvas.text(
        "soft",
        (width / 2.0, height - 10.0),
        "middle",
        "number of variants",
    );
    type Figure = fn(&Choice) -> f64;
    let figures: [(&str, Figure, usize); 2] = [
        ("worst", |choice| choice.worst, 2),
        ("mean", |choice| choice.mean, 1),
    ];
    for (name, figure, colour) in figures {
        let at = |(size, choice): &(usize, Choice)| {
            (x.position(*size as f64), y.position(100.0 * figure(choice)))
        };
        let points: Vec<(f64, f64)> = curve.iter().map(at).collect();
        canvas.polyline(&format!("curve l{colour}"), &points);
        for ((size, choice), at) in curve.iter().zip(&points) {
            let title = format!("{size}: {name} {}", percent(figure(choice)));
            canvas.dot(&format!("f{colour}"), *at, 4.0, &title);
        }
        if let Some((px, py)) = points.last() {
            canvas.text("", (px + 8.0, py - 6.0), "start", name);
        }
    }
    canvas.finish("Worst and mean loss over the number of variants")
}

#[cfg(test)]
mod tests;
