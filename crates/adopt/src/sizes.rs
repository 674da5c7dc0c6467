//! Sizes and shapes: those of the file, and small ones that run whole.

use super::expr::Expr;
use super::host::sizeof;
use super::plan::{Argument, Plan, defaults};
use super::types;
use super::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::plan::Role;

/// Approximate number of threads of a checked launch.
const MAX_THREADS: i64 = 1 << 13;
/// Approximate number of elements of a checked buffer.
const MAX_ELEMENTS: i64 = 1 << 16;
/// Smallest reduced size: warps stay whole.
const MIN_REDUCED_SIZE: i64 = 32;
/// Smallest reduced value of a size that only counts blocks.
const LEAST_BLOCKS: i64 = 4;
/// Maximum elements of a buffer with a guessed extent.
const MAX_GUESSED: i64 = 1 << 18;
/// Note for a buffer of unknown extent.
pub(crate) const GUESSED_EXTENT: &str = "the extent: more than enough";
/// Values of sizes without one in the file, by the number of sizes.
const GUESSES: [i64; 4] = [1 << 16, 512, 128, 64];

/// Converts allocations to element counts, and adds missing shapes.
pub(crate) fn shapes(plan: &mut Plan, unit: &Unit) {
    // A loop counter that starts at zero determines no extent.
    let sizes = plan.sizes.iter().filter(|(_, value)| *value != Some(0));
    let sizes = sizes.map(|(name, _)| name);
    let of_data = plan.parameters.iter().filter(|each| each.of_data);
    let sizes: Vec<Expr> = sizes
        .chain(of_data.map(|each| &each.name))
        .map(|name| Expr::Name(name.clone()))
        .collect();
    let several = sizes.len() > 2;
    let all = sizes
        .into_iter()
        .reduce(|whole, size| Expr::binary("*", whole, size));
    let dimensions = plan.dimensions.iter().product();
    let all = all.map(|all| match dimensions {
        1 => all,
        each => Expr::binary("*", all, Expr::Number(each)),
    });
    let all = all.map(|all| match several {
        true => Expr::call("min", vec![all, Expr::Number(MAX_GUESSED)]),
        false => all,
    });
    if plan.grid.is_empty() {
        plan.grid = guessed_grid(plan, all.as_ref());
    }
    let plain = |expr: Expr| without_sizeof(unit, expr);
    plan.grid = std::mem::take(&mut plan.grid)
        .into_iter()
        .map(plain)
        .collect();
    plan.block = std::mem::take(&mut plan.block)
        .into_iter()
        .map(plain)
        .collect();
    // The file's grid cannot be evaluated with these sizes.
    let names = all_names(plan, &of_file(plan));
    let fails = |extent: &Expr| {
        let value = extent.value(&names);
        value.map_or(!extent.is_real(), |value| value < 1)
    };
    if plan.grid.iter().any(fails) {
        plan.grid = guessed_grid(plan, all.as_ref());
        plan.guess("grid");
    }
    let threads = {
        let extents = plan.grid.iter().chain(&plan.block).cloned();
        extents.reduce(|whole, extent| Expr::binary("*", whole, extent))
    };
    // Data do not shrink if fewer threads do more work each.
    let threads = threads.map(|threads| match (threads.number(), threads.value(&names)) {
        (None, Some(value)) => Expr::call("max", vec![threads, Expr::Number(value)]),
        _ => threads,
    });
    plan.shared = plan.shared.take().map(plain);
    for argument in &mut plan.arguments {
        argument.value = argument.value.take().map(plain);
        if argument.role == Role::Scalar {
            if argument.value.is_none() && argument.composed.is_none() {
                argument.value = Some(Expr::Number(1));
                argument.guessed = Some("the value");
            }
            continue;
        }
        let bytes = argument.bytes;
        argument.shape = match argument.shape.take().map(|whole| per_element(whole, bytes)) {
            Some(shape) => Some(plain(shape)),
            None => {
                argument.guessed = Some(GUESSED_EXTENT);
                let whole = all.clone().or_else(|| threads.clone());
                let whole = whole.unwrap_or(Expr::Number(1 << 16));
                Some(match argument.multiplier {
                    1 => whole,
                    each => Expr::binary("*", whole, Expr::Number(each)),
                })
            }
        };
        // A guessed output need not be written completely, but an output must be.
        if argument.guessed.is_some() && argument.role == Role::Output {
            argument.role = Role::Inout;
        }
    }
}

/// Replaces a remaining `sizeof` of a type other than the buffer's by its number.
pub(crate) fn without_sizeof(unit: &Unit, expr: Expr) -> Expr {
    expr.with(&|name| {
        let ty = sizeof(name)?;
        let bytes = local_alias(unit, ty).and_then(|ty| types::bytes_of(&ty));
        Some(Expr::Number(
            bytes.or_else(|| types::bytes(unit, ty)).unwrap_or(4),
        ))
    })
}

/// Guesses a grid: one block per fixed number of elements, with the block's dimensions.
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
        _ if plan.block_axes == 0 => vec![Expr::Number(1)],
        ([x, _, ..], [.., last]) if plan.block_axes == 1 => {
            vec![Expr::call("ceil_div", vec![last.clone(), x.clone()])]
        }
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

/// Converts bytes to elements.
fn per_element(whole: Expr, bytes: i64) -> Expr {
    fn without(expr: &Expr, bytes: i64) -> Option<Expr> {
        match expr {
            Expr::Number(number) if number % bytes == 0 => Some(Expr::Number(number / bytes)),
            // The element type under another name.
            Expr::Name(name) if sizeof(name).is_some() => Some(Expr::Number(1)),
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
    without(&whole, bytes).unwrap_or_else(|| Expr::binary("//", whole, Expr::Number(bytes)))
}

/// Returns the file's sizes, with guesses for the missing ones.
pub(crate) fn of_file(plan: &Plan) -> BTreeMap<String, i64> {
    let blocks = of_blocks(plan);
    let unknown =
        |(name, value): &&(String, Option<i64>)| value.is_none() && !blocks.contains(name);
    let unknown = plan.sizes.iter().filter(unknown).count();
    let guess = GUESSES
        .get(unknown.saturating_sub(1))
        .copied()
        .unwrap_or(32);
    let parameters = defaults(plan);
    let value = |name: &String, value: Option<i64>| match value.filter(|value| *value > 0) {
        Some(value) => value,
        None if value == Some(0) && only_passed(plan, name) => 0,
        None if blocks.contains(name) => LEAST_BLOCKS,
        None => guess.max(tile(plan, name, &parameters)),
    };
    let sizes = plan.sizes.iter();
    let mut sizes: BTreeMap<String, i64> = sizes
        .map(|(name, known)| (name.clone(), value(name, *known)))
        .collect();
    // An unknown size that only divides in the grid yields a single part.
    let most = sizes.values().copied().max().unwrap_or(1);
    for (name, known) in &plan.sizes {
        if known.is_none() && divides_only(plan, name) {
            sizes.insert(name.clone(), most);
        }
    }
    sizes
}

/// Reports whether a size is passed to the kernel and is not an extent.
fn only_passed(plan: &Plan, name: &str) -> bool {
    let shapes = plan.arguments.iter().filter_map(|each| each.shape.as_ref());
    let extents = plan.grid.iter().chain(&plan.block).chain(&plan.shared);
    let mut names = Vec::new();
    extents
        .chain(shapes)
        .for_each(|each| each.names(&mut names));
    names.iter().all(|known| known != name)
}

/// Resolves a `typedef` or `using` inside a function.
fn local_alias(unit: &Unit, name: &str) -> Option<String> {
    let statement = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    unit.files.iter().find_map(|file| {
        let code = file.code(&(0..file.len()));
        let defined = code.split("typedef").skip(1).find_map(|rest| {
            let ty = statement(rest);
            Some(ty.strip_suffix(name)?.trim().to_owned())
        });
        defined.or_else(|| {
            code.split("using").skip(1).find_map(|rest| {
                let whole = statement(rest);
                let (alias, ty) = whole.split_once('=')?;
                (alias.trim() == name).then(|| ty.trim().to_owned())
            })
        })
    })
}

/// Reports whether a size only divides others in the grid.
fn divides_only(plan: &Plan, name: &str) -> bool {
    fn elsewhere(expr: &Expr, name: &str) -> bool {
        match expr {
            Expr::Call("ceil_div", both) => match both.as_slice() {
                [whole, Expr::Name(tile)] if tile == name => elsewhere(whole, name),
                all => all.iter().any(|each| elsewhere(each, name)),
            },
            Expr::Binary("//", whole, tile) if **tile == Expr::Name(name.to_owned()) => {
                elsewhere(whole, name)
            }
            Expr::Binary(_, left, right) => elsewhere(left, name) || elsewhere(right, name),
            Expr::Call(_, all) => all.iter().any(|each| elsewhere(each, name)),
            Expr::Name(known) => known == name,
            Expr::Number(_) | Expr::Real(_) => false,
        }
    }
    let values = plan.arguments.iter().filter_map(|each| each.value.as_ref());
    let mut all = plan.grid.iter().chain(&plan.block).chain(&plan.shared);
    !all.any(|each| elsewhere(each, name)) && !values.into_iter().any(|it| elsewhere(it, name))
}

/// Returns the divisor of a size in the grid: one tile is the useful minimum.
fn tile(plan: &Plan, size: &str, parameters: &BTreeMap<String, i64>) -> i64 {
    fn divisor(extent: &Expr, size: &str, parameters: &BTreeMap<String, i64>) -> i64 {
        let inside = |parts: &[&Expr]| {
            let each = parts.iter().map(|part| divisor(part, size, parameters));
            each.max().unwrap_or(1)
        };
        let own = |whole: &Expr, tile: &Expr| match whole {
            Expr::Name(name) if name == size => tile.value(parameters).unwrap_or(1),
            _ => 1,
        };
        match extent {
            Expr::Call("ceil_div", both) => match both.as_slice() {
                [whole, tile] => own(whole, tile).max(inside(&[whole, tile])),
                _ => 1,
            },
            Expr::Binary("//", whole, tile) => own(whole, tile).max(inside(&[whole, tile])),
            Expr::Binary(_, left, right) => inside(&[left, right]),
            Expr::Call(_, all) => inside(&all.iter().collect::<Vec<_>>()),
            Expr::Number(_) | Expr::Real(_) | Expr::Name(_) => 1,
        }
    }
    let each = plan
        .grid
        .iter()
        .map(|extent| divisor(extent, size, parameters));
    each.max().unwrap_or(1)
}

/// Returns sizes that are factors of the grid and not of a thread extent: they count blocks.
fn of_blocks(plan: &Plan) -> BTreeSet<String> {
    fn factors(expr: &Expr, bare: &mut Vec<String>, divided: &mut Vec<String>) {
        match expr {
            Expr::Name(name) => bare.push(name.clone()),
            Expr::Binary("*", left, right) => {
                factors(left, bare, divided);
                factors(right, bare, divided);
            }
            other => other.names(divided),
        }
    }
    let (mut bare, mut divided) = (Vec::new(), Vec::new());
    for extent in &plan.grid {
        factors(extent, &mut bare, &mut divided);
    }
    plan.block.iter().for_each(|each| each.names(&mut divided));
    bare.retain(|name| !divided.contains(name));
    bare.into_iter().collect()
}

/// Reduces sizes while every extent stays at least 1. Sizes keep their order and equality, because kernels
/// rely on it (`valid <= padded`): all are cut at the same bound.
pub(crate) fn small(plan: &Plan) -> BTreeMap<String, i64> {
    let mut sizes = of_file(plan);
    let blocks = of_blocks(plan);
    while let Some(next) = smaller(plan, &sizes, &blocks) {
        sizes = next;
    }
    sizes
}

/// Reduces the sizes again if the work is still too large.
fn smaller(
    plan: &Plan,
    sizes: &BTreeMap<String, i64>,
    blocks: &BTreeSet<String>,
) -> Option<BTreeMap<String, i64>> {
    let limits = [MAX_THREADS, MAX_ELEMENTS, MAX_GUESSED];
    let before = work(plan, sizes);
    let helps = |trial: &BTreeMap<String, i64>| {
        let after = work(plan, trial);
        let mut each = before.iter().zip(after).zip(limits);
        each.any(|((before, after), limit)| *before > limit && after < *before)
    };
    let most = |of_blocks: bool| {
        let of = sizes.iter();
        let of = of.filter(|(name, _)| blocks.contains(*name) == of_blocks);
        of.map(|(_, size)| *size).max().unwrap_or(0)
    };
    let cut = |of_blocks: bool, bound: i64| -> BTreeMap<String, i64> {
        let each = sizes
            .iter()
            .map(|(name, size)| match blocks.contains(name) == of_blocks {
                true => (name.clone(), (*size).min(bound)),
                false => (name.clone(), *size),
            });
        each.collect()
    };
    let first = most(true) > most(false);
    [first, !first].into_iter().find_map(|of_blocks| {
        let least = if of_blocks {
            LEAST_BLOCKS
        } else {
            MIN_REDUCED_SIZE
        };
        // The largest sufficient bound is used, so that sizes shrink no more than necessary.
        let bounds = (0..62).rev().map(|power| 1_i64 << power);
        let mut trials = bounds
            .filter(|bound| (least..most(of_blocks)).contains(bound))
            .map(|bound| cut(of_blocks, bound));
        trials.find(|trial| helps(trial) && possible(plan, sizes, trial))
    })
}

/// Makes the small sizes that the grid rounds up indivisible by the tile.
pub(crate) fn ragged(plan: &Plan, small: &BTreeMap<String, i64>) -> Option<BTreeMap<String, i64>> {
    let mut names = Vec::new();
    for extent in &plan.grid {
        rounded(extent, &mut names);
    }
    // A guessed size that is not an argument, such as a struct field, bounds the same loops.
    let passed = |name: &String| {
        let is_it = |value: &Expr| matches!(value, Expr::Name(known) if known == name);
        plan.arguments
            .iter()
            .any(|argument| argument.value.as_ref().is_some_and(is_it))
    };
    let alike = plan.sizes.iter().filter(|(name, value)| {
        let same = |other: &String| small.get(other) == small.get(name);
        value.is_none() && !passed(name) && names.iter().any(same)
    });
    let alike: Vec<String> = alike.map(|(name, _)| name.clone()).collect();
    names.extend(alike);
    names.sort();
    names.dedup();
    let mut sizes = small.clone();
    for name in names {
        if let Some(size) = sizes.get_mut(&name)
            && *size > 2
            && *size % 2 == 0
        {
            // An odd size is never a multiple of an even tile.
            *size -= 1;
        }
    }
    (sizes != *small).then_some(sizes)
}

/// Collects the names in divisions that round up.
fn rounded(expr: &Expr, names: &mut Vec<String>) {
    match expr {
        Expr::Call("ceil_div", arguments) => {
            if let Some(whole) = arguments.first() {
                whole.names(names);
            }
        }
        Expr::Call(_, arguments) => arguments.iter().for_each(|each| rounded(each, names)),
        Expr::Binary(_, left, right) => {
            rounded(left, names);
            rounded(right, names);
        }
        Expr::Number(_) | Expr::Real(_) | Expr::Name(_) => {}
    }
}

/// Returns a bound for index data: the smallest size.
pub(crate) fn least_index(plan: &Plan) -> i64 {
    let small = small(plan);
    let ragged = ragged(plan, &small).unwrap_or_default();
    let all = small.values().chain(ragged.values());
    all.copied()
        .filter(|size| *size > 0)
        .min()
        .unwrap_or(2)
        .clamp(2, 100)
}

fn all_names(plan: &Plan, sizes: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut names = defaults(plan);
    names.extend(sizes.iter().map(|(name, size)| (name.clone(), *size)));
    names
}

/// Returns the threads, the elements of the largest buffer with a known extent, and the product of all
/// sizes if an extent is guessed from it. Parameters that represent sizes are included, as in [`shapes`].
fn work(plan: &Plan, sizes: &BTreeMap<String, i64>) -> [i64; 3] {
    let names = all_names(plan, sizes);
    let product = |all: &mut dyn Iterator<Item = i64>| all.fold(1_i64, i64::saturating_mul);
    let extents = plan.grid.iter().chain(&plan.block);
    let mut extents = extents.map(|each| each.value(&names).unwrap_or(1));
    let guessed = |argument: &&Argument| argument.guessed == Some(GUESSED_EXTENT);
    let known = plan.arguments.iter().filter(|each| !guessed(each));
    let known = known.filter_map(|argument| argument.shape.as_ref()?.value(&names));
    let whole = match plan.arguments.iter().any(|each| guessed(&each)) {
        true => {
            let of_data = plan.parameters.iter().filter(|each| each.of_data);
            product(
                &mut sizes
                    .values()
                    .copied()
                    .chain(of_data.map(|each| each.default)),
            )
        }
        false => 0,
    };
    [product(&mut extents), known.max().unwrap_or(0), whole]
}

/// Reports whether every extent is at least 1 and every dividend keeps at least one whole part.
fn possible(plan: &Plan, sizes: &BTreeMap<String, i64>, smaller: &BTreeMap<String, i64>) -> bool {
    let (before, after) = (all_names(plan, sizes), all_names(plan, smaller));
    let extents = plan.grid.iter().chain(&plan.block);
    let shapes = plan
        .arguments
        .iter()
        .filter_map(|argument| argument.shape.as_ref());
    // A buffer with one element per thread keeps that property.
    let threads = |names: &BTreeMap<String, i64>| {
        let each = extents.clone().map(|each| each.value(names).unwrap_or(1));
        each.fold(1_i64, i64::saturating_mul)
    };
    let threads = [threads(&before), threads(&after)];
    let covers = |shape: &Expr| match (shape.value(&before), shape.value(&after)) {
        (Some(all), Some(left)) => all < threads[0] || left >= threads[1],
        _ => true,
    };
    if !shapes.clone().all(covers) {
        return false;
    }
    let whole = |expr: &Expr, names: &BTreeMap<String, i64>| match expr {
        Expr::Call("ceil_div", both) => match both.as_slice() {
            [a, b] => a.value(names) >= b.value(names),
            _ => true,
        },
        _ => true,
    };
    extents.chain(shapes).all(|each| {
        each.value(&after).is_none_or(|value| value >= 1)
            && (whole(each, &after) || !whole(each, &before))
    })
}
