//! Kernel launches in host code.

use super::{Host, Scope, find_initialiser};
use crate::tree::{self, Node, Source, named};
use tuner_kernel::declarations;

/// Functions of the runtime that launch a kernel: kernel, grid, block, arguments, shared memory.
const LAUNCHERS: [&str; 2] = ["cudaLaunchKernel", "cudaLaunchCooperativeKernel"];

/// A launch in the source.
#[derive(Debug, Clone)]
pub(crate) struct Launch<'u> {
    /// Scope of the launch.
    pub(crate) scope: Scope<'u>,
    /// Texts of the template arguments; empty without any.
    pub(crate) template: Vec<String>,
    /// Grid, block, shared memory and stream.
    pub(crate) config: Vec<Node<'u>>,
    /// The arguments.
    pub(crate) arguments: Vec<Node<'u>>,
    /// Cooperative launch: all blocks are resident at once.
    pub(crate) cooperative: bool,
}

/// The `switch` branch that contains a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The variable of the `switch`.
    pub(crate) name: String,
    /// Value in this branch.
    pub(crate) value: i64,
    /// Values of all branches.
    pub(crate) values: Vec<i64>,
}

impl Launch<'_> {
    /// Returns the branch that selects template arguments by a variable: `switch (d) { case 64: … }`.
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
            source.node_text(label).parse().ok()
        };
        let mut cases = whole.child_by_field_name("body").map(named)?;
        cases.retain(|node| node.kind() == "case_statement");
        let mut values: Vec<i64> = cases.into_iter().filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        Some(Branch {
            name: source.node_text(name).to_owned(),
            value: value(own)?,
            values,
        })
    }
}

impl<'u> Host<'u> {
    /// Finds every launch of a kernel.
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
        // Sorted by file position, independent of the variables through which kernels are launched.
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

/// Returns the template arguments of a name if it is the kernel's.
fn instance(text: &str, kernel: &str) -> Option<Vec<String>> {
    if base_name(text) != kernel {
        return None;
    }
    let arguments = text
        .split_once('<')
        .and_then(|(_, rest)| Some(&rest[..rest.rfind('>')?]));
    Some(arguments.map_or_else(Vec::new, declarations::split))
}

/// Parses `kernel<4><<<grid, block>>>(…)`, also through `auto k = kernel<4>;`.
fn chevrons<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let config = named(node)
        .into_iter()
        .find(|child| child.kind() == "kernel_call_syntax")?;
    let callee = node.child_by_field_name("function")?;
    let function = enclosing(node);
    let text = source.node_text(callee);
    let template = instance(text, kernel).or_else(|| {
        let value = find_initialiser(source, function?, text)?;
        instance(source.node_text(value).trim_start_matches('&'), kernel)
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

/// Parses `cudaLaunchCooperativeKernel((void*)kernel, grid, block, arguments, shared, stream)`.
fn called<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let callee = source.node_text(node.child_by_field_name("function")?);
    let launcher = LAUNCHERS
        .into_iter()
        .find(|name| base_name(callee) == *name)?;
    let all = named(node.child_by_field_name("arguments")?);
    let [entry, grid, block, arguments, rest @ ..] = all.as_slice() else {
        return None;
    };
    let text = source
        .node_text(tree::bare(*entry)?)
        .trim_start_matches(['&', '*']);
    let template = instance(text, kernel)?;
    let function = enclosing(node);
    // `void *args[] = { (void*)&a, &b };`
    let name = source.node_text(tree::bare(*arguments)?);
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

/// Parses a project's `launch(kernel<4>, config, …)`, where `config` is built from grid, block,
/// shared memory and stream.
fn passed<'u>(source: &'u Source, node: Node<'u>, kernel: &str) -> Option<Launch<'u>> {
    let all = named(node.child_by_field_name("arguments")?);
    let [entry, config, arguments @ ..] = all.as_slice() else {
        return None;
    };
    let template = instance(
        source
            .node_text(tree::bare(*entry)?)
            .trim_start_matches('&'),
        kernel,
    )?;
    let function = enclosing(node);
    let made = match config.kind() {
        "identifier" => find_initialiser(source, function?, source.node_text(*config))?,
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

/// Returns the enclosing function of a node.
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

/// Strips namespaces and template arguments from a name.
pub(crate) fn base_name(text: &str) -> &str {
    let name = text.split('<').next().unwrap_or(text).trim();
    name.rsplit("::").next().unwrap_or(name).trim()
}
