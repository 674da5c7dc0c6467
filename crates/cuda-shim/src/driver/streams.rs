//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{driver, in_context, store};
use crate::client::{self, AttributeValue};
use crate::driver::contexts::{
    check_initialized, current, forget_stream, note_stream, stream_context,
};
use crate::errors::{self, Code};
use crate::graph::{self, Beginning, CaptureInfo, Handles, Node, submit};
use crate::memory::{address_of, pointer_to};

/// The last handle of a default stream: null, `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`.
const LAST_DEFAULT: u64 = 2;

/// Creates a stream of the current context; stores its handle.
///
/// # Safety
/// `to` is null or writable.
unsafe fn create(to: *mut *mut c_void, flags: c_uint, priority: c_int) -> Result<(), Code> {
    let context = current()?;
    let stream = client::create_stream(flags, priority)?;
    note_stream(stream, context);
    // SAFETY: the caller's promise.
    unsafe { store(to, pointer_to(stream)) }
}

/// The context of a stream. A default stream is one of the current context; a created stream needs none.
fn context_of(stream: *mut c_void) -> Result<u64, Code> {
    check_initialized()?;
    if address_of(stream) <= LAST_DEFAULT {
        return current();
    }
    client::describe_stream(address_of(stream))?;
    Ok(stream_context(address_of(stream)))
}

driver! {
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

    /// Destroys a stream.
    fn cuStreamDestroy_v2(stream: *mut c_void) {
        client::destroy_stream(address_of(stream))?;
        forget_stream(address_of(stream));
        Ok(())
    }

    /// Waits for a stream.
    fn cuStreamSynchronize(stream: *mut c_void) { client::synchronize(address_of(stream)) }

    /// Reports whether a stream is idle.
    fn cuStreamQuery(stream: *mut c_void) { client::query(address_of(stream)) }

    /// Lets a stream wait for an event.
    fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) {
        submit(address_of(stream), Node::Wait(address_of(event)))
    }

    /// Returns the priority of a stream.
    fn cuStreamGetPriority(stream: *mut c_void, priority: *mut c_int) {
        let found = client::describe_stream(address_of(stream))?.priority;
        // SAFETY: the program passes where the result goes.
        unsafe { store(priority, found) }
    }

    /// Returns the flags of a stream.
    fn cuStreamGetFlags(stream: *mut c_void, flags: *mut c_uint) {
        let found = client::describe_stream(address_of(stream))?.flags;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, found) }
    }

    /// Returns the number of a stream.
    fn cuStreamGetId(stream: *mut c_void, id: *mut u64) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(id, address_of(stream)) }
    }

    /// Associates managed memory with a stream: no effect.
    fn cuStreamAttachMemAsync(
        _stream: *mut c_void,
        _address: u64,
        _bytes: usize,
        _flags: c_uint,
    ) {
        Ok(())
    }

    /// Sets an attribute, none of which has an effect on results.
    fn cuStreamSetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes a value of 64 bytes.
        unsafe { client::set_stream_attribute(address_of(stream), attribute, value) }
    }

    /// Returns an attribute.
    fn cuStreamGetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *mut AttributeValue,
    ) {
        let found = client::stream_attribute(address_of(stream), attribute)?;
        // SAFETY: the program passes where the result goes: a value of 64 bytes.
        unsafe { store(value, found) }
    }

    /// Copies the attributes of a stream to another one.
    fn cuStreamCopyAttributes(to: *mut c_void, from: *mut c_void) {
        client::copy_stream_attributes(address_of(to), address_of(from))
    }

    /// Creates an event.
    fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(client::create_event(flags)?)) }
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(event: *mut c_void) { client::destroy_event(address_of(event)) }

    /// Records an event.
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void) {
        submit(address_of(stream), Node::Record(address_of(event)))
    }

    /// Records an event with flags.
    fn cuEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, _flags: c_uint) {
        submit(address_of(stream), Node::Record(address_of(event)))
    }

    /// Waits for an event.
    fn cuEventSynchronize(event: *mut c_void) { client::synchronize_event(address_of(event)) }

    /// Reports whether an event has completed.
    fn cuEventQuery(event: *mut c_void) { client::query_event(address_of(event)) }

    /// Returns the time between two events on the virtual clock, ms.
    fn cuEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }

    /// The same.
    fn cuEventElapsedTime_v2(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }

    /// Begins the capture of a stream into a graph.
    fn cuStreamBeginCapture_v2(stream: *mut c_void, mode: c_uint) {
        let stream = address_of(stream);
        graph::begin_capture(Beginning { stream, mode, into: None, tips: Vec::new() })
    }

    /// Begins the capture of a stream into a graph of the program, after its nodes.
    fn cuStreamBeginCaptureToGraph(
        stream: *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        _edges: *const c_void,
        count: usize,
        mode: c_uint,
    ) {
        // SAFETY: the program states how many handles there are.
        let tips = unsafe { Handles { list: dependencies, count }.read()? };
        let (stream, into) = (address_of(stream), Some(address_of(graph)));
        graph::begin_capture(Beginning { stream, mode, into, tips })
    }

    /// Ends the capture of a stream. The graph is optional where the program has its handle.
    fn cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        let handle = graph::end_capture(address_of(stream))?;
        if graph.is_null() {
            return Ok(());
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(graph, pointer_to(handle)) }
    }

    /// Reports whether a stream is captured: 0 or 1.
    fn cuStreamIsCapturing(stream: *mut c_void, status: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(status, graph::status(address_of(stream))) }
    }

    /// Returns the state of a capture.
    fn cuStreamGetCaptureInfo_v2(
        stream: *mut c_void,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut *mut c_void,
        dependencies: *mut *const *mut c_void,
        count: *mut usize,
    ) {
        let info = CaptureInfo { graph, dependencies, count, ..CaptureInfo::new(status, id) };
        // SAFETY: the program passes where the results go.
        unsafe { info.fill(stream) }
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
        graph::change_tips(address_of(stream), &tips, flags & 1 != 0)
    }

    /// Exchanges the mode of captures: each mode permits the same.
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) {
        // SAFETY: the program passes the mode and where the one before goes, or null.
        let mode = unsafe { mode.as_mut() }.ok_or(errors::INVALID_VALUE)?;
        *mode = graph::exchange_mode(*mode)?;
        Ok(())
    }
}
