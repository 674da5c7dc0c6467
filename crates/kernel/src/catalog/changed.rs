//! Kernels whose code replaces that of their files.

use super::files::shown;
use super::{CatalogError, Kernel};
use crate::compile::Template;
use crate::declarations;
use std::collections::BTreeMap;
use std::path::Path;
use tuner_core::data::DataFile;
use tuner_space::{Diagnostics, KernelSpec, Reference};

impl Kernel {
    /// Returns the kernel with this source and search space instead of its files' contents. Reads no file:
    /// headers, reference and the identities of data are those of this kernel, even if the files have
    /// changed since it was read.
    ///
    /// # Errors
    /// A wrong search space, one that names other files, and a source that includes a file which this
    /// kernel's template does not include.
    pub fn with_code(&self, source: &str, space: &str) -> Result<Self, CatalogError> {
        let mut spec = KernelSpec::parse(space, Path::new(&shown(&self.path)))?;
        if !names_same_files(&spec, &self.spec) {
            let why = "the changed search space names other files";
            return Err(Diagnostics::of_file(shown(&self.path), why).into());
        }
        keep_data_hashes(&mut spec, &self.spec);
        let folders = self.template.include_dirs.to_vec();
        let headers = self.template.headers_for(source);
        let template = Template::new(&self.template.name, source, headers, folders);
        declarations::variables(&spec, &template)?;
        declarations::overrides(&spec, &template)?;
        Ok(Self {
            path: self.path.clone(),
            spec,
            template,
            reference: self.reference.clone(),
        })
    }
}

/// Reports whether two search spaces read the same template, reference, headers and data.
fn names_same_files(one: &KernelSpec, other: &KernelSpec) -> bool {
    let reference = |spec: &KernelSpec| match &spec.reference {
        Reference::Kernel { source, .. } => Some(source.clone()),
        Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
    };
    one.source == other.source
        && one.include == other.include
        && reference(one) == reference(other)
        && one.data_paths() == other.data_paths()
}

/// Copies the hashes of data files: a file that has changed since is an error when it is read.
fn keep_data_hashes(spec: &mut KernelSpec, from: &KernelSpec) {
    let mut from = from.clone();
    let known: BTreeMap<String, DataFile> = from
        .data_files_mut()
        .map(|(name, file)| (format!("{name} {}", file.path), file.clone()))
        .collect();
    for (name, file) in spec.data_files_mut() {
        if let Some(known) = known.get(&format!("{name} {}", file.path)) {
            *file = known.clone();
        }
    }
    spec.data_hashes = from.data_hashes;
}
