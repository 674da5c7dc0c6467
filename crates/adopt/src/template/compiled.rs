//! Result of cutting a template out of a source.

use std::path::PathBuf;
use tuner_kernel::declarations::Parameter;

/// A template that compiles.
#[derive(Debug)]
pub(crate) struct CompiledTemplate {
    /// Source text.
    pub(crate) text: String,
    /// The kernel's parameters according to the compiler.
    pub(crate) parameters: Option<Vec<Parameter>>,
    /// Include folders that the search space must list.
    pub(crate) include: Vec<PathBuf>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}
