//! Memory that a program maps at reserved addresses (`cuMemMap`).
//!
//! The range of a reservation is one buffer that extends to the end of the last accessible memory: adjacent
//! mappings of a program are one allocation for kernels and copies.

use std::collections::BTreeMap;
use std::io;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{Fields, GRANULARITY, Message, Op};
use vgpu::BufferId;

use crate::device::Device;

/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: u32 = 3;
/// First handle of memory, and the distance between handles.
const FIRST_HANDLE: u64 = 0x7000_0000;
const HANDLE_STEP: u64 = 16;

/// Memory at an offset of a reservation.
#[derive(Debug)]
struct Part {
    bytes: u64,
    handle: u64,
    /// The device may access it.
    accessible: bool,
}

#[derive(Debug)]
struct Reservation {
    bytes: u64,
    buffer: BufferId,
    /// By their offset.
    parts: BTreeMap<u64, Part>,
}

impl Reservation {
    /// Returns the end of the last part that the device may access.
    fn extent(&self) -> u64 {
        let parts = self.parts.iter().filter(|(_, part)| part.accessible);
        parts.map(|(at, part)| at + part.bytes).max().unwrap_or(0)
    }

    /// Returns the offsets of the parts of a range.
    fn parts_of(&self, offset: u64, bytes: u64) -> Result<Vec<u64>, Code> {
        let end = offset.checked_add(bytes).ok_or(errors::INVALID_VALUE)?;
        let mut next = offset;
        let mut found = Vec::new();
        for (at, part) in self.parts.range(offset..end) {
            if *at != next {
                break;
            }
            next = at + part.bytes;
            found.push(*at);
        }
        match next == end && bytes > 0 {
            true => Ok(found),
            false => Err(errors::INVALID_VALUE),
        }
    }
}

/// Memory with a handle.
#[derive(Debug)]
struct Physical {
    bytes: u64,
    /// Handles that the program holds.
    references: u32,
    mapped: bool,
    /// Contents that no buffer has.
    kept: Option<Vec<u8>>,
}

/// Reservations and memory of one process.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// By their first address.
    reservations: BTreeMap<u64, Reservation>,
    memory: BTreeMap<u64, Physical>,
    created: u64,
}

impl Mappings {
    /// Returns the reservation that contains an address, with the offset of the address.
    fn find(&mut self, address: u64) -> Result<(&mut Reservation, u64), Code> {
        let found = self.reservations.range_mut(..=address).next_back();
        let (base, reservation) = found.ok_or(errors::INVALID_VALUE)?;
        match address - base < reservation.bytes {
            true => Ok((reservation, address - base)),
            false => Err(errors::INVALID_VALUE),
        }
    }

    /// Returns the bytes of memory without a buffer.
    pub(crate) fn unaccounted_bytes(&self) -> u64 {
        let created: u64 = self.memory.values().map(|memory| memory.bytes).sum();
        let buffers = self.reservations.values().map(Reservation::extent);
        created.saturating_sub(buffers.sum())
    }

    fn drop_unused(&mut self, handle: u64) {
        let unused = |memory: &Physical| memory.references == 0 && !memory.mapped;
        if self.memory.get(&handle).is_some_and(unused) {
            self.memory.remove(&handle);
        }
    }
}

/// Fails if a size is invalid for mapped memory.
fn check_size(bytes: u64) -> Result<(), Code> {
    match bytes > 0 && bytes.is_multiple_of(GRANULARITY) {
        true => Ok(()),
        false => Err(errors::INVALID_VALUE),
    }
}

impl Device {
    /// Answers a request about mapped memory.
    pub(crate) fn answer_mapping(
        &mut self,
        op: Op,
        fields: &mut Fields<'_>,
        head: &mut Message,
    ) -> io::Result<Result<(), Code>> {
        let first = fields.u64()?;
        let stored = |head: &mut Message, found: Result<u64, Code>| {
            found.map(|value| {
                head.put_u64(value);
            })
        };
        Ok(match op {
            Op::ReserveAddresses => {
                let found = self.reserve_addresses(first, fields.u64()?);
                stored(head, found)
            }
            Op::FreeAddresses => self.free_addresses(first, fields.u64()?),
            Op::CreateMemory => stored(head, self.create_memory(first)),
            Op::ReleaseMemory => self.release_memory(first),
            Op::MapMemory => {
                let (bytes, handle) = (fields.u64()?, fields.u64()?);
                self.map_memory(first, bytes, handle)
            }
            Op::UnmapMemory => self.unmap_memory(first, fields.u64()?),
            Op::SetMemoryAccess => {
                let (bytes, flags) = (fields.u64()?, fields.u32()?);
                self.set_memory_access(first, bytes, flags != 0)
            }
            Op::GetMemoryAccess => self.part_at(first).map(|part| {
                head.put_u32(if part.accessible { READ_WRITE } else { 0 });
            }),
            _ => stored(head, self.retain_memory(first)),
        })
    }

    fn reserve_addresses(&mut self, bytes: u64, alignment: u64) -> Result<u64, Code> {
        check_size(bytes)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(errors::INVALID_VALUE);
        }
        let name = format!("reserved addresses of {bytes} bytes");
        let alignment = alignment.max(GRANULARITY);
        let buffer = self.memory.reserve(bytes, alignment, &name);
        let buffer = buffer.map_err(|_| errors::OUT_OF_MEMORY)?;
        let address = self.memory.address(buffer);
        let reservation = Reservation {
            bytes,
            buffer,
            parts: BTreeMap::new(),
        };
        self.mappings.reservations.insert(address, reservation);
        Ok(address)
    }

    fn free_addresses(&mut self, address: u64, bytes: u64) -> Result<(), Code> {
        let reservations = &mut self.mappings.reservations;
        let whole = |found: &Reservation| found.bytes == bytes && found.parts.is_empty();
        if !reservations.get(&address).is_some_and(whole) {
            return Err(errors::INVALID_VALUE);
        }
        if let Some(reservation) = reservations.remove(&address) {
            self.memory.free(reservation.buffer);
        }
        Ok(())
    }

    fn create_memory(&mut self, bytes: u64) -> Result<u64, Code> {
        check_size(bytes)?;
        let [free, _] = self.memory_info();
        if bytes > free {
            return Err(errors::OUT_OF_MEMORY);
        }
        let handle = FIRST_HANDLE + self.mappings.created * HANDLE_STEP;
        self.mappings.created += 1;
        let memory = Physical {
            bytes,
            references: 1,
            mapped: false,
            kept: None,
        };
        self.mappings.memory.insert(handle, memory);
        Ok(handle)
    }

    fn release_memory(&mut self, handle: u64) -> Result<(), Code> {
        let memory = self.mappings.memory.get_mut(&handle);
        let memory = memory.filter(|memory| memory.references > 0);
        memory.ok_or(errors::INVALID_VALUE)?.references -= 1;
        self.mappings.drop_unused(handle);
        Ok(())
    }

    fn retain_memory(&mut self, address: u64) -> Result<u64, Code> {
        let handle = self.part_at(address)?.handle;
        if let Some(memory) = self.mappings.memory.get_mut(&handle) {
            memory.references += 1;
        }
        Ok(handle)
    }

    /// Returns the part that contains an address.
    fn part_at(&mut self, address: u64) -> Result<&Part, Code> {
        let (reservation, offset) = self.mappings.find(address)?;
        let part = reservation.parts.range(..=offset).next_back();
        let part = part.filter(|(at, part)| offset - **at < part.bytes);
        part.map(|(_, part)| part).ok_or(errors::INVALID_VALUE)
    }

    fn map_memory(&mut self, address: u64, bytes: u64, handle: u64) -> Result<(), Code> {
        check_size(bytes)?;
        let memory = self.mappings.memory.get(&handle);
        let memory = memory.filter(|memory| memory.bytes == bytes);
        if memory.ok_or(errors::INVALID_VALUE)?.mapped {
            let text = "`cuMemMap` of memory that is mapped at another address is not supported";
            self.summary.add_note(text.to_owned());
            return Err(errors::NOT_SUPPORTED);
        }
        let (reservation, offset) = self.mappings.find(address)?;
        let end = offset.checked_add(bytes).ok_or(errors::INVALID_VALUE)?;
        let before = reservation.parts.range(..end).next_back();
        let free = before.is_none_or(|(at, part)| at + part.bytes <= offset);
        if !free || end > reservation.bytes || !offset.is_multiple_of(GRANULARITY) {
            return Err(errors::INVALID_VALUE);
        }
        let part = Part {
            bytes,
            handle,
            accessible: false,
        };
        reservation.parts.insert(offset, part);
        if let Some(memory) = self.mappings.memory.get_mut(&handle) {
            memory.mapped = true;
        }
        Ok(())
    }

    fn unmap_memory(&mut self, address: u64, bytes: u64) -> Result<(), Code> {
        self.set_memory_access(address, bytes, false)?;
        let (reservation, offset) = self.mappings.find(address)?;
        let parts = reservation.parts_of(offset, bytes)?;
        let parts = parts.iter().filter_map(|at| reservation.parts.remove(at));
        for handle in parts.map(|part| part.handle).collect::<Vec<u64>>() {
            if let Some(memory) = self.mappings.memory.get_mut(&handle) {
                memory.mapped = false;
            }
            self.mappings.drop_unused(handle);
        }
        self.streams.forget(&(address..address + bytes));
        Ok(())
    }

    /// Grants or revokes the device's access to mapped memory, whose contents stay.
    fn set_memory_access(
        &mut self,
        address: u64,
        bytes: u64,
        accessible: bool,
    ) -> Result<(), Code> {
        let (reservation, offset) = self.mappings.find(address)?;
        let buffer = reservation.buffer;
        let mut changed = Vec::new();
        for at in reservation.parts_of(offset, bytes)? {
            if let Some(part) = reservation.parts.get_mut(&at)
                && part.accessible != accessible
            {
                part.accessible = accessible;
                changed.push((at, part.bytes, part.handle));
            }
        }
        let extent = reservation.extent();
        if !accessible {
            for (at, bytes, handle) in &changed {
                // Before the buffer shrinks, because the memory keeps its contents without access.
                let mut contents = vec![0; *bytes as usize];
                self.memory.read_at(buffer, *at, &mut contents);
                self.memory.forget(buffer, *at..at + bytes);
                if let Some(memory) = self.mappings.memory.get_mut(handle) {
                    memory.kept = Some(contents);
                }
            }
        }
        let resized = self.memory.resize(buffer, extent);
        resized.map_err(|_| errors::OUT_OF_MEMORY)?;
        for (at, _, handle) in changed.iter().filter(|_| accessible) {
            let memory = self.mappings.memory.get_mut(handle);
            if let Some(contents) = memory.and_then(|memory| memory.kept.take()) {
                self.memory.write(buffer, *at, &contents);
            }
        }
        Ok(())
    }
}
