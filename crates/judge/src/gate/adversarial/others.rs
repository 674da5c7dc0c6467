//! Hard inputs of matrix products, rows and convolutions.

use super::{Case, CaseData, Form, extreme, representable};
use std::ops::Range;
use tuner_core::element::Element;

/// Builds all inputs from the value of each element.
fn build_inputs(form: &Form<'_>, value: impl Fn(usize, u64) -> f64 + Sync) -> CaseData {
    build_first_inputs(form, usize::MAX, value)
}

/// Builds the first `replaced` inputs from the value of each element; the others are as in the clean run.
fn build_first_inputs(
    form: &Form<'_>,
    replaced: usize,
    value: impl Fn(usize, u64) -> f64 + Sync,
) -> CaseData {
    let inputs = (0..form.inputs.len()).map(|input| match input < replaced {
        true => form.fill(input, |index| value(input, index)),
        false => form.declared(input),
    });
    CaseData::judged_by_oracle(inputs.collect())
}

/// Builds the inputs of the clean run with a NaN at one element of the first.
fn with_nan(form: &Form<'_>, at: u64, excused: Range<u64>) -> CaseData {
    let inputs = (0..form.inputs.len()).map(|input| match input {
        0 => form.declared_with_nan(0, at..at + 1),
        _ => form.declared(input),
    });
    CaseData::judged_by_oracle(inputs.collect()).excusing(vec![excused])
}

/// Draws an integer from -2 to 2.
fn small(form: &Form<'_>, input: usize, index: u64) -> f64 {
    form.chance(input as u64, index, 5) as f64 - 2.0
}

/// Reports whether sums of up to `terms` products of small integers are exact in float32, so that
/// an honest kernel rounds only once, to the output's type.
fn sums_are_exact(form: &Form<'_>, terms: u64) -> bool {
    let plain = form.scalar("alpha").is_none_or(|alpha| alpha == 1.0);
    let holds = form
        .inputs
        .iter()
        .all(|input| input.element.round(2.0) == 2.0);
    // Products are at most 4, and float32 holds every integer up to 2^24.
    plain && holds && 4 * terms < 1 << 24 && 4.0 * (terms as f64) < extreme(form.output.element)
}

pub(super) fn gemm(form: &Form<'_>, case: Case) -> Option<CaseData> {
    let (&[m, k], &[_, n]) = (form.shape(0), form.shape(1)) else {
        return None;
    };
    let outlier = |at: u64| {
        build_inputs(form, move |input, index| {
            let huge = input == 0 && index % k == at;
            form.noise(input, index) * if huge { 64.0 } else { 1.0 }
        })
    };
    Some(match case {
        Case::Integers => build_inputs(form, |input, index| small(form, input, index))
            .exact_if(sums_are_exact(form, k)),
        Case::Selection => {
            let types = [form.element(1), form.output.element];
            let value = |input: usize, index: u64| match input {
                0 => f64::from(u8::from(form.chance(9, index / k, k) == index % k)),
                _ => representable(31 * (index / n) + 7 * (index % n), types),
            };
            build_first_inputs(form, 2, value).exact_if(sums_are_exact(form, 1))
        }
        Case::Uniform => build_inputs(form, |input, _| f64::from(u8::from(input != 0))),
        Case::OutlierFirst => outlier(0),
        Case::OutlierLast => outlier(k - 1),
        Case::Extremes => {
            // The largest factors for which the output can represent the sums.
            let most = (extreme(form.output.element).min(1e30) / (4.0 * k as f64)).sqrt();
            build_inputs(form, |input, index| {
                form.end(input, index, most.min(extreme(form.element(input))))
            })
        }
        Case::Contained if m > 1 => with_nan(form, m * k - 1, (m - 1) * n..m * n),
        _ => return None,
    })
}

/// Rows of an operation over the last dimension.
struct Rows {
    rows: u64,
    length: u64,
}

impl Rows {
    fn column(&self, index: u64) -> u64 {
        index % self.length
    }
}

fn rows(form: &Form<'_>, reduced: bool) -> Option<Rows> {
    let count: u64 = form.shape(0).iter().product();
    let length = if reduced {
        count.checked_div(form.output.count())?
    } else {
        *form.shape(0).last()?
    };
    (length > 0 && count > 0).then(|| Rows {
        rows: count / length,
        length,
    })
}

/// Builds a case shared by row operations; `size` multiplies an outlier.
fn row_case(form: &Form<'_>, rows: &Rows, case: Case, size: f64) -> Option<CaseData> {
    // Inputs after the first (gamma, beta) stay as declared.
    let first =
        |value: &(dyn Fn(u64) -> f64 + Sync)| build_first_inputs(form, 1, |_, index| value(index));
    let outlier = |at: u64| {
        first(&|index| form.noise(0, index) * if rows.column(index) == at { size } else { 1.0 })
    };
    let ramp = |sign: f64| {
        let step = sign * 60.0 / rows.length as f64;
        first(&|index| step * rows.column(index) as f64)
    };
    Some(match case {
        Case::Uniform => first(&|_| 1.0),
        Case::OutlierFirst => outlier(0),
        Case::OutlierLast => outlier(rows.length - 1),
        Case::Ascending => ramp(1.0),
        Case::Descending => ramp(-1.0),
        Case::Large => {
            first(&|index| 2500.0_f64.min(extreme(form.element(0)) / 4.0) * form.noise(0, index))
        }
        // Rows differ by little, and exponentials of their numbers are zero in float32.
        Case::Negative => first(&|index| form.noise(0, index) - 200.0),
        Case::Shifted => {
            let mean = 1000.0_f64.min(extreme(form.element(0)) / 4.0);
            first(&|index| form.noise(0, index) + mean)
        }
        Case::Small => first(&|index| form.noise(0, index) * 2f64.powi(-14)),
        Case::Extremes => {
            let most = extreme(form.element(0)).min(1e30 / rows.length as f64);
            first(&|index| form.end(0, index, most))
        }
        Case::Contained if rows.rows > 1 => {
            let last = rows.rows * rows.length - 1;
            let width = form.output.count() / rows.rows;
            with_nan(form, last, (rows.rows - 1) * width..rows.rows * width)
        }
        _ => return None,
    })
}

pub(super) fn softmax(form: &Form<'_>, case: Case) -> Option<CaseData> {
    let rows = rows(form, false)?;
    if case == Case::Masked {
        let infinite = matches!(
            form.element(0),
            Element::F16 | Element::Bf16 | Element::F32 | Element::F64
        );
        let value = |index: u64| {
            if rows.column(index) % 2 == 1 {
                f64::NEG_INFINITY
            } else {
                form.noise(0, index)
            }
        };
        return infinite.then(|| build_inputs(form, |_, index| value(index)));
    }
    row_case(form, &rows, case, 64.0)
}

pub(super) fn layernorm(form: &Form<'_>, case: Case) -> Option<CaseData> {
    row_case(form, &rows(form, false)?, case, 64.0)
}

pub(super) fn sum(form: &Form<'_>, case: Case) -> Option<CaseData> {
    let rows = rows(form, true)?;
    if case == Case::Integers {
        let exact = sums_are_exact(form, rows.length);
        return Some(build_inputs(form, |input, index| small(form, input, index)).exact_if(exact));
    }
    row_case(form, &rows, case, 1024.0)
}

pub(super) fn conv2d(form: &Form<'_>, case: Case) -> Option<CaseData> {
    let (&[_, columns], &[taps_y, taps_x], &[_, width]) =
        (form.shape(0), form.shape(1), form.output.shape.as_slice())
    else {
        return None;
    };
    let taps = taps_y * taps_x;
    if columns != width + taps_x - 1 {
        return None;
    }
    let outlier = |at: u64| {
        build_inputs(form, move |input, index| {
            let huge = input == 1 && index == at;
            form.noise(input, index) * if huge { 64.0 } else { 1.0 }
        })
    };
    Some(match case {
        Case::Integers => build_inputs(form, |input, index| small(form, input, index))
            .exact_if(sums_are_exact(form, taps)),
        Case::Selection => {
            let types = [form.element(0), form.output.element];
            let value = |input: usize, index: u64| {
                if input == 0 {
                    representable(31 * (index / columns) + 7 * (index % columns), types)
                } else {
                    f64::from(u8::from(index == taps - 1))
                }
            };
            build_inputs(form, value).exact_if(true)
        }
        Case::OutlierFirst => outlier(0),
        Case::OutlierLast => outlier(taps - 1),
        // Only the first result reads the first pixel.
        Case::Contained if form.output.count() > 1 => with_nan(form, 0, 0..1),
        _ => return None,
    })
}
