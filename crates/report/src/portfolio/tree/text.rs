//! Text form of a tree.

use super::{DecisionTree, Node, Untuned, cut_value};
use crate::portfolio::{AxisValues, Table};
use std::fmt;
use tuner_core::units::counted;

/// Texts of a tree, one line each.
pub struct TreeText<'a> {
    /// The tree.
    pub tree: &'a DecisionTree,
    /// The table with the axes.
    pub table: &'a Table,
}

impl fmt::Display for TreeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &self.tree.root, 0)
    }
}

impl TreeText<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>, node: &Node, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match node {
            Node::Leaf(leaf) => {
                let untuned = match leaf.untuned {
                    Untuned::None => String::new(),
                    Untuned::UpTo(loss) => format!(", up to {} between them", percent(loss)),
                    Untuned::Unknown => ", not known between them".to_owned(),
                };
                writeln!(
                    f,
                    "{indent}variant {}: {} on {}{untuned}",
                    leaf.variant + 1,
                    percent(leaf.worst),
                    counted(leaf.shapes, "tuned shape"),
                )
            }
            Node::Split {
                axis,
                from,
                first,
                below,
                above,
            } => {
                writeln!(
                    f,
                    "{indent}if {}:",
                    self.table.condition(*axis, *from, *first)
                )?;
                self.write(f, below, depth + 1)?;
                writeln!(f, "{indent}else:")?;
                self.write(f, above, depth + 1)
            }
        }
    }
}

impl Table {
    /// Formats the condition of the first branch of a cut.
    fn condition(&self, axis: usize, from: usize, first: usize) -> String {
        let Some(axis) = self.axes.get(axis) else {
            return String::new();
        };
        match &axis.values {
            AxisValues::Numbers(numbers) => {
                let limit = cut_value(numbers, first).unwrap_or_default();
                format!("{} <= {limit}", axis.name)
            }
            AxisValues::Names(names) => {
                let names = names.get(from..first).unwrap_or_default();
                format!("{} in ({})", axis.name, names.join(", "))
            }
        }
    }
}

/// Formats a loss.
#[must_use]
pub fn percent(loss: f64) -> String {
    format!("{:.2} %", 100.0 * loss)
}
