//! Source lines of hazards, only from the files from which a kernel of the daemon's folders is compiled.

use std::path::{Path, PathBuf};
use tuner_core::record::Hazard;
use tuner_kernel::catalog::{Catalog, Kernel};

/// Maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 400;

/// The template of a kernel and the files that it includes.
pub(super) struct Sources {
    /// Folders to which a file's name may be relative.
    bases: Vec<PathBuf>,
    /// Real paths and contents.
    files: Vec<(PathBuf, String)>,
}

impl Sources {
    /// Reads the files of a kernel that are in these folders.
    pub(super) fn of_kernel(name: &str, folders: &[PathBuf]) -> Self {
        let loaded = folders.iter().filter_map(|folder| {
            let catalog = Catalog::of_folder(folder).ok()?;
            // Read in the daemon's own folder, like its runs.
            Kernel::load_in(catalog.file_of(name).ok()?, Path::new(".")).ok()
        });
        let mut files = Vec::new();
        for kernel in loaded {
            let template = &kernel.template;
            let headers = template.headers.iter();
            let headers = headers.map(|header| (header.path.as_str(), header.text.as_str()));
            let all = std::iter::once((&*template.name, &*template.text)).chain(headers);
            files.extend(all.filter_map(|(path, text)| {
                Some((Path::new(path).canonicalize().ok()?, text.to_owned()))
            }));
        }
        // A run in the project around the folder names its files relative to it.
        let projects = folders.iter().filter_map(|folder| folder.parent());
        let projects = projects.map(Path::to_owned);
        Self {
            bases: projects.chain(folders.iter().cloned()).collect(),
            files,
        }
    }

    /// Returns the source line of a hazard. Its path is from the database, and a kernel may write any path
    /// into its line information, so only the kernel's own files are shown.
    pub(super) fn line(&self, hazard: &Hazard) -> Option<String> {
        let (file, line) = (hazard.file.as_ref()?, hazard.line?);
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.bases.iter().find_map(|base| {
            let real = base.join(file).canonicalize().ok()?;
            let (_, text) = self.files.iter().find(|(path, _)| *path == real)?;
            Some(text)
        })?;
        let line = text.lines().nth(line)?;
        Some(line.chars().take(MAX_LINE_CHARS).collect())
    }
}

#[cfg(test)]
mod tests;
