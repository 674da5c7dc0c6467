//! Kernels simulated on the host: honest ones in several orders of summation, and ones with a
//! planted error.

use half::{bf16, f16};
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_judge::gate::oracle::Tensor;

/// In which order terms are added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Sequential,
    /// Eight sums, each of every eighth term: split-k, or threads of a block.
    Split,
    /// Steps of a tensor core, whose additions truncate.
    Tensor,
}

/// What a kernel does, honest or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) order: Order,
    /// The type of the running sum.
    pub(crate) sum: Element,
    pub(crate) without_last: bool,
    pub(crate) first_twice: bool,
    /// Random rounding of every result: number of the run and significand bits.
    pub(crate) random: Option<(usize, u32)>,
    /// Nothing is rounded: the kernel's shadow values.
    pub(crate) shadow: bool,
}

/// The operations, with the sizes that are studied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operation {
    /// 32 x K times K x 64.
    Gemm {
        k: u64,
    },
    /// Two heads, 64 queries, 32 columns.
    Attention {
        keys: u64,
    },
    /// The same on 8-bit inputs with scales.
    AttentionF8 {
        keys: u64,
    },
    Softmax {
        length: u64,
    },
    LayerNorm {
        length: u64,
    },
    ReduceSum {
        rows: u64,
        length: u64,
    },
    /// A 5 x 5 filter on 40 x 64 results.
    Conv2d,
}

/// `value` in a type, rounded to nearest.
pub(crate) fn round(element: Element, value: f64) -> f64 {
    match element {
        Element::F64 => value,
        Element::F32 => f64::from(value as f32),
        Element::F16 => f16::from_f64(value).to_f64(),
        Element::Bf16 => bf16::from_f64(value).to_f64(),
        other => other.round(value),
    }
}

/// `value` without what lies below a unit, towards zero.
fn truncate(value: f64, unit: f64) -> f64 {
    (value / unit).trunc() * unit
}

/// The unit of the last of `bits` bits below the leading one.
fn unit(value: f64, bits: i32) -> f64 {
    if value == 0.0 {
        return f64::MIN_POSITIVE;
    }
    let exponent = ((value.abs().to_bits() >> 52) as i32) - 1023;
    2f64.powi(exponent - bits)
}

impl How {
    pub(crate) fn honest(order: Order, output: Element) -> Self {
        let sum = if output.is_float() {
            output.accumulator()
        } else {
            Element::F64
        };
        Self {
            order,
            sum,
            without_last: false,
            first_twice: false,
            random: None,
            shadow: false,
        }
    }

    /// A result in a type: rounded to nearest, or up or down at random. The coin depends on the
    /// run and the value, so that a run can be repeated; the second run inverts the first.
    fn round(&self, element: Element, value: f64) -> f64 {
        if self.shadow {
            return value;
        }
        let Some((run, precision)) = self.random else {
            return round(element, value);
        };
        let precision = precision.min(-element.unit_roundoff().log2() as u32);
        let mixed = (value.to_bits() ^ (if run == 1 { 1 } else { run as u64 + 1 }) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let away = mixed >> 63 ^ u64::from(run == 1);
        if precision == 53 {
            // What lies below the host's own precision is unknown: half of the results move.
            return match (mixed >> 62 & 1, away) {
                (0, _) => value,
                (_, 0) => f64::from_bits(value.to_bits() - 1),
                _ => f64::from_bits(value.to_bits() + 1),
            };
        }
        let dropped = (1_u64 << (53 - precision)) - 1;
        let code = value.to_bits();
        if code & dropped == 0 {
            return value;
        }
        f64::from_bits((code & !dropped) + away * (dropped + 1))
    }

    /// The same for plain sums.
    fn without_tensor_cores(&self) -> Self {
        let order = match self.order {
            Order::Tensor => Order::Split,
            other => other,
        };
        Self { order, ..*self }
    }

    /// The sum of the terms, products of numbers of `bits` bits.
    pub(crate) fn sum(&self, terms: &[f64], bits: usize) -> f64 {
        let kept = terms.len() - usize::from(self.without_last);
        let again = terms.iter().take(usize::from(self.first_twice));
        let terms: Vec<f64> = terms[..kept].iter().chain(again).copied().collect();
        let add = |sum, term: &f64| self.round(self.sum, sum + term);
        match self.order {
            Order::Sequential => terms.iter().fold(0.0, add),
            Order::Split => {
                let lane = |first: usize| terms.iter().skip(first).step_by(8).fold(0.0, add);
                (0..8).map(lane).fold(0.0, |sum, part| add(sum, &part))
            }
            Order::Tensor => {
                let (length, low) = if bits == 8 { (32, 13) } else { (16, 23) };
                terms.chunks(length).fold(0.0, |sum: f64, step| {
                    let largest = step
                        .iter()
                        .fold(sum.abs(), |most, term| most.max(term.abs()));
                    let grid = unit(largest, low);
                    let step = step.iter().map(|term| truncate(*term, grid)).sum::<f64>();
                    let next = truncate(sum, grid) + step;
                    truncate(next, unit(next, 23))
                })
            }
        }
    }
}

/// One operation on random inputs of one type.
pub(crate) struct Problem {
    pub(crate) operation: Operation,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) output: Tensor,
    values: Vec<Vec<f64>>,
}

impl Problem {
    pub(crate) fn new(operation: Operation, types: [Element; 2], seed: u64) -> Self {
        let shapes: (Vec<Vec<u64>>, Vec<u64>) = match operation {
            Operation::Gemm { k } => (vec![vec![32, k], vec![k, 64]], vec![32, 64]),
            Operation::Attention { keys } | Operation::AttentionF8 { keys } => {
                let (q, k) = (vec![1, 2, 64, 32], vec![1, 2, keys, 32]);
                (vec![q.clone(), k.clone(), k], q)
            }
            Operation::Softmax { length } => (vec![vec![32, length]], vec![32, length]),
            Operation::LayerNorm { length } => {
                let row = vec![length];
                (vec![vec![32, length], row.clone(), row], vec![32, length])
            }
            Operation::ReduceSum { rows, length } => (vec![vec![rows, length]], vec![rows]),
            Operation::Conv2d => (vec![vec![44, 68], vec![5, 5]], vec![40, 64]),
        };
        let fill = if types[0].is_float() {
            Fill::Normal {
                mean: 0.0,
                std: 1.0,
            }
        } else {
            Fill::Uniform {
                min: -100.0,
                max: 100.0,
            }
        };
        let tensor = |name: String, element: Element, shape: Vec<u64>, bytes: Vec<u8>| Tensor {
            name,
            element,
            shape,
            bytes: bytes.into(),
        };
        let make = |(number, shape): (usize, Vec<u64>)| {
            let count = shape.iter().product();
            let bytes = fill.bytes(types[0], seed, number as u64, count);
            tensor(format!("x{number}"), types[0], shape, bytes.to_vec())
        };
        let mut inputs: Vec<Tensor> = shapes.0.into_iter().enumerate().map(make).collect();
        if let Operation::AttentionF8 { keys } = operation {
            for (number, rows) in [64, keys, keys].into_iter().enumerate() {
                let ones = 1f32.to_le_bytes().repeat(2 * rows.div_ceil(64) as usize);
                let shape = vec![1, 2, rows.div_ceil(64)];
                inputs.push(tensor(format!("s{number}"), Element::F32, shape, ones));
            }
        }
        let values = inputs.iter().map(|x| x.strided(0, x.count(), 1)).collect();
        Self {
            operation,
            inputs,
            output: tensor("y".into(), types[1], shapes.1, Vec::new()),
            values,
        }
    }

    /// What a kernel computes, before it is stored.
    pub(crate) fn run(&self, how: &How) -> Vec<f64> {
        let x = &self.values;
        let bits = 8 * self.inputs[0].element.size();
        match self.operation {
            Operation::Gemm { k } => {
                let k = k as usize;
                let element = |at: usize| {
                    let (i, j) = (at / 64, at % 64);
                    let terms: Vec<f64> =
                        (0..k).map(|t| x[0][i * k + t] * x[1][t * 64 + j]).collect();
                    how.sum(&terms, bits)
                };
                (0..32 * 64).map(element).collect()
            }
            Operation::Conv2d => {
                let element = |at: usize| {
                    let corner = at / 64 * 68 + at % 64;
                    let tap = |t: usize| x[0][corner + t / 5 * 68 + t % 5] * x[1][t];
                    let terms: Vec<f64> = (0..25).map(tap).collect();
                    how.sum(&terms, bits)
                };
                (0..40 * 64).map(element).collect()
            }
            Operation::ReduceSum { length, .. } => {
                let plain = how.without_tensor_cores();
                let rows = x[0].chunks(length as usize);
                rows.map(|row| plain.sum(row, 32)).collect()
            }
            Operation::Softmax { length } => {
                let rows = x[0].chunks(length as usize);
                rows.flat_map(|row| softmax(row, how)).collect()
            }
            Operation::LayerNorm { length } => {
                let rows = x[0].chunks(length as usize);
                rows.flat_map(|row| layernorm(row, &x[1], &x[2], how))
                    .collect()
            }
            Operation::Attention { keys } | Operation::AttentionF8 { keys } => {
                let (q, keys) = (x[0].chunks(32).enumerate(), keys as usize * 32);
                q.flat_map(|(row, q)| {
                    let head = row / 64 * keys..(row / 64 + 1) * keys;
                    self.attend(q, &x[1][head.clone()], &x[2][head], how)
                })
                .collect()
            }
        }
    }

    /// One row of attention, its weights held in the type of the inputs or, for 8 bits, of the
    /// output.
    fn attend(&self, q: &[f64], k: &[f64], v: &[f64], how: &How) -> Vec<f64> {
        let (input, output) = (self.inputs[0].element, self.output.element);
        let held = if input.size() == 1 { output } else { input };
        let exact = How {
            random: how.random,
            shadow: how.shadow,
            ..How::honest(how.order, Element::F32)
        };
        let scale = f64::from((1.0 / 32f64.sqrt()) as f32);
        let mut scores: Vec<f64> = k
            .chunks(32)
            .map(|key| {
                let terms: Vec<f64> = q.iter().zip(key).map(|(q, k)| q * k).collect();
                how.round(Element::F32, exact.sum(&terms, 8 * input.size()) * scale)
            })
            .collect();
        scores.truncate(scores.len() - usize::from(how.without_last));
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores
            .iter()
            .map(|s| how.round(Element::F32, (s - top).exp()))
            .collect();
        let total = exact.sum(&weights, 32);
        let part = How {
            without_last: false,
            ..*how
        };
        (0..32)
            .map(|d| {
                let terms: Vec<f64> = weights
                    .iter()
                    .zip(v.chunks(32))
                    .map(|(p, v)| if how.shadow { *p } else { round(held, *p) } * v[d])
                    .collect();
                how.round(Element::F32, part.sum(&terms, 16) / total)
            })
            .collect()
    }
}

fn softmax(row: &[f64], how: &How) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::MIN, f64::max);
    let powers: Vec<f64> = row
        .iter()
        .map(|x| how.round(how.sum, (x - top).exp()))
        .collect();
    let plain = how.without_tensor_cores();
    let total = plain.sum(&powers, 32);
    let stored = how.sum.accumulator();
    let share = |p: &f64| match how.random {
        Some(_) => how.round(stored, p / total),
        None => p / total,
    };
    powers.iter().map(share).collect()
}

fn layernorm(row: &[f64], gamma: &[f64], beta: &[f64], how: &How) -> Vec<f64> {
    let plain = how.without_tensor_cores();
    let n = row.len() as f64;
    let mean = how.round(how.sum, plain.sum(row, 32) / n);
    let squares: Vec<f64> = row.iter().map(|x| (x - mean).powi(2)).collect();
    let variance = plain.sum(&squares, 32) / n;
    let inverse = how.round(how.sum, 1.0 / (variance + 1e-5).sqrt());
    let result = row.iter().zip(gamma.iter().zip(beta));
    result
        .map(|(x, (g, b))| how.round(how.sum.accumulator(), (x - mean) * inverse * g + b))
        .collect()
}
