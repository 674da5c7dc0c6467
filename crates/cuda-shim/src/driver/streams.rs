//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{in_context, on_stream, store};
use crate::client::{self, is_of_each_context};
use crate::driver::contexts::{self, current, note_context};
use crate::errors::Code;
use crate::graph::{self, CaptureInfo, Handles};
use crate::memory::{address_of, pointer_to, stream_of};

/// Creates a stream of the current context; stores its handle.
///
/// # Safety
/// `to` is null or writable.
unsafe fn create(to: *mut *mut c_void, flags: c_uint, priority: c_int) -> Result<(), Code> {
    let context = current()?;
    let stream = client::create_stream(flags, priority)?;
    note_context(stream, context);
    // SAFETY: the caller's promise.
    unsafe { store(to, pointer_to(stream)) }
}

/// The context of a stream. A default stream is one of the current context; a created stream needs none.
fn context_of(stream: *mut c_void) -> Result<u64, Code> {
    if is_of_each_context(address_of(stream)) {
        return current();
    }
    client::describe_stream(stream_of(stream))?;
    Ok(contexts::context_of(stream_of(stream)))
}

on_stream! {
    stream;

    /// Returns the context of a stream.
    fn cuStreamGetCtx(stream: *mut c_void, context: *mut *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(context, pointer_to(context_of(stream)?)) }
    }

    /// Returns the context of a stream, which is not a green one.
    fn cuStreamGetCtx_v2(
        stream: *mut c_void,
        context: *mut *mut c_void,
        green: *mut *mut c_void,
    ) {
        // SAFETY: the program passes where the handles go; each is optional.
        unsafe {
            let _ = store(green, std::ptr::null_mut());
            store(context, pointer_to(context_of(stream)?))
        }
    }

    /// Returns the device of a stream.
    fn cuStreamGetDevice(stream: *mut c_void, number: *mut c_int) {
        context_of(stream)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }
}

in_context! {
    /// Creates a stream.
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { create(stream, flags, 0) }
    }

    /// Creates a stream with a priority, which changes no order.
    fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) {
        // SAFETY: the program passes where the handle goes.
        unsafe { create(stream, flags, priority) }
    }

}

on_stream! {
    stream;

    /// Destroys a stream.
    fn cuStreamDestroy_v2(stream: *mut c_void) { client::destroy_stream(address_of(stream)) }

    /// Associates managed memory with a stream: no effect.
    fn cuStreamAttachMemAsync(
        stream: *mut c_void,
        _address: u64,
        _bytes: usize,
        _flags: c_uint,
    ) {
        Ok(())
    }

    /// Returns the state of a capture.
    fn cuStreamGetCaptureInfo_v3(
        stream: *mut c_void,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut *mut c_void,
        dependencies: *mut *const *mut c_void,
        edges: *mut *const c_void,
        count: *mut usize,
    ) {
        let info = CaptureInfo { status, id, graph, dependencies, edges, count };
        // SAFETY: the program passes where the results go.
        unsafe { info.fill(stream) }
    }

    /// Adds (flags 0) or replaces (1) nodes that the next one depends on.
    fn cuStreamUpdateCaptureDependencies_v2(
        stream: *mut c_void,
        dependencies: *mut *mut c_void,
        _edges: *const c_void,
        count: usize,
        flags: c_uint,
    ) {
        // SAFETY: the program states how many handles there are.
        let tips = unsafe { Handles { list: dependencies, count }.read()? };
        graph::change_tips(stream_of(stream), &tips, flags & 1 != 0)
    }
}
