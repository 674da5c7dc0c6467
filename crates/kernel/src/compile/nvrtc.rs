//! NVRTC bindings: the only module that calls it, and thus the only `unsafe` code of the stage.
//!
//! The types are cudarc's. The functions are looked up here, because cudarc 0.19 finds the library
//! by a fixed list of bare names, without `libnvrtc.so.13` for the version it is built for. It panics
//! if it finds none, and reads result codes into an enum that lacks those of newer NVRTC versions.
#![expect(unsafe_code, reason = "the one FFI door to NVRTC")]

use super::discover::{Candidate, Surroundings, builtins_of, install_command, libraries_beside};
use super::image::{RawResult, RawStatus};
use super::template::Header;
use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_NOW};
use std::ffi::{CStr, CString, NulError, c_char, c_int};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use tuner_core::target::ComputeTarget;

/// A result code. A number, since a newer NVRTC may return codes that are not in an enum.
type Code = u32;
const SUCCESS: Code = nvrtcResult::NVRTC_SUCCESS as Code;

type Create = unsafe extern "C" fn(
    *mut nvrtcProgram,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;
type Compile = unsafe extern "C" fn(nvrtcProgram, c_int, *const *const c_char) -> Code;
type Destroy = unsafe extern "C" fn(*mut nvrtcProgram) -> Code;
type AddName = unsafe extern "C" fn(nvrtcProgram, *const c_char) -> Code;
type Lowered = unsafe extern "C" fn(nvrtcProgram, *const c_char, *mut *const c_char) -> Code;
type Size = unsafe extern "C" fn(nvrtcProgram, *mut usize) -> Code;
type Fetch = unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> Code;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code;
type Count = unsafe extern "C" fn(*mut c_int) -> Code;
type Name = unsafe extern "C" fn(Code) -> *const c_char;

/// No usable NVRTC on this machine.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "NVRTC (the CUDA run-time compiler) was not found\n{}\n\
     help: type, in any folder, {}\n\
     help: or `make nvrtc` in the project, or set TUNER_NVRTC to an existing libnvrtc.so",
    .tried.iter().map(|line| format!("  looked at {line}")).collect::<Vec<_>>().join("\n"),
    install_command()
)]
pub struct NvrtcMissing {
    /// Searched locations, and the errors of found libraries.
    pub tried: Vec<String>,
}

/// NVRTC itself is broken: not the source's fault.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// A call failed that succeeds in a working installation.
    #[error(
        "{call} failed with {name} (code {code}); reinstall NVRTC or set TUNER_NVRTC to another"
    )]
    Call {
        /// The function.
        call: &'static str,
        /// NVRTC's name for the code.
        name: String,
        /// The code.
        code: u32,
    },
    /// NVRTC could not open its built-ins library.
    #[error(
        "NVRTC cannot open its built-ins library: {log}; libnvrtc-builtins must be in the folder of {library}"
    )]
    Builtins {
        /// The library in use.
        library: String,
        /// NVRTC's message.
        log: String,
    },
}

/// A loaded NVRTC. Its functions may be called from several threads.
pub struct Nvrtc {
    /// The library's path, links resolved.
    pub library: PathBuf,
    /// The built-ins library that was loaded with it.
    pub builtins: Option<PathBuf>,
    /// The folder of the CUDA headers that belong to it, passed by `-I`.
    pub include: Option<PathBuf>,
    /// The folder of the core libraries' headers (`cuda/`, `cub/`), if separate.
    pub libraries: Option<PathBuf>,
    /// The search rule that found it.
    pub origin: String,
    version: (u32, u32),
    create: Create,
    compile: Compile,
    add_name: AddName,
    lowered_name: Lowered,
    destroy: Destroy,
    log_size: Size,
    log: Fetch,
    ptx_size: Size,
    ptx: Fetch,
    cubin_size: Size,
    cubin: Fetch,
    error_name: Name,
    arch_count: Count,
    archs: Count,
    // Never unloaded: a thread that drops the last handle while the process exits would run the library's
    // exit functions. The main thread runs the same list concurrently (observed as SIGSEGV in
    // `__cxa_finalize`).
    _libraries: ManuallyDrop<Vec<Library>>,
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvrtc")
            .field("library", &self.library)
            .finish_non_exhaustive()
    }
}

impl Nvrtc {
    /// Loads the first NVRTC of the documented search order that works.
    ///
    /// # Errors
    /// No working NVRTC; the message lists the searched locations and the remedy.
    pub fn find(surroundings: &Surroundings) -> Result<Self, NvrtcMissing> {
        let mut tried = Vec::new();
        for candidate in surroundings.candidates() {
            match Self::load(&candidate, surroundings) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(why) => tried.push(format!("{}: {why}", candidate.library.display())),
            }
        }
        tried.extend(surroundings.searched());
        Err(NvrtcMissing { tried })
    }

    fn load(candidate: &Candidate, surroundings: &Surroundings) -> Result<Self, String> {
        let library = candidate
            .library
            .canonicalize()
            .map_err(|error| error.to_string())?;
        let builtins = builtins_of(&library).or_else(|| builtins_of(&candidate.library));
        let mut libraries = Vec::new();
        if let Some(path) = &builtins {
            // NVRTC opens this file by its bare name, which succeeds once it is loaded by path.
            // SAFETY: loading runs the library's initialisers; NVIDIA's have no preconditions.
            let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
            libraries.push(opened.map_err(|error| error.to_string())?);
        }
        // SAFETY: as above.
        let opened = unsafe { Library::open(Some(&library), RTLD_LAZY) };
        let handle = opened.map_err(|error| error.to_string())?;
        let include = surroundings
            .headers_for(&candidate.library)
            .or_else(|| surroundings.headers_for(&library));
        let version = read_version(&handle)?;
        let loaded = Self {
            libraries: include.as_deref().and_then(libraries_beside),
            include,
            builtins,
            origin: candidate.origin.clone(),
            version,
            create: symbol(&handle, "nvrtcCreateProgram")?,
            compile: symbol(&handle, "nvrtcCompileProgram")?,
            add_name: symbol(&handle, "nvrtcAddNameExpression")?,
            lowered_name: symbol(&handle, "nvrtcGetLoweredName")?,
            destroy: symbol(&handle, "nvrtcDestroyProgram")?,
            log_size: symbol(&handle, "nvrtcGetProgramLogSize")?,
            log: symbol(&handle, "nvrtcGetProgramLog")?,
            ptx_size: symbol(&handle, "nvrtcGetPTXSize")?,
            ptx: symbol(&handle, "nvrtcGetPTX")?,
            cubin_size: symbol(&handle, "nvrtcGetCUBINSize")?,
            cubin: symbol(&handle, "nvrtcGetCUBIN")?,
            error_name: symbol(&handle, "nvrtcGetErrorString")?,
            arch_count: symbol(&handle, "nvrtcGetNumSupportedArchs")?,
            archs: symbol(&handle, "nvrtcGetSupportedArchs")?,
            library,
            _libraries: {
                libraries.push(handle);
                ManuallyDrop::new(libraries)
            },
        };
        Ok(loaded)
    }

    /// Returns the folders of CUDA's headers, in the order of the search.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        self.include
            .iter()
            .chain(&self.libraries)
            .cloned()
            .collect()
    }

    /// Formats `major.minor`.
    #[must_use]
    pub fn version(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// Reports whether this version can precompile headers.
    pub(super) fn precompiles(&self) -> bool {
        self.version >= (12, 8)
    }

    /// Returns the supported targets, as `sm_XX`, ascending. Empty if unknown.
    #[must_use]
    pub fn architectures(&self) -> Vec<String> {
        let mut count: c_int = 0;
        // SAFETY: both functions write through a valid pointer; the array has the count's length.
        let numbers = unsafe {
            if (self.arch_count)(&raw mut count) != SUCCESS {
                return Vec::new();
            }
            let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
            if (self.archs)(numbers.as_mut_ptr()) != SUCCESS {
                return Vec::new();
            }
            numbers
        };
        numbers
            .into_iter()
            .map(|number| format!("sm_{number}"))
            .collect()
    }

    /// Rejects a target that this NVRTC does not support, before every candidate fails.
    ///
    /// # Errors
    /// The message names the supported ones.
    pub fn require(&self, target: ComputeTarget) -> Result<(), String> {
        let known = self.architectures();
        let portable = ComputeTarget::of_device(target.cc).to_string();
        if known.is_empty() || known.contains(&portable) {
            return Ok(());
        }
        Err(format!(
            "this NVRTC does not compile for {target}; it knows {}",
            known.join(", ")
        ))
    }

    /// Compiles one source. `name` is the name of text outside `#line` in diagnostics;
    /// `expressions` are the kernels named by C++ expressions, including template instances.
    ///
    /// # Errors
    /// Only a broken NVRTC; a refused source is a value.
    pub(super) fn compile(
        &self,
        text: &str,
        name: &str,
        headers: &[Header],
        options: &[String],
        expressions: &[String],
    ) -> Result<RawResult, NvrtcError> {
        let all = |texts: &mut dyn Iterator<Item = &String>| -> Result<Vec<CString>, NulError> {
            texts.map(|text| CString::new(text.as_str())).collect()
        };
        let strings = || -> Result<_, NulError> {
            Ok((
                CString::new(text)?,
                CString::new(name)?,
                all(&mut headers.iter().map(|header| &header.text))?,
                all(&mut headers.iter().map(|header| &header.spelled))?,
                all(&mut options.iter())?,
                all(&mut expressions.iter())?,
            ))
        };
        let Ok((text, name, texts, spelled, options, expressions)) = strings() else {
            let log = format!("{name}: the source or an option contains a NUL byte; remove it");
            return Ok(RawResult::new(RawStatus::Refused, log));
        };
        let program = Program::create(self, &text, &name, &texts, &spelled)?;
        for expression in &expressions {
            // SAFETY: the program is live and not compiled yet; the string is copied.
            let code = unsafe { (self.add_name)(program.handle, expression.as_ptr()) };
            self.check("nvrtcAddNameExpression", code)?;
        }
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is live; the pointers are to NUL-terminated strings that outlive the
        // call.
        let code =
            unsafe { (self.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
        let log = program.fetch("nvrtcGetProgramLog", self.log_size, self.log)?;
        let log = text_of(log);
        const OUT_OF_MEMORY: Code = nvrtcResult::NVRTC_ERROR_OUT_OF_MEMORY as Code;
        const COMPILATION: Code = nvrtcResult::NVRTC_ERROR_COMPILATION as Code;
        const INVALID_OPTION: Code = nvrtcResult::NVRTC_ERROR_INVALID_OPTION as Code;
        const BUILTINS: Code = nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE as Code;
        match code {
            SUCCESS => {
                let mut result = RawResult::new(RawStatus::Compiled, log);
                let ptx = program.fetch("nvrtcGetPTX", self.ptx_size, self.ptx)?;
                result.ptx = text_of(ptx).into_bytes();
                result.cubin = program.fetch("nvrtcGetCUBIN", self.cubin_size, self.cubin)?;
                result.head.lowered = program.lowered(&expressions)?;
                Ok(result)
            }
            // Options are from the search space, so an invalid one is a fault of the source.
            COMPILATION | INVALID_OPTION => Ok(RawResult::new(RawStatus::Refused, log)),
            OUT_OF_MEMORY => Ok(RawResult::new(RawStatus::OutOfMemory, String::new())),
            BUILTINS => Err(NvrtcError::Builtins {
                library: self.library.display().to_string(),
                log,
            }),
            // An internal error of the compiler concerns only this source.
            other => {
                let log = format!("{}NVRTC: {}\n", log, self.name_of(other));
                Ok(RawResult::new(RawStatus::Refused, log))
            }
        }
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), NvrtcError> {
        match code {
            SUCCESS => Ok(()),
            code => Err(NvrtcError::Call {
                call,
                name: self.name_of(code),
                code,
            }),
        }
    }

    fn name_of(&self, code: Code) -> String {
        // SAFETY: returns a pointer to a static string for every code, known or not.
        let name = unsafe { (self.error_name)(code) };
        if name.is_null() {
            return format!("code {code}");
        }
        // SAFETY: not null, static and NUL-terminated.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }
}

/// A program being compiled; destroyed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: nvrtcProgram,
}

impl<'a> Program<'a> {
    fn create(
        nvrtc: &'a Nvrtc,
        text: &CStr,
        name: &CStr,
        headers: &[CString],
        spelled: &[CString],
    ) -> Result<Self, NvrtcError> {
        let texts: Vec<*const c_char> = headers.iter().map(|text| text.as_ptr()).collect();
        let names: Vec<*const c_char> = spelled.iter().map(|name| name.as_ptr()).collect();
        let mut handle: nvrtcProgram = std::ptr::null_mut();
        // SAFETY: all strings are NUL-terminated and live during the call, which copies them; the
        // two arrays have the stated length.
        let code = unsafe {
            (nvrtc.create)(
                &raw mut handle,
                text.as_ptr(),
                name.as_ptr(),
                texts.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", code)?;
        Ok(Self { nvrtc, handle })
    }

    /// Returns the mangled name of each name expression.
    fn lowered(&self, expressions: &[CString]) -> Result<Vec<(String, String)>, NvrtcError> {
        let mut found = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let mut name: *const c_char = std::ptr::null();
            // SAFETY: the program is live and compiled with this expression; the pointer is valid.
            let code = unsafe {
                (self.nvrtc.lowered_name)(self.handle, expression.as_ptr(), &raw mut name)
            };
            self.nvrtc.check("nvrtcGetLoweredName", code)?;
            if !name.is_null() {
                // SAFETY: not null, NUL-terminated, and valid as long as the program is.
                let name = unsafe { CStr::from_ptr(name) };
                let text = |text: &CStr| text.to_string_lossy().into_owned();
                found.push((text(expression), text(name)));
            }
        }
        Ok(found)
    }

    /// Reads one of the results: first its size, then its bytes.
    fn fetch(&self, call: &'static str, size: Size, fetch: Fetch) -> Result<Vec<u8>, NvrtcError> {
        let mut length = 0_usize;
        // SAFETY: the program is live, the pointer valid.
        let code = unsafe { size(self.handle, &raw mut length) };
        self.nvrtc.check(call, code)?;
        let mut bytes = vec![0_u8; length];
        if length > 0 {
            // SAFETY: the buffer has the size that NVRTC returned.
            let code = unsafe { fetch(self.handle, bytes.as_mut_ptr().cast()) };
            self.nvrtc.check(call, code)?;
        }
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: created by the same library and destroyed once.
        let _ = unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}

fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: each call site names a function together with the C signature of nvrtc.h, which has
    // not changed since CUDA 11.1.
    let found = unsafe { library.get::<T>(name) };
    found
        .map(|symbol| *symbol)
        .map_err(|error| error.to_string())
}

fn read_version(library: &Library) -> Result<(u32, u32), String> {
    let version: Version = symbol(library, "nvrtcVersion")?;
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: writes through two valid pointers.
    match unsafe { version(&raw mut major, &raw mut minor) } {
        SUCCESS => Ok((major.cast_unsigned(), minor.cast_unsigned())),
        code => Err(format!("nvrtcVersion failed with code {code}")),
    }
}

/// Converts a text of NVRTC, which ends with a NUL.
fn text_of(mut bytes: Vec<u8>) -> String {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
