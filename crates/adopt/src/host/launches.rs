//! Launches as host code writes them.

use super::{Host, Scope, find_initialiser};
use crate::tree::{self, Node, Source, named};
use tuner_kernel::declarations;

/// Functions of the runtime that launch a kernel: kernel, grid, block, arguments, shared memory.
const LAUNCHERS: [&str; 2] = ["cudaLaunchKernel", "cudaLaunchCooperativeKernel"];

/// A launch as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Launch<'u> {
    /// Where it stands.
    pub(crate) scope: Scope<'u>,
    /// The template arguments' texts; empty where there are none.
    pub(crate) template: Vec<String>,
    /// Grid, block, shared memory and stream.
    pub(crate) config: Vec<Node<'u>>,
    /// The arguments.
    pub(crate) arguments: Vec<Node<'u>>,
    /// All blocks are on the device at once.
    pub(crate) cooperative: bool,
}

/// The branch of a `switch` in which a launch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// What is looked at.
    pub(crate) name: String,
    /// Its value here.
    pub(crate) value: i64,
    /// Its values in all branches.
    pub(crate) values: Vec<i64>,
}

impl Launch<'_> {
    /// The branch that decides template arguments by a variable: `switch (d) { case 64: … }`.
    pub(crate) fn branch(&self) -> Option<Branch> {
        let source = self.scope.source;
        let mut at = self.config.first()?.parent();
        while at?.kind() != "case_statement" {
            at = at?.parent();
        }
        let own = at?;
        let mut around = own.parent();
        while around?.kind() != "switch_statement" {
            around = around?.parent();
        }
        let whole = around?;
        let condition = whole.child_by_field_name("condition")?;
        let condition = tree::first(condition).unwrap_or(condition);
        let name = tree::bare(condition).filter(|node| node.kind() == "identifier")?;
        let value = |case: Node<'_>| -> Option<i64> {
            let label = tree::bare(case.child_by_field_name("value")?)?;
            source.of(label).parse().ok()
        };
        let mut cases = whole.child_by_field_name("body").map(named)?;
        cases.retain(|node| node.kind() == "case_statement");
        let mut values: Vec<i64> = cases.into_iter().filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        Some(Branch {
            name: source.of(name).to_owned(),
            value: value(own)?,
            values,
        })
    }
}

impl<'u> Host<'u> {
    /// Every launch of a kernel.
    pub(crate) fn launches(&self, kernel: &str) -> Vec<Launch<'u>> {
        let mut found: Vec<Launch<'u>> = self
            .calls
            .values()
            .flatten()
            .filter_map(|(source, node)| {
                chevrons(source, *node, kernel)
                    .or_else(|| called(source, *node, kernel))
                    .or_else(|| passed(source, *node, kernel))
            })
            .collect();
        // In the order of the files, whatever variables the kernels are launched by.
        found.sort_by_key(|launch| {
            let files = self.unit.files.iter();
            let file = files.take_while(|file| file.path != launch.scope.source.path);
            (
                file.count(),
                launch.config.first().map(|node| node.start_byte()),
            )
        });
        found
    }
}

/// The template arguments of a name, where it is the kernel's.
fn instance(text: &str, kernel: &str) -> Option<Vec<String>> {
    if base_name(text) != kernel {
        return None;
    }
    let arguments = text
        .split_once('<')
        .and_then(|(_, rest)| Some(&rest[..rest.rfind('>')?]));
    Some(arguments.map_or_else(Vec::new, declarations::split))
}

/// `kernel<4><<<grid, block>>>(…)`, also through `auto k = kernel<4>;`.
fn chevrons<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let config = named(node)
        .into_iter()
        .find(|child| child.kind() == "kernel_call_syntax")?;
    let callee = node.child_by_field_name("function")?;
    let function = enclosing(node);
    let text = source.of(callee);
    let template = instance(text, kernel).or_else(|| {
        let value = find_initialiser(source, function?, text)?;
        instance(source.of(value).trim_start_matches('&'), kernel)
    })?;
    Some(Launch {
        scope: Scope { source, function },
        template,
        config: named(config),
        arguments: node
            .child_by_field_name("arguments")
            .map(named)
            .unwrap_or_default(),
        cooperative: false,
    })
}

/// `cudaLaunchCooperativeKernel((void*)kernel, grid, block, arguments, shared, stream)`.
fn called<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let callee = source.of(node.child_by_field_name("function")?);
    let launcher = LAUNCHERS
        .into_iter()
        .find(|name| base_name(callee) == *name)?;
    let all = named(node.child_by_field_name("arguments")?);
    let [entry, grid, block, arguments, rest @ ..] = all.as_slice() else {
        return None;
    };
    let text = source
        .of(tree::bare(*entry)?)
        .trim_start_matches(['&', '*']);
    let template = instance(text, kernel)?;
    let function = enclosing(node);
    // `void *args[] = { (void*)&a, &b };`
    let name = source.of(tree::bare(*arguments)?);
    let list = find_initialiser(source, function?, name);
    let each = list.map(named).unwrap_or_default().into_iter();
    let arguments = each.filter_map(|each| {
        let each = tree::bare(each)?;
        if each.kind() == "pointer_expression" {
            each.child_by_field_name("argument")
        } else {
            Some(each)
        }
    });
    Some(Launch {
        scope: Scope { source, function },
        template,
        config: [*grid, *block]
            .into_iter()
            .chain(rest.first().copied())
            .collect(),
        arguments: arguments.collect(),
        cooperative: launcher != LAUNCHERS[0],
    })
}

/// `launch(kernel<4>, config, …)` of the project's own, where `config` is made of grid, block, shared
/// memory and stream.
fn passed<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let all = named(node.child_by_field_name("arguments")?);
    let [entry, config, arguments @ ..] = all.as_slice() else {
        return None;
    };
    let template = instance(
        source.of(tree::bare(*entry)?).trim_start_matches('&'),
        kernel,
    )?;
    let function = enclosing(node);
    let made = match config.kind() {
        "identifier" => find_initialiser(source, function?, source.of(*config))?,
        _ => *config,
    };
    let list = made
        .child_by_field_name("arguments")
        .or_else(|| made.child_by_field_name("value"))
        .unwrap_or(made);
    let is_list = matches!(list.kind(), "argument_list" | "initializer_list");
    let config = named(list);
    (is_list && config.len() >= 2).then(|| Launch {
        scope: Scope { source, function },
        template,
        config,
        arguments: arguments.to_vec(),
        cooperative: false,
    })
}

/// The function around a node.
pub(super) fn enclosing(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent();
    while let Some(found) = at {
        if found.kind() == "function_definition" {
            return Some(found);
        }
        at = found.parent();
    }
    None
}

/// A name without its namespaces and template arguments.
pub(crate) fn base_name(text: &str) -> &str {
    let name = text.split('<').next().unwrap_or(text).trim();
    name.rsplit("::").next().unwrap_or(name).trim()
}
