//! Names of a space with their terms.

use super::expr::{Scope, TermId, Terms, Val};

/// The resolved names of a space.
pub struct Resolved {
    /// All expressions, with common subexpressions shared.
    pub terms: Terms,
    /// Meaning of each name.
    pub scope: Scope,
    pub(super) inputs: Vec<TermId>,
    pub(super) domains: Vec<Vec<Val>>,
    /// Terms of the derived values, in declared order.
    pub(super) derived: Vec<TermId>,
}
