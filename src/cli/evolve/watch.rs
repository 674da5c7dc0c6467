//! The kernel's files: a mutator must not change them.

use std::path::{Path, PathBuf};
use tuner_core::units::ContentHash;
use tuner_kernel::catalog::{self, Kernel};

/// Files of a kernel with the hashes of their contents.
pub(super) struct Files(Vec<(PathBuf, Option<ContentHash>)>);

impl Files {
    /// Reads the search space, the template and its reference.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut paths = vec![kernel.path.clone(), kernel.spec.source.clone()];
        if let tuner_space::Reference::Kernel { source, .. } = &kernel.spec.reference {
            paths.push(source.clone());
        }
        Self(
            paths
                .into_iter()
                .map(|path| (path.clone(), hash(&path)))
                .collect(),
        )
    }

    /// Returns a message about files that were changed since the last call.
    pub(super) fn changed(&mut self) -> Option<String> {
        let mut names = Vec::new();
        for (path, known) in &mut self.0 {
            let now = hash(path);
            if now != *known {
                names.push(catalog::shown(path));
                *known = now;
            }
        }
        (!names.is_empty()).then(|| {
            format!(
                "{} changed on disk while the mutator ran; an answer is text on standard output. The \
                 evolution uses the text that it began with; restore the file (git checkout {})",
                names.join(", "),
                names.join(" ")
            )
        })
    }
}

fn hash(path: &Path) -> Option<ContentHash> {
    // The mutator may have put anything in its place.
    let bytes = tuner_core::files::read(path, tuner_core::files::MAX_TEXT_BYTES).ok()?;
    Some(ContentHash::from_parts([bytes.as_slice()]))
}
