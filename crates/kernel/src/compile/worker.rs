//! The compile worker: a process that compiles what arrives on its standard input.
//!
//! NVRTC can hang, crash, or eat memory on a hostile source, so it runs in processes that can be
//! killed. Frames come in and go out over pipes; the real standard output is moved away first, so
//! that nothing a library prints can get between them.

use super::discover::{Candidate, Surroundings};
use super::image::RawResult;
use super::nvrtc::{Nvrtc, NvrtcMissing};
use super::template::Header;
use super::wire::{read_frame, write_frame};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

/// Name of the hidden subcommand.
pub const WORKER_COMMAND: &str = "compile-worker";
/// Name that diagnostics give the block of `#define`s before the template.
const PARAMETER_BLOCK: &str = "parameters";

/// One compile, as sent to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) text: String,
    /// The paths of the template and its headers, to be restored in the PTX.
    pub(super) names: Vec<String>,
    pub(super) headers: Vec<Header>,
    pub(super) options: Vec<String>,
}

/// What a worker is told when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The library to load.
    pub(super) library: PathBuf,
    /// Limit of the address space, bytes.
    pub(super) address_space_bytes: u64,
}

/// Compiles a request in this process.
pub(super) fn compile(nvrtc: &Nvrtc, request: &Request, folder: &Path) -> RawResult {
    let started = Instant::now();
    let result = nvrtc.compile(
        &request.text,
        PARAMETER_BLOCK,
        &request.headers,
        &request.options,
    );
    match result {
        Ok(compiled) => RawResult::new(compiled, &request.names, folder, started.elapsed()),
        Err(error) => RawResult::broken(error.to_string()),
    }
}

/// The body of `tuner compile-worker`: serves requests until its standard input closes.
///
/// # Errors
/// When the pipes break or the first frame is not understood; the parent sees the process end.
pub fn serve() -> io::Result<()> {
    let mut replies = take_standard_output()?;
    // Relative paths in a source must not depend on where the parent runs.
    std::env::set_current_dir("/")?;
    let requests = read_in_background();
    let closed = || io::Error::other("the parent closed the pipe before the first frame");
    let hello: Hello = parse(&requests.recv().map_err(|_| closed())?)?;
    limit_address_space(hello.address_space_bytes);
    let nvrtc = load(&hello.library);
    for request in requests {
        let result = match &nvrtc {
            Ok(nvrtc) => {
                let request: Request = parse(&request)?;
                inject_fault(&request.text);
                compile(nvrtc, &request, Path::new("/"))
            }
            Err(missing) => RawResult::broken(missing.to_string()),
        };
        write_frame(
            &mut replies,
            &[&result.head_json(), &result.ptx, &result.cubin],
        )?;
    }
    Ok(())
}

/// Keeps the pipe to the parent for the frames and points file descriptor 1 at standard error.
fn take_standard_output() -> io::Result<File> {
    let frames = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(frames))
}

/// Reads frames on a thread of its own, so that the worker ends with its parent even while a
/// compile hangs: when the parent dies its end of the pipe closes, however it died.
fn read_in_background() -> mpsc::Receiver<Vec<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        while let Ok(Some(frame)) = read_frame(&mut input) {
            if sender.send(frame).is_err() {
                return;
            }
        }
        // Not `exit`: that runs the destructors of libraries which may be in the middle of work.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    });
    receiver
}

fn parse<T: for<'de> Deserialize<'de>>(frame: &[Vec<u8>]) -> io::Result<T> {
    let bytes = frame.first().map(Vec::as_slice).unwrap_or_default();
    serde_json::from_slice(bytes).map_err(io::Error::other)
}

/// The last line of defence; the parent watches resident memory more closely.
fn limit_address_space(bytes: u64) {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    if let Err(error) = rustix::process::setrlimit(Resource::As, limit) {
        tracing::debug!("no limit on the worker's address space: {error}");
    }
}

fn load(library: &Path) -> Result<Nvrtc, NvrtcMissing> {
    let explicit = Candidate {
        library: library.to_owned(),
        origin: String::new(),
    };
    Nvrtc::find(&Surroundings {
        explicit: Some(explicit.library),
        ..Surroundings::default()
    })
}

/// Misbehaves on request, so that tests can see the pool survive it: `TUNER_COMPILE_FAULT` names
/// the fault, and only a source that contains the word `tuner_fault` is hit.
fn inject_fault(text: &str) {
    let Some(fault) = std::env::var_os("TUNER_COMPILE_FAULT") else {
        return;
    };
    if !text.contains("tuner_fault") {
        return;
    }
    match fault.to_str() {
        Some("hang") => std::thread::sleep(std::time::Duration::from_secs(3600)),
        Some("crash") => {
            let own: Pid = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, Signal::ABORT);
        }
        Some("noise") => {
            // Through the descriptor that a C library would use.
            if let Ok(mut out) = io::stdout().as_fd().try_clone_to_owned().map(File::from) {
                let _ = out.write_all(b"noise on standard output\n");
            }
        }
        _ => {}
    }
}
