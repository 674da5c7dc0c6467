//! The executed program: its linkage, its environment, its run.

use super::super::{CliError, search_path, usage};
use super::target::Target;
use super::{Args, libraries};
use anyhow::Context as _;
use std::env::JoinPathsError;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use tuner_core::files;
use tuner_core::target::ComputeTarget;
use tuner_kernel::catalog::shown;
use vgpu::Arch;
use virtual_driver::libraries::REDIRECT;
use virtual_driver::{Linkage, read_linkage};

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    /// Working directory of the program, if it is not the current one.
    folder: Option<PathBuf>,
    /// Original folder of which the working directory is a copy.
    original: Option<PathBuf>,
    /// A CUDA runtime may be linked into the program, or into one that it starts.
    redirects: bool,
}

impl Program {
    /// Returns the command line for display.
    pub(super) fn words(&self) -> Vec<String> {
        let path = self.path.to_string_lossy().into_owned();
        let rest = self
            .arguments
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        std::iter::once(path).chain(rest).collect()
    }
}

/// Builds the program if requested, and checks it.
///
/// # Errors
/// No program, one that cannot be built, and one that cannot use the virtual GPU.
pub(super) fn prepare(args: &Args, folder: &Path, target: &Target) -> Result<Program, CliError> {
    let (path, arguments) = match args.build.is_empty() {
        true => named(&args.command)?,
        false => (compile(args, folder, target.arch)?, &args.command[..]),
    };
    // On a GPU every runtime calls the driver, whose library is replaced.
    let redirects = target.is_virtual() && check(&path)? != Linkage::Shared;
    Ok(Program {
        path,
        arguments: arguments.to_vec(),
        folder: None,
        original: None,
        redirects,
    })
}

/// Returns the program of a command line and its arguments.
fn named(command: &[OsString]) -> Result<(PathBuf, &[OsString]), CliError> {
    let Some((name, arguments)) = command.split_first() else {
        refuse!("no program is given; type tuner exec -- ./app, or --build FILE.cu");
    };
    let Some(path) = find(name) else {
        refuse!(
            "{} is not a program; type its path, such as ./app",
            shown(Path::new(name))
        );
    };
    Ok((path, arguments))
}

/// Returns a program that runs a command of `sh` in a copy of a folder.
pub(super) fn shell(command: &str, copy: &Path, original: &Path) -> Program {
    Program {
        path: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), command.into()],
        folder: Some(copy.to_owned()),
        original: std::path::absolute(original).ok(),
        redirects: true,
    }
}

/// Finds the file of a program; a name without a slash is looked up in the search path.
fn find(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let data = std::fs::metadata(path).ok();
        data.is_some_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let path = PathBuf::from(name);
    if path.components().count() > 1 || name.to_string_lossy().contains('/') {
        return Some(path).filter(is_program);
    }
    let path = std::env::var_os("PATH");
    search_path::folders(path.as_deref())
        .map(|folder| folder.join(name))
        .find(is_program)
}

/// Rejects a program whose calls bypass the libraries of the virtual GPU; returns its linkage.
fn check(path: &Path) -> Result<Linkage, CliError> {
    let bytes = std::fs::read(path).with_context(|| shown(path))?;
    let linkage = read_linkage(&bytes);
    match &linkage {
        Linkage::StrippedRuntime => refuse!(
            "{} holds the CUDA runtime and no symbol table, so its calls cannot be redirected; do not strip it, or \
             link it with `nvcc -cudart shared` (CMake: set CUDA_RUNTIME_LIBRARY to Shared)",
            shown(path)
        ),
        Linkage::OldRuntime(name) => refuse!(
            "{} needs {name}; the virtual GPU has libcudart.so.12 and libcudart.so.13: build it with \
             CUDA 12 or 13 (scripts/get-nvcc fetches a compiler)",
            shown(path)
        ),
        Linkage::Shared | Linkage::StaticRuntime | Linkage::Other => Ok(linkage),
    }
}

/// Rejects files on which nvcc would block, or which it would read endlessly.
fn check_source(path: &Path) -> std::io::Result<()> {
    let facts = files::open_regular(path)?.metadata()?;
    match facts.len() > files::MAX_RECORDING_BYTES {
        true => Err(std::io::ErrorKind::FileTooLarge.into()),
        false => Ok(()),
    }
}

/// Compiles CUDA files with the installed compiler.
fn compile(args: &Args, folder: &Path, arch: &Arch) -> Result<PathBuf, CliError> {
    let Some(nvcc) = find_nvcc() else {
        refuse!("nvcc is not installed; fetch it with scripts/get-nvcc, or put it into PATH");
    };
    for path in &args.build {
        check_source(path).map_err(|why| usage(format!("{}: {why}", shown(path))))?;
    }
    let program = folder.join("program");
    let mut command = std::process::Command::new(&nvcc);
    command
        .args(["-cudart", "shared", "-lineinfo", "-std=c++17"])
        .arg(format!("-arch={}", ComputeTarget::of_device(arch.cc)))
        .args(&args.nvcc_option)
        .args(&args.build)
        .arg("-o")
        .arg(&program);
    let library = nvcc
        .parent()
        .and_then(Path::parent)
        .map(|root| root.join("lib"));
    if let Some(library) = library.filter(|library| library.join("libcudart.so").exists()) {
        command.arg("-L").arg(library);
    }
    let own = libraries::prepare_for_compiler(folder)?;
    command.arg("-L").arg(own.libraries);
    command.arg("-I").arg(own.headers);
    let output = command.output().with_context(|| shown(&nvcc))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(usage(format!("nvcc failed:\n{out}{text}")));
    }
    Ok(program)
}

/// Returns the compiler named by `TUNER_NVCC`, else that of `scripts/get-nvcc`, which is new enough, else
/// the one in PATH.
fn find_nvcc() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TUNER_NVCC") {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let fetched = data_folder().map(|data| data.join("tuner/nvcc/nvidia/cu13/bin/nvcc"));
    fetched
        .filter(|path| path.is_file())
        .or_else(|| find(OsStr::new("nvcc")))
}

/// Returns `XDG_DATA_HOME` as specified: it must be absolute, else `~/.local/share` is used.
fn data_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    named
        .filter(|path| path.is_absolute())
        .or_else(home)
        .filter(|path| path.is_absolute())
}

/// Fails early if the JSON file cannot be written.
///
/// # Errors
/// A folder that does not exist, or a folder in place of the file.
pub(super) fn check_output(path: &Path) -> Result<(), CliError> {
    if path.is_dir() {
        refuse!("{} is a folder; name a file", path.display());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        refuse!("{} is not a folder; create it first", shown(folder));
    }
    Ok(())
}

/// Runs the program with the tuner's shared libraries before all others in the search path.
///
/// # Errors
/// Libraries that cannot be written, and a program that cannot be started.
pub(super) fn spawn(
    program: &Program,
    folder: &Path,
    socket: &Path,
    target: &Target,
) -> Result<ExitStatus, CliError> {
    let all = libraries::unpack(folder)?;
    let redirection = all.join(REDIRECT);
    let libraries = target.library_folder(all);
    let before = std::env::var_os("LD_LIBRARY_PATH");
    let path = in_front(libraries, before.as_deref())
        .context("LD_LIBRARY_PATH, or the folder for temporary files, has a colon")?;
    let mut command = tokio::process::Command::new(&program.path);
    command
        .args(&program.arguments)
        .env("LD_LIBRARY_PATH", path)
        .envs(target.environment(socket));
    // Some tools, such as AddressSanitizer, want no library before their own: only where it is needed.
    if program.redirects && target.is_virtual() {
        let before = std::env::var_os("LD_PRELOAD");
        let preloaded = in_front(redirection, before.as_deref());
        command.env("LD_PRELOAD", preloaded.context("LD_PRELOAD")?);
    }
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
        add_compiler(&mut command);
    }
    // Headers outside the folder, such as `../common/book.h`, are found relative to the original.
    if let Some(path) = program
        .original
        .as_deref()
        .and_then(|it| extended("CPATH", it))
    {
        command.env("CPATH", path);
    }
    let runtime = tuner_engine::threads::start_local_runtime()?;
    runtime.block_on(wait(command, &program.path))
}

/// Prepends a folder to a list of folders.
fn in_front(folder: PathBuf, before: Option<&OsStr>) -> Result<OsString, JoinPathsError> {
    std::env::join_paths(std::iter::once(folder).chain(search_path::folders(before)))
}

/// Returns the list of folders in an environment variable with another one appended.
fn extended(variable: &str, folder: &Path) -> Option<OsString> {
    let before = std::env::var_os(variable).unwrap_or_default();
    let before = std::env::split_paths(&before).filter(|path| !path.as_os_str().is_empty());
    let all: Vec<PathBuf> = before.chain([folder.to_owned()]).collect();
    std::env::join_paths(all).ok()
}

/// Adds the installed nvcc and its libraries to the environment of a command that builds.
fn add_compiler(command: &mut tokio::process::Command) {
    let Some(nvcc) = find_nvcc() else {
        return;
    };
    let Some(folder) = nvcc.parent() else {
        return;
    };
    if let Some(path) = extended("PATH", folder) {
        command.env("PATH", path);
    }
    let library = folder.parent().map(|root| root.join("lib"));
    if let Some(path) = library.and_then(|library| extended("LIBRARY_PATH", &library)) {
        command.env("LIBRARY_PATH", path);
    }
}

/// Waits for the program. Ctrl-C reaches it through the terminal; SIGTERM is forwarded.
async fn wait(mut command: tokio::process::Command, path: &Path) -> Result<ExitStatus, CliError> {
    use tokio::signal::unix::{SignalKind, signal};
    // Both handlers before the program starts: a SIGTERM in between would end the tuner alone.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut child = command.spawn().with_context(|| shown(path))?;
    let process = child.id().and_then(|id| i32::try_from(id).ok());
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {
                let process = process.and_then(rustix::process::Pid::from_raw);
                if let Some(process) = process {
                    let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
                }
            }
        }
    }
}

/// Returns the signal that ended the program.
pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_of_libraries_adds_no_folder() {
        let path = |before: Option<&str>| in_front("/own".into(), before.map(OsStr::new)).unwrap();
        assert_eq!(path(None), "/own");
        assert_eq!(path(Some("")), "/own");
        assert_eq!(path(Some("/a:/b")), "/own:/a:/b");
        // An empty entry in the user's list means the current folder.
        assert_eq!(path(Some("/a:")), "/own:/a:");
        assert!(in_front("/with:colon".into(), None).is_err());
    }
}
