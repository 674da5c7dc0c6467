//! Allocations, copies and fills of one process, and memory that the host shares.

mod shared;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{Shape, kind};
use vgpu::BufferId;

use crate::device::Device;
use crate::pages::PAGE;
use crate::streams::Access;
use crate::time::{device_copy_us, host_copy_us};

/// Memory that both sides access: an anonymous file, which ends with the processes that hold it.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    /// Offset of the first byte in the file, which preserves the address's offset in its page.
    offset: u64,
    /// Contents of both sides after the last exchange.
    known: Vec<u8>,
}

#[derive(Debug)]
struct Allocation {
    buffer: BufferId,
    bytes: u64,
    kind: u32,
    /// Handle of its memory pool.
    pool: Option<u64>,
    shared: Option<SharedFile>,
    /// A variable of a module, which the program does not free.
    variable: bool,
}

/// Allocations by their first address.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    by_address: BTreeMap<u64, Allocation>,
}

impl SharedFile {
    /// Returns a path by which another process of the same user opens the file.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// An allocation from the view of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: u32,
    /// Handle of its memory pool.
    pub(crate) pool: Option<u64>,
}

/// A range of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferOffset {
    pub(crate) buffer: BufferId,
    pub(crate) offset: u64,
}

impl Device {
    /// Allocates memory; for shared kinds also returns the path of their file.
    pub(crate) fn allocate(
        &mut self,
        bytes: u64,
        kind: u32,
        pool: u64,
    ) -> Result<(u64, String), Code> {
        let pool = self.pools.resolve(pool, kind)?;
        if pool.is_some_and(|pool| !self.pools.has_room(pool, bytes)) {
            return Err(errors::OUT_OF_MEMORY);
        }
        let name = match kind {
            kind::DEVICE => "device memory",
            kind::PINNED => "pinned memory",
            kind::MANAGED => "managed memory",
            kind::ARRAY => "a CUDA array",
            _ => return Err(errors::INVALID_VALUE),
        };
        let number = self.allocations.by_address.len() + 1;
        let name = format!("{name} of {bytes} bytes (allocation {number})");
        let Ok(buffer) = self.memory.alloc(bytes, &name) else {
            self.note_shortage(bytes);
            return Err(errors::OUT_OF_MEMORY);
        };
        let address = self.memory.address(buffer);
        let mut allocation = Allocation {
            buffer,
            bytes,
            kind,
            pool,
            shared: None,
            variable: false,
        };
        let mut path = String::new();
        if matches!(kind, kind::PINNED | kind::MANAGED) {
            // The system zeroes such memory.
            self.memory.write(buffer, 0, &vec![0; bytes as usize]);
            let shared = self.share(address, vec![0; bytes as usize])?;
            path = shared.path();
            allocation.shared = Some(shared);
        }
        self.allocations.by_address.insert(address, allocation);
        if let Some(pool) = pool {
            self.pools.add(pool, bytes);
        }
        Ok((address, path))
    }

    /// Records an allocation that fits the GPU but not this machine.
    fn note_shortage(&mut self, bytes: u64) {
        let [free, _] = self.memory_info();
        if bytes <= free {
            self.summary.add_note(format!(
                "an allocation of {bytes} bytes failed: this machine has less free memory than the GPU"
            ));
        }
    }

    /// Creates the file of shared memory at an address.
    fn share(&mut self, address: u64, contents: Vec<u8>) -> Result<SharedFile, Code> {
        let offset = address % PAGE;
        let length = (offset + contents.len() as u64).next_multiple_of(PAGE);
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let made = rustix::fs::memfd_create("tuner-shared", flags)
            .map_err(std::io::Error::from)
            .map(File::from)
            .and_then(|file| {
                file.set_len(length)?;
                if contents.iter().any(|byte| *byte != 0) {
                    file.write_all_at(&contents, offset)?;
                }
                Ok(file)
            });
        let file = made.map_err(|error| {
            let text = format!("shared memory of {} bytes: {error}", contents.len());
            self.summary.add_note(text);
            errors::OUT_OF_MEMORY
        })?;
        Ok(SharedFile {
            file,
            offset,
            known: contents,
        })
    }

    /// Converts a variable to shared memory: a managed variable.
    pub(crate) fn share_variable(&mut self, buffer: BufferId) -> Result<(u64, u64, String), Code> {
        let address = self.memory.address(buffer);
        let contents = self.memory.read(buffer);
        let bytes = contents.len() as u64;
        let shared = self.share(address, contents)?;
        let path = shared.path();
        let allocation = Allocation {
            buffer,
            bytes,
            kind: kind::MANAGED,
            pool: None,
            shared: Some(shared),
            variable: true,
        };
        self.allocations.by_address.insert(address, allocation);
        Ok((address, bytes, path))
    }

    /// Frees an allocation. As on a GPU, this waits for the device, except for memory of a pool.
    pub(crate) fn free(&mut self, address: u64) -> Result<(), Code> {
        if self.freeable(address)?.pool.is_none() {
            self.streams.synchronize(cuda_shim::protocol::ALL_STREAMS);
        }
        self.remove(address);
        Ok(())
    }

    /// Returns the allocation that starts at an address, which the program may free.
    pub(crate) fn freeable(&self, address: u64) -> Result<Found, Code> {
        let found = self.allocations.by_address.get(&address);
        // Arrays are destroyed by a separate function.
        let kept = |found: &Allocation| {
            found.variable || found.kind == kind::ARRAY && self.arrays.contains_key(&address)
        };
        let found = found.filter(|found| !kept(found));
        let found = found.ok_or(errors::INVALID_VALUE)?;
        Ok(Found {
            address,
            bytes: found.bytes,
            kind: found.kind,
            pool: found.pool,
        })
    }

    /// Removes an allocation.
    pub(crate) fn remove(&mut self, address: u64) {
        if let Some(allocation) = self.allocations.by_address.remove(&address) {
            self.streams.forget(&(address..address + allocation.bytes));
            self.memory.free(allocation.buffer);
            if let Some(pool) = allocation.pool {
                self.pools.remove(pool, allocation.bytes);
            }
        }
    }

    /// Returns the allocation or variable that contains an address.
    pub(crate) fn find(&self, address: u64) -> Result<Found, Code> {
        let lookup = self.memory.find(address).ok_or(errors::INVALID_VALUE)?;
        let (base, bytes) = self
            .memory
            .extent(lookup.index)
            .ok_or(errors::INVALID_VALUE)?;
        let known = self.allocations.by_address.get(&base);
        Ok(Found {
            address: base,
            bytes,
            kind: known.map_or(kind::DEVICE, |found| found.kind),
            pool: known.and_then(|found| found.pool),
        })
    }

    /// Returns free and total memory, bytes.
    pub(crate) fn memory_info(&self) -> [u64; 2] {
        let total = self.options.arch.memory_bytes;
        let used = self.memory.allocated() + self.mappings.unaccounted_bytes();
        [total.saturating_sub(used), total]
    }

    /// Returns the buffer of a range, which must be in one allocation.
    pub(crate) fn resolve(&self, address: u64, bytes: u64) -> Result<BufferOffset, Code> {
        let lookup = self.memory.find(address).ok_or(errors::INVALID_VALUE)?;
        let buffer = lookup.buffer();
        let end = lookup.offset.checked_add(bytes);
        match end.is_some_and(|end| end <= self.memory.len(buffer)) {
            true => Ok(BufferOffset {
                buffer,
                offset: lookup.offset,
            }),
            false => Err(errors::INVALID_VALUE),
        }
    }

    /// Writes packed rows into device memory.
    pub(crate) fn write(
        &mut self,
        stream: u64,
        address: u64,
        shape: Shape,
        data: &[u8],
    ) -> Result<(), Code> {
        self.check_stream(stream)?;
        let place = self.resolve(address, span(shape)?)?;
        let shared = self.is_shared(address);
        if shared {
            self.take_shared();
        }
        let mut rest = data;
        for run in shape.runs() {
            let (row, after) = rest
                .split_at_checked(run.bytes as usize)
                .ok_or(errors::INVALID_VALUE)?;
            self.memory
                .write(place.buffer, place.offset + run.offset, row);
            rest = after;
        }
        if shared {
            self.give_shared();
        }
        let lasting = host_copy_us(data.len() as u64);
        self.order(
            stream,
            "copy to the device",
            lasting,
            vec![access(address, shape, true)],
        );
        Ok(())
    }

    /// Reads device memory as packed rows.
    pub(crate) fn read(
        &mut self,
        stream: u64,
        address: u64,
        shape: Shape,
    ) -> Result<Vec<u8>, Code> {
        self.check_stream(stream)?;
        let place = self.resolve(address, span(shape)?)?;
        if self.is_shared(address) {
            self.take_shared();
        }
        let bytes = shape.bytes().ok_or(errors::INVALID_VALUE)?;
        let mut out = vec![0; bytes as usize];
        let mut rest = out.as_mut_slice();
        for run in shape.runs() {
            let (row, after) = rest
                .split_at_mut_checked(run.bytes as usize)
                .ok_or(errors::INVALID_VALUE)?;
            self.memory
                .read_at(place.buffer, place.offset + run.offset, row);
            rest = after;
        }
        self.order(
            stream,
            "copy to the host",
            host_copy_us(bytes),
            vec![access(address, shape, false)],
        );
        Ok(out)
    }

    /// Copies inside device memory.
    pub(crate) fn copy(
        &mut self,
        stream: u64,
        destination: u64,
        destination_shape: Shape,
        source: u64,
        shape: Shape,
    ) -> Result<(), Code> {
        self.check_stream(stream)?;
        let to = self.resolve(destination, span(destination_shape)?)?;
        let from = self.resolve(source, span(shape)?)?;
        let shared = self.is_shared(destination) || self.is_shared(source);
        if shared {
            self.take_shared();
        }
        for z in 0..shape.depth {
            for y in 0..shape.height {
                let to_offset =
                    to.offset + z * destination_shape.slice + y * destination_shape.pitch;
                let from_offset = from.offset + z * shape.slice + y * shape.pitch;
                // A copy of unwritten bytes leaves unwritten bytes.
                self.memory
                    .copy_range(from.buffer, from_offset, to.buffer, to_offset, shape.width)
                    .map_err(|_| errors::INVALID_VALUE)?;
            }
        }
        if shared {
            self.give_shared();
        }
        let bytes = shape.bytes().unwrap_or(0);
        let lasting = device_copy_us(self.options.arch, bytes, 2.0);
        let accesses = vec![
            access(source, shape, false),
            access(destination, destination_shape, true),
        ];
        self.order(stream, "copy on the device", lasting, accesses);
        Ok(())
    }

    /// Fills device memory with an element.
    pub(crate) fn fill(
        &mut self,
        stream: u64,
        address: u64,
        element: &[u8],
        shape: Shape,
    ) -> Result<(), Code> {
        self.check_stream(stream)?;
        let place = self.resolve(address, span(shape)?)?;
        let shared = self.is_shared(address);
        if shared {
            self.take_shared();
        }
        for run in shape.runs() {
            let offset = place.offset + run.offset;
            let filled = self
                .memory
                .fill_range(place.buffer, offset, run.bytes, element);
            filled.map_err(|_| errors::INVALID_VALUE)?;
        }
        if shared {
            self.give_shared();
        }
        let lasting = device_copy_us(self.options.arch, shape.bytes().unwrap_or(0), 1.0);
        self.order(stream, "fill", lasting, vec![access(address, shape, true)]);
        Ok(())
    }

    /// Orders an access to shared memory that the host performs for a stream's operation.
    pub(crate) fn note_access(
        &mut self,
        stream: u64,
        name: &str,
        access: Access,
    ) -> Result<(), Code> {
        self.check_stream(stream)?;
        let bytes = access.bytes.end - access.bytes.start;
        self.resolve(access.bytes.start, bytes)?;
        self.order(stream, name, 0.0, vec![access]);
        Ok(())
    }

    /// Fails if the handle is not a stream's.
    pub(crate) fn check_stream(&self, stream: u64) -> Result<(), Code> {
        match self.streams.holds(stream) {
            true => Ok(()),
            false => Err(errors::INVALID_HANDLE),
        }
    }

    /// Adds an operation to a stream and reports unordered accesses.
    pub(crate) fn order(
        &mut self,
        stream: u64,
        name: &str,
        lasting_us: f64,
        accesses: Vec<Access>,
    ) {
        let operation = self.streams.submit(stream, name.into(), lasting_us);
        for conflict in self.streams.check(&operation, accesses) {
            self.report_conflict(&conflict);
        }
    }
}

/// Returns the bytes from the first to the end of the last row.
fn span(shape: Shape) -> Result<u64, Code> {
    if shape.depth == 0 || shape.height == 0 {
        return Ok(0);
    }
    let slices = (shape.depth - 1).checked_mul(shape.slice);
    let rows = (shape.height - 1).checked_mul(shape.pitch);
    let total = slices
        .zip(rows)
        .and_then(|(slices, rows)| slices.checked_add(rows)?.checked_add(shape.width));
    total.ok_or(errors::INVALID_VALUE)
}

/// Returns the access of an operation to rows.
pub(crate) fn access(address: u64, shape: Shape, write: bool) -> Access {
    let end = address.saturating_add(span(shape).unwrap_or(0));
    Access {
        bytes: address..end,
        write,
        atomic: false,
    }
}
