//! Compile worker: a process that compiles requests from its standard input.
//!
//! NVRTC can hang, crash, or exhaust memory on a hostile source, so it runs in processes that can
//! be killed.

use super::discover::Surroundings;
use super::host_headers;
use super::image::{RawResult, RawStatus, restore_paths};
use super::nvrtc::{Nvrtc, NvrtcError};
use super::options;
use super::precompiled::{Precompiled, PrecompiledSettings, WithPrelude};
use super::request::Request;
use super::resources::{ASSEMBLER, shortened, with_source_lines};
use super::sandbox::{Folders, header_folders, run_confined, writes_file};
use super::template::Header;
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tuner_process::{Parent, from_json, to_json};

/// Name of the hidden subcommand.
pub const WORKER_COMMAND: &str = "compile-worker";
/// Name of the `#define` block before the template in diagnostics.
const PARAMETER_BLOCK: &str = "parameters";
/// Phrase in all of NVRTC's warnings about a precompiled header.
const UNSUITABLE: &str = "precompiled header";

/// Outcome of NVRTC in a confined thread.
type Compiled = io::Result<Result<RawResult, NvrtcError>>;

/// First message to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WorkerConfig {
    /// The library to load.
    pub(super) library: PathBuf,
    /// Limit of the address space, bytes.
    pub(super) address_space_bytes: u64,
    /// Location of precompiled headers; `None` for none.
    pub(super) precompiled: Option<PrecompiledSettings>,
}

/// Compiles a request in this process, with its prelude from `precompiled`.
pub(super) fn compile(
    nvrtc: &Nvrtc,
    request: &Request,
    folder: &Path,
    precompiled: Option<&mut Precompiled>,
) -> RawResult {
    let started = Instant::now();
    let mut headers = request.headers.clone();
    headers.extend(host_headers::beside(&request.headers));
    if let Some(option) = writes_file(&request.options) {
        let log = format!("error: the option `{option}` writes a file; take it out of `compile`");
        return RawResult::new(RawStatus::Refused, log);
    }
    // Only the folders of `compile: { include: … }` are checked; an option could name any folder.
    let named = header_folders(&request.options);
    if let Some(folder) = named.iter().find(|it| !request.folders.contains(it)) {
        let log = format!(
            "error: an option names the folder of headers {}; name it by `compile: {{ include: \
             [FOLDER] }}` of the search space",
            folder.display()
        );
        return RawResult::new(RawStatus::Refused, log);
    }
    let mut readable = request.folders.clone();
    readable.extend(nvrtc.library.parent().map(Path::to_owned));
    readable.extend(request.linked_folders.iter().cloned());
    let readable = Folders {
        read: readable,
        written: None,
    };
    let run = |text: &str, options: &[String], folders: &Folders| {
        run_confined(folders, || {
            nvrtc.compile(
                text,
                PARAMETER_BLOCK,
                &headers,
                options,
                &request.expressions,
            )
        })
    };
    let result = with_prelude(nvrtc, request, &headers, &readable, precompiled, &run)
        .unwrap_or_else(|| run(&request.text, &request.options, &readable));
    let mut result = match result {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => return RawResult::new(RawStatus::Broken, error.to_string()),
        Err(error) => {
            let why = format!("the compiler cannot be confined to the folders of headers: {error}");
            return RawResult::new(RawStatus::Broken, why);
        }
    };
    if result.head.status == RawStatus::Refused && result.head.log.contains(ASSEMBLER) {
        let target = options::target("", &request.options);
        let options = options::front_end(&request.options, target);
        if let Ok(Ok(front)) = run(&request.text, &options, &readable) {
            let ptx = String::from_utf8_lossy(&front.ptx);
            let ptx = restore_paths(&ptx, &request.names, folder);
            // The front end's PTX, which the assembler's messages refer to.
            result.head.log = with_source_lines(&result.head.log, &ptx);
        }
    }
    let ptx = String::from_utf8_lossy(&result.ptx);
    result.ptx = restore_paths(&ptx, &request.names, folder).into_bytes();
    result.head.log = shortened(with_source_name(&result.head.log, &request.names));
    result.head.compile_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    result
}

/// Compiles a request with its prelude precompiled, or unchanged if that fails. `None` if no prelude can be
/// precompiled.
fn with_prelude(
    nvrtc: &Nvrtc,
    request: &Request,
    headers: &[Header],
    folders: &Folders,
    precompiled: Option<&mut Precompiled>,
    run: &impl Fn(&str, &[String], &Folders) -> Compiled,
) -> Option<Compiled> {
    let precompiled = precompiled?;
    let WithPrelude { text, options } = precompiled.begun(nvrtc, request, headers, folders)?;
    match run(&text, &options, &precompiled.with_own(folders)) {
        Ok(Ok(result))
            if result.head.status == RawStatus::Compiled
                && !result.head.log.contains(UNSUITABLE) =>
        {
            return Some(Ok(Ok(result)));
        }
        _ => {}
    }
    // Messages must refer to the unchanged source; if that compiles, the precompiled header is at fault.
    let plain = run(&request.text, &request.options, folders);
    if matches!(&plain, Ok(Ok(result)) if result.head.status == RawStatus::Compiled) {
        precompiled.give_up();
    }
    Some(plain)
}

/// Inserts the source's name into the compiler's last line, which counts the errors in the parameter block
/// before it.
fn with_source_name(log: &str, names: &[String]) -> String {
    let block = format!("in the compilation of \"{PARAMETER_BLOCK}\"");
    match names.first() {
        Some(name) => log.replace(&block, &format!("in the compilation of \"{name}\"")),
        None => log.to_owned(),
    }
}

/// Runs `tuner compile-worker`: serves requests until its standard input closes.
///
/// # Errors
/// A broken pipe or a malformed message; the parent sees the process end.
pub fn serve() -> io::Result<()> {
    let parent = Parent::connect()?;
    // Relative paths in a source must not depend on the parent's working directory.
    std::env::set_current_dir("/")?;
    let closed = || io::Error::other("the parent closed the pipe before the first message");
    let hello: WorkerConfig = from_json(&parent.request().ok_or_else(closed)?)?;
    limit_address_space(hello.address_space_bytes);
    let nvrtc = Nvrtc::find(&Surroundings {
        explicit: Some(hello.library),
        ..Surroundings::default()
    });
    let mut precompiled = hello.precompiled.map(Precompiled::new);
    while let Some(request) = parent.request() {
        let result = match &nvrtc {
            Ok(nvrtc) => {
                let request: Request = from_json(&request)?;
                compile(nvrtc, &request, Path::new("/"), precompiled.as_mut())
            }
            Err(missing) => RawResult::new(RawStatus::Broken, missing.to_string()),
        };
        let head = to_json(&result.head)?;
        parent
            .replies()
            .send(&[&head, &result.ptx, &result.cubin])?;
    }
    Ok(())
}

/// Limits the address space as a last resort; the parent watches resident memory more closely.
fn limit_address_space(bytes: u64) {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    if let Err(error) = rustix::process::setrlimit(Resource::As, limit) {
        tracing::debug!("no limit on the worker's address space: {error}");
    }
}
