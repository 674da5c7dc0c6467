//! A launch, with copies of its memory before and after it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::Call;
use super::memory::{self, Failure, Memory};
use super::real;
use super::wanted::{Wanted, ask, was_asked};
use crate::connection::{call, send};
use crate::driver::launches::pack;
use crate::errors::{self, Code};
use crate::images::image_bytes;
use crate::kernels::Launch;
use crate::protocol::{Message, Op};
use crate::say::say_once;

/// Largest image that is kept, bytes: libraries of kernels are larger.
const MAX_IMAGE_BYTES: usize = 64 << 20;

/// A launch whose memory was copied.
struct Pending {
    memory: Vec<Memory>,
    bytes: usize,
    name: String,
    /// Other captured launches wait.
    _one: MutexGuard<'static, ()>,
}

static ONE: Mutex<()> = Mutex::new(());
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Runs a launch with copies of its memory before and after, if the tuner wants it.
///
/// # Safety
/// The arguments are as many as the kernel has parameters.
pub(super) unsafe fn around(launch: &Call, run: impl FnOnce() -> Code) -> Code {
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: the caller's promise.
    let pending = (!was_asked(launch)).then(|| unsafe { begin(launch, number) });
    let code = run();
    if let Some(pending) = pending.flatten() {
        end(&pending, code);
    }
    code
}

/// Copies the memory of a launch that the tuner wants.
///
/// # Safety
/// See [`around`].
unsafe fn begin(launch: &Call, number: u64) -> Option<Pending> {
    if launch.is_recorded() {
        say_once("launches that become part of a CUDA graph are not captured on a GPU");
        return None;
    }
    let (name, function) = launch.resolve()?;
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = ask(launch, &name)?;
    // SAFETY: the caller's promise.
    let parameters = match unsafe { pack(&wanted.info, launch.arguments) } {
        Ok(parameters) => parameters,
        Err(_) => return None,
    };
    // SAFETY: no arguments.
    if unsafe { real::cuCtxSynchronize() } != errors::SUCCESS {
        return None;
    }
    let (memory, bulk) = match memory::gather(&wanted, &parameters, function) {
        Ok(gathered) => gathered,
        Err(Failure::NoRoom(bytes)) => {
            skip(&name, bytes, "");
            return None;
        }
        Err(Failure::Unreadable(code)) => {
            let reason = format!("memory of an argument cannot be read (error {code})");
            skip(&name, 0, &reason);
            return None;
        }
    };
    let head = describe(launch, &wanted, number, parameters.len(), &memory).ok()?;
    send(Op::BeginLaunch, &head, &bulk).ok()?;
    Some(Pending {
        memory,
        bytes: bulk.len(),
        name,
        _one: one,
    })
}

/// The head of [`Op::BeginLaunch`].
fn describe(
    launch: &Call,
    wanted: &Wanted,
    number: u64,
    parameter_bytes: usize,
    memory: &[Memory],
) -> Result<Message, Code> {
    let info = &wanted.info;
    // SAFETY: the configuration is the program's, which lives during the call.
    let mut stated = match unsafe { launch.config.as_ref() } {
        // SAFETY: its attributes are readable.
        Some(config) => unsafe { config.launch_of(info)? },
        None => Launch::new(info.id, launch.extents, launch.shared_bytes.into()),
    };
    stated.flags |= launch.flags;
    let mut head = stated.head()?;
    head.put_u64(number)
        .put_u32(parameter_bytes as u32)
        .put_u32(memory.len() as u32);
    for item in memory {
        head.put_u64(item.address)
            .put_u64(item.bytes)
            .put_str(&item.variable);
    }
    Ok(head)
}

/// Copies the memory of a launch after it.
fn end(pending: &Pending, code: Code) {
    // SAFETY: no arguments.
    let done = code == errors::SUCCESS && unsafe { real::cuCtxSynchronize() } == errors::SUCCESS;
    let mut bulk = Vec::with_capacity(pending.bytes);
    match done && memory::read(&pending.memory, &mut bulk).is_ok() {
        true => drop(send(Op::EndLaunch, &Message::new(), &bulk)),
        false => skip(&pending.name, 0, "it failed on the GPU"),
    }
}

fn skip(name: &str, bytes: u64, reason: &str) {
    let mut head = Message::new();
    head.put_str(name).put_u64(bytes).put_str(reason);
    let _ = call(Op::SkipLaunch, &head);
}

/// Offers an image that the driver loaded to the tuner.
///
/// # Safety
/// After success, the image is one.
pub(super) unsafe fn offer(code: Code, image: *const c_void) -> Code {
    if code == errors::SUCCESS && !image.is_null() {
        // SAFETY: the caller's promise.
        offer_bytes(unsafe { image_bytes(image) }.unwrap_or_default());
    }
    code
}

/// Offers the image of a file.
///
/// # Safety
/// After success, the path ends in a zero byte.
pub(super) unsafe fn offer_file(code: Code, path: *const c_char) -> Code {
    if code == errors::SUCCESS && !path.is_null() {
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        if let Ok(bytes) = std::fs::read(&*path) {
            offer_bytes(&bytes);
        }
    }
    code
}

/// Offers code.
pub(super) fn offer_bytes(image: &[u8]) {
    if !image.is_empty() && image.len() <= MAX_IMAGE_BYTES {
        let _ = send(Op::OfferImage, &Message::new(), image);
    }
}
