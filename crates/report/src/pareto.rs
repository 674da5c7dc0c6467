//! Pareto front of two objectives, if a run searched for one.

use super::document::Block;
use super::model::Subject;
use super::plots::stairs;
use super::svg::{Canvas, Drawing, Scale, short};
use tuner_core::objective::{Objectives, front};

/// Maximum drawn candidates.
const MAX_DRAWN: usize = 2000;

/// Plots time against the other objective of the latest run with one: all candidates, and the front.
pub(super) fn blocks(subject: &Subject, plot: &str) -> Vec<Block> {
    let objectives = subject.runs.iter().rev().find_map(|line| {
        let text = line.run.settings.get("objective")?.as_str()?;
        text.parse::<Objectives>().ok()
    });
    let Some(objectives) = objectives else {
        return Vec::new();
    };
    let known = subject.candidates.iter().filter_map(|judged| {
        let measured = judged.trial.measurement.as_ref()?;
        // A candidate that passed only the first gate level may be wrong.
        if !measured.is_proven() {
            return None;
        }
        let compiled = judged.trial.compilation.as_ref();
        let [time, other] = objectives
            .both()
            .map(|each| each.value_for(measured, compiled));
        Some(([time?, other?], &judged.trial.config))
    });
    let known: Vec<_> = known.collect();
    let points: Vec<[f64; 2]> = known.iter().map(|(point, _)| *point).collect();
    let ahead: Vec<[f64; 2]> = front(&points)
        .into_iter()
        .filter_map(|at| points.get(at).copied())
        .collect();
    let Some(svg) = draw(&points, &ahead, objectives) else {
        return Vec::new();
    };
    vec![
        Block::Plot {
            name: format!("{plot}-front"),
            svg,
            caption: format!(
                "{} of {} candidates are beaten by none in both objectives.",
                ahead.len(),
                points.len()
            ),
        },
        Block::text(format!(
            "tuner leaderboard --pareto={objectives} lists them with their configurations."
        )),
    ]
}

fn draw(points: &[[f64; 2]], ahead: &[[f64; 2]], objectives: Objectives) -> Option<Drawing> {
    let (width, height) = (760.0, 340.0);
    let ends = |at: usize| -> Option<std::ops::Range<f64>> {
        let all = || {
            points
                .iter()
                .filter_map(move |point| point.get(at).copied())
        };
        let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
        Some(low * 0.95..high * 1.05)
    };
    let x = Scale::log(ends(0)?, 70.0..width - 16.0);
    let y = Scale::log(ends(1)?, height - 46.0..12.0);
    let mut canvas = Canvas::new(width, height);
    for mark in y.marks(6) {
        canvas.line(
            "grid",
            (70.0, y.position(mark)),
            (width - 16.0, y.position(mark)),
        );
        canvas.text("soft", (64.0, y.position(mark) + 4.0), "end", &short(mark));
    }
    for mark in x.marks(8) {
        canvas.text(
            "soft",
            (x.position(mark), height - 30.0),
            "middle",
            &short(mark),
        );
    }
    canvas.line("axis", (70.0, height - 46.0), (width - 16.0, height - 46.0));
    // Dots are thinned out, because the front is drawn completely below.
    let step = points.len().div_ceil(MAX_DRAWN).max(1);
    let title = |[time, other]: &[f64; 2]| format!("{}: {}", short(*time), short(*other));
    for point @ [time, other] in points.iter().step_by(step) {
        canvas.dot(
            "dot",
            (x.position(*time), y.position(*other)),
            2.0,
            &title(point),
        );
    }
    // Points beyond the line are dominated.
    let corners = ahead
        .iter()
        .map(|[time, other]| (x.position(*time), y.position(*other)));
    canvas.polyline("curve l1", &stairs(corners));
    for point @ [time, other] in ahead {
        canvas.dot(
            "best",
            (x.position(*time), y.position(*other)),
            4.0,
            &title(point),
        );
    }
    let [first, second] = objectives
        .both()
        .map(tuner_core::objective::Objective::label);
    canvas.text("soft", (width / 2.0, height - 8.0), "middle", first);
    canvas.upright((14.0, height / 2.0 - 20.0), second);
    Some(canvas.finish("The front of both objectives"))
}
