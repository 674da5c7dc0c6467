//! What right kernels must compute, in float64 on the CPU, named by `//@ expect`.

use std::collections::BTreeMap;

/// Values of the case's buffers before the first launch, by name.
pub(crate) type Inputs = BTreeMap<String, Vec<f64>>;

/// The first `length` expected elements of an output.
pub(crate) fn evaluate(
    function: &str,
    parameters: &[String],
    inputs: &Inputs,
    length: usize,
) -> Result<Vec<f64>, String> {
    let array = |i: usize| -> Result<&Vec<f64>, String> {
        parameters
            .get(i)
            .and_then(|name| inputs.get(name))
            .ok_or_else(|| format!("{function}: parameter {i} is no argument"))
    };
    let scalar = |i: usize| -> Result<f64, String> {
        parameters
            .get(i)
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| format!("{function}: parameter {i} is no number"))
    };
    let whole = |i: usize| scalar(i).map(|v| v as usize);
    Ok(match function {
        "constant" => vec![scalar(0)?; length],
        "iota" => (0..length).map(|i| i as f64).collect(),
        "copy" => array(0)?.clone(),
        "repeated" => array(0)?.iter().copied().cycle().take(length).collect(),
        "scale" => array(0)?
            .iter()
            .map(|v| v * scalar(1).unwrap_or(f64::NAN))
            .collect(),
        "add" => array(0)?
            .iter()
            .zip(array(1)?)
            .map(|(x, y)| x + y)
            .collect(),
        "sum" => vec![array(0)?.iter().sum()],
        "block_sum" => array(0)?
            .chunks(whole(1)?)
            .map(|c| c.iter().sum())
            .collect(),
        "column_sum" => column_sum(array(0)?, whole(1)?),
        "prefix_sum" => prefix_sum(array(0)?),
        "padded" => padded(array(0)?, length),
        "reverse_blocks" => array(0)?
            .chunks(whole(1)?)
            .flat_map(|c| c.iter().rev().copied())
            .collect(),
        "even_blocks_reversed" => even_blocks_reversed(array(0)?, whole(1)?),
        "rotate" => rotate(array(0)?, whole(1)?),
        "transpose" => transpose(array(0)?, whole(1)?, whole(2)?),
        "gemm" => gemm(array(0)?, array(1)?, [whole(2)?, whole(3)?, whole(4)?]),
        "padded_rows" => array(0)?
            .chunks(whole(1)?)
            .flat_map(|row| padded(row, whole(2).unwrap_or_default()))
            .collect(),
        "corner_padded" => {
            let (side, by) = (whole(1)?, whole(2)?);
            let x = array(0)?;
            let at = |i: usize| {
                Some(x[(i / side).checked_sub(by)? * side + (i % side).checked_sub(by)?])
            };
            (0..side * side).map(|i| at(i).unwrap_or(0.0)).collect()
        }
        "maximum" => vec![array(0)?.iter().copied().fold(f64::MIN, f64::max)],
        "plus_one" => array(0)?.iter().map(|v| v + 1.0).collect(),
        // Both operands are stored along K.
        "gemm_nt" => {
            let [m, n, k] = [whole(2)?, whole(3)?, whole(4)?];
            gemm(array(0)?, &transpose(array(1)?, n, k), [m, n, k])
        }
        "gemm_nt_scaled" => {
            let [m, n, k] = [whole(2)?, whole(3)?, whole(4)?];
            let product = gemm(array(0)?, &transpose(array(1)?, n, k), [m, n, k]);
            product.iter().map(|v| 3.0 * v).collect()
        }
        "softmax" => array(0)?.chunks(whole(1)?).flat_map(softmax).collect(),
        "attention" => attention([array(0)?, array(1)?, array(2)?], whole(3)?),
        "attention_batched" => {
            let tile = whole(3)? * whole(4)?;
            let rows = array(0)?.chunks(tile).zip(array(1)?.chunks(tile));
            let scale = 1.0 / scalar(4)?.sqrt();
            rows.zip(array(2)?.chunks(tile))
                .flat_map(|((q, k), v)| {
                    let q: Vec<f64> = q.iter().map(|v| v * scale).collect();
                    attention([&q, k, v], whole(4).unwrap_or(1))
                })
                .collect()
        }
        "window_sum" => window_sum(array(0)?, whole(1)?),
        "histogram" => histogram(array(0)?, length),
        "odd_compacted" => padded(
            &array(0)?
                .iter()
                .copied()
                .filter(|v| v % 2.0 == 1.0)
                .collect::<Vec<_>>(),
            length,
        ),
        "sum_and_squares" => vec![
            array(0)?.iter().sum(),
            array(0)?.iter().map(|v| v * v).sum(),
        ],
        "mapped" => mapped(array(0)?, parameters.get(1).map_or("", String::as_str))?,
        _ => particular(function, array(0)?, scalar(1).unwrap_or(0.0))?,
    })
}

/// Functions that fit one kernel only.
fn particular(function: &str, x: &[f64], parameter: f64) -> Result<Vec<f64>, String> {
    let words: Vec<u32> = x.iter().map(|&v| v as u32).collect();
    Ok(match function {
        "scaled_then_count" => {
            let scaled = x.iter().map(|v| v * parameter);
            scaled.chain([x.len() as f64]).collect()
        }
        "little_endian_words" => words
            .chunks(4)
            .map(|b| f64::from(b[0] | b[1] << 8 | b[2] << 16 | b[3] << 24))
            .collect(),
        "swizzled_tile" => words
            .chunks(2)
            .map(|h| f64::from(h[0] | h[1] << 16))
            .collect(),
        "atomics_of_many_kinds" => {
            let fold = |f: fn(u32, u32) -> u32| f64::from(words.iter().copied().fold(0, f));
            let most = fold(u32::max);
            vec![
                fold(|a, b| a + b),
                most,
                -most,
                fold(|a, b| a | b),
                fold(|a, b| a ^ b),
                x.len() as f64,
            ]
        }
        "redux" => {
            let y: Vec<u32> = words.iter().map(|w| w + 3).collect();
            let fold = |f: fn(u32, u32) -> u32| f64::from(y.iter().copied().reduce(f).unwrap_or(0));
            vec![
                fold(|a, b| a + b),
                fold(u32::min),
                fold(u32::max),
                fold(|a, b| a & b),
                fold(|a, b| a | b),
                fold(|a, b| a ^ b),
            ]
        }
        "equal_in_lower_24" => (0..x.len())
            .map(|i| {
                if i < 24 {
                    x[..24].iter().filter(|&&v| v == x[i]).count() as f64
                } else {
                    0.0
                }
            })
            .collect(),
        "warp_zero_sums" => {
            let total: f64 = x.iter().sum();
            x.iter().map(|v| total - v).collect()
        }
        "generic_pointers" => (0..x.len())
            .map(|t| match t % 4 {
                0 => x[31 - t],
                1 => 2.0 * x[31 - t],
                2 => 2.0 * t as f64,
                _ => 8.0,
            })
            .collect(),
        "integer_intrinsics" => words
            .iter()
            .map(|&w| f64::from(integer_intrinsics(w)))
            .collect(),
        "math_library" => math_library(x),
        "math_library_double" => math_library_double(x),
        "fast_math" => fast_math(x),
        _ => return Err(format!("no reference is called `{function}`")),
    })
}

fn mapped(x: &[f64], name: &str) -> Result<Vec<f64>, String> {
    let f: fn(f64) -> f64 = match name {
        "square_plus_one" => |v| v * v + 1.0,
        "three_x_plus_one" => |v| 3.0 * v + 1.0,
        "dp4a_of_itself" => |v| 4.0 * v * v + 1.0,
        "fibonacci" => |v| (0..v as u32).fold((0.0, 1.0), |(a, b), _| (b, a + b)).0,
        "fibonacci_mod_10" => |v| {
            (0..v as u32 % 10)
                .fold((0.0, 1.0), |(a, b), _| (b, a + b))
                .0
        },
        "two_minus_x" => |v| 2.0 - v,
        "below_160" => |v| if v < 160.0 { v } else { 0.0 },
        "collatz" => |v| f64::from(collatz(v as u32 + 1)),
        "switch_table" => |v| f64::from(switch_table(v as i32)),
        _ => return Err(format!("no function is called `{name}`")),
    };
    Ok(x.iter().copied().map(f).collect())
}

fn collatz(mut v: u32) -> u32 {
    let mut steps = 0;
    while v != 1 {
        v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
        steps += 1;
    }
    steps
}

fn switch_table(v: i32) -> i32 {
    match v {
        0 => 7,
        1 => 1 ^ 21,
        2 => (2 << 4) - 5,
        3 => (0..3).fold(3, |r, i| r + i * r),
        4 => 250,
        5 => 2,
        6 => -6,
        7 => 103,
        _ => 99,
    }
}

fn integer_intrinsics(x: u32) -> u32 {
    let v = x.wrapping_mul(2_654_435_761);
    let high = (u64::from(v) * 0x9e37_79b9) >> 32;
    let first = if v == 0 { 0 } else { v.trailing_zeros() + 1 };
    v.leading_zeros()
        ^ v.reverse_bits()
        ^ first
        ^ v.rotate_left(7)
        ^ high as u32
        ^ (v / 7)
        ^ (v % 13)
}

fn column_sum(x: &[f64], columns: usize) -> Vec<f64> {
    (0..columns)
        .map(|c| x.iter().skip(c).step_by(columns).sum())
        .collect()
}

fn prefix_sum(x: &[f64]) -> Vec<f64> {
    x.iter()
        .scan(0.0, |sum, v| {
            *sum += v;
            Some(*sum)
        })
        .collect()
}

fn padded(x: &[f64], length: usize) -> Vec<f64> {
    (0..length)
        .map(|i| x.get(i).copied().unwrap_or(0.0))
        .collect()
}

fn even_blocks_reversed(x: &[f64], block: usize) -> Vec<f64> {
    let mut y = x.to_vec();
    y.chunks_mut(block).step_by(2).for_each(<[f64]>::reverse);
    y
}

fn rotate(x: &[f64], by: usize) -> Vec<f64> {
    let mut y = x.to_vec();
    y.rotate_left(by);
    y
}

fn transpose(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns)
        .map(|i| x[i % rows * columns + i / rows])
        .collect()
}

fn gemm(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    (0..m * n)
        .map(|i| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum())
        .collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|v| (v - most).exp()).sum();
    row.iter().map(|v| (v - most).exp() / sum).collect()
}

fn attention([q, k, v]: [&[f64]; 3], depth: usize) -> Vec<f64> {
    q.chunks(depth)
        .flat_map(|row| {
            let scores: Vec<f64> = k
                .chunks(depth)
                .map(|key| key.iter().zip(row).map(|(a, b)| a * b).sum())
                .collect();
            let weights = softmax(&scores);
            (0..depth)
                .map(|d| {
                    weights
                        .iter()
                        .enumerate()
                        .map(|(j, w)| w * v[j * depth + d])
                        .sum()
                })
                .collect::<Vec<f64>>()
        })
        .collect()
}

fn window_sum(x: &[f64], radius: usize) -> Vec<f64> {
    (0..x.len())
        .map(|i| {
            x[i.saturating_sub(radius)..(i + radius + 1).min(x.len())]
                .iter()
                .sum()
        })
        .collect()
}

fn histogram(x: &[f64], bins: usize) -> Vec<f64> {
    let mut counts = vec![0.0; bins];
    x.iter().for_each(|&v| counts[v as usize] += 1.0);
    counts
}

/// The error function by its series of positive terms, good to float64 for the suite's arguments.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

fn table(x: &[f64], functions: &[fn(f64) -> f64]) -> Vec<f64> {
    functions
        .iter()
        .flat_map(|f| x.iter().map(move |&v| f(v)))
        .collect()
}

fn math_library(x: &[f64]) -> Vec<f64> {
    table(
        x,
        &[
            // The kernel rounds the product to float32 first.
            |v| f64::from(v as f32 * 1000.0).sin(),
            f64::cos,
            f64::exp,
            |v| (v.abs() + 1.0).ln(),
            |v| (v.abs() + 0.5).powf(f64::from(1.7f32)),
            erf,
            f64::tanh,
            |v| v.abs().sqrt(),
            |v| 1.0 / (v.abs() + 0.25).sqrt(),
            |v| 1.0 / (1.0 + (-v).exp()),
        ],
    )
}

fn math_library_double(x: &[f64]) -> Vec<f64> {
    table(
        x,
        &[
            |v| 1.0 / (v * v + 0.5),
            f64::abs,
            f64::exp,
            |v| (100.0 * v).sin(),
            |v| (v * v + 1.0).ln(),
        ],
    )
}

fn fast_math(x: &[f64]) -> Vec<f64> {
    table(
        x,
        &[
            f64::sin,
            f64::exp,
            |v| 3.0 / (v.abs() + 1.0),
            |v| (v.abs() + 1.0).sqrt(),
        ],
    )
}
