//! Grid, block and shared memory of the captured launches.

use super::infer::{Names, holds, infer};
use super::{Observed, refuse};
use crate::AdoptError;
use crate::cut;
use crate::expr::Expr;
use crate::plan::{Plan, ProposedParameter};
use crate::unit::Unit;
use capture::Launch;
use std::collections::{BTreeMap, BTreeSet};

/// Names of each captured launch, and known facts about its extents.
#[derive(Debug, Default)]
pub(crate) struct Facts<'c> {
    /// Values of scalars, parameters and named values, in the order of the launches.
    pub(crate) names: Vec<Names>,
    /// Names of scalars that are sizes, by the parameter's position.
    pub(crate) scalars: BTreeMap<usize, String>,
    /// Launches with the default values of all parameters, which become problems.
    pub(crate) with_defaults: Vec<usize>,
    /// Extents that the source explains.
    pub(crate) explained: usize,
    launches: Vec<&'c Launch>,
    /// Expressions that the host passes for each scalar, if these are not plain sizes of the same name.
    passed: Vec<(Expr, String)>,
}

/// One number of a launch.
struct Extent {
    name: &'static str,
    of: fn(&Launch) -> i64,
}

const EXTENTS: [Extent; 7] = [
    extent("grid x", |launch| i64::from(launch.grid[0])),
    extent("grid y", |launch| i64::from(launch.grid[1])),
    extent("grid z", |launch| i64::from(launch.grid[2])),
    extent("block x", |launch| i64::from(launch.block[0])),
    extent("block y", |launch| i64::from(launch.block[1])),
    extent("block z", |launch| i64::from(launch.block[2])),
    extent("shared memory", |launch| i64::from(launch.shared_bytes)),
];

const fn extent(name: &'static str, of: fn(&Launch) -> i64) -> Extent {
    Extent { name, of }
}

/// Origin of an extent's expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The source's expression, consistent with all launches.
    Text,
    /// An expression consistent with all launches.
    Launches,
}

impl<'c> Facts<'c> {
    /// Collects names and values of the launches, under the plan's names of sizes.
    pub(crate) fn collect(plan: &mut Plan, observed: &Observed<'c>) -> Facts<'c> {
        let launches: Vec<&Launch> = observed
            .launches
            .iter()
            .map(|(_, launch)| *launch)
            .collect();
        let mut facts = Facts {
            launches,
            ..Facts::default()
        };
        let blocks = blocks_of_launches(plan, observed);
        let mut scalars: Vec<(usize, String)> = Vec::new();
        for argument in &plan.arguments {
            if let Some(at) = argument.parameter
                && crate::plan::is_whole(&argument.spelled)
                && !argument.spelled.contains('*')
            {
                scalars.push((at, plan.size_name(&argument.name)));
            }
        }
        for (at, name) in &scalars {
            let argument = plan.arguments.iter().find(|it| it.parameter == Some(*at));
            let value = argument.and_then(|it| it.value.clone());
            let value = value.filter(|it| it.number().is_none() && *it != Expr::Name(name.clone()));
            facts
                .passed
                .extend(value.map(|value| (value, name.clone())));
        }
        facts.scalars = scalars.into_iter().collect();
        for (at_launch, (capture, launch)) in observed.launches.iter().enumerate() {
            let values = &capture.document.values;
            // Values in the source of names that are not arguments of the kernel.
            let known = plan.sizes.iter();
            let known = known.filter_map(|(name, value)| Some((name.clone(), (*value)?)));
            let mut names: Names = known.collect();
            names.extend(values.iter().map(|(name, value)| (name.clone(), *value)));
            for each in &plan.parameters {
                let given = values.iter().find(|(name, _)| is_called(each, name));
                // Each number has one name.
                let alias = given.map(|(name, _)| names.remove(name));
                let seen = blocks.get(&each.name).and_then(|it| it.get(at_launch));
                let value = alias.flatten().or_else(|| seen.copied());
                names.insert(each.name.clone(), value.unwrap_or(each.default));
            }
            for (at, name) in &facts.scalars {
                names.remove(name);
                let value = launch.parameters.get(*at).and_then(|it| whole(&it.bytes()));
                names.extend(value.map(|value| (name.clone(), value)));
            }
            facts.names.push(names);
        }
        if let Some(first) = facts.names.first() {
            for each in &mut plan.parameters {
                if let Some(value) = first.get(&each.name) {
                    each.default = *value;
                    if !each.values.contains(value) {
                        each.values.push(*value);
                        each.values.sort_unstable();
                    }
                }
            }
        }
        let defaults = |names: &Names| {
            let mut all = plan.parameters.iter();
            all.all(|each| names.get(&each.name) == Some(&each.default))
        };
        let all = facts.names.iter().enumerate();
        facts.with_defaults = all
            .filter(|(_, names)| defaults(names))
            .map(|(index, _)| index)
            .collect();
        facts
    }

    fn numbers(&self, extent: &Extent) -> Vec<i64> {
        self.launches
            .iter()
            .map(|launch| (extent.of)(launch))
            .collect()
    }

    /// Decides grid, block and shared memory.
    ///
    /// # Errors
    /// An extent that differs between launches and has no expression.
    pub(crate) fn decide(
        &mut self,
        plan: &mut Plan,
        unit: &Unit,
        item: usize,
    ) -> Result<(), AdoptError> {
        let text = |list: &[Expr], at: usize| list.get(at).cloned().unwrap_or(Expr::Number(1));
        let mut proposed: Vec<Expr> = (0..3).map(|at| text(&plan.grid, at)).collect();
        proposed.extend((0..3).map(|at| text(&plan.block, at)));
        proposed.push(plan.shared.clone().unwrap_or(Expr::Number(0)));
        let mut divisors: BTreeSet<i64> = BTreeSet::new();
        for launch in &self.launches {
            let block = launch.block.map(i64::from);
            divisors.extend(block);
            divisors.insert(block.iter().product());
        }
        let divisors: Vec<i64> = divisors.into_iter().rev().collect();
        let mut decided = Vec::new();
        let mut sources = Vec::new();
        for (extent, proposed) in EXTENTS.iter().zip(proposed) {
            let numbers = self.numbers(extent);
            let proposed = crate::sizes::without_sizeof(unit, proposed);
            let proposed = with_passed(&proposed, &self.passed);
            if holds(&proposed, &self.names, &numbers) {
                decided.push(proposed);
                sources.push(Source::Text);
                continue;
            }
            let Some(expr) = infer(&self.names, &numbers, &divisors) else {
                return Err(self.unexplained(plan, extent, &numbers));
            };
            decided.push(expr);
            sources.push(Source::Launches);
        }
        self.explained = sources.iter().filter(|it| **it == Source::Text).count();
        self.freeze(plan, &decided, sources.contains(&Source::Launches));
        let mut decided = decided.into_iter();
        plan.grid = decided.by_ref().take(3).collect();
        plan.block = decided.by_ref().take(3).collect();
        plan.shared = decided.next().filter(|it| it.number() != Some(0));
        plan.guessed_launch.clear();
        plan.cooperative = self.launches.iter().any(|launch| launch.cooperative);
        plan.cluster = self.launches.iter().find_map(|launch| launch.cluster);
        propose_block(plan, unit, item, &self.names);
        Ok(())
    }

    /// Keeps parameters at their default if the launch may depend on them and neither the source nor the
    /// captures show how. This is the case if an extent has no expression of the source, or the host passes
    /// the parameter's number instead of its name.
    fn freeze(&self, plan: &mut Plan, decided: &[Expr], unexplained: bool) {
        let mut frozen = Vec::new();
        let (mut names, mut numbers) = (Vec::new(), BTreeSet::new());
        for extent in decided {
            extent.names(&mut names);
            collect_numbers(extent, &mut numbers);
        }
        for each in &mut plan.parameters {
            let values: BTreeSet<Option<i64>> = self
                .names
                .iter()
                .map(|names| names.get(&each.name).copied())
                .collect();
            let hidden = !names.contains(&each.name) && numbers.contains(&each.default);
            if (unexplained || hidden) && values.len() < 2 && each.values.len() > 1 {
                each.values = vec![each.default];
                frozen.push(each.name.clone());
            }
        }
        for name in frozen {
            plan.notes.push(format!(
                "{name} is not varied, as the launch for other values is not known: capture the program \
                 built with another {name}, with tuner exec --capture DIR2 --capture-value {name}=VALUE, \
                 and give both folders with --captured"
            ));
        }
    }

    fn unexplained(&self, plan: &Plan, extent: &Extent, numbers: &[i64]) -> AdoptError {
        refuse(
            &plan.kernel,
            format!("its {} is {}", extent.name, list_values(&self.names, numbers)),
            "no product or quotient of the launch's whole numbers gives that; if it depends on another number of the \
             program, capture each run with --capture-value NAME=VALUE (with --run: --vary NAME=VALUE), or give one \
             capture alone"
                .to_owned(),
        )
    }
}

/// Lists the values of an extent, each with the named numbers of its launch if there are any.
fn list_values(names: &[Names], numbers: &[i64]) -> String {
    let rows = names.iter().zip(numbers).map(|(names, number)| {
        let names: Vec<String> = names
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match names.is_empty() {
            true => number.to_string(),
            false => format!("{number} with {}", names.join(" ")),
        }
    });
    let mut rows: Vec<String> = rows.collect();
    rows.dedup();
    rows.join(", ")
}

/// Numbers of an expression.
fn collect_numbers(expr: &Expr, found: &mut BTreeSet<i64>) {
    match expr {
        Expr::Number(number) => {
            found.insert(*number);
        }
        Expr::Binary(_, left, right) => {
            collect_numbers(left, found);
            collect_numbers(right, found);
        }
        Expr::Call(_, arguments) => arguments
            .iter()
            .for_each(|each| collect_numbers(each, found)),
        Expr::Real(_) | Expr::Name(_) => {}
    }
}

/// Sets extents of blocks that the source names without a value from the launches: a number if all agree,
/// else values by launch.
fn blocks_of_launches(plan: &mut Plan, observed: &Observed<'_>) -> BTreeMap<String, Vec<i64>> {
    let mut varying = BTreeMap::new();
    let mut constant = BTreeMap::new();
    for each in plan.parameters.iter().filter(|each| each.of_data) {
        let own = Expr::Name(each.name.clone());
        let mut captures = observed.launches.iter().map(|(capture, _)| capture);
        let given = captures.any(|capture| {
            let mut values = capture.document.values.keys();
            values.any(|name| is_called(each, name))
        });
        let Some(axis) = plan.block.iter().position(|extent| *extent == own) else {
            continue;
        };
        let extents = observed.launches.iter();
        let extents = extents.filter_map(|(_, launch)| launch.block.get(axis).copied());
        let extents: Vec<i64> = extents.map(i64::from).collect();
        match extents.as_slice() {
            _ if given => {}
            [first, rest @ ..] if rest.iter().all(|extent| extent == first) => {
                constant.insert(each.name.clone(), *first);
            }
            _ => {
                varying.insert(each.name.clone(), extents);
            }
        }
    }
    plan.parameters
        .retain(|each| !constant.contains_key(&each.name));
    let number = |name: &str| constant.get(name).copied().map(Expr::Number);
    let arguments = plan.arguments.iter_mut();
    let shapes = arguments.flat_map(|it| it.shape.iter_mut().chain(&mut it.value));
    let extents = plan.grid.iter_mut().chain(&mut plan.block);
    extents
        .chain(&mut plan.shared)
        .chain(shapes)
        .for_each(|expr| *expr = expr.with(&number));
    varying
}

/// Compares a user's name of a value with a parameter's: parameters made from host variables and template
/// arguments have different names.
fn is_called(parameter: &ProposedParameter, name: &str) -> bool {
    let upper = name.to_uppercase();
    parameter.name == name || parameter.name == upper || parameter.name == format!("TUNE_{upper}")
}

/// Proposes extents of the block as parameters if nothing in the kernel fixes them. The grid must be a
/// division by them, or the kernel must have a grid-stride loop: the gate determines the sizes that work.
fn propose_block(plan: &mut Plan, unit: &Unit, item: usize, names: &[Names]) {
    let reached = cut::reach(unit, item, &BTreeSet::new());
    let has = |word: &str| reached.iter().any(|at| unit.item(*at).words.contains(word));
    // Without `blockDim` the kernel has its block's size as a number, and so do the extents of shared
    // arrays and launch bounds: a different block would be wrong.
    if !has("blockDim") || has("__shared__") || has("__launch_bounds__") || plan.shared.is_some() {
        return;
    }
    // Its instance was compiled for these threads, and the host's derivation of its arguments is unknown.
    let guessed = plan.guessed_entry.first().cloned();
    if let Some(argument) = guessed.filter(|_| !plan.keeps_block) {
        plan.keep_block(&argument);
    }
    if plan.keeps_block {
        return;
    }
    let strides = has("gridDim");
    let flat = plan.block.iter().skip(1).all(|it| *it == Expr::Number(1));
    for (axis, letter) in ["X", "Y", "Z"].iter().enumerate() {
        let plain = match flat {
            true => "BLOCK_SIZE".to_owned(),
            false => format!("BLOCK_{letter}"),
        };
        let taken = |name: &String| {
            unit.items.iter().any(|item| item.words.contains(name))
                || plan.parameters.iter().any(|each| each.name == *name)
        };
        let free = [plain.clone(), format!("TUNE_{plain}")];
        let Some(name) = free.into_iter().find(|name| !taken(name)) else {
            continue;
        };
        let extents = plan.block.get(axis).zip(plan.grid.get(axis));
        let Some((Expr::Number(extent), grid)) = extents else {
            continue;
        };
        let extent = *extent;
        let size = Expr::Name(name.clone());
        let grid = match divided_by(grid, extent, &size, names) {
            Some(divided) => divided,
            None if strides && flat => grid.clone(),
            None => continue,
        };
        if extent < 2 {
            continue;
        }
        // A flat block smaller than a warp would leave lanes idle.
        let least = if flat { 32 } else { 4 };
        let powers = (0..=10).map(|power| 1_i64 << power);
        let mut values: Vec<i64> = powers.filter(|value| *value >= least).collect();
        values.push(extent);
        values.sort_unstable();
        values.dedup();
        if let (Some(block), Some(known)) = (plan.block.get_mut(axis), plan.grid.get_mut(axis)) {
            (*block, *known) = (size, grid);
        }
        plan.parameters.push(ProposedParameter {
            name,
            default: extent,
            values,
            doc: format!("threads of a block in {}", letter.to_lowercase()),
            of_data: false,
        });
    }
}

/// Returns a division by an extent of the block with `size` in its place; `None` if it is not such a
/// division. One that rounds down becomes one that rounds up for other sizes, unless a launch of these
/// `names` had a remainder.
fn divided_by(grid: &Expr, extent: i64, size: &Expr, names: &[Names]) -> Option<Expr> {
    let by = Expr::Number(extent);
    let (whole, rounds_down) = match grid {
        Expr::Call("ceil_div", both) if both.get(1) == Some(&by) => (both.first()?.clone(), false),
        Expr::Binary("//", whole, divisor) if **divisor == by => {
            let up = Expr::Call("ceil_div", vec![(**whole).clone(), by]);
            let differs = |names: &Names| up.value(names) != grid.value(names);
            ((**whole).clone(), names.iter().any(differs))
        }
        _ => return None,
    };
    Some(match rounds_down {
        true => Expr::Binary("//", Box::new(whole), Box::new(size.clone())),
        false => Expr::Call("ceil_div", vec![whole, size.clone()]),
    })
}

/// Returns the expression with the kernel's names in place of the expressions that the host passes for
/// them.
fn with_passed(expr: &Expr, passed: &[(Expr, String)]) -> Expr {
    if let Some((_, name)) = passed.iter().find(|(value, _)| value == expr) {
        return Expr::Name(name.clone());
    }
    match expr {
        Expr::Binary(operator, left, right) => Expr::binary(
            operator,
            with_passed(left, passed),
            with_passed(right, passed),
        ),
        Expr::Call(name, arguments) => {
            let arguments = arguments.iter().map(|each| with_passed(each, passed));
            Expr::call(name, arguments.collect())
        }
        Expr::Number(_) | Expr::Real(_) | Expr::Name(_) => expr.clone(),
    }
}

/// Returns the signed whole number of 1, 2, 4 or 8 bytes.
pub(crate) fn whole(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        1 => i64::from(i8::from_le_bytes(bytes.try_into().ok()?)),
        2 => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
        4 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        8 => i64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_leaves_a_remainder_still_rounds_down() {
        let name = |name: &str| Box::new(Expr::Name(name.to_owned()));
        let grid = Expr::Binary("//", name("n"), Box::new(Expr::Number(256)));
        let divided = |n: i64| {
            let names = [Names::from([("n".to_owned(), n)])];
            let size = Expr::Name("BLOCK".to_owned());
            divided_by(&grid, 256, &size, &names).map(|expr| expr.to_string())
        };
        assert_eq!(divided(1000).as_deref(), Some("n // BLOCK"));
        assert_eq!(divided(1024).as_deref(), Some("ceil_div(n, BLOCK)"));
    }

    #[test]
    fn values_are_listed_with_the_names_that_there_are() {
        let named = |n| Names::from([("n".to_owned(), n)]);
        let text = list_values(&[named(1000), named(3000)], &[8, 47]);
        assert_eq!(text, "8 with n=1000, 47 with n=3000");
        let none = [Names::new(), Names::new(), Names::new()];
        assert_eq!(list_values(&none, &[2, 4, 4]), "2, 4");
    }
}
