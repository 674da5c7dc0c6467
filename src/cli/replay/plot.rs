//! Score curves as SVG, alone or in a page: a row of panels a file, mean and interquartile band a
//! strategy.

use super::CliError;
use std::fmt::Write as _;
use std::path::Path;
use tuner_device::replay::Recording;
use tuner_engine::quality::{Scores, Series};

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Svg,
    Html,
}

impl Kind {
    /// By the name's ending.
    pub(super) fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("html" | "htm") => Ok(Self::Html),
            _ => Err(CliError::Usage(format!(
                "error: --plot writes SVG or HTML: name the file `{}.svg` or `.html`",
                path.with_extension("").display()
            ))),
        }
    }
}

const PANEL: (f64, f64) = (420.0, 260.0);
const MARGIN: (f64, f64) = (52.0, 44.0);
const TOP: f64 = 56.0;
const POINTS: usize = 64;
/// Okabe and Ito's palette, told apart by colour-blind readers too.
const COLOURS: [&str; 8] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7a7a7a", "#000000",
];

/// One axis: what is counted, up to where.
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
    let rows = recordings.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        2.0 * width + MARGIN.0,
        TOP + rows as f64 * height
    );
    legend(&mut svg, strategies);
    for (file, recording) in recordings.iter().enumerate() {
        let of: Vec<&Series> = series.iter().filter(|series| series.file == file).collect();
        let top = TOP + file as f64 * height;
        let title = format!("{}, {}", recording.kernel(), recording.device());
        let counted = Axis {
            title: "unique evaluations",
            low: 1.0,
            high: (evals as f64).max(2.0),
            score: &|series, at| series.after(at as usize),
        };
        panel(&mut svg, (MARGIN.0, top), &title, &of, &counted);
        let spent = of.iter().flat_map(|series| &series.runs);
        let most = spent.map(|run| run.charged_us).min().unwrap_or(0) as f64 / 1e6;
        if recording.has_costs() && most > 0.0 {
            let timed = Axis {
                title: "recorded time, s",
                low: most / evals.max(2) as f64,
                high: most,
                score: &|series, at| series.within((at * 1e6) as u64),
            };
            panel(
                &mut svg,
                (2.0 * MARGIN.0 + PANEL.0, top),
                &title,
                &of,
                &timed,
            );
        }
    }
    svg.push_str("</svg>\n");
    match kind {
        Kind::Svg => svg,
        Kind::Html => format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tuner replay</title>\n<body style=\"max-width:1100px;margin:auto\">\n{svg}</body></html>\n"
        ),
    }
}

fn legend(svg: &mut String, strategies: &[String]) {
    let note = "line: mean score over seeds; band: the middle half of the runs";
    let _ = writeln!(svg, "<text x=\"{}\" y=\"16\">{note}</text>", MARGIN.0);
    for (at, strategy) in strategies.iter().enumerate() {
        let x = MARGIN.0 + 110.0 * at as f64;
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"26\" width=\"14\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"35\">{}</text>",
            x + 18.0,
            escape(strategy)
        );
    }
}

fn panel(svg: &mut String, (x, y): (f64, f64), title: &str, series: &[&Series], axis: &Axis<'_>) {
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
    // The lower end is where the weakest curve is a quarter of the way.
    let early = curves.iter().map(|curve| curve[POINTS / 4].quantile(0.25));
    let floor = early.fold(1.0, f64::min).min(0.9);
    let floor = (floor * 10.0).floor() / 10.0;
    let across = |value: f64| x + PANEL.0 * (value / axis.low).ln() / ratio;
    let down = |score: f64| y + PANEL.1 * (1.0 - (score.max(floor) - floor) / (1.0 - floor));
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        y - 6.0,
        escape(title)
    );
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>",
        PANEL.0, PANEL.1
    );
    grid(svg, (x, y), floor, axis, &across, &down);
    for (place, curve) in curves.iter().enumerate() {
        let line = |score: &dyn Fn(&Scores) -> f64| -> Vec<String> {
            let points = curve.iter().enumerate();
            points
                .map(|(point, scores)| {
                    format!("{:.1},{:.1}", across(at(point)), down(score(scores)))
                })
                .collect()
        };
        let colour = COLOURS[place % COLOURS.len()];
        let mut band = line(&|scores| scores.quantile(0.25));
        band.extend(line(&|scores| scores.quantile(0.75)).into_iter().rev());
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.15\"/>\n<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>",
            band.join(" "),
            line(&Scores::mean).join(" ")
        );
    }
}

/// Ticks: powers of ten and their halves across, tenths of the score down.
fn grid(
    svg: &mut String,
    (x, y): (f64, f64),
    floor: f64,
    axis: &Axis<'_>,
    across: &dyn Fn(f64) -> f64,
    down: &dyn Fn(f64) -> f64,
) {
    let (right, bottom) = (x + PANEL.0, y + PANEL.1);
    let rule = |svg: &mut String, [x1, y1, x2, y2]: [f64; 4]| {
        let _ = writeln!(
            svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
        );
    };
    let mut score = 1.0;
    while score > floor - 0.01 {
        let height = down(score);
        rule(svg, [x, height, right, height]);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{score:.1}</text>",
            x - 5.0,
            height + 4.0
        );
        score -= 0.1;
    }
    let first = axis.low.log10().floor() as i32;
    let last = axis.high.log10().ceil() as i32;
    let ticks = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|by| by * 10_f64.powi(power)));
    for tick in ticks.filter(|tick| (axis.low..=axis.high).contains(tick)) {
        rule(svg, [across(tick), y, across(tick), bottom]);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            across(tick),
            bottom + 14.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        right,
        bottom + 29.0,
        axis.title
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
