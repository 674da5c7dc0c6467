//! The plots besides the roofline: speed-ups, convergence, effects, costs of choices.

use super::analysis::Effect;
use super::model::Change;
use super::svg::{Canvas, Drawing, Scale, short};
use tuner_store::TimeLine;

/// Maximum drawn curves: the newest runs.
const MAX_DRAWN_RUNS: usize = 12;

/// Draws bars of speed-ups with their intervals; the line is 1.
pub(super) fn speedups(rows: &[(String, [f64; 3])]) -> Drawing {
    let (width, left, step) = (760.0, 300.0, 26.0);
    let height = 34.0 + step * rows.len() as f64 + 8.0;
    let most = rows.iter().map(|(_, ratio)| ratio[2]).fold(1.2, f64::max);
    let x = Scale::linear(0.0..most * 1.08, left..width - 60.0);
    let mut canvas = Canvas::new(width, height);
    for mark in x.marks(6) {
        canvas.line(
            "grid",
            (x.position(mark), 24.0),
            (x.position(mark), height - 8.0),
        );
        canvas.text(
            "soft",
            (x.position(mark), 16.0),
            "middle",
            &format!("{}x", short(mark)),
        );
    }
    canvas.line(
        "axis",
        (x.position(1.0), 24.0),
        (x.position(1.0), height - 8.0),
    );
    for (at, (name, [ratio, low, high])) in rows.iter().enumerate() {
        let y = 34.0 + step * at as f64;
        let class = if *ratio >= 1.0 { "f1" } else { "bad" };
        canvas.bar(
            class,
            (left, y),
            (x.position(*ratio) - left, 16.0),
            &format!("{ratio:.3}x"),
        );
        if high > low {
            canvas.line(
                "axis",
                (x.position(*low), y + 8.0),
                (x.position(*high), y + 8.0),
            );
            canvas.line(
                "axis",
                (x.position(*low), y + 4.0),
                (x.position(*low), y + 12.0),
            );
            canvas.line(
                "axis",
                (x.position(*high), y + 4.0),
                (x.position(*high), y + 12.0),
            );
        }
        canvas.text("", (left - 8.0, y + 12.0), "end", &cut(name, 44));
        canvas.text(
            "",
            (x.position(*high) + 6.0, y + 12.0),
            "start",
            &format!("{ratio:.2}x"),
        );
    }
    canvas.finish("Speed-ups over the baseline")
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{head}…")
}

/// Draws best time so far over candidates judged, one curve for each run. `None` if none passed.
#[expect(clippy::indexing_slicing, reason = "the start is at most the length")]
pub(super) fn convergence(runs: &[TimeLine], default_us: Option<f64>) -> Option<Drawing> {
    let curves: Vec<(f64, Vec<(f64, f64)>)> = runs
        .iter()
        .map(|line| (line.steps.len() as f64, best_so_far(line)))
        .filter(|(_, curve)| !curve.is_empty())
        .collect();
    let curves = &curves[curves.len().saturating_sub(MAX_DRAWN_RUNS)..];
    let all = || curves.iter().flat_map(|(_, curve)| curve.iter().copied());
    let first = all().map(|(x, _)| x).reduce(f64::max)?;
    let most = runs
        .iter()
        .map(|run| run.steps.len() as f64)
        .fold(first, f64::max);
    let low = all().map(|(_, y)| y).fold(f64::INFINITY, f64::min);
    let high = all()
        .map(|(_, y)| y)
        .fold(default_us.unwrap_or(0.0), f64::max);
    let (width, height) = (760.0, 320.0);
    let x = Scale::linear(0.0..most, 70.0..width - 16.0);
    let y = Scale::log(low * 0.97..high * 1.05, height - 46.0..12.0);
    let mut canvas = Canvas::new(width, height);
    for mark in y.marks(6) {
        canvas.line(
            "grid",
            (70.0, y.position(mark)),
            (width - 16.0, y.position(mark)),
        );
        canvas.text("soft", (64.0, y.position(mark) + 4.0), "end", &short(mark));
    }
    for mark in x.marks(8).into_iter().filter(|mark| mark.fract() == 0.0) {
        canvas.text(
            "soft",
            (x.position(mark), height - 30.0),
            "middle",
            &short(mark),
        );
    }
    canvas.line("axis", (70.0, height - 46.0), (width - 16.0, height - 46.0));
    if let Some(us) = default_us {
        canvas.line(
            "dash",
            (70.0, y.position(us)),
            (width - 16.0, y.position(us)),
        );
        canvas.text(
            "soft",
            (width - 20.0, y.position(us) - 5.0),
            "end",
            "default",
        );
    }
    for (at, (steps, curve)) in curves.iter().enumerate() {
        let mut points = stairs(
            curve
                .iter()
                .map(|(evals, us)| (x.position(*evals), y.position(*us))),
        );
        if let Some((_, last)) = points.last().copied() {
            points.push((x.position(*steps), last));
        }
        canvas.polyline(&format!("curve l{}", at % 4 + 1), &points);
    }
    canvas.text(
        "soft",
        (width / 2.0, height - 8.0),
        "middle",
        "candidates judged",
    );
    canvas.upright((14.0, height / 2.0 - 20.0), "best so far, µs");
    Some(canvas.finish("Best time so far over candidates judged"))
}

/// Connects the points by steps.
pub(super) fn stairs(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut stairs: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        stairs.extend(stairs.last().map(|(_, before)| (x, *before)));
        stairs.push((x, y));
    }
    stairs
}

/// Returns the steps of the best-so-far curve: candidates judged, best time.
fn best_so_far(line: &TimeLine) -> Vec<(f64, f64)> {
    let mut best = f64::INFINITY;
    let mut curve = Vec::new();
    for (at, step) in line.steps.iter().enumerate() {
        if let Some(us) = step.p50_us.filter(|us| *us < best) {
            best = us;
            curve.push(((at + 1) as f64, us));
        }
    }
    curve
}

/// Draws, for each parameter, the best time with each of its values over the best of all.
pub(super) fn effects(effects: &[Effect], best_us: f64) -> Drawing {
    const COLUMNS: usize = 4;
    let (cell_width, cell_height) = (190.0, 150.0);
    let lines = effects.len().div_ceil(COLUMNS);
    let mut canvas = Canvas::new(cell_width * COLUMNS as f64, cell_height * lines as f64);
    for (at, effect) in effects.iter().enumerate() {
        let left = cell_width * (at % COLUMNS) as f64 + 34.0;
        let top = cell_height * (at / COLUMNS) as f64 + 24.0;
        let (right, bottom) = (left + cell_width - 46.0, top + cell_height - 50.0);
        let title = format!(
            "{} ({:.0} %)",
            cut(&effect.parameter, 18),
            100.0 * effect.share
        );
        canvas.text("", (left, top - 8.0), "start", &title);
        let times: Vec<Option<f64>> = effect
            .values
            .iter()
            .map(|value| value.best_us.map(|us| us / best_us))
            .collect();
        // Equal times need a range of non-zero width.
        let worst = times.iter().flatten().copied().fold(1.05, f64::max);
        let y = Scale::log(1.0..worst, bottom..top);
        for mark in [1.0, worst] {
            canvas.line("grid", (left, y.position(mark)), (right, y.position(mark)));
            canvas.text(
                "soft",
                (left - 4.0, y.position(mark) + 4.0),
                "end",
                &short((mark * 100.0).round() / 100.0),
            );
        }
        let step = (right - left) / effect.values.len() as f64;
        let every = effect.values.len().div_ceil(6);
        let mut curve = Vec::new();
        for (place, (value, time)) in effect.values.iter().zip(&times).enumerate() {
            let x = left + step * (place as f64 + 0.5);
            if place % every == 0 {
                canvas.text("soft", (x, bottom + 15.0), "middle", &cut(&value.value, 6));
            }
            let told = format!(
                "{} = {}: {} of {} passed",
                effect.parameter, value.value, value.passed, value.judged
            );
            match time {
                Some(time) => {
                    curve.push((x, y.position(*time)));
                    let class = if *time <= 1.0 { "best" } else { "f1" };
                    canvas.dot(
                        class,
                        (x, y.position(*time)),
                        4.0,
                        &format!("{told}, best {time:.3}x"),
                    );
                }
                None => canvas.text("soft", (x, top + 12.0), "middle", "✕"),
            }
        }
        if curve.len() > 1 {
            canvas.polyline("curve l1", &curve);
        }
    }
    canvas.finish("Best time with each value of each parameter, over the best of all")
}

/// Draws the saving of each choice of the winner: the cheapest other value of each parameter.
pub(super) fn ablation(changes: &[Change]) -> Option<Drawing> {
    let mut cheapest: Vec<&Change> = Vec::new();
    for change in changes.iter().filter(|change| change.cost.is_some()) {
        match cheapest
            .iter_mut()
            .find(|other| other.parameter == change.parameter)
        {
            Some(other) if other.cost > change.cost => *other = change,
            Some(_) => {}
            None => cheapest.push(change),
        }
    }
    if cheapest.is_empty() {
        return None;
    }
    cheapest.sort_by(|a, b| b.cost.unwrap_or(0.0).total_cmp(&a.cost.unwrap_or(0.0)));
    let rows: Vec<(String, f64)> = cheapest
        .iter()
        .map(|change| {
            let name = format!("{}: {} → {}", change.parameter, change.from, change.to);
            (name, 100.0 * (change.cost.unwrap_or(1.0) - 1.0))
        })
        .collect();
    let (width, left, step) = (760.0, 280.0, 22.0);
    let height = 30.0 + step * rows.len() as f64 + 6.0;
    let most = rows.iter().map(|(_, cost)| *cost).fold(5.0, f64::max);
    let least = rows.iter().map(|(_, cost)| *cost).fold(0.0, f64::min);
    let x = Scale::linear(least..most * 1.1, left..width - 70.0);
    let mut canvas = Canvas::new(width, height);
    for mark in x.marks(6) {
        canvas.line(
            "grid",
            (x.position(mark), 22.0),
            (x.position(mark), height - 6.0),
        );
        canvas.text(
            "soft",
            (x.position(mark), 14.0),
            "middle",
            &format!("{}%", short(mark)),
        );
    }
    for (at, (name, cost)) in rows.iter().enumerate() {
        let y = 28.0 + step * at as f64;
        let (from, to) = (
            x.position(0.0).min(x.position(*cost)),
            x.position(0.0).max(x.position(*cost)),
        );
        canvas.bar(
            if *cost >= 0.0 { "f2" } else { "f3" },
            (from, y),
            (to - from, 14.0),
            &format!("{cost:+.1} %"),
        );
        canvas.text("", (left - 8.0, y + 11.0), "end", &cut(name, 42));
        canvas.text("", (to + 6.0, y + 11.0), "start", &format!("{cost:+.1} %"));
    }
    Some(canvas.finish("What each choice of the winner saves"))
}
