//! Branches of conditional compilation around items.

use super::{Around, Item};
use crate::tree::words;

/// A branch of conditional compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The directives around it.
    pub(crate) opening: String,
    /// Index of its file and its first byte: two branches may have the same condition.
    pub(crate) at: (usize, usize),
}

impl Branch {
    /// Returns the name in `#ifndef NAME` and `#if !defined(NAME)`.
    pub(crate) fn undefined(&self) -> Option<&str> {
        guarded(&self.opening)
    }
}

impl Item {
    /// Reports whether at most one of the two branches is compiled.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let branches = |item: &Self| -> Vec<Branch> {
            let around = item.around.iter();
            let branches = around.filter_map(|around| match around {
                Around::Condition(branch) => Some(branch.clone()),
                _ => None,
            });
            branches.collect()
        };
        let later = |one: &Branch, two: &Branch| {
            let rest = two.opening.strip_prefix(&one.opening);
            rest.is_some_and(|rest| rest.starts_with("\n#el"))
        };
        let (own, others) = (branches(self), branches(other));
        own.iter()
            .any(|one| others.iter().any(|two| later(one, two) || later(two, one)))
    }
}

/// Returns the scopes around the items of a branch.
pub(super) fn inside(around: &[Around], opening: &str, file: usize, start: usize) -> Vec<Around> {
    let branch = Branch {
        opening: opening.to_owned(),
        at: (file, start),
    };
    [around, &[Around::Condition(branch)]].concat()
}

/// Returns the name in `#ifndef NAME` and `#if !defined(NAME)`.
pub(super) fn guarded(opening: &str) -> Option<&str> {
    let rest = opening.trim_start_matches('#').trim_start();
    let name = match rest.strip_prefix("ifndef") {
        Some(name) => name,
        None => rest
            .strip_prefix("if")?
            .trim()
            .strip_prefix('!')?
            .trim_start()
            .strip_prefix("defined")?,
    };
    let name = name
        .trim()
        .trim_start_matches('(')
        .trim_end_matches(')')
        .trim();
    (words(name) == [name]).then_some(name)
}
