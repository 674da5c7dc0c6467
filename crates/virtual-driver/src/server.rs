//! The server: answers the requests of the processes of one program.

mod requests;
mod streams;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{Fields, FrameHeader, Message, NO_POOL, Op, Shape, write_frame};

use self::requests::{
    answer_access, answer_pool, answer_stream_properties, answer_value, survives_fault,
};
use self::streams::answer_stream;
use crate::attributes::device_attributes;
use crate::device::{ADDRESSES, Device, Options, Published};
use crate::launches::{Request, report_line};
use crate::summary::Summary;

/// Largest bulk data of one request, bytes.
const MAX_BULK_BYTES: u64 = 1 << 40;

/// Time that a launch of an ended process may still take before it is abandoned.
const FINISH_PATIENCE: Duration = Duration::from_secs(2);

/// Answers the processes of one program.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    /// Processes by their number.
    processes: Mutex<BTreeMap<u32, Process>>,
}

impl Server {
    /// Listens on a socket in the options' folder.
    ///
    /// # Errors
    /// A socket or a thread that the system does not grant.
    pub fn start(options: Options) -> io::Result<Server> {
        let path = options.folder.join("device");
        let listener = UnixListener::bind(&path)?;
        let shared = Arc::new(Shared {
            options,
            processes: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("device".to_owned())
            .spawn(move || accept(&listener, &accepting))?;
        Ok(Server { path, shared })
    }

    /// Returns the path of the socket, for [`cuda_shim::protocol::SOCKET_VARIABLE`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the work of all processes and ends their devices. A running launch of an ended process is
    /// not awaited.
    #[must_use]
    pub fn finish(&self) -> Summary {
        let processes = std::mem::take(&mut *lock(&self.shared.processes));
        let mut summary = Summary::default();
        for process in processes.into_values() {
            summary.merge(process.finish(&self.shared.options));
        }
        summary
    }
}

/// A process with its device.
#[derive(Debug, Clone)]
struct Process {
    device: Arc<Mutex<Device>>,
    /// The device's summary while a launch runs.
    published: Arc<Mutex<Published>>,
}

impl Process {
    fn new(number: u32, options: &Options) -> Process {
        let mut device = Device::new(options.clone());
        device.mirror.process = number;
        Process {
            published: Arc::clone(&device.published),
            device: Arc::new(Mutex::new(device)),
        }
    }

    fn finish(&self, options: &Options) -> Summary {
        let patience = Instant::now() + FINISH_PATIENCE;
        loop {
            if let Ok(mut device) = self.device.try_lock() {
                return std::mem::replace(&mut *device, Device::new(options.clone()))
                    .into_summary();
            }
            // Any other request ends without help, and only a launch publishes the summary.
            if Instant::now() >= patience && !lock(&self.published).running.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let Published {
            mut summary,
            running,
        } = std::mem::take(&mut *lock(&self.published));
        summary.add_note(format!(
            "the program ended while {running} ran; the summary leaves that launch out"
        ));
        summary
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            return;
        };
        let shared = Arc::clone(shared);
        let started = std::thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || {
                // A process that ends closes its socket, which is not an error.
                let _ = serve(stream, &shared);
            });
        if let Err(error) = started {
            report_line(&format!("a process cannot be served: {error}"));
        }
    }
}

/// One request.
struct Frame {
    op: Option<Op>,
    head: Vec<u8>,
    bulk: Vec<u8>,
}

fn read_frame(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let Some(header) = FrameHeader::read(from)? else {
        return Ok(None);
    };
    let mut head = vec![0; header.head_bytes as usize];
    from.read_exact(&mut head)?;
    if header.bulk_bytes > MAX_BULK_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bulk = Vec::new();
    let taken = from
        .by_ref()
        .take(header.bulk_bytes)
        .read_to_end(&mut bulk)?;
    if taken as u64 != header.bulk_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let op = Op::from_number(header.number);
    Ok(Some(Frame { op, head, bulk }))
}

fn serve(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(hello) = read_frame(&mut reader)? else {
        return Ok(());
    };
    if hello.op != Some(Op::Hello) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let process = Fields::new(&hello.head).u32()?;
    let device = {
        let mut processes = lock(&shared.processes);
        let known = processes.entry(process);
        Arc::clone(
            &known
                .or_insert_with(|| Process::new(process, &shared.options))
                .device,
        )
    };
    write_frame(&mut stream, 0, describe(&shared.options).bytes(), &[])?;
    while let Some(frame) = read_frame(&mut reader)? {
        let mut reply = Reply::default();
        let answered = match frame.op {
            Some(op) => respond(&mut lock(&device), op, &frame, &mut reply),
            None => Ok(Err(errors::NOT_SUPPORTED)),
        };
        let code = match answered? {
            Ok(()) => errors::SUCCESS,
            Err(code) => {
                reply = Reply::default();
                reply.bulk = std::mem::take(&mut lock(&device).failure).into_bytes();
                code
            }
        };
        write_frame(&mut stream, code as u32, reply.head.bytes(), &reply.bulk)?;
    }
    Ok(())
}

fn describe(options: &Options) -> Message {
    let mut head = Message::new();
    let attributes = device_attributes(options.arch);
    // Results under this name are never those of a GPU.
    head.put_str(&format!("{} (virtual)", options.arch.full_name))
        .put_u64(options.arch.memory_bytes)
        .put_u64(ADDRESSES.start)
        .put_u64(ADDRESSES.end)
        .put_u32(attributes.len() as u32);
    for (number, value) in attributes {
        head.put_u32(number).put_u32(value as u32);
    }
    head
}

#[derive(Debug, Default)]
struct Reply {
    head: Message,
    bulk: Vec<u8>,
}

type Answer = Result<(), Code>;

/// Answers a request. After a fault most fail here, so their functions need no check.
fn respond(device: &mut Device, op: Op, frame: &Frame, reply: &mut Reply) -> io::Result<Answer> {
    match device.check() {
        Err(code) if !survives_fault(op) => Ok(Err(code)),
        _ => answer(device, op, frame, reply),
    }
}

/// Answers a request. The outer error is a message that breaks the protocol.
fn answer(device: &mut Device, op: Op, frame: &Frame, reply: &mut Reply) -> io::Result<Answer> {
    let mut fields = Fields::new(&frame.head);
    Ok(match op {
        Op::LoadModule
        | Op::UnloadModule
        | Op::GetFunction
        | Op::ListFunctions
        | Op::GetVariable
        | Op::ShareVariable
        | Op::Occupancy
        | Op::SetFunctionAttribute => answer_module(device, op, frame, reply)?,
        Op::Allocate
        | Op::Free
        | Op::FreeInOrder
        | Op::Find
        | Op::WriteMemory
        | Op::ReadMemory
        | Op::CopyMemory
        | Op::FillMemory
        | Op::MemoryInfo => answer_memory(device, op, frame, reply)?,
        Op::Launch => {
            let request = read_launch(&mut fields, &frame.bulk)?;
            device.launch(&request).map(|text| reply.bulk = text)
        }
        Op::Hello => Err(errors::INVALID_VALUE),
        Op::OfferImage => {
            device.mirror.offer(&frame.bulk);
            Ok(())
        }
        Op::WantLaunch => Ok(device.answer_want(&mut fields, &mut reply.head)?),
        Op::BeginLaunch => device.begin_mirrored(&mut fields, &frame.bulk)?,
        Op::EndLaunch => device.end_mirrored(&frame.bulk),
        Op::SkipLaunch => Ok(device.skip_mirrored(&mut fields)?),
        Op::Reset => {
            device.reset();
            Ok(())
        }
        Op::Status => Ok(()),
        Op::SetLimit => device.set_limit(fields.u32()?, fields.u64()?),
        Op::Report => {
            device.summary.add_unsupported(fields.str()?);
            Ok(())
        }
        _ => answer_resource(device, op, frame, reply)?,
    })
}

/// Answers a request about a resource of the device: arrays, pools, mappings, values in memory and streams.
fn answer_resource(
    device: &mut Device,
    op: Op,
    frame: &Frame,
    reply: &mut Reply,
) -> io::Result<Answer> {
    let mut fields = Fields::new(&frame.head);
    Ok(match op {
        Op::CreateArray
        | Op::DestroyArray
        | Op::DescribeArray
        | Op::CreateTexture
        | Op::CreateSurface
        | Op::DestroyObject => device.answer_image(op, &mut fields, &mut reply.head)?,
        Op::CreatePool
        | Op::DestroyPool
        | Op::FindPool
        | Op::SelectPool
        | Op::DescribePool
        | Op::GetPoolAttribute
        | Op::SetPoolAttribute => answer_pool(device, op, &mut fields, &mut reply.head)?,
        Op::ReserveAddresses
        | Op::FreeAddresses
        | Op::CreateMemory
        | Op::ReleaseMemory
        | Op::MapMemory
        | Op::UnmapMemory
        | Op::SetMemoryAccess
        | Op::GetMemoryAccess
        | Op::RetainMemory => device.answer_mapping(op, &mut fields, &mut reply.head)?,
        Op::NoteAccess => answer_access(device, &mut fields)?,
        Op::WriteValue | Op::WaitValue => answer_value(device, op, &mut fields, &mut reply.head)?,
        Op::DescribeStream
        | Op::GetStreamAttribute
        | Op::SetStreamAttribute
        | Op::CopyStreamAttributes => {
            answer_stream_properties(device, op, &mut fields, &frame.bulk, reply)?
        }
        _ => answer_stream(device, op, &mut fields, reply)?,
    })
}

pub(crate) fn read_extent(fields: &mut Fields<'_>) -> io::Result<[u32; 3]> {
    Ok([fields.u32()?, fields.u32()?, fields.u32()?])
}

pub(crate) fn read_launch(fields: &mut Fields<'_>, parameters: &[u8]) -> io::Result<Request> {
    Ok(Request {
        stream: fields.u64()?,
        function: fields.u64()?,
        grid: read_extent(fields)?,
        block: read_extent(fields)?,
        shared_bytes: fields.u32()?,
        flags: fields.u32()?,
        cluster: read_extent(fields)?,
        parameters: parameters.to_vec(),
        nesting: 0,
    })
}

fn answer_module(
    device: &mut Device,
    op: Op,
    frame: &Frame,
    reply: &mut Reply,
) -> io::Result<Answer> {
    let mut fields = Fields::new(&frame.head);
    let head = &mut reply.head;
    Ok(match op {
        Op::LoadModule => device.load_module(&frame.bulk).map(|number| {
            head.put_u64(number);
        }),
        Op::UnloadModule => device.unload_module(fields.u64()?),
        Op::GetFunction => {
            let module = fields.u64()?;
            device
                .get_function(module, fields.str()?)
                .map(|info| info.put(head))
        }
        Op::ListFunctions => device.module(fields.u64()?).map(|module| {
            let names: Vec<&str> = module
                .code
                .entries()
                .map(|entry| entry.name.as_str())
                .collect();
            head.put_u32(names.len() as u32);
            for name in names {
                head.put_str(name);
            }
        }),
        Op::GetVariable | Op::ShareVariable => {
            let module = fields.u64()?;
            let name = fields.str()?;
            let buffer = device.module(module);
            let buffer = buffer.and_then(|module| module.variable(name).ok_or(errors::NOT_FOUND));
            match (op, buffer) {
                (Op::ShareVariable, Ok(buffer)) => {
                    device.share_variable(buffer).map(|(address, bytes, path)| {
                        head.put_u64(address).put_u64(bytes).put_str(&path);
                    })
                }
                (_, Ok(buffer)) => {
                    head.put_u64(device.memory.address(buffer))
                        .put_u64(device.memory.len(buffer));
                    Ok(())
                }
                (_, Err(code)) => Err(code),
            }
        }
        Op::Occupancy => {
            let (function, threads, shared) = (fields.u64()?, fields.u32()?, fields.u64()?);
            device.occupancy(function, threads, shared).map(|blocks| {
                head.put_u32(blocks);
            })
        }
        _ => {
            let (function, attribute) = (fields.u64()?, fields.u32()?);
            device.set_attribute(function, attribute, fields.u32()? as i32)
        }
    })
}

fn answer_memory(
    device: &mut Device,
    op: Op,
    frame: &Frame,
    reply: &mut Reply,
) -> io::Result<Answer> {
    let mut fields = Fields::new(&frame.head);
    let head = &mut reply.head;
    Ok(match op {
        Op::Allocate => {
            let (bytes, kind, pool) = (fields.u64()?, fields.u32()?, fields.u64()?);
            device.allocate(bytes, kind, pool).map(|(address, path)| {
                head.put_u64(address).put_str(&path);
            })
        }
        Op::Free => device.free(fields.u64()?),
        Op::FreeInOrder => {
            let (address, stream) = (fields.u64()?, fields.u64()?);
            device.free_in_order(address, stream)
        }
        Op::Find => device.find(fields.u64()?).map(|found| {
            head.put_u64(found.address)
                .put_u64(found.bytes)
                .put_u32(found.kind)
                .put_u64(found.pool.unwrap_or(NO_POOL));
        }),
        Op::WriteMemory => {
            let (stream, address) = (fields.u64()?, fields.u64()?);
            device.write(stream, address, Shape::take(&mut fields)?, &frame.bulk)
        }
        Op::ReadMemory => {
            let (stream, address) = (fields.u64()?, fields.u64()?);
            let shape = Shape::take(&mut fields)?;
            device
                .read(stream, address, shape)
                .map(|bytes| reply.bulk = bytes)
        }
        Op::CopyMemory => {
            let (stream, to, from) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let (to_shape, from_shape) = (Shape::take(&mut fields)?, Shape::take(&mut fields)?);
            device.copy(stream, to, to_shape, from, from_shape)
        }
        Op::FillMemory => {
            let (stream, address) = (fields.u64()?, fields.u64()?);
            let (value, size) = (fields.u32()?.to_le_bytes(), fields.u32()?);
            let element = value.get(..size as usize).unwrap_or(&value);
            device.fill(stream, address, element, Shape::take(&mut fields)?)
        }
        _ => {
            let [free, total] = device.memory_info();
            head.put_u64(free).put_u64(total);
            Ok(())
        }
    })
}

#[cfg(test)]
mod tests;
