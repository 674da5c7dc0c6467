//! A group of parameters that constraints couple.

use super::expr::{TermId, Terms, Val};
use super::parameter::Parameter;
use super::set::Rule;

/// A group of parameters and the constraints over them.
pub(super) struct Group<'a> {
    pub(super) terms: &'a mut Terms,
    pub(super) parameters: &'a [Parameter],
    pub(super) rules: &'a [Rule],
    pub(super) roots: &'a [TermId],
    /// Term and values of every parameter.
    pub(super) inputs: &'a [TermId],
    pub(super) domains: &'a [Vec<Val>],
    /// Choices of every parameter that satisfy the constraints on it alone.
    pub(super) allowed: &'a [Vec<u32>],
    /// Logarithm (base 2) of the number of those choices.
    pub(super) bits: &'a [f64],
}
