//! Detection of changes to the kernel's files, which a mutator must not make.

use std::path::{Path, PathBuf};
use tuner_core::units::ContentHash;
use tuner_kernel::catalog::{self, Kernel};

/// Files of a kernel with the hashes of their contents.
pub(super) struct Files(Vec<WatchedFile>);

struct WatchedFile {
    path: PathBuf,
    /// Hash at the beginning.
    first: Option<ContentHash>,
    /// Hash that was reported last.
    known: Option<ContentHash>,
}

impl Files {
    /// Reads the search space, the template, its reference, their headers and data.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut paths = vec![kernel.path.clone(), kernel.spec.source.clone()];
        if let tuner_space::Reference::Kernel { source, .. } = &kernel.spec.reference {
            paths.push(source.clone());
        }
        for template in std::iter::once(&kernel.template).chain(&kernel.reference) {
            let headers = template.headers.iter();
            paths.extend(headers.map(|header| PathBuf::from(&header.path)));
        }
        paths.extend(kernel.spec.data_paths());
        // The template and its reference may share headers.
        paths.sort();
        paths.dedup();
        let file = |path: PathBuf| {
            let first = hash(&path);
            WatchedFile {
                known: first.clone(),
                path,
                first,
            }
        };
        Self(paths.into_iter().map(file).collect())
    }

    /// Returns a message about files that were changed since the last call; restored files do not count.
    pub(super) fn changed(&mut self) -> Option<String> {
        let mut names = Vec::new();
        for file in &mut self.0 {
            let now = hash(&file.path);
            if now != file.known && now != file.first {
                names.push(catalog::shown(&file.path));
            }
            file.known = now;
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
    // The mutator may have replaced the file by anything.
    let bytes = tuner_core::files::read(path, tuner_core::files::MAX_TEXT_BYTES).ok()?;
    Some(ContentHash::from_parts([bytes.as_slice()]))
}
