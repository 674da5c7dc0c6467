//! The connection to the device: one socket a process, one request at a time.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::errors::{self, Code};
use crate::graph::in_host_function;
use crate::protocol::{
    CAPTURE_VARIABLE, Fields, FrameHeader, Message, Op, SMALL_BULK_BYTES, SOCKET_VARIABLE,
    reply_code, write_frame, write_head,
};
use crate::say::say_once;
use crate::state::{IS_RUNTIME, lock as lock_part, state, thread_state};
use crate::system;

/// End of the numbers of `CUdevice_attribute` and `cudaDeviceAttr`.
const ATTRIBUTE_END: u32 = 148;

/// What the device says of itself at the first request.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// Marketing name.
    pub(crate) name: String,
    /// Memory, bytes.
    pub(crate) memory_bytes: u64,
    /// First address of device memory.
    pub(crate) first_address: u64,
    /// First address after it.
    pub(crate) end_address: u64,
    /// Attributes by their number in `cudaDeviceAttr`.
    pub(crate) attributes: Vec<(u32, i32)>,
}

impl Device {
    /// An attribute; zero where the device does not have it.
    pub(crate) fn attribute(&self, number: u32) -> i32 {
        let found = self.attributes.iter().find(|(key, _)| *key == number);
        found.map_or(0, |(_, value)| *value)
    }

    /// Returns an attribute that a program asks for by its number.
    pub(crate) fn known_attribute(&self, number: u32) -> Result<i32, Code> {
        match number {
            1..ATTRIBUTE_END => Ok(self.attribute(number)),
            _ => Err(errors::INVALID_VALUE),
        }
    }

    /// Reports whether an address is one of device memory.
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.first_address..self.end_address).contains(&address)
    }
}

/// A socket to the device.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    /// The process that connected: a child after `fork` must not use its parent's socket.
    process: u32,
    device: Device,
}

fn connection() -> Result<&'static Mutex<Connection>, Code> {
    let opened = state().connection.get_or_init(|| {
        connect().map(Mutex::new).map_err(|error| {
            say_once(&error);
            errors::NO_DEVICE
        })
    });
    let opened = opened.as_ref().map_err(|code| *code)?;
    OPEN.store(true, Ordering::Relaxed);
    if IS_RUNTIME {
        state().runtime_is_active.store(true, Ordering::Relaxed);
    }
    Ok(opened)
}

fn connect() -> Result<Connection, String> {
    let variable = match cfg!(shim = "forward") {
        true => CAPTURE_VARIABLE,
        false => SOCKET_VARIABLE,
    };
    let path = std::env::var_os(variable).ok_or_else(|| {
        format!("{variable} is not set: this library works under `tuner exec -- PROGRAM`")
    })?;
    let lost = |error: io::Error| format!("no connection to the virtual device: {error}");
    let mut stream = UnixStream::connect(path).map_err(lost)?;
    let process = std::process::id();
    let mut head = Message::new();
    head.put_u32(process);
    write_frame(&mut stream, Op::Hello as u32, head.bytes(), &[]).map_err(lost)?;
    let header = FrameHeader::read(&mut stream)
        .and_then(|header| header.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()))
        .map_err(lost)?;
    let mut head = vec![0; header.head_bytes as usize];
    stream.read_exact(&mut head).map_err(lost)?;
    let device = read_device(&head).map_err(lost)?;
    Ok(Connection {
        stream,
        process,
        device,
    })
}

fn read_device(head: &[u8]) -> io::Result<Device> {
    let mut fields = Fields::new(head);
    let mut device = Device {
        name: fields.str()?.to_owned(),
        memory_bytes: fields.u64()?,
        first_address: fields.u64()?,
        end_address: fields.u64()?,
        attributes: Vec::new(),
    };
    for _ in 0..fields.u32()? {
        device
            .attributes
            .push((fields.u32()?, fields.u32()? as i32));
    }
    Ok(device)
}

/// Checks whether this library has used the device.
fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

static OPEN: AtomicBool = AtomicBool::new(false);

/// The device of this process.
///
/// # Errors
/// No device.
pub(crate) fn device() -> Result<&'static Device, Code> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device);
    }
    // References to the device outlive the lock.
    let device = lock(connection()?)?.device.clone();
    Ok(DEVICE.get_or_init(|| device))
}

fn lock(connection: &'static Mutex<Connection>) -> Result<MutexGuard<'static, Connection>, Code> {
    let guard = connection.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.process != std::process::id() {
        say_once(
            "the program used CUDA before `fork` and again in the child; as on a GPU, call CUDA \
             only after `fork`, or `exec` the child",
        );
        return Err(errors::INITIALIZATION);
    }
    Ok(guard)
}

/// The reply to a request that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    head: Vec<u8>,
    /// Bulk data that no sink took.
    pub(crate) bulk: Vec<u8>,
}

impl Reply {
    /// The fields of the head.
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields::new(&self.head)
    }
}

/// Sends a request without bulk data.
///
/// # Errors
/// The code that the device returned.
pub(crate) fn call(op: Op, head: &Message) -> Result<Reply, Code> {
    exchange(op, head, &[], None)
}

/// Sends a request with bulk data.
///
/// # Errors
/// The code that the device returned.
pub(crate) fn send(op: Op, head: &Message, bulk: &[u8]) -> Result<Reply, Code> {
    exchange(op, head, bulk, None)
}

/// Takes the bulk data of a reply from the socket.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&mut UnixStream, u64) -> io::Result<()>;

/// Sends a request whose reply has bulk data for `sink`.
///
/// # Errors
/// The code that the device returned.
pub(crate) fn receive(op: Op, head: &Message, sink: Sink<'_>) -> Result<Reply, Code> {
    exchange(op, head, &[], Some(sink))
}

fn exchange(op: Op, head: &Message, bulk: &[u8], sink: Option<Sink<'_>>) -> Result<Reply, Code> {
    // A function of the program may ask whether work is complete.
    if in_host_function() && !matches!(op, Op::DescribeStream | Op::FindEvent) {
        return Err(errors::NOT_PERMITTED);
    }
    let mut guard = lock(connection()?)?;
    end_streams_of_threads(&mut guard.stream);
    let answered = transfer(&mut guard.stream, op, head, bulk, sink);
    let (header, reply) = answered.map_err(|error| {
        say_once(&format!("the virtual device ended: {error}"));
        // A frame that was cut leaves nothing that later requests could follow.
        let _ = guard.stream.shutdown(Shutdown::Both);
        errors::UNKNOWN
    })?;
    match reply_code(header) {
        errors::SUCCESS => {
            if op == Op::Reset {
                // Before the next request: a queued stream of before has the handle of another one then.
                state().resets.fetch_add(1, Ordering::Relaxed);
            }
            Ok(reply)
        }
        code => {
            note_sticky(code);
            // At the end of a thread its copy may be gone.
            let _ = FAILURE.try_with(|failure| {
                failure.replace(String::from_utf8_lossy(&reply.bulk).into_owned())
            });
            Err(code)
        }
    }
}

/// Ends the streams of threads that have ended since the last request.
fn end_streams_of_threads(stream: &mut UnixStream) {
    let ended = std::mem::take(&mut *lock_part(&state().ended_streams));
    let resets = state().resets.load(Ordering::Relaxed);
    // A reset has ended those of before, and hands out their handles again.
    for own in ended.iter().filter(|own| own.resets == resets) {
        let mut head = Message::new();
        head.put_u64(own.handle);
        // A connection that is gone is told with the request.
        let _ = transfer(stream, Op::DestroyStream, &head, &[], None);
    }
}

fn transfer(
    stream: &mut UnixStream,
    op: Op,
    head: &Message,
    bulk: &[u8],
    sink: Option<Sink<'_>>,
) -> io::Result<(FrameHeader, Reply)> {
    let unreadable = write_request(stream, op, head, bulk)?;
    let header = FrameHeader::read(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut reply = Reply {
        head: vec![0; header.head_bytes as usize],
        bulk: Vec::new(),
    };
    stream.read_exact(&mut reply.head)?;
    match sink {
        Some(sink) if reply_code(header) == errors::SUCCESS => sink(stream, header.bulk_bytes)?,
        _ => {
            let read = stream
                .take(header.bulk_bytes)
                .read_to_end(&mut reply.bulk)?;
            // Reading ends without an error where the socket does.
            if read as u64 != header.bulk_bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    if let Some(byte) = unreadable
        && reply_code(header) == errors::SUCCESS
    {
        // The program faults, as in a copy of its own.
        // SAFETY: a byte of the bulk data.
        unsafe { std::ptr::from_ref(byte).read_volatile() };
    }
    Ok((header, reply))
}

/// Reports whether memory of the program cannot be accessed.
pub(crate) fn is_bad_address(error: &io::Error) -> bool {
    const EFAULT: i32 = 14;
    error.raw_os_error() == Some(EFAULT)
}

/// Sends a request. Returns the first byte of bulk data that the program cannot read: zeros stand for the rest, so that
/// the device can refuse the request for another reason, as a GPU does.
fn write_request<'b>(
    stream: &mut UnixStream,
    op: Op,
    head: &Message,
    bulk: &'b [u8],
) -> io::Result<Option<&'b u8>> {
    if bulk.len() <= SMALL_BULK_BYTES {
        return write_frame(stream, op as u32, head.bytes(), bulk).map(|()| None);
    }
    write_head(stream, op as u32, head.bytes(), bulk.len() as u64)?;
    let mut rest = bulk;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_bad_address(&error) => {
                io::copy(&mut io::repeat(0).take(rest.len() as u64), stream)?;
                return Ok(rest.first());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

thread_local! {
    static FAILURE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The sentence that came with the last error of this thread; empty for most.
pub(crate) fn take_failure() -> String {
    FAILURE.take()
}

/// Runs after the program's own functions at its end.
#[cfg(shim)]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report_lost_output;

/// Reports text that the program never saw, because it ended without a call that shows it.
#[cfg_attr(
    not(shim),
    expect(dead_code, reason = "called at the end of a program")
)]
extern "C" fn report_lost_output() {
    if !is_open() {
        // There is no text, and looking for the state would load the library of the driver.
        return;
    }
    let mut kept = lock_part(&state().printed);
    if !kept.is_empty() {
        say_once(&format!(
            "{} bytes of device printf were never printed: the program ended without a \
             synchronization after the kernel; a GPU loses them too",
            kept.len()
        ));
        // Each library of the process ends in this function.
        kept.clear();
    }
}

/// Keeps the text of a launch until the program synchronizes.
pub(crate) fn keep_printed(text: &[u8]) {
    let mut kept = lock_part(&state().printed);
    kept.extend_from_slice(text);
}

/// Writes the kept text to the program's standard output.
pub(crate) fn flush_printed() {
    let mut kept = lock_part(&state().printed);
    if !kept.is_empty() {
        system::print(&kept);
        kept.clear();
    }
}

fn note_sticky(code: Code) {
    if errors::is_sticky(code) {
        state().sticky.store(code, Ordering::Relaxed);
    }
}

/// Fails with the sticky error, also where the device is not asked.
pub(crate) fn check_fault() -> Result<(), Code> {
    match state().sticky.load(Ordering::Relaxed) {
        errors::SUCCESS => Ok(()),
        code => Err(code),
    }
}

/// Forgets the sticky error: the device was reset.
pub(crate) fn clear_sticky() {
    state().sticky.store(0, Ordering::Relaxed);
}

thread_local! {
    static LAST: Cell<Code> = const { Cell::new(errors::SUCCESS) };
}

/// Keeps the result of a runtime call for `cudaGetLastError`, and returns it.
pub(crate) fn keep_last(code: Code) -> Code {
    thread_state(|thread| thread.runtime_calls.set(thread.runtime_calls.get() + 1));
    // CUDA counts "not ready" as the answer of a query, and not as an error.
    if code != errors::SUCCESS && code != errors::NOT_READY {
        LAST.set(code);
    }
    code
}

/// The last error of this thread; `clear` forgets it, but for a sticky one.
pub(crate) fn last_error(clear: bool) -> Code {
    if let Err(sticky) = check_fault() {
        return sticky;
    }
    match clear {
        true => LAST.replace(errors::SUCCESS),
        false => LAST.get(),
    }
}

/// Names a function that the device does not implement, here and in the summary of the device.
pub(crate) fn report_missing(function: &str) {
    say_once(&format!(
        "{function} is not supported by the virtual device"
    ));
    let mut head = Message::new();
    head.put_str(function);
    let _ = call(Op::Report, &head);
}
