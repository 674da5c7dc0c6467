//! Files of a kernel, packed for other machines and unpacked there; named by their content.

use super::wire::{Bundle, BundleFile};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use tuner_core::units::ContentHash;
use tuner_core::{files, private};
use tuner_kernel::catalog::{Kernel, absolute};

/// Contents by their hash.
pub type PackedFiles = BTreeMap<ContentHash, Vec<u8>>;

/// Reason why files cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// A file that the search space names by a path that only exists on this machine.
    #[error(
        "{}: it names {path} by its path on this machine, which workers do not have; name it \
         relative to the search space", space.display()
    )]
    Absolute {
        /// The search space.
        space: PathBuf,
        /// The path.
        path: String,
    },
    /// A path outside the folder.
    #[error("the bundle names `{0}`, which is not a path below its folder")]
    Outside(String),
    /// Content that does not match its hash.
    #[error("`{path}` is not what its hash says ({expected} was announced, {found} came)")]
    False {
        /// The file.
        path: String,
        /// The announced hash.
        expected: String,
        /// The actual hash.
        found: String,
    },
    /// Missing content.
    #[error("the content of `{0}` is missing")]
    Missing(String),
}

/// Packs a kernel: the search space, its template, its reference, and what they include.
///
/// # Errors
/// A file can no longer be read.
pub fn pack(kernel: &Kernel, files: &mut PackedFiles) -> Result<Bundle, BundleError> {
    let templates = std::iter::once(&kernel.template).chain(&kernel.reference);
    let mut paths = vec![absolute(&kernel.path)];
    for template in templates {
        paths.push(absolute(Path::new(&*template.name)));
        let headers = template.headers.iter();
        paths.extend(headers.map(|header| absolute(Path::new(&header.path))));
    }
    let data = kernel.spec.data_paths();
    paths.extend(data.iter().map(|path| absolute(path)));
    relative(kernel)?;
    paths.sort();
    // A header that several files include is packed once.
    paths.dedup();
    let root = common_folder(&paths);
    let mut bundle = Bundle {
        space: below(&root, &absolute(&kernel.path)),
        files: Vec::with_capacity(paths.len()),
    };
    for path in paths {
        let content =
            files::read(&path, files::MAX_RECORDING_BYTES).map_err(|why| BundleError::File {
                path: path.clone(),
                why,
            })?;
        let hash = ContentHash::from_parts([content.as_slice()]);
        bundle.files.push(BundleFile {
            path: below(&root, &path),
            hash: hash.clone(),
        });
        files.insert(hash, content);
    }
    Ok(bundle)
}

/// Refuses a search space that names files or folders by absolute paths of this machine.
fn relative(kernel: &Kernel) -> Result<(), BundleError> {
    match kernel.spec.places().absolute.first() {
        Some(path) => Err(BundleError::Absolute {
            space: absolute(&kernel.path),
            path: path.display().to_string(),
        }),
        None => Ok(()),
    }
}

/// Unpacks a bundle into a folder, checks each content against its hash, and returns the path of
/// the search space.
///
/// # Errors
/// A path outside the folder, missing or false content, a full disk.
pub fn unpack(bundle: &Bundle, files: &PackedFiles, folder: &Path) -> Result<PathBuf, BundleError> {
    for file in &bundle.files {
        let path = inside(folder, &file.path)?;
        let content = files
            .get(&file.hash)
            .ok_or_else(|| BundleError::Missing(file.path.clone()))?;
        let found = ContentHash::from_parts([content.as_slice()]);
        if found != file.hash {
            return Err(BundleError::False {
                path: file.path.clone(),
                expected: file.hash.short().to_owned(),
                found: found.short().to_owned(),
            });
        }
        // An existing file has the same content: a second worker of this machine may be reading it.
        if std::fs::read(&path).is_ok_and(|there| there == *content) {
            continue;
        }
        let written = write(&path, content);
        written.map_err(|why| BundleError::File { path, why })?;
    }
    inside(folder, &bundle.space)
}

/// Writes a file atomically: workers of one machine may unpack the same file at the same time.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    private::write_file(path, &[content])
}

/// Returns the path below the folder; refuses paths that leave it.
fn inside(folder: &Path, path: &str) -> Result<PathBuf, BundleError> {
    let relative = Path::new(path);
    let plain = |component| matches!(component, Component::Normal(_));
    if path.is_empty() || !relative.components().all(plain) {
        return Err(BundleError::Outside(path.to_owned()));
    }
    Ok(folder.join(relative))
}

fn common_folder(paths: &[PathBuf]) -> PathBuf {
    let mut folders = paths.iter().filter_map(|path| path.parent());
    let first = folders.next().unwrap_or(Path::new("/"));
    folders.fold(first.to_owned(), |common, folder| {
        let shared = common.components().zip(folder.components());
        let shared = shared.take_while(|(a, b)| a == b);
        shared.map(|(component, _)| component).collect()
    })
}

fn below(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    relative.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
