//! Grid, block and shared memory.

use super::{KernelContext, MAX_PARAMETERS, Plan, ProposedParameter};
use crate::cut::{self, neighbours};
use crate::expr::Expr;
use crate::host::{Branch, Host, Launch};
use crate::unit::{Kind, Unit};
use std::collections::BTreeSet;

/// Maximum number of threads of a block.
const MAX_BLOCK: i64 = 1024;

impl Plan {
    /// Makes parameters from host variables in the block's extents.
    pub(super) fn block_of_host<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        let Some((scope, block)) = known.scope().zip(known.config(1)) else {
            return;
        };
        let names = host.parts(scope, block);
        // `dim3 block(n, n)`
        let several = names.len() > 1 || names.iter().any(|(_, times)| *times > 1);
        let guess = if several { 16 } else { 256 };
        for (name, times) in names {
            let value = host.of_text(Some(scope), &name);
            if host.is_fixed(scope, &name) {
                self.keep_block(&name);
                if let Some(Expr::Number(value)) = value {
                    host.fix(scope, &name, value);
                }
                continue;
            }
            let (value, doc) = match value {
                Some(Expr::Number(value)) => {
                    (value, format!("threads of a block: the host's {name}"))
                }
                None => (
                    guess,
                    format!("guessed: threads of a block, the host's {name}"),
                ),
                Some(_) => continue,
            };
            // If named twice, as in `dim3 block(n, n)`, its square must stay within the limit.
            let most = if times > 1 {
                MAX_BLOCK.isqrt()
            } else {
                MAX_BLOCK
            };
            let whole = (1..=most).contains(&value) && value & (value - 1) == 0;
            if !whole || self.parameters.len() >= MAX_PARAMETERS {
                continue;
            }
            let upper = name.to_uppercase();
            let used = |item: &crate::unit::Item| item.words.contains(&upper);
            // The search space defines it as a macro, which would replace other uses of the name.
            let proposed = if known.unit.items.iter().any(used) {
                format!("TUNE_{upper}")
            } else {
                upper.clone()
            };
            if let Some(known) = self.parameters.iter().find(|each| each.name == proposed) {
                // The template parameter of this name is also the block's extent.
                if known.default == value {
                    host.bind(scope, &name, &proposed);
                }
                continue;
            }
            host.bind(scope, &name, &proposed);
            // A block smaller than a warp would leave lanes idle.
            let least = if value >= 32 && times == 1 { 32 } else { 1 };
            let values = neighbours(value)
                .into_iter()
                .filter(|value| (least..=most).contains(value));
            self.parameters.push(ProposedParameter {
                name: proposed,
                default: value,
                values: values.collect(),
                of_data: doc.starts_with("guessed"),
                doc,
            });
        }
    }

    /// Makes a parameter from a host variable that a `switch` maps to template arguments; its values are
    /// those of the branches.
    pub(super) fn branch_of_host<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        let (Some(scope), Some((branch, proposed))) = (known.scope(), &known.branch) else {
            return;
        };
        host.bind(scope, &branch.name, proposed);
        self.parameters.push(ProposedParameter {
            name: proposed.clone(),
            default: branch.value,
            values: branch.values.clone(),
            doc: format!("what the host switches over: {}", branch.name),
            of_data: true,
        });
    }

    /// Sets the launch's extents if the file has them.
    pub(super) fn extents<'u>(
        &mut self,
        known: &KernelContext<'u>,
        item: usize,
        host: &mut Host<'u>,
    ) {
        if let Some(scope) = known.scope() {
            host.invent = true;
            self.grid = known
                .config(0)
                .and_then(|node| host.extents(scope, node, 0))
                .unwrap_or_default();
            host.invent = false;
            self.grid = self.grid.iter().map(Expr::floored).collect();
            let block = known
                .config(1)
                .and_then(|node| host.extents(scope, node, 0));
            let named = |all: &Vec<Expr>| {
                let mut names = Vec::new();
                all.iter().for_each(|each| each.names(&mut names));
                names.iter().all(|name| {
                    self.parameters.iter().any(|each| each.name == *name)
                        || self.sizes.iter().any(|(size, _)| size == name)
                })
            };
            self.block = block.filter(named).unwrap_or_default();
            let shared = known.config(2);
            self.shared = shared
                .and_then(|node| host.express(scope, node, 0))
                .filter(|it| it.number() != Some(0));
            if self.shared.is_none()
                && shared.is_some_and(|node| scope.source.node_text(node) != "0")
            {
                self.guess("shared");
            }
        }
        let text = known.unit.text(known.own);
        if self
            .block
            .iter()
            .any(|each| each.number().is_some_and(|n| n < 1))
        {
            self.block = Vec::new();
        }
        let kept = cut::reach(known.unit, item, &BTreeSet::new());
        // Other branches may define a kernel of the same name.
        let others = |at: &usize| *at == item || known.unit.item(*at).kind != Kind::Kernel;
        let code = kept.into_iter().filter(others).map(|at| {
            let item = known.unit.item(at);
            known.unit.file(item.file).code(&item.at)
        });
        let code: String = code.collect::<Vec<_>>().join("\n");
        self.block_axes = block_axes(&code);
        if self.block.is_empty() {
            let named = |text: &str| self.meaning(host, text);
            self.block = block_of_index(&code, named).unwrap_or_else(|| guessed_block(text));
            self.guess("block");
        }
        if self.grid.is_empty() {
            self.guess("grid");
        }
        if self.shared.is_none() && takes_shared(known.unit, item) {
            // A generous upper bound, as for buffers.
            self.shared = Some(Expr::Number(1 << 14));
            self.guess("shared");
        }
        self.cooperative = known
            .launch
            .as_ref()
            .is_some_and(|launch| launch.cooperative)
            || (text.contains("this_grid") || text.contains("grid_group"))
                && text.contains("sync(");
    }
}

/// Returns the deciding branch of a launch and its variable's name as a parameter. Small numbers are case
/// labels with other meanings and do not count.
pub(super) fn branch(launch: &Launch<'_>) -> Option<(Branch, String)> {
    let branch = launch.branch().filter(|branch| branch.value >= 8)?;
    let proposed = format!("TUNE_{}", branch.name.to_uppercase());
    Some((branch, proposed))
}

/// Counts the understood parts of a launch's configuration.
pub(super) fn usable<'u>(host: &Host<'u>, launch: &Launch<'u>) -> usize {
    let mut trial = host.trial();
    let extents = launch.config.iter().take(2);
    extents
        .filter(|node| trial.understands(launch.scope, **node))
        .count()
}

impl Plan {
    /// Translates a kernel name to a number or parameter.
    fn meaning<'u>(&self, host: &mut Host<'u>, text: &str) -> Option<Expr> {
        if self.parameters.iter().any(|each| each.name == text) {
            return Some(Expr::Name(text.to_owned()));
        }
        let meaning = host.of_text(None, text)?;
        let parameters = super::defaults(self);
        let value = meaning.value(&parameters)?;
        (1..=MAX_BLOCK).contains(&value).then_some(meaning)
    }
}

/// Counts the dimensions of `blockIdx` that the code uses; 3 if the use is not understood.
fn block_axes(code: &str) -> usize {
    let plain: String = code.split_whitespace().collect();
    let axes = ["blockIdx.x", "blockIdx.y", "blockIdx.z"];
    let highest = (1..=3)
        .rev()
        .zip(axes.iter().rev())
        .find(|(_, axis)| plain.contains(*axis));
    let other = plain.replace("blockIdx.", "");
    let unknown = [
        "blockIdx",
        "ctaid",
        "this_grid",
        "grid_group",
        "block_index",
        "group_index",
    ];
    match highest {
        _ if unknown.iter().any(|word| other.contains(word)) => 3,
        Some((count, _)) => count,
        None => 0,
    }
}

/// Derives threads per block from the index computation `blockIdx.x * TX + threadIdx.x`.
fn block_of_index(code: &str, mut meaning: impl FnMut(&str) -> Option<Expr>) -> Option<Vec<Expr>> {
    let plain: String = code.split_whitespace().collect();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut extent = |axis: char| {
        let (block, thread) = (format!("blockIdx.{axis}*"), format!("threadIdx.{axis}"));
        let behind = plain.split(&block).skip(1).find_map(|rest| {
            let name: String = rest.chars().take_while(|c| word(*c)).collect();
            let rest = rest.get(name.len()..)?.trim_start_matches(')');
            rest.starts_with(&format!("+{thread}")).then_some(name)
        });
        let before = || {
            let behind = format!("*blockIdx.{axis}");
            let mut parts = plain.split(&behind);
            let first = parts.next()?;
            let name: String = first.chars().rev().take_while(|c| word(*c)).collect();
            let name = name.chars().rev().collect();
            parts
                .next()?
                .trim_start_matches(')')
                .starts_with(&format!("+{thread}"))
                .then_some(name)
        };
        let reversed = || {
            plain.split(&format!("{thread}+")).skip(1).find_map(|rest| {
                let rest = rest
                    .strip_prefix('(')
                    .unwrap_or(rest)
                    .strip_prefix(&block)?;
                Some(rest.chars().take_while(|c| word(*c)).collect())
            })
        };
        meaning(&behind.or_else(before).or_else(reversed)?)
    };
    let mut all = vec![extent('x')?];
    for axis in ['y', 'z'] {
        if plain.contains(&format!("threadIdx.{axis}")) {
            all.push(extent(axis)?);
        }
    }
    Some(all)
}

/// Guesses threads per block if no launch specifies them.
fn guessed_block(text: &str) -> Vec<Expr> {
    if let Some((_, rest)) = text.split_once("__launch_bounds__(")
        && let Some(bound) = rest
            .split([',', ')'])
            .next()
            .and_then(|bound| bound.trim().parse().ok())
    {
        return vec![Expr::Number(bound)];
    }
    if text.contains("threadIdx.y") {
        return vec![Expr::Number(16), Expr::Number(16)];
    }
    vec![Expr::Number(256)]
}

/// Reports whether the reachable code uses dynamic shared memory.
fn takes_shared(unit: &Unit, kernel: usize) -> bool {
    let kept = cut::reach(unit, kernel, &BTreeSet::new());
    kept.into_iter().any(|at| {
        let item = unit.item(at);
        let text = unit.file(item.file).code(&item.at);
        item.words.contains("__shared__")
            && text.split("extern").skip(1).any(|rest| {
                let head = rest.split(';').next().unwrap_or_default();
                head.contains("__shared__") && head.contains("[]")
            })
    })
}
