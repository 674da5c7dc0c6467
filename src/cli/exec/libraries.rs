//! Shared libraries that a program is linked with and loads.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tuner_kernel::compile::Surroundings;
use virtual_driver::libraries::{FORWARD, LIBRARIES};

/// Folders for building a program here.
pub(super) struct ForCompiler {
    /// Libraries under the names that the linker expects for `-lcuda` and `-lnvrtc`.
    pub(super) libraries: PathBuf,
    /// Headers that are missing from the compiler's own folder.
    pub(super) headers: PathBuf,
}

/// Writes the libraries of the virtual device below a folder; returns their folder.
///
/// # Errors
/// Those of the file system.
pub(super) fn unpack(folder: &Path) -> io::Result<PathBuf> {
    let libraries = folder.join("lib");
    std::fs::create_dir_all(libraries.join(FORWARD))?;
    for library in LIBRARIES {
        std::fs::write(libraries.join(library.name), library.bytes)?;
    }
    Ok(libraries)
}

/// Adds the files for linking a program with the driver interface, and with NVRTC if it is installed.
///
/// # Errors
/// Those of the file system.
pub(super) fn prepare_for_compiler(folder: &Path) -> io::Result<ForCompiler> {
    let libraries = unpack(folder)?;
    // The linker looks for the name without a version; the program then needs the SONAME.
    symlink("libcuda.so.1", libraries.join("libcuda.so"))?;
    let headers = folder.join("include");
    std::fs::create_dir(&headers)?;
    let candidates = Surroundings::from_env().candidates();
    if let Some(nvrtc) = candidates.first() {
        add_nvrtc(&nvrtc.library, &libraries, &headers)?;
    }
    Ok(ForCompiler { libraries, headers })
}

fn add_nvrtc(library: &Path, libraries: &Path, headers: &Path) -> io::Result<()> {
    // The built-ins and headers are next to the file itself, not next to a link to it.
    let library = library.canonicalize()?;
    let Some(folder) = library.parent() else {
        return Ok(());
    };
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        // The library loads its built-ins by name.
        if name.as_encoded_bytes().starts_with(b"libnvrtc") && name != "libnvrtc.so" {
            symlink(folder.join(&name), libraries.join(&name))?;
        }
    }
    symlink(&library, libraries.join("libnvrtc.so"))?;
    let header = folder.with_file_name("include").join("nvrtc.h");
    match header.is_file() {
        true => symlink(header, headers.join("nvrtc.h")),
        false => Ok(()),
    }
}
