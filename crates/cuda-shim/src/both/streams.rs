//! Streams and events: functions that differ by name only in the two interfaces.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{both, both_initialized, both_on_stream, store};
use crate::client::{self, AttributeValue};
use crate::errors::{self, Code};
use crate::graph::{
    self, Beginning, CaptureInfo, Handles, HostCall, Node, refuse_in_capture, submit,
};
use crate::memory::{address_of, pointer_to, stream_of};

/// A function that a stream calls with itself and its status.
struct Callback {
    stream: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, Code, *mut c_void),
    argument: *mut c_void,
}

/// Calls the function of a callback and drops it.
///
/// # Safety
/// `callback` is a boxed [`Callback`] of which nothing else is left.
unsafe extern "C" fn run_callback(callback: *mut c_void) {
    // SAFETY: the caller's promise.
    let callback = unsafe { Box::from_raw(callback.cast::<Callback>()) };
    // SAFETY: the program gave the function with this argument for one call.
    unsafe { (callback.function)(callback.stream, errors::SUCCESS, callback.argument) };
}

both! {
    /// Creates an event with flags.
    fn cuEventCreate | cudaEventCreateWithFlags(event: *mut *mut c_void, flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(client::create_event(flags)?)) }
    }

    /// Exchanges the mode of captures: each mode permits the same.
    fn cuThreadExchangeStreamCaptureMode | cudaThreadExchangeStreamCaptureMode(mode: *mut c_uint) {
        // SAFETY: the program passes the mode and where the one before goes, or null.
        let mode = unsafe { mode.as_mut() }.ok_or(errors::INVALID_VALUE)?;
        *mode = graph::exchange_mode(*mode)?;
        Ok(())
    }
}

both_initialized! {
    /// Copies the attributes of a stream to another one.
    fn cuStreamCopyAttributes | cudaStreamCopyAttributes(to: *mut c_void, from: *mut c_void) {
        client::copy_stream_attributes(stream_of(to), stream_of(from))
    }

    /// Destroys an event.
    fn cuEventDestroy_v2 | cudaEventDestroy(event: *mut c_void) { client::destroy_event(address_of(event)) }

    /// Waits for an event.
    fn cuEventSynchronize | cudaEventSynchronize(event: *mut c_void) { client::synchronize_event(address_of(event)) }

    /// Reports whether an event has completed.
    fn cuEventQuery | cudaEventQuery(event: *mut c_void) { client::query_event(address_of(event)) }

    /// Returns the time between two events on the virtual clock, ms.
    fn cuEventElapsedTime | cudaEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }

    /// The same.
    fn cuEventElapsedTime_v2 | cudaEventElapsedTime_v2(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }
}

both_on_stream! {
    stream;

    /// Waits for a stream.
    fn cuStreamSynchronize | cudaStreamSynchronize(stream: *mut c_void) { client::synchronize(stream_of(stream)) }

    /// Reports whether a stream is idle.
    fn cuStreamQuery | cudaStreamQuery(stream: *mut c_void) { client::query(stream_of(stream)) }

    /// Lets a stream wait for an event.
    fn cuStreamWaitEvent | cudaStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: c_uint) {
        graph::submit_event(stream_of(stream), Node::Wait(address_of(event)), flags)
    }

    /// Returns the priority of a stream.
    fn cuStreamGetPriority | cudaStreamGetPriority(stream: *mut c_void, priority: *mut c_int) {
        let found = client::describe_stream(stream_of(stream))?.priority;
        // SAFETY: the program passes where the result goes.
        unsafe { store(priority, found) }
    }

    /// Returns the flags of a stream.
    fn cuStreamGetFlags | cudaStreamGetFlags(stream: *mut c_void, flags: *mut c_uint) {
        let found = client::describe_stream(stream_of(stream))?.flags;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, found) }
    }

    /// Returns the number of a stream.
    fn cuStreamGetId | cudaStreamGetId(stream: *mut c_void, id: *mut u64) {
        client::describe_stream(stream_of(stream))?;
        // The default stream has two handles and one number.
        // SAFETY: the program passes where the result goes.
        unsafe { store(id, stream_of(stream).max(1)) }
    }

    /// Sets an attribute, none of which has an effect on results.
    fn cuStreamSetAttribute | cudaStreamSetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes a value of 64 bytes.
        unsafe { client::set_stream_attribute(stream_of(stream), attribute, value) }
    }

    /// Returns an attribute.
    fn cuStreamGetAttribute | cudaStreamGetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *mut AttributeValue,
    ) {
        let found = client::stream_attribute(stream_of(stream), attribute)?;
        // SAFETY: the program passes where the result goes: a value of 64 bytes.
        unsafe { store(value, found) }
    }

    /// Runs a function of the program after the work of a stream.
    fn cuLaunchHostFunc | cudaLaunchHostFunc(
        stream: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        argument: *mut c_void,
    ) {
        let function = function.ok_or(errors::INVALID_VALUE)?;
        let call = HostCall { function, argument: address_of(argument) };
        submit(stream_of(stream), Node::Host(call))
    }

    /// Runs a function of the program with the stream and its status.
    fn cuStreamAddCallback | cudaStreamAddCallback(
        stream: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void, Code, *mut c_void)>,
        argument: *mut c_void,
        _flags: c_uint,
    ) {
        let function = function.ok_or(errors::INVALID_VALUE)?;
        refuse_in_capture(stream_of(stream))?;
        let callback = Box::new(Callback { stream, function, argument });
        let call = HostCall { function: run_callback, argument: address_of(Box::into_raw(callback)) };
        submit(stream_of(stream), Node::Host(call))
    }

    /// Records an event.
    fn cuEventRecord | cudaEventRecord(event: *mut c_void, stream: *mut c_void) {
        submit(stream_of(stream), Node::Record(address_of(event)))
    }

    /// Records an event with flags.
    fn cuEventRecordWithFlags | cudaEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, flags: c_uint) {
        graph::submit_event(stream_of(stream), Node::Record(address_of(event)), flags)
    }

    /// Begins the capture of a stream into a graph.
    fn cuStreamBeginCapture_v2 | cudaStreamBeginCapture(stream: *mut c_void, mode: c_uint) {
        let stream = stream_of(stream);
        graph::begin_capture(Beginning { stream, mode, into: None, tips: Vec::new() })
    }

    /// Begins the capture of a stream into a graph of the program.
    fn cuStreamBeginCaptureToGraph | cudaStreamBeginCaptureToGraph(
        stream: *mut c_void,
        graph: *mut c_void,
        dependencies: *const *mut c_void,
        _edges: *const c_void,
        count: usize,
        mode: c_uint,
    ) {
        // SAFETY: the program states how many handles there are.
        let tips = unsafe { Handles { list: dependencies, count }.read()? };
        let (stream, into) = (stream_of(stream), Some(address_of(graph)));
        graph::begin_capture(Beginning { stream, mode, into, tips })
    }

    /// Ends the capture of a stream. The graph is optional where the program has its handle.
    fn cuStreamEndCapture | cudaStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        let ended = graph::end_capture(stream_of(stream));
        if !graph.is_null() {
            // A program destroys what it finds there: a capture that failed has no graph.
            // SAFETY: the program passes where the handle goes.
            unsafe { store(graph, pointer_to(ended.unwrap_or(0)))? };
        }
        ended.map(drop)
    }

    /// Reports whether a stream is captured: 0 or 1.
    fn cuStreamIsCapturing | cudaStreamIsCapturing(stream: *mut c_void, status: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(status, graph::status(stream_of(stream))) }
    }

    /// Returns the state of a capture.
    fn cuStreamGetCaptureInfo_v2 | cudaStreamGetCaptureInfo_v2(
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
}
