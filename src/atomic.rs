//! Atomic file replacement.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Replaces a file's content atomically: after a crash or with a full disk, the file has either the old or
/// the new content, never a part. A special file such as `/dev/stdout` is written directly.
///
/// # Errors
/// System error for the directory or the file; the old content is then unchanged.
pub(crate) fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // Resolved, so that a symbolic link remains a link.
    let path = match path.canonicalize() {
        Ok(resolved) => resolved,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let old = std::fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|facts| !facts.is_file()) {
        refuse_unwritable(&path)?;
        // A rename would replace the device by a regular file.
        return File::options().write(true).open(&path)?.write_all(content);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // In the target's own folder: a rename does not cross file systems.
    let temporary = directory.join(format!(".{name}.{}.tmp", std::process::id()));
    // A file may remain from a dead process with the same id, or a symbolic link created by another user.
    let _ = std::fs::remove_file(&temporary);
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        if let Some(old) = old {
            // Otherwise the file would get the mode of the temporary file, which follows the umask.
            file.set_permissions(old.permissions())?;
        }
        // A file system may store the rename before the data: after a power failure the name would refer to
        // an empty file.
        file.sync_all()
    });
    let result = written.and_then(|()| std::fs::rename(&temporary, &path));
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// Rejects files that would block a writer or be damaged by it: a named FIFO, which may never have a
/// reader, a socket and a block device. Files below `/dev` and `/proc`, such as a pipe that is
/// `/dev/stdout`, are accepted.
///
/// # Errors
/// `InvalidInput` with the reason.
pub(crate) fn refuse_unwritable(path: &Path) -> std::io::Result<()> {
    let Ok(facts) = std::fs::metadata(path) else {
        return Ok(());
    };
    let kind = facts.file_type();
    let offered = path.starts_with("/dev") || path.starts_with("/proc");
    let why = match () {
        () if kind.is_fifo() && !offered => "it is a FIFO",
        () if kind.is_socket() && !offered => "it is a socket",
        () if kind.is_block_device() => "it is a disk",
        () => return Ok(()),
    };
    let text = format!("{why}, not a file");
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests;
