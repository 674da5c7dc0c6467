//! Memory: allocations of the device, memory that host and device share, and copies between them.
//!
//! Shared memory (pinned and managed) is a file that both processes map or read. The device takes its
//! contents before a launch and writes them back after it; in between the program owns it. Copies
//! therefore treat shared memory as host memory.

mod release;

use std::ffi::c_void;
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;

pub(crate) use self::release::{end_in_order, release, release_kind};
use crate::connection::{call, device, flush_printed, is_bad_address, receive, send};
pub(crate) use crate::direction::Direction;
use crate::direction::Side;
use crate::errors::{self, Code};
use crate::protocol::{Message, NO_POOL, Op, Shape, kind};
use crate::registered::{self, exchanged};
use crate::say::say_once;
use crate::state::{lock, state};
use crate::system::{self, PAGE};

/// A mapping of shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    /// Bytes that the program asked for.
    pub(crate) bytes: u64,
    /// One of [`kind`].
    pub(crate) kind: u32,
    /// Flags of page-locked memory, of which the device always has the address.
    pub(crate) host_flags: u32,
}

/// `cudaHostAllocMapped`.
const HOST_MAPPED: u32 = 2;

/// Alignment of the rows that `cudaMallocPitch` returns, bytes.
pub(crate) const PITCH: u64 = 512;

/// Returns the device address of page-locked or registered host memory.
pub(crate) fn device_address(address: u64) -> Result<u64, Code> {
    // Page-locked memory has one address for both sides.
    match find_mapping(address).is_some() || holds_shared(address) {
        true => Ok(address),
        false => registered::device_address(address),
    }
}

/// An allocation of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    /// Address of the first byte.
    pub(crate) address: u64,
    /// Size, bytes.
    pub(crate) bytes: u64,
    /// One of [`kind`].
    pub(crate) kind: u32,
    /// Handle of its memory pool, or [`NO_POOL`].
    pub(crate) pool: u64,
}

/// The allocation that holds an address.
pub(crate) fn find_allocation(address: u64) -> Result<Allocation, Code> {
    let mut head = Message::new();
    head.put_u64(address);
    let reply = call(Op::Find, &head)?;
    let mut fields = reply.fields();
    let broken = |_| errors::UNKNOWN;
    Ok(Allocation {
        address: fields.u64().map_err(broken)?,
        bytes: fields.u64().map_err(broken)?,
        kind: fields.u32().map_err(broken)?,
        pool: fields.u64().map_err(broken)?,
    })
}

/// Checks whether another library of this process mapped shared memory there: a program may use both
/// interfaces.
fn holds_shared(address: u64) -> bool {
    let held = device().is_ok_and(|device| device.holds(address));
    held && find_allocation(address)
        .is_ok_and(|found| matches!(found.kind, kind::PINNED | kind::MANAGED))
}

/// The shared mapping that holds an address, with its first address.
pub(crate) fn find_mapping(address: u64) -> Option<(u64, Mapping)> {
    let mappings = lock(&state().mappings);
    let (base, mapping) = mappings.range(..=address).next_back()?;
    (address - base < mapping.bytes.max(1)).then_some((*base, *mapping))
}

/// Keeps the flags that page-locked memory was allocated with.
pub(crate) fn set_host_flags(address: u64, flags: u32) {
    let mut mappings = lock(&state().mappings);
    if let Some(mapping) = mappings.get_mut(&address) {
        mapping.host_flags |= flags;
    }
}

/// Reports whether the address is one of the memory of a CUDA array.
pub(crate) fn is_array(address: u64) -> bool {
    let held = device().is_ok_and(|device| device.holds(address));
    held && find_allocation(address).is_ok_and(|found| found.kind == kind::ARRAY)
}

/// Reports whether only the device can access the address.
pub(crate) fn is_device_only(address: u64) -> Result<bool, Code> {
    Ok(device()?.holds(address) && find_mapping(address).is_none())
}

/// Allocates memory of a [`kind`]; shared kinds are mapped at the same address here.
pub(crate) fn allocate(bytes: u64, kind: u32) -> Result<u64, Code> {
    allocate_from(NO_POOL, bytes, kind)
}

/// Allocates memory of a pool, whose kind it has.
pub(crate) fn allocate_from(pool: u64, bytes: u64, kind: u32) -> Result<u64, Code> {
    let mut head = Message::new();
    head.put_u64(bytes).put_u32(kind).put_u64(pool);
    let reply = call(Op::Allocate, &head)?;
    let mut fields = reply.fields();
    let address = fields.u64().map_err(|_| errors::UNKNOWN)?;
    if kind != kind::DEVICE {
        let path = fields.str().map_err(|_| errors::UNKNOWN)?;
        if let Err(code) = map_shared(address, bytes, kind, path) {
            let _ = release(address);
            return Err(code);
        }
    }
    Ok(address)
}

/// Maps shared memory that the device made, at its device address.
pub(crate) fn map_shared(address: u64, bytes: u64, kind: u32, path: &str) -> Result<(), Code> {
    let file = File::options().read(true).write(true).open(path);
    let mapped = file.and_then(|file| {
        let start = address & !(PAGE - 1);
        system::map_file(&file, start, mapped_bytes(address, bytes))
    });
    mapped.map_err(|error| {
        say_once(&format!(
            "cannot map {bytes} bytes of shared memory at {address:#x}: {error}"
        ));
        errors::OUT_OF_MEMORY
    })?;
    let mut mappings = lock(&state().mappings);
    let host_flags = HOST_MAPPED;
    let mapping = Mapping {
        bytes,
        kind,
        host_flags,
    };
    mappings.insert(address, mapping);
    Ok(())
}

/// Size of the mapping that holds the range: whole pages.
fn mapped_bytes(address: u64, bytes: u64) -> u64 {
    (address % PAGE + bytes.max(1)).next_multiple_of(PAGE)
}

/// Forgets every mapping: the device was reset.
pub(crate) fn forget_all() {
    registered::forget_all();
    let mut mappings = lock(&state().mappings);
    for (address, mapping) in std::mem::take(&mut *mappings) {
        system::unmap(address & !(PAGE - 1), mapped_bytes(address, mapping.bytes));
    }
}

fn side(address: u64) -> Result<Side, Code> {
    Ok(if !device()?.holds(address) {
        Side::Host
    } else if find_mapping(address).is_some() {
        Side::Shared
    } else {
        Side::Device
    })
}

/// One end of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// First byte.
    pub address: u64,
    /// Its rows.
    pub shape: Shape,
}

impl Place {
    /// A contiguous range.
    pub(crate) fn linear(address: u64, bytes: u64) -> Place {
        Place {
            address,
            shape: Shape::linear(bytes),
        }
    }
}

/// A copy between two places of the same width, height and depth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy {
    /// Where the bytes go.
    pub destination: Place,
    /// Where they come from.
    pub source: Place,
    /// As the program states it.
    pub direction: Direction,
    /// Stream.
    pub stream: u64,
}

impl Copy {
    /// A contiguous copy.
    pub(crate) fn linear(
        destination: u64,
        source: u64,
        bytes: u64,
        direction: Direction,
        stream: u64,
    ) -> Copy {
        Copy {
            destination: Place::linear(destination, bytes),
            source: Place::linear(source, bytes),
            direction,
            stream,
        }
    }

    /// Reports whether the copy has completed when its call returns: copies to pageable memory, and of a call that
    /// `waits` those to and from page-locked memory.
    pub(crate) fn is_awaited(&self, waits: bool) -> bool {
        let ends = [self.destination, self.source].map(|place| side(place.address));
        match ends {
            [Ok(Side::Host), Ok(Side::Device | Side::Shared)] => true,
            [Ok(Side::Shared), Ok(_)] | [Ok(Side::Device), Ok(Side::Shared)] => waits,
            [Ok(Side::Device), Ok(Side::Host)] => waits && registered::holds(self.source.address),
            _ => false,
        }
    }

    /// Performs the copy.
    pub(crate) fn run(&self) -> Result<(), Code> {
        let bytes = self.source.shape.bytes().ok_or(errors::INVALID_VALUE)?;
        if bytes == 0 {
            return Ok(());
        }
        flush_printed();
        if self.destination.address == 0 || self.source.address == 0 {
            return Err(errors::INVALID_VALUE);
        }
        let mut sides = (side(self.destination.address)?, side(self.source.address)?);
        if !self.direction.admits(sides.0, sides.1) {
            for (side, place) in [
                (&mut sides.0, &self.destination),
                (&mut sides.1, &self.source),
            ] {
                if *side == Side::Device && holds_shared(place.address) {
                    *side = Side::Shared;
                }
            }
        }
        if !self.direction.admits(sides.0, sides.1) {
            // A pageable pointer in the place of a device pointer.
            return Err(errors::INVALID_VALUE);
        }
        match sides {
            (Side::Device, Side::Device) => exchanged(|| self.on_device())?,
            (Side::Device, _) => exchanged(|| self.upload(bytes))?,
            (_, Side::Device) => exchanged(|| self.download())?,
            _ => {}
        }
        // The device knows its own end of a copy only.
        if sides.1 == Side::Shared {
            note_access(self.stream, "copy from the host", &self.source, false)?;
        }
        if sides.0 == Side::Shared {
            note_access(self.stream, "copy to the host", &self.destination, true)?;
        }
        match sides {
            (Side::Device, _) | (_, Side::Device) => Ok(()),
            (Side::Shared, _) | (_, Side::Shared) => self.on_host(true),
            _ => self.on_host(false),
        }
    }

    fn on_device(&self) -> Result<(), Code> {
        let mut head = Message::new();
        head.put_u64(self.stream)
            .put_u64(self.destination.address)
            .put_u64(self.source.address);
        self.destination.shape.put(&mut head);
        self.source.shape.put(&mut head);
        call(Op::CopyMemory, &head).map(drop)
    }

    fn upload(&self, bytes: u64) -> Result<(), Code> {
        let mut head = Message::new();
        head.put_u64(self.stream).put_u64(self.destination.address);
        self.destination.shape.put(&mut head);
        let mut runs = self.source.shape.runs();
        let (first, second) = (runs.next(), runs.next());
        if let (Some(run), None) = (first, second) {
            let address = self.source.address + run.offset;
            // SAFETY: the program states that it may read these bytes; they are copied before the call
            // returns.
            let data = unsafe { std::slice::from_raw_parts(pointer(address), run.bytes as usize) };
            return send(Op::WriteMemory, &head, data).map(drop);
        }
        let mut packed = Vec::with_capacity(bytes as usize);
        for run in self.source.shape.runs() {
            let address = self.source.address + run.offset;
            // SAFETY: as above, row by row.
            packed.extend_from_slice(unsafe {
                std::slice::from_raw_parts(pointer(address), run.bytes as usize)
            });
        }
        send(Op::WriteMemory, &head, &packed).map(drop)
    }

    fn download(&self) -> Result<(), Code> {
        let mut head = Message::new();
        head.put_u64(self.stream).put_u64(self.source.address);
        self.source.shape.put(&mut head);
        let destination = self.destination;
        let mut scatter = |stream: &mut UnixStream, _bytes: u64| {
            for run in destination.shape.runs() {
                let address = pointer(destination.address + run.offset).cast_mut();
                // SAFETY: the program states that it may write these bytes.
                let into = unsafe { std::slice::from_raw_parts_mut(address, run.bytes as usize) };
                read_into(stream, into)?;
            }
            Ok(())
        };
        receive(Op::ReadMemory, &head, &mut scatter).map(drop)
    }

    fn on_host(&self, shared: bool) -> Result<(), Code> {
        if shared {
            // The copy waits for the kernels before it, whose faults it reports.
            synchronize_stream(self.stream)?;
        }
        let pairs = self.destination.shape.runs().zip(self.source.shape.runs());
        let same = self.destination.shape.runs().count() == self.source.shape.runs().count();
        if same {
            for (to, from) in pairs {
                move_bytes(
                    self.destination.address + to.offset,
                    self.source.address + from.offset,
                    to.bytes.min(from.bytes),
                );
            }
            return Ok(());
        }
        let shape = self.source.shape;
        for z in 0..shape.depth {
            for y in 0..shape.height {
                move_bytes(
                    self.destination.address
                        + z * self.destination.shape.slice
                        + y * self.destination.shape.pitch,
                    self.source.address + z * shape.slice + y * shape.pitch,
                    shape.width,
                );
            }
        }
        Ok(())
    }
}

/// Reads into memory of the program. Where it is not writable, the program faults, as in a copy of its own.
fn read_into(stream: &mut UnixStream, into: &mut [u8]) -> std::io::Result<()> {
    let read = stream.read_exact(into);
    if read.as_ref().is_err_and(is_bad_address) {
        for page in into.chunks_mut(PAGE as usize) {
            page.iter_mut().take(1).for_each(|byte| {
                // SAFETY: a byte of the slice.
                unsafe { std::ptr::from_mut(byte).write_volatile(0) }
            });
        }
    }
    read
}

/// Tells the device that an operation of a stream accesses shared memory here, which it orders with others.
pub(crate) fn note_access(
    stream: u64,
    name: &str,
    place: &Place,
    writes: bool,
) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(stream)
        .put_u64(place.address)
        .put_u32(writes.into());
    place.shape.put(&mut head);
    head.put_str(name);
    call(Op::NoteAccess, &head).map(drop)
}

fn synchronize_stream(stream: u64) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(stream);
    call(Op::Synchronize, &head).map(drop)
}

fn move_bytes(to: u64, from: u64, bytes: u64) {
    // SAFETY: the program states that it may read and write these bytes; they may overlap.
    unsafe { std::ptr::copy(pointer(from), pointer(to).cast_mut(), bytes as usize) }
}

fn pointer(address: u64) -> *const u8 {
    std::ptr::with_exposed_provenance(address as usize)
}

/// Fills memory with a value of 1, 2 or 4 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill {
    /// First byte and rows.
    pub place: Place,
    /// The value, in the low bytes.
    pub value: u32,
    /// Its size.
    pub element_bytes: u32,
    /// Stream.
    pub stream: u64,
}

impl Fill {
    /// Reports whether the fill has completed when a call without a stream returns.
    pub(crate) fn is_awaited(&self) -> bool {
        side(self.place.address) == Ok(Side::Shared)
    }

    /// Performs the fill.
    pub(crate) fn run(&self) -> Result<(), Code> {
        if self.place.shape.bytes().ok_or(errors::INVALID_VALUE)? == 0 {
            return Ok(());
        }
        let pattern = self.value.to_le_bytes();
        match side(self.place.address)? {
            Side::Device => {
                let mut head = Message::new();
                head.put_u64(self.stream)
                    .put_u64(self.place.address)
                    .put_u32(self.value)
                    .put_u32(self.element_bytes);
                self.place.shape.put(&mut head);
                exchanged(|| call(Op::FillMemory, &head)).map(drop)
            }
            Side::Shared => {
                note_access(self.stream, "fill", &self.place, true)?;
                for run in self.place.shape.runs() {
                    let first = pointer(self.place.address + run.offset).cast_mut();
                    // SAFETY: the range is inside a mapping of shared memory, as the device checked.
                    let into = unsafe { std::slice::from_raw_parts_mut(first, run.bytes as usize) };
                    let element = pattern.iter().cycle().take(self.element_bytes as usize);
                    let repeated = element.copied().collect::<Vec<u8>>();
                    into.iter_mut()
                        .zip(repeated.iter().cycle())
                        .for_each(|(byte, value)| *byte = *value);
                }
                Ok(())
            }
            // A host pointer: the driver refuses it.
            Side::Host => Err(errors::INVALID_VALUE),
        }
    }
}

/// The stream that a call means by a handle.
pub(crate) fn stream_of(stream: *const c_void) -> u64 {
    crate::client::resolve_stream(address_of(stream))
}

/// The address of a pointer of the program.
pub(crate) fn address_of<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// The pointer of an address, for the program.
pub(crate) fn pointer_to(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
