//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::client;
use crate::graph::{self, CaptureInfo, Handles};
use crate::memory::{address_of, pointer_to, stream_of};

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

    /// Returns the device of a stream.
    fn cudaStreamGetDevice(stream: *mut c_void, number: *mut c_int) {
        client::describe_stream(stream_of(stream))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }

    /// Associates managed memory with a stream: no effect.
    fn cudaStreamAttachMemAsync(_stream: *mut c_void, _memory: *mut c_void, _bytes: usize, _flags: c_uint) {
        Ok(())
    }

    /// Creates an event.
    fn cudaEventCreate(event: *mut *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(event, pointer_to(client::create_event(0)?)) }
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
        graph::change_tips(stream_of(stream), &tips, flags & 1 != 0)
    }
}
