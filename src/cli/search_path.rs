//! Folders listed in an environment variable.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Iterates over the folders of a list such as `PATH`. An empty list has no folders, while an empty entry
/// in a list is the current folder.
pub(super) fn folders(list: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let list = list.filter(|list| !list.is_empty());
    list.into_iter().flat_map(std::env::split_paths)
}
