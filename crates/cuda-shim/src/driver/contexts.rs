//! State of the contexts. All are handles of the one device; the program selects one a thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::{self, is_of_each_context};
use crate::connection::device;
use crate::errors::{self, Code};
use crate::memory::address_of;
use crate::state::{lock, state, thread_state};

/// Handle of the primary context.
pub(crate) const PRIMARY: u64 = 0x2100;
/// Distance between handles.
const HANDLE_STEP: u64 = 16;

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// The contexts of the process.
#[derive(Debug)]
pub(crate) struct Contexts {
    /// Times that the primary context is retained.
    pub(crate) retained: u32,
    /// Flags of the primary context.
    pub(crate) primary_flags: u32,
    /// Flags of the created contexts.
    pub(crate) created: BTreeMap<u64, u32>,
    next: u64,
}

static CONTEXTS: Mutex<Contexts> = Mutex::new(Contexts {
    retained: 0,
    primary_flags: 0,
    created: BTreeMap::new(),
    next: PRIMARY + HANDLE_STEP,
});

thread_local! {
    /// Contexts that the thread pushed; the last is current. Never dropped, since destructors of the thread may
    /// use it as well.
    static STACK: RefCell<ManuallyDrop<Vec<u64>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Initializes the driver.
pub(crate) fn initialize() -> Result<(), Code> {
    device()?;
    INITIALIZED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Fails before `cuInit`, which a call of the runtime includes.
pub(crate) fn check_initialized() -> Result<(), Code> {
    match INITIALIZED.load(Ordering::Relaxed) || runtime_is_active() {
        true => Ok(()),
        false => Err(errors::INITIALIZATION),
    }
}

/// Locks the contexts.
pub(crate) fn contexts() -> MutexGuard<'static, Contexts> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks whether the program uses the runtime library, which makes the primary context current.
pub(crate) fn runtime_is_active() -> bool {
    state().runtime_is_active.load(Ordering::Relaxed)
}

impl Contexts {
    /// Checks whether the handle is a living context's.
    pub(crate) fn holds(&self, context: u64) -> bool {
        match context {
            PRIMARY => self.retained > 0 || runtime_is_active(),
            created => self.created.contains_key(&created),
        }
    }

    /// Adds a context.
    pub(crate) fn create(&mut self, flags: u32) -> u64 {
        let handle = self.next;
        self.next += HANDLE_STEP;
        self.created.insert(handle, flags);
        handle
    }

    /// Frees the memory of the device after the last context ended.
    pub(crate) fn end_unused(&self) -> Result<(), Code> {
        match self.retained == 0 && self.created.is_empty() && !runtime_is_active() {
            true => client::reset(),
            false => Ok(()),
        }
    }
}

/// Returns the number of calls of the runtime by this thread, each of which makes the primary context current
/// where none is.
fn runtime_calls() -> u64 {
    if !runtime_is_active() {
        return 0;
    }
    thread_state(|thread| thread.runtime_calls.get())
}

thread_local! {
    /// Calls of the runtime when the program took its context from the thread.
    static DETACHED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The current context of this thread, or none.
pub(crate) fn selected() -> Option<u64> {
    let top = STACK.with_borrow(|stack| stack.last().copied());
    top.or_else(|| {
        let detached = DETACHED.get();
        let is_detached = detached.is_some_and(|calls| calls == runtime_calls());
        (runtime_is_active() && !is_detached).then_some(PRIMARY)
    })
}

/// The current context of this thread.
///
/// # Errors
/// Before `cuInit`, without a current context, and after its end.
pub(crate) fn current() -> Result<u64, Code> {
    check_initialized()?;
    let context = selected().ok_or(errors::INVALID_CONTEXT)?;
    match contexts().holds(context) {
        true => Ok(context),
        false => Err(errors::CONTEXT_IS_DESTROYED),
    }
}

/// Fails without a current context where the stream is one of every context.
pub(crate) fn check_stream(stream: *const c_void) -> Result<(), Code> {
    match is_of_each_context(address_of(stream)) {
        true => current().map(drop),
        false => check_initialized(),
    }
}

/// Keeps the context that a stream was created in, by its handle, or memory, by its address.
pub(crate) fn note_context(of: u64, context: u64) {
    if context != PRIMARY {
        lock(&state().contexts_of).insert(of, context);
    }
}

/// The context of a stream or of memory. What the runtime creates is of the primary one.
pub(crate) fn context_of(stream_or_address: u64) -> u64 {
    let contexts = lock(&state().contexts_of);
    let created = contexts.get(&stream_or_address);
    created.copied().unwrap_or(PRIMARY)
}

/// Makes a context current over the one before.
pub(crate) fn push(context: u64) {
    STACK.with_borrow_mut(|stack| stack.push(context));
}

/// Takes the current context from the thread: one that was pushed, or that of the runtime.
pub(crate) fn pop() -> Option<u64> {
    let pushed = STACK.with_borrow_mut(|stack| stack.pop());
    pushed.or_else(|| {
        let primary = selected();
        DETACHED.set(Some(runtime_calls()));
        primary
    })
}

/// Leaves the thread without a current context.
pub(crate) fn detach() {
    STACK.with_borrow_mut(|stack| stack.pop());
    if selected() == Some(PRIMARY) {
        DETACHED.set(Some(runtime_calls()));
    }
}

/// Takes a context from the thread where it is current.
pub(crate) fn pop_if_current(context: u64) {
    STACK.with_borrow_mut(|stack| {
        if stack.last() == Some(&context) {
            stack.pop();
        }
    });
}

/// Returns the state of the process to the runtime library; null to one of other sources.
///
/// # Safety
/// Safe.
#[cfg_attr(shim = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn __cudaTunerState(sources: u64) -> *const c_void {
    let state = crate::state::own(sources);
    state.map_or(std::ptr::null(), |state| std::ptr::from_ref(state).cast())
}
