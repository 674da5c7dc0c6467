//! A kernel of the catalog.

use crate::compile::Template;
use std::path::PathBuf;
use tuner_space::KernelSpec;

/// A kernel with everything read for it.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The search space's file.
    pub path: PathBuf,
    /// The search space.
    pub spec: KernelSpec,
    /// The template.
    pub template: Template,
    /// The reference kernel, if the reference is one.
    pub reference: Option<Template>,
}
