//! Private folders and files of one user. Content that others may have placed there is not read, and links
//! of others are not followed for writing.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Permission bits that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Checks that a folder and each of the folders `below` it is not a link, is owned by this user and is not
/// writable by others. Returns the path of the last.
///
/// # Errors
/// `NotFound` for a folder that does not exist, `PermissionDenied` with the reason for one that others
/// control.
pub fn check_folder(root: &Path, below: &[&str]) -> io::Result<PathBuf> {
    let mut folder = root.to_owned();
    check_owner(&folder, &std::fs::symlink_metadata(&folder)?)?;
    for name in below {
        folder.push(name);
        check_owner(&folder, &std::fs::symlink_metadata(&folder)?)?;
    }
    Ok(folder)
}

/// Creates a folder and those `below` it if missing, for this user only, and checks all of them.
///
/// # Errors
/// As [`check_folder`], and errors of creating.
pub fn create_folder(root: &Path, below: &[&str]) -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(root)?;
    let mut folder = root.to_owned();
    for depth in 0..=below.len() {
        // Checked before the next one is created in it: a link of another user must not be
        // followed.
        folder = check_folder(root, below.get(..depth).unwrap_or_default())?;
        if let Some(name) = below.get(depth) {
            builder.create(folder.join(name))?;
        }
    }
    Ok(folder)
}

/// Opens a regular file of this user that others cannot write, without following a link.
///
/// # Errors
/// Errors of opening, and `PermissionDenied` with the reason for another file.
pub fn open_file(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK a FIFO in place of the file would block the process.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(refuse(path, "is not a regular file"));
    }
    check_rights(path, &facts, user())?;
    Ok(file)
}

/// Writes a file atomically, for this user only; replaces an existing one.
///
/// # Errors
/// Errors of writing.
pub fn write_file(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let name = format!("{TEMPORARY_PREFIX}{}-{serial}", std::process::id());
    let temporary = path.with_file_name(name);
    // A dead process with the same id may have left one.
    let _ = std::fs::remove_file(&temporary);
    let mut options = File::options();
    let written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Prefix of the names of incomplete files.
pub(crate) const TEMPORARY_PREFIX: &str = ".tmp-";

fn check_owner(path: &Path, facts: &Metadata) -> io::Result<()> {
    if !facts.is_dir() {
        return Err(refuse(path, "is a link or a file, not a folder"));
    }
    check_rights(path, facts, user())
}

/// Returns the effective user id of this process.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn check_rights(path: &Path, facts: &Metadata, user: u32) -> io::Result<()> {
    if facts.uid() != user {
        return Err(refuse(path, "belongs to another user"));
    }
    if facts.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(refuse(path, "can be written by other users (chmod go-w)"));
    }
    Ok(())
}

fn refuse(path: &Path, why: &str) -> io::Error {
    let text = format!("{} {why}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests;
