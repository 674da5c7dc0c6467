//! Score curves as SVG, standalone or in a page: a row of panels for each file, mean and
//! interquartile band for each strategy.

use crate::cli::{CliError, usage};
use std::path::Path;
use tuner_device::replay::Recording;
use tuner_engine::quality::{Scores, Series};
use tuner_report::svg::{self, Canvas, Scale};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Svg,
    Html,
}

impl Kind {
    /// Determines the format by the file extension.
    pub(super) fn from_path(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("html" | "htm") => Ok(Self::Html),
            _ => Err(usage(format!(
                "--plot writes SVG or HTML: name the file `{}.svg` or `.html`",
                path.with_extension("").display()
            ))),
        }
    }
}

const PANEL: (f64, f64) = (420.0, 260.0);
const MARGIN: (f64, f64) = (52.0, 44.0);
const TOP: f64 = 56.0;
const POINTS: usize = 64;
/// Okabe and Ito's palette, distinguishable by colour-blind readers.
const STYLE: &str = "\
svg { background: #fff; font: 12px sans-serif }
.bold { font-weight: bold }
.grid { stroke: #ddd }
.curve { fill: none; stroke: var(--c); stroke-width: 1.8 }
.band { fill: var(--c); fill-opacity: 0.15 }
.key { fill: var(--c) }
.c0 { --c: #0072B2 } .c1 { --c: #D55E00 } .c2 { --c: #009E73 } .c3 { --c: #CC79A7 }
.c4 { --c: #E69F00 } .c5 { --c: #56B4E9 } .c6 { --c: #7a7a7a } .c7 { --c: #000000 }
";
const COLOURS: usize = 8;

/// An axis: quantity and maximum.
struct Axis<'a> {
    title: &'a str,
    low: f64,
    high: f64,
    score: &'a dyn Fn(&Series, f64) -> Scores,
}

/// Draws all series.
pub(super) fn draw(
    kind: Kind,
    series: &[Series],
    recordings: &[Recording],
    strategies: &[String],
    evals: usize,
) -> String {
    let (width, height) = (PANEL.0 + MARGIN.0, PANEL.1 + 2.0 * MARGIN.1);
    let rows = recordings.len() as f64;
    let mut canvas = Canvas::new(2.0 * width + MARGIN.0, TOP + rows * height);
    legend(&mut canvas, strategies);
    for (file, recording) in recordings.iter().enumerate() {
        let of: Vec<&Series> = series.iter().filter(|series| series.file == file).collect();
        let top = TOP + file as f64 * height;
        let title = format!("{}, {}", recording.kernel, recording.device);
        let counted = Axis {
            title: "unique evaluations",
            low: 1.0,
            high: (evals as f64).max(2.0),
            score: &|series, at| series.after(at as usize),
        };
        panel(&mut canvas, [MARGIN.0, top], &title, &of, &counted);
        let spent = of.iter().flat_map(|series| &series.runs);
        // Up to the end of the shortest run: beyond it the mean would include runs that have stopped.
        let most = spent.map(|run| run.charged_us).min().unwrap_or(0) as f64 / 1e6;
        if recording.has_costs() && most > 0.0 {
            let timed = Axis {
                title: "recorded time, s",
                low: most / evals.max(2) as f64,
                high: most,
                score: &|series, at| series.within((at * 1e6) as u64),
            };
            let right = [2.0 * MARGIN.0 + PANEL.0, top];
            panel(&mut canvas, right, &title, &of, &timed);
        }
    }
    let svg = svg::standalone(&canvas.finish("score curves of search strategies"), STYLE);
    match kind {
        Kind::Svg => svg,
        Kind::Html => format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tuner replay</title>\n<body style=\"max-width:1100px;margin:auto\">\n{svg}</body></html>\n"
        ),
    }
}

fn legend(canvas: &mut Canvas, strategies: &[String]) {
    let note = "line: mean score over seeds; band: the middle half of the runs";
    canvas.text("", (MARGIN.0, 16.0), "start", note);
    for (at, strategy) in strategies.iter().enumerate() {
        let x = MARGIN.0 + 110.0 * at as f64;
        let class = format!("key c{}", at % COLOURS);
        canvas.bar(&class, (x, 26.0), (14.0, 10.0), strategy);
        canvas.text("", (x + 18.0, 35.0), "start", strategy);
    }
}

fn panel(canvas: &mut Canvas, [x, y]: [f64; 2], title: &str, series: &[&Series], axis: &Axis<'_>) {
    let ratio = (axis.high / axis.low).ln();
    let at = |point: usize| axis.low * (ratio * point as f64 / (POINTS - 1) as f64).exp();
    let curves: Vec<Vec<Scores>> = series
        .iter()
        .map(|series| {
            (0..POINTS)
                .map(|point| (axis.score)(series, at(point)))
                .collect()
        })
        .collect();
    // The lower end of the axis is the weakest curve's value at a quarter.
    let early = curves.iter().map(|curve| curve[POINTS / 4].quantile(0.25));
    let floor = early.fold(1.0, f64::min).min(0.9);
    let floor = (floor * 10.0).floor() / 10.0;
    let (right, bottom) = (x + PANEL.0, y + PANEL.1);
    let across = Scale::log(axis.low..axis.high, x..right);
    let down = Scale::linear(floor..1.0, bottom..y);
    canvas.text("bold", (x, y - 6.0), "start", title);
    for score in down.marks(10) {
        let height = down.position(score);
        canvas.line("grid", (x, height), (right, height));
        canvas.text("", (x - 5.0, height + 4.0), "end", &svg::short(score));
    }
    for tick in across.marks(9) {
        let place = across.position(tick);
        canvas.line("grid", (place, y), (place, bottom));
        canvas.text("", (place, bottom + 14.0), "middle", &svg::short(tick));
    }
    canvas.text("", (right, bottom + 29.0), "end", axis.title);
    for (place, curve) in curves.iter().enumerate() {
        let line = |score: &dyn Fn(&Scores) -> f64| -> Vec<(f64, f64)> {
            let points = curve.iter().enumerate();
            points
                .map(|(point, scores)| {
                    (
                        across.position(at(point)),
                        down.position(score(scores).max(floor)),
                    )
                })
                .collect()
        };
        let colour = place % COLOURS;
        let mut band = line(&|scores| scores.quantile(0.25));
        band.extend(line(&|scores| scores.quantile(0.75)).into_iter().rev());
        canvas.area(&format!("band c{colour}"), &band);
        canvas.polyline(&format!("curve c{colour}"), &line(&Scores::mean));
    }
}
