//! The roofline of a device with the candidates (Williams, Waterman and Patterson 2009).

use super::analysis::{counter, time};
use super::document::Block;
use super::model::Subject;
use super::svg::{Canvas, Drawing, Scale, short};
use tuner_core::roofline::explain_impossible;
use vgpu::Arch;
use vgpu::arch::by_device_name;

/// Maximum number of drawn candidates; more are thinned out evenly, the best are always drawn.
const MAX_DRAWN_CANDIDATES: usize = 600;

/// Returns the minimum time of these operations and bytes, µs, and its limit; `None` if neither is
/// known.
pub(super) fn floor_us(
    flops: Option<f64>,
    bytes: Option<f64>,
    tensor: bool,
    arch: &Arch,
) -> Option<(f64, &'static str)> {
    let [compute, memory] = arch.floors_us(flops.unwrap_or(0.0), bytes.unwrap_or(0.0), tensor);
    let floor = if compute >= memory {
        (compute, "arithmetic")
    } else {
        (memory, "memory bandwidth")
    };
    (floor.0 > 0.0).then_some(floor)
}

/// A candidate: operations per byte moved, operations per second, time and whether it is the best
/// or the default.
struct Point {
    intensity: f64,
    rate: f64,
    us: f64,
}

/// Builds the plot and its text; text only if the peaks or the work are unknown.
pub(super) fn blocks(subject: &Subject, name: &str) -> Vec<Block> {
    let device = &subject.board.key.device;
    let Some(kernel) = subject
        .kernel
        .as_ref()
        .filter(|kernel| kernel.flops.is_some() || kernel.bytes.is_some())
    else {
        let why = if subject.kernel.is_some() {
            "the search space has no `metric`"
        } else {
            "how many operations and bytes the problem takes is not recorded"
        };
        return vec![Block::text(format!("No roofline: {why}."))];
    };
    let Some(arch) = by_device_name(device) else {
        return vec![Block::text(format!(
            "No roofline: the peaks of {} are not known here.",
            super::document::code(device)
        ))];
    };
    let mut blocks = Vec::new();
    let floor = floor_us(kernel.flops, kernel.bytes, kernel.tensor, arch);
    if let (Some((floor, by)), Some(best)) = (floor, subject.best()) {
        blocks.push(Block::text(format!(
            "Floor of the roofline: {floor:.3} µs, set by {by}. The best takes {:.2} times that ({:.0} % of the roofline).",
            best.time_us_p50 / floor,
            100.0 * floor / best.time_us_p50
        )));
        let (flops, bytes) = (kernel.flops.unwrap_or(0.0), kernel.bytes.unwrap_or(0.0));
        let least = arch.least_us(flops, bytes, kernel.tensor);
        if let Some(why) = explain_impossible(best.time_us_p50, least) {
            blocks.push(Block::text(format!("The best is {why}.")));
        }
    }
    let (Some(flops), Some(bytes)) = (kernel.flops, kernel.bytes) else {
        return blocks;
    };
    let peak = match kernel.tensor {
        true => arch.peak_tensor_f16(),
        false => arch.peak_fp32(),
    };
    let points = points(subject, flops, bytes);
    if !points.is_empty() {
        let counted = subject
            .candidates
            .iter()
            .any(|c| counter(&c.trial, "global_load_sectors").is_some());
        let across = if counted {
            "bytes that global accesses moved"
        } else {
            "bytes that must move"
        };
        blocks.push(Block::Plot {
            name: format!("{name}-roofline"),
            svg: draw(&points, arch, peak, flops / bytes, across),
            caption: format!(
                "Roofline of {} with {} candidates: operations a second over operations a byte ({across}). \
                 The large dot is the best; the dashed line is the problem's own intensity.",
                arch.full_name,
                points.len()
            ),
        });
    }
    blocks
}

/// Returns all candidates with a time, the slowest first so that the best is drawn last.
fn points(subject: &Subject, flops: f64, bytes: f64) -> Vec<Point> {
    let mut points: Vec<Point> = subject
        .candidates
        .iter()
        .filter_map(|judged| {
            let us = time(&judged.trial)?;
            let sectors = |key| counter(&judged.trial, key).unwrap_or(0.0);
            let moved = (sectors("global_load_sectors") + sectors("global_store_sectors")) * 32.0;
            // A candidate without counters has moved at least these bytes.
            let moved = if moved > 0.0 { moved } else { bytes };
            Some(Point {
                intensity: flops / moved,
                rate: flops / us * 1e6,
                us,
            })
        })
        .collect();
    points.sort_by(|a, b| b.us.total_cmp(&a.us));
    let thin = points.len().div_ceil(MAX_DRAWN_CANDIDATES).max(1);
    let last = points.len().saturating_sub(1);
    let mut at = 0;
    points.retain(|_| {
        at += 1;
        (at - 1) % thin == 0 || at - 1 == last
    });
    points
}

fn draw(points: &[Point], arch: &Arch, peak: f64, own: f64, across: &str) -> Drawing {
    let (width, height) = (760.0, 400.0);
    let bandwidth = arch.dram_gb_s * 1e9;
    let ridge = peak / bandwidth;
    let of = |pick: fn(&Point) -> f64| points.iter().map(pick);
    let low = of(|p| p.intensity).fold(own.min(ridge), f64::min) / 2.0;
    let high = of(|p| p.intensity).fold(own.max(ridge), f64::max) * 2.0;
    let slow = of(|p| p.rate).fold(peak, f64::min) / 2.0;
    let x = Scale::log(low..high, 64.0..width - 16.0);
    let y = Scale::log(slow.min(bandwidth * low)..peak * 2.0, height - 48.0..12.0);
    let mut canvas = Canvas::new(width, height);
    for mark in x.marks(8) {
        canvas.line(
            "grid",
            (x.position(mark), 12.0),
            (x.position(mark), height - 48.0),
        );
        canvas.text(
            "soft",
            (x.position(mark), height - 32.0),
            "middle",
            &short(mark),
        );
    }
    for mark in y.marks(7) {
        canvas.line(
            "grid",
            (64.0, y.position(mark)),
            (width - 16.0, y.position(mark)),
        );
        canvas.text(
            "soft",
            (58.0, y.position(mark) + 4.0),
            "end",
            &short(mark * 1e-9),
        );
    }
    let roof = [(low, bandwidth * low), (ridge, peak), (high, peak)];
    let roof: Vec<(f64, f64)> = roof
        .iter()
        .map(|(i, r)| (x.position(*i), y.position(*r)))
        .collect();
    canvas.polyline("roof", &roof);
    canvas.text(
        "soft",
        (width - 20.0, y.position(peak) - 6.0),
        "end",
        &format!("{} TFLOP/s", short(peak * 1e-12)),
    );
    canvas.text(
        "soft",
        (
            x.position(low) + 6.0,
            y.position(bandwidth * low * 2.2) - 8.0,
        ),
        "start",
        &format!("{} GB/s", short(arch.dram_gb_s)),
    );
    canvas.line(
        "dash",
        (x.position(own), 12.0),
        (x.position(own), height - 48.0),
    );
    let last = points.len() - 1;
    for (at, point) in points.iter().enumerate() {
        let place = (x.position(point.intensity), y.position(point.rate));
        let title = format!("{:.3} µs, {} GFLOP/s", point.us, short(point.rate * 1e-9));
        if at == last {
            canvas.dot("best", place, 6.0, &format!("best: {title}"));
        } else {
            canvas.dot("dot", place, 3.0, &title);
        }
    }
    canvas.text(
        "soft",
        (width / 2.0, height - 10.0),
        "middle",
        &format!("operations a byte ({across})"),
    );
    canvas.upright((14.0, height / 2.0 - 20.0), "GFLOP/s");
    canvas.finish("Roofline with the candidates")
}
