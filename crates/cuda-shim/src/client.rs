//! Operations that both interfaces share: streams, events, synchronization.

use std::sync::atomic::Ordering;

use crate::abi::means_own_stream;
use crate::connection::{call, clear_sticky, flush_printed, send};
use crate::errors::{self, Code};
use crate::graph::host_function_of;
use crate::memory;
use crate::protocol::{ALL_STREAMS, Message, Op};
use crate::state::{OwnStream, lock, state, thread_state};
use crate::system::is_first_thread;
use crate::values;

/// Sends numbers alone.
pub(crate) fn request(op: Op, fields: &[u64]) -> Result<crate::connection::Reply, Code> {
    let mut head = Message::new();
    for field in fields {
        head.put_u64(*field);
    }
    call(op, &head)
}

/// `cudaStreamNonBlocking`, the only flag of a stream.
const NON_BLOCKING: u32 = 1;
/// `cudaEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;
/// `cudaEventInterprocess`, which needs an event without a time.
const INTERPROCESS: u32 = 4;
/// All flags of an event.
const EVENT_FLAGS: u32 = 7;

fn handle(reply: &crate::connection::Reply) -> Result<u64, Code> {
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

/// Creates a stream.
pub(crate) fn create_stream(flags: u32, priority: i32) -> Result<u64, Code> {
    if flags > NON_BLOCKING {
        return Err(errors::INVALID_VALUE);
    }
    let mut head = Message::new();
    head.put_u32(flags).put_u32(priority as u32);
    handle(&call(Op::CreateStream, &head)?)
}

/// Handle of the stream of the calling thread, one for all threads.
const OWN_HANDLE: u64 = 2;

/// Reports whether a handle means a stream of the current context: null, `CU_STREAM_LEGACY` or that of the thread.
pub(crate) fn is_of_each_context(stream: u64) -> bool {
    stream <= OWN_HANDLE
}

/// Returns the stream that a call means by a handle: that of the thread for its handle, and for the default one in
/// calls of programs that are compiled so.
pub(crate) fn resolve_stream(handle: u64) -> u64 {
    match handle {
        0 if means_own_stream() => own_stream(),
        OWN_HANDLE => own_stream(),
        other => other,
    }
}

/// Returns the stream of the calling thread.
fn own_stream() -> u64 {
    let resets = state().resets.load(Ordering::Relaxed);
    let own = thread_state(|thread| thread.own_stream.get());
    if own.handle != 0 && own.resets == resets {
        return own.handle;
    }
    let Ok(handle) = create_stream(0, 0) else {
        // After a fault there is none; all calls fail then.
        return OWN_HANDLE;
    };
    let own = OwnStream { handle, resets };
    thread_state(|thread| thread.own_stream.set(own));
    // In the destructors of a thread that ends there is no other one: such a stream stays.
    let _ = END_OF_THREAD.try_with(|_| ());
    handle
}

/// Ends the stream of a thread with the thread.
struct EndOfThread;

thread_local! {
    static END_OF_THREAD: EndOfThread = const { EndOfThread };
}

impl Drop for EndOfThread {
    fn drop(&mut self) {
        // At the end of the process another thread may have the connection, and a child after `fork` must not use it.
        if is_first_thread() {
            return;
        }
        let none = OwnStream {
            handle: 0,
            resets: 0,
        };
        let own = thread_state(|thread| thread.own_stream.replace(none));
        if own.handle == 0 || own.resets != state().resets.load(Ordering::Relaxed) {
            return;
        }
        if state().holds.load(Ordering::Relaxed) {
            // Operations of the stream that wait run before its end. Nothing is left that an error could be told to.
            let _ = values::end_stream_in_order(own.handle);
        } else {
            // A request would wait for the one of another thread, such as a launch that does not end, and `exit`
            // runs this as well.
            lock(&state().contexts_of).remove(&own.handle);
            lock(&state().ended_streams).push(own);
        }
        crate::graph::abandon_capture(own.handle);
    }
}

/// Flags and priority of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamInfo {
    pub(crate) flags: u32,
    pub(crate) priority: i32,
}

/// Returns the flags and the priority that a stream was created with.
pub(crate) fn describe_stream(stream: u64) -> Result<StreamInfo, Code> {
    let reply = request(Op::DescribeStream, &[stream])?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    Ok(StreamInfo {
        flags: fields.u32().map_err(broken)?,
        priority: fields.u32().map_err(broken)? as i32,
    })
}

/// `cudaLaunchAttributeValue`.
pub(crate) type AttributeValue = [u8; 64];

/// An attribute of a stream.
pub(crate) fn stream_attribute(stream: u64, attribute: u32) -> Result<AttributeValue, Code> {
    let mut head = Message::new();
    head.put_u64(stream).put_u32(attribute);
    let reply = call(Op::GetStreamAttribute, &head)?;
    reply.bulk.try_into().map_err(|_| errors::UNKNOWN)
}

/// Sets an attribute of a stream.
///
/// # Safety
/// `value` is null or readable.
pub(crate) unsafe fn set_stream_attribute(
    stream: u64,
    attribute: u32,
    value: *const AttributeValue,
) -> Result<(), Code> {
    if value.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let value = unsafe { value.read_unaligned() };
    let mut head = Message::new();
    head.put_u64(stream).put_u32(attribute);
    send(Op::SetStreamAttribute, &head, &value).map(drop)
}

/// Copies the attributes of a stream to another one.
pub(crate) fn copy_stream_attributes(to: u64, from: u64) -> Result<(), Code> {
    request(Op::CopyStreamAttributes, &[to, from]).map(drop)
}

/// Destroys a stream; its work completes.
pub(crate) fn destroy_stream(stream: u64) -> Result<(), Code> {
    values::destroy_stream(stream)?;
    crate::graph::abandon_capture(stream);
    Ok(())
}

/// Ends a stream on the device.
pub(crate) fn end_stream(stream: u64) -> Result<(), Code> {
    lock(&state().contexts_of).remove(&stream);
    request(Op::DestroyStream, &[stream]).map(drop)
}

/// Waits for a stream.
pub(crate) fn synchronize(stream: u64) -> Result<(), Code> {
    crate::graph::refuse_in_capture(stream)?;
    let done = join(stream);
    flush_printed();
    done
}

/// Orders what the host does from now on after the work of a stream.
pub(crate) fn join(stream: u64) -> Result<(), Code> {
    values::finish(stream)?;
    request(Op::Synchronize, &[stream]).map(drop)
}

/// Fails where a stream is busy: operations complete when they are submitted, but for those that wait for a value.
pub(crate) fn query(stream: u64) -> Result<(), Code> {
    values::refuse_unfinished(stream)?;
    match host_function_of() {
        None => synchronize(stream),
        // The function is itself work of the stream.
        Some(own) if own == stream => Err(errors::NOT_READY),
        // An order of the host after the stream would hide accesses that the program does not await.
        Some(_) => describe_stream(stream).map(drop),
    }
}

/// Fails where an event has not completed.
pub(crate) fn query_event(event: u64) -> Result<(), Code> {
    crate::graph::refuse_captured_event(event)?;
    values::refuse_unrecorded(event)?;
    match host_function_of() {
        None => synchronize_event(event),
        Some(_) => request(Op::FindEvent, &[event]).map(drop),
    }
}

/// Waits for all streams.
pub(crate) fn synchronize_device() -> Result<(), Code> {
    synchronize(ALL_STREAMS)
}

/// Creates an event.
pub(crate) fn create_event(flags: u32) -> Result<u64, Code> {
    let timed_interprocess = flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0;
    if flags > EVENT_FLAGS || timed_interprocess {
        return Err(errors::INVALID_VALUE);
    }
    let mut head = Message::new();
    head.put_u32(flags);
    handle(&call(Op::CreateEvent, &head)?)
}

/// Destroys an event.
pub(crate) fn destroy_event(event: u64) -> Result<(), Code> {
    request(Op::DestroyEvent, &[event]).map(drop)
}

/// Records an event after the work of a stream.
pub(crate) fn record_event(event: u64, stream: u64) -> Result<(), Code> {
    request(Op::RecordEvent, &[event, stream]).map(drop)
}

/// Lets a stream wait for an event.
pub(crate) fn wait_event(stream: u64, event: u64) -> Result<(), Code> {
    request(Op::WaitEvent, &[stream, event]).map(drop)
}

/// Waits for an event.
pub(crate) fn synchronize_event(event: u64) -> Result<(), Code> {
    crate::graph::refuse_captured_event(event)?;
    values::finish_event(event)?;
    let done = request(Op::SynchronizeEvent, &[event]).map(drop);
    flush_printed();
    done
}

/// Time between two recorded events on the virtual clock, ms.
pub(crate) fn elapsed_ms(start: u64, end: u64) -> Result<f32, Code> {
    let reply = request(Op::ElapsedTime, &[start, end])?;
    Ok(f64::from_bits(handle(&reply)?) as f32)
}

/// Orders a host function after the work of a stream.
pub(crate) fn order_host_function(stream: u64) -> Result<(), Code> {
    flush_printed();
    request(Op::HostFunction, &[stream]).map(drop)
}

/// Free and total device memory, bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryInfo {
    pub(crate) free: u64,
    pub(crate) total: u64,
}

/// Free and total memory.
pub(crate) fn memory_info() -> Result<MemoryInfo, Code> {
    let reply = call(Op::MemoryInfo, &Message::new())?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    Ok(MemoryInfo {
        free: fields.u64().map_err(broken)?,
        total: fields.u64().map_err(broken)?,
    })
}

/// Frees everything of the process and clears its errors.
pub(crate) fn reset() -> Result<(), Code> {
    flush_printed();
    call(Op::Reset, &Message::new())?;
    values::forget_all();
    memory::forget_all();
    crate::graph::forget_memory();
    crate::graph::abandon_captures();
    lock(&state().contexts_of).clear();
    lock(&state().limits).clear();
    clear_sticky();
    Ok(())
}

/// Blocks of a kernel that a multiprocessor holds.
pub(crate) fn occupancy(function: u64, threads: u32, shared_bytes: u64) -> Result<u32, Code> {
    let mut head = Message::new();
    head.put_u64(function)
        .put_u32(threads)
        .put_u64(shared_bytes);
    call(Op::Occupancy, &head)?
        .fields()
        .u32()
        .map_err(|_| errors::UNKNOWN)
}

/// An attribute of a kernel: the number of the kernel on the device, and that of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FunctionAttribute {
    pub(crate) function: u64,
    pub(crate) number: u32,
}

/// Returns an attribute of a kernel that the program set by either interface.
pub(crate) fn function_attribute(function: u64, number: u32) -> Option<i32> {
    let attributes = lock(&state().function_attributes);
    attributes
        .get(&FunctionAttribute { function, number })
        .copied()
}

/// Sets an attribute of a kernel, such as its limit of dynamic shared memory.
pub(crate) fn set_function_attribute(
    function: u64,
    attribute: u32,
    value: i32,
) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(function)
        .put_u32(attribute)
        .put_u32(value as u32);
    call(Op::SetFunctionAttribute, &head)?;
    let key = FunctionAttribute {
        function,
        number: attribute,
    };
    lock(&state().function_attributes).insert(key, value);
    Ok(())
}

/// Sets a limit, such as the size of the heap of kernels.
pub(crate) fn set_limit(limit: u32, value: u64) -> Result<(), Code> {
    check_limit(limit)?;
    let mut head = Message::new();
    head.put_u32(limit).put_u64(value);
    call(Op::SetLimit, &head)?;
    let mut limits = lock(&state().limits);
    limits.insert(limit, value);
    Ok(())
}

/// `cudaLimitPersistingL2CacheSize`, the last limit of both interfaces.
const LAST_LIMIT: u32 = 6;

fn check_limit(limit: u32) -> Result<(), Code> {
    match limit {
        0..=LAST_LIMIT => Ok(()),
        _ => Err(errors::UNSUPPORTED_LIMIT),
    }
}

/// Returns a limit: what the program set, or the default.
pub(crate) fn get_limit(limit: u32) -> Result<u64, Code> {
    check_limit(limit)?;
    let limits = lock(&state().limits);
    Ok(limits.get(&limit).copied().unwrap_or(match limit {
        0 => 1024,
        1 => 1 << 20,
        2 => 8 << 20,
        _ => 0,
    }))
}
