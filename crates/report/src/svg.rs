//! Plots as SVG text. Colours are style variables, so the same drawing serves light and dark.

use std::fmt::Write as _;
use std::ops::Range;
use tuner_core::escape::markup;

/// A finished drawing: an `svg` element with escaped texts. Only [`Canvas::finish`] constructs one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing(String);

impl std::fmt::Display for Drawing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A position in a drawing, or the size of a part; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    x: f64,
    y: f64,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y }
    }
}

/// A drawing in progress.
#[derive(Debug)]
pub struct Canvas {
    body: String,
    width: f64,
    height: f64,
}

impl Canvas {
    /// Creates an empty drawing of that size.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            body: String::new(),
            width,
            height,
        }
    }

    /// Draws a straight line; the style sheet defines the look of each `class`, here and below.
    pub fn line(&mut self, class: &str, from: impl Into<Point>, to: impl Into<Point>) {
        let (from, to) = (from.into(), to.into());
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.x, from.y, to.x, to.y
        );
    }

    /// Draws a line through points.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        self.points("polyline", class, points);
    }

    /// Draws an area with those corners.
    pub fn area(&mut self, class: &str, corners: &[(f64, f64)]) {
        self.points("polygon", class, corners);
    }

    fn points(&mut self, element: &str, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        let _ = writeln!(
            self.body,
            "<{element} class=\"{class}\" points=\"{points}\"/>"
        );
    }

    /// Draws a dot; `title` is its tooltip.
    pub fn dot(&mut self, class: &str, at: impl Into<Point>, radius: f64, title: &str) {
        let at = at.into();
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title></circle>",
            at.x,
            at.y,
            markup(title)
        );
    }

    /// Draws a rectangle; `title` is its tooltip.
    pub fn bar(&mut self, class: &str, at: impl Into<Point>, size: impl Into<Point>, title: &str) {
        let (at, size) = (at.into(), size.into());
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{}</title></rect>",
            at.x,
            at.y,
            // A bar of zero width would be invisible and have no tooltip.
            size.x.max(0.5),
            size.y,
            markup(title)
        );
    }

    /// Draws text; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, class: &str, at: impl Into<Point>, anchor: &str, text: &str) {
        let at = at.into();
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.x,
            at.y,
            markup(text)
        );
    }

    /// Draws text that runs upwards.
    pub fn upright(&mut self, at: impl Into<Point>, text: &str) {
        let Point { x, y } = at.into();
        let _ = writeln!(
            self.body,
            "<text class=\"soft\" transform=\"rotate(-90 {x:.1} {y:.1})\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
            markup(text)
        );
    }

    /// Finishes the element with an accessible label.
    #[must_use]
    pub fn finish(self, label: &str) -> Drawing {
        Drawing(format!(
            "<svg class=\"plot\" role=\"img\" aria-label=\"{}\" \
             viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">\n{}</svg>",
            markup(label),
            self.width,
            self.height,
            self.width,
            self.height,
            self.body
        ))
    }
}

/// Formats a drawing as a standalone file, with its name space and style; HTML needs neither.
#[must_use]
pub fn standalone(Drawing(svg): &Drawing, style: &str) -> String {
    match svg.split_once(">\n") {
        Some((head, body)) => format!(
            "{head} xmlns=\"http://www.w3.org/2000/svg\">\n<style>\n{style}</style>\n{body}\n"
        ),
        None => svg.clone(),
    }
}

/// A scale from values to positions, linear or logarithmic.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// Creates a linear scale; an empty range is widened.
    #[must_use]
    pub fn linear(values: Range<f64>, positions: Range<f64>) -> Self {
        let (
            Range {
                start: low,
                end: high,
            },
            Range {
                start: from,
                end: to,
            },
        ) = (values, positions);
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
            log: false,
        }
    }

    /// Creates a logarithmic scale over positive values.
    #[must_use]
    pub fn log(values: Range<f64>, positions: Range<f64>) -> Self {
        let (
            Range {
                start: low,
                end: high,
            },
            Range {
                start: from,
                end: to,
            },
        ) = (values, positions);
        let low = low.max(1e-12);
        let high = if high > low * 1.0001 { high } else { low * 2.0 };
        Self {
            low: low.ln(),
            high: high.ln(),
            from,
            to,
            log: true,
        }
    }

    /// Returns the position of a value.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        let value = if self.log {
            // Numbers that are not positive have no logarithm.
            value.max(1e-12).ln()
        } else {
            value
        };
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Returns round values to mark, at most about `most`.
    #[must_use]
    pub fn marks(&self, most: usize) -> Vec<f64> {
        if self.log {
            return self.log_marks(most);
        }
        let raw = (self.high - self.low) / most.max(1) as f64;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= raw)
            .unwrap_or(raw);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }

    fn log_marks(&self, most: usize) -> Vec<f64> {
        let (low, high) = (self.low.exp(), self.high.exp());
        let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        let all = |factors: &[f64]| -> Vec<f64> {
            let marks = decades.clone().flat_map(|decade| {
                factors
                    .iter()
                    .map(move |factor| factor * 10f64.powi(decade))
            });
            // Logarithms and powers are rounded: a mark at an end must stay.
            let inside = |mark: &f64| *mark >= low * 0.9999 && *mark <= high * 1.0001;
            marks.filter(inside).collect()
        };
        for factors in [
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0][..],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ] {
            let marks = all(factors);
            // A narrow range contains no round factors, so its marks are those of a linear scale.
            if marks.len() < 2 && factors.len() > 3 {
                return Self::linear(low..high, 0.0..1.0).marks(most);
            }
            if marks.len() <= most.max(2) {
                return marks;
            }
        }
        let marks = all(&[1.0]);
        let every = marks.len().div_ceil(most.max(1));
        marks.into_iter().step_by(every.max(1)).collect()
    }
}

/// Formats a number with the digits of a mark.
#[must_use]
pub fn short(value: f64) -> String {
    let size = value.abs();
    let digits = |value: f64, digits: usize| {
        let text = format!("{value:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    };
    match size {
        s if s >= 1e9 => format!("{}G", digits(value / 1e9, 1)),
        s if s >= 1e6 => format!("{}M", digits(value / 1e6, 1)),
        s if s >= 1e4 => format!("{}k", digits(value / 1e3, 1)),
        s if s >= 100.0 => digits(value, 0),
        s if s >= 1.0 => digits(value, 2),
        _ => digits(value, 4),
    }
}

#[cfg(test)]
mod tests;
