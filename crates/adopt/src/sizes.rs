//! Sizes and shapes: those of the file, and small ones that run whole.

use super::expr::Expr;
use super::plan::{Argument, Plan, defaults};
use std::collections::BTreeMap;
use tuner_core::plan::Role;

/// Threads of a launch that is checked, about.
const MAX_THREADS: i64 = 1 << 14;
/// Elements of a buffer that is checked, about.
const MAX_ELEMENTS: i64 = 1 << 18;
/// Sizes are not made smaller than this: warps stay whole.
const LEAST: i64 = 32;
/// Elements of a buffer whose extent is guessed, at most.
const MAX_GUESSED: i64 = 1 << 20;
/// What a size is where the file does not say, by the number of sizes.
const GUESSES: [i64; 4] = [1 << 16, 512, 128, 64];

/// Makes element counts of allocations, and shapes where there is none.
pub(crate) fn shapes(plan: &mut Plan) {
    let sizes: Vec<Expr> = plan
        .sizes
        .iter()
        .map(|(name, _)| Expr::Name(name.clone()))
        .collect();
    let several = sizes.len() > 2;
    let all = sizes
        .into_iter()
        .reduce(|whole, size| Expr::binary("*", whole, size));
    let all = all.map(|all| match several {
        true => Expr::call("min", vec![all, Expr::Number(MAX_GUESSED)]),
        false => all,
    });
    let threads = {
        let extents = plan.grid.iter().chain(&plan.block).cloned();
        extents.reduce(|whole, extent| Expr::binary("*", whole, extent))
    };
    if plan.grid.is_empty() {
        plan.grid = guessed_grid(plan, all.as_ref());
    }
    for argument in &mut plan.arguments {
        if argument.role == Role::Scalar {
            if argument.value.is_none() {
                argument.value = Some(Expr::Number(1));
                argument.guessed = Some("the value");
            }
            continue;
        }
        let bytes = element_bytes(&argument.ty);
        argument.shape = match argument.shape.take().map(|whole| per_element(whole, bytes)) {
            Some(shape) => Some(shape),
            None => {
                argument.guessed = Some("the extent: more than enough");
                all.clone()
                    .or_else(|| threads.clone())
                    .or(Some(Expr::Number(1 << 16)))
            }
        };
        // What is guessed need not be written whole, and a whole output must be.
        if argument.guessed.is_some() && argument.role == Role::Output {
            argument.role = Role::Inout;
        }
    }
}

/// One block for each so many elements, in as many directions as the block has.
fn guessed_grid(plan: &Plan, all: Option<&Expr>) -> Vec<Expr> {
    let Some(all) = all else {
        return vec![Expr::Number(32)];
    };
    let sizes: Vec<Expr> = plan
        .sizes
        .iter()
        .map(|(name, _)| Expr::Name(name.clone()))
        .collect();
    match (plan.block.as_slice(), sizes.as_slice()) {
        ([x, y, ..], [a, b, ..]) => vec![
            Expr::call("ceil_div", vec![b.clone(), x.clone()]),
            Expr::call("ceil_div", vec![a.clone(), y.clone()]),
        ],
        (block, _) => {
            let threads = block.iter().cloned().reduce(|a, b| Expr::binary("*", a, b));
            vec![Expr::call(
                "ceil_div",
                vec![all.clone(), threads.unwrap_or(Expr::Number(1))],
            )]
        }
    }
}

fn element_bytes(ty: &str) -> i64 {
    let lanes: i64 = match ty.chars().last() {
        Some(last @ '2'..='4') if !ty.ends_with("32") && !ty.ends_with("64") => {
            i64::from(u32::from(last) - u32::from('0'))
        }
        _ => 1,
    };
    let base = if lanes > 1 { &ty[..ty.len() - 1] } else { ty };
    let each = match base {
        "u8" | "i8" | "bool" | "char" | "uchar" | "f8e4m3" | "f8e5m2" => 1,
        "f16" | "bf16" | "u16" | "i16" | "half" | "short" | "ushort" => 2,
        "f64" | "i64" | "u64" | "double" | "longlong" | "ulonglong" => 8,
        _ => 4,
    };
    each * lanes
}

/// Elements of so many bytes.
fn per_element(whole: Expr, bytes: i64) -> Expr {
    fn without(expr: &Expr, bytes: i64) -> Option<Expr> {
        match expr {
            Expr::Number(number) if number % bytes == 0 => Some(Expr::Number(number / bytes)),
            Expr::Binary("*", left, right) => {
                if let Some(right) = without(right, bytes) {
                    return Some(Expr::binary("*", (**left).clone(), right));
                }
                Some(Expr::binary("*", without(left, bytes)?, (**right).clone()))
            }
            Expr::Binary("+", left, right) => Some(Expr::binary(
                "+",
                without(left, bytes)?,
                without(right, bytes)?,
            )),
            _ => None,
        }
    }
    if bytes == 1 {
        return whole;
    }
    without(&whole, bytes).unwrap_or_else(|| Expr::binary("//", whole, Expr::Number(bytes)))
}

/// The sizes of the file, where it does not say guessed.
pub(crate) fn of_file(plan: &Plan) -> BTreeMap<String, i64> {
    let unknown = plan
        .sizes
        .iter()
        .filter(|(_, value)| value.is_none())
        .count();
    let guess = GUESSES
        .get(unknown.saturating_sub(1))
        .copied()
        .unwrap_or(32);
    let value = |value: Option<i64>| value.filter(|value| *value > 0).unwrap_or(guess);
    plan.sizes
        .iter()
        .map(|(name, known)| (name.clone(), value(*known)))
        .collect()
}

/// Smaller sizes that keep every extent at one or more.
pub(crate) fn small(plan: &Plan) -> BTreeMap<String, i64> {
    let mut sizes = of_file(plan);
    for _ in 0..256 {
        let (threads, elements) = work(plan, &sizes);
        if threads <= MAX_THREADS && elements <= MAX_ELEMENTS {
            break;
        }
        let mut order: Vec<(i64, String)> = sizes
            .iter()
            .map(|(name, size)| (*size, name.clone()))
            .collect();
        order.sort_by(|a, b| b.cmp(a));
        let halved = order.into_iter().find_map(|(size, name)| {
            let mut trial = sizes.clone();
            trial.insert(name, size / 2);
            let smaller = work(plan, &trial);
            let helps = smaller.0 < threads || smaller.1 < elements;
            (size >= 2 * LEAST && helps && possible(plan, &trial)).then_some(trial)
        });
        match halved {
            Some(next) => sizes = next,
            None => break,
        }
    }
    sizes
}

fn all_names(plan: &Plan, sizes: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut names = defaults(plan);
    names.extend(sizes.iter().map(|(name, size)| (name.clone(), *size)));
    names
}

/// Threads, and elements of the largest buffer.
fn work(plan: &Plan, sizes: &BTreeMap<String, i64>) -> (i64, i64) {
    let names = all_names(plan, sizes);
    let product = |all: &mut dyn Iterator<Item = &Expr>| {
        all.map(|each| each.value(&names).unwrap_or(1))
            .fold(1_i64, i64::saturating_mul)
    };
    let threads = product(&mut plan.grid.iter().chain(&plan.block));
    let shape = |argument: &Argument| {
        argument
            .shape
            .as_ref()
            .and_then(|shape| shape.value(&names))
    };
    (
        threads,
        plan.arguments.iter().filter_map(shape).max().unwrap_or(0),
    )
}

/// Whether every extent is at least one, and divisions that were exact stay so.
fn possible(plan: &Plan, sizes: &BTreeMap<String, i64>) -> bool {
    let names = all_names(plan, sizes);
    let extents = plan.grid.iter().chain(&plan.block);
    let shapes = plan
        .arguments
        .iter()
        .filter_map(|argument| argument.shape.as_ref());
    extents
        .chain(shapes)
        .all(|each| each.value(&names).is_none_or(|value| value >= 1))
}
