//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::client::{self, AttributeValue};
use crate::errors;
use crate::graph::{self, Beginning, CaptureInfo, Handles, Node, submit};
use crate::memory::{address_of, pointer_to};

runtime! {
    /// Creates a stream.
    fn cudaStreamCreate(stream: *mut *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(stream, pointer_to(client::create_stream(0, 0)?)) }
    }

    /// Creates a stream with flags.
    fn cudaStreamCreateWithFlags(stream: *mut *mut c_void, flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(stream, pointer_to(client::create_stream(flags, 0)?)) }
    }

    /// Creates a stream with a priority, which changes no order.
    fn cudaStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(stream, pointer_to(client::create_stream(flags, priority)?)) }
    }

    /// Destroys a stream.
    fn cudaStreamDestroy(stream: *mut c_void) { client::destroy_stream(address_of(stream)) }

    /// Waits for a stream.
    fn cudaStreamSynchronize(stream: *mut c_void) { client::synchronize(address_of(stream)) }

    /// Reports whether a stream is idle.
    fn cudaStreamQuery(stream: *mut c_void) { client::query(address_of(stream)) }

    /// Lets a stream wait for an event.
    fn cudaStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) {
        submit(address_of(stream), Node::Wait(address_of(event)))
    }

    /// Returns the priority of a stream.
    fn cudaStreamGetPriority(stream: *mut c_void, priority: *mut c_int) {
        let found = client::describe_stream(address_of(stream))?.priority;
        // SAFETY: the program passes where the result goes.
        unsafe { store(priority, found) }
    }

    /// Returns the flags of a stream.
    fn cudaStreamGetFlags(stream: *mut c_void, flags: *mut c_uint) {
        let found = client::describe_stream(address_of(stream))?.flags;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, found) }
    }

    /// Returns the device of a stream.
    fn cudaStreamGetDevice(stream: *mut c_void, number: *mut c_int) {
        client::describe_stream(address_of(stream))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }

    /// Returns the number of a stream.
    fn cudaStreamGetId(stream: *mut c_void, id: *mut u64) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(id, address_of(stream)) }
    }

    /// Associates managed memory with a stream: no effect.
    fn cudaStreamAttachMemAsync(_stream: *mut c_void, _memory: *mut c_void, _bytes: usize, _flags: c_uint) {
        Ok(())
    }

    /// Sets an attribute, none of which has an effect on results.
    fn cudaStreamSetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *const AttributeValue,
    ) {
        // SAFETY: the program passes a value of 64 bytes.
        unsafe { client::set_stream_attribute(address_of(stream), attribute, value) }
    }

    /// Returns an attribute.
    fn cudaStreamGetAttribute(
        stream: *mut c_void,
        attribute: c_uint,
        value: *mut AttributeValue,
    ) {
        let found = client::stream_attribute(address_of(stream), attribute)?;
        // SAFETY: the program passes where the result goes: a value of 64 bytes.
        unsafe { store(value, found) }
    }

    /// Copies the attributes of a stream to another one.
    fn cudaStreamCopyAttributes(to: *mut c_void, from: *mut c_void) {
        client::copy_stream_attributes(address_of(to), address_of(from))
    }

    /// Creates an event.
    fn cudaEventCreate(event: *mut *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(client::create_event(0)?)) }
    }

    /// Creates an event with flags.
    fn cudaEventCreateWithFlags(event: *mut *mut c_void, flags: c_uint) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(client::create_event(flags)?)) }
    }

    /// Destroys an event.
    fn cudaEventDestroy(event: *mut c_void) { client::destroy_event(address_of(event)) }

    /// Records an event.
    fn cudaEventRecord(event: *mut c_void, stream: *mut c_void) {
        submit(address_of(stream), Node::Record(address_of(event)))
    }

    /// Records an event with flags.
    fn cudaEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, _flags: c_uint) {
        submit(address_of(stream), Node::Record(address_of(event)))
    }

    /// Waits for an event.
    fn cudaEventSynchronize(event: *mut c_void) { client::synchronize_event(address_of(event)) }

    /// Reports whether an event has completed.
    fn cudaEventQuery(event: *mut c_void) { client::query_event(address_of(event)) }

    /// Returns the time between two events on the virtual clock, ms.
    fn cudaEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }

    /// The same.
    fn cudaEventElapsedTime_v2(ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(ms, client::elapsed_ms(address_of(start), address_of(end))?) }
    }

    /// Begins the capture of a stream into a graph.
    fn cudaStreamBeginCapture(stream: *mut c_void, mode: c_uint) {
        let stream = address_of(stream);
        graph::begin_capture(Beginning { stream, mode, into: None, tips: Vec::new() })
    }

    /// Begins the capture of a stream into a graph of the program.
    fn cudaStreamBeginCaptureToGraph(
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
    fn cudaStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        let handle = graph::end_capture(address_of(stream))?;
        if graph.is_null() {
            return Ok(());
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(graph, pointer_to(handle)) }
    }

    /// Reports whether a stream is captured: 0 or 1.
    fn cudaStreamIsCapturing(stream: *mut c_void, status: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(status, graph::status(address_of(stream))) }
    }

    /// Returns the state of a capture: 0 or 1, its number, its graph. All but the state are optional.
    fn cudaStreamGetCaptureInfo(
        stream: *mut c_void,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut *mut c_void,
        dependencies: *mut *const *mut c_void,
        edges_or_count: *mut c_void,
        count: *mut usize,
    ) {
        let mut info = CaptureInfo::new(status, id);
        // The function of version 12 has these two only.
        if crate::runtime::VERSION >= 13 {
            info = CaptureInfo { graph, dependencies, edges: edges_or_count.cast(), count, ..info };
        }
        // SAFETY: the program passes where the results go.
        unsafe { info.fill(stream) }
    }

    /// Returns the state of a capture.
    fn cudaStreamGetCaptureInfo_v2(
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

    /// Adds (flags 0) or replaces (1) nodes that the next one depends on.
    fn cudaStreamUpdateCaptureDependencies(
        stream: *mut c_void,
        dependencies: *mut *mut c_void,
        edges: *const c_void,
        count: usize,
        flags: c_uint,
    ) {
        // The function of version 12 has no edges.
        let (count, flags) = match crate::runtime::VERSION < 13 {
            true => (edges.addr(), count as c_uint),
            false => (count, flags),
        };
        // SAFETY: the program states how many handles there are.
        let tips = unsafe { Handles { list: dependencies, count }.read()? };
        graph::change_tips(address_of(stream), &tips, flags & 1 != 0)
    }

    /// Exchanges the mode of captures: each mode permits the same.
    fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_uint) {
        // SAFETY: the program passes the mode and where the one before goes, or null.
        let mode = unsafe { mode.as_mut() }.ok_or(errors::INVALID_VALUE)?;
        *mode = graph::exchange_mode(*mode)?;
        Ok(())
    }
}
