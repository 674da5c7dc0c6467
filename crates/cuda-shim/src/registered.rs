//! Host memory that the program registers.
//!
//! Registration makes copies fast on a GPU and has no such effect here. A program may also request the
//! device address of registered memory. The device then holds a copy of the range, which is exchanged with
//! the host's bytes before and after each operation of the device. The host's pages stay where they are:
//! their first and last page may hold other data of the program.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::connection::call;
use crate::errors::{self, Code};
use crate::protocol::{Message, NO_POOL, Op, kind};
use crate::say::say_once;
use crate::state::{lock, state};
use crate::system::PAGE;

/// The device's copy of a registered range.
#[derive(Debug)]
struct View {
    address: u64,
    file: File,
    /// Offset of the first byte in the file.
    offset: u64,
    /// Contents after the last exchange.
    known: Vec<u8>,
}

/// A registered range.
#[derive(Debug)]
pub(crate) struct Range {
    bytes: u64,
    view: Option<View>,
}

fn ranges() -> MutexGuard<'static, BTreeMap<u64, Range>> {
    lock(&state().registered)
}

/// Registers host memory.
pub(crate) fn register(address: u64, bytes: u64) -> Result<(), Code> {
    let end = address.checked_add(bytes).ok_or(errors::INVALID_VALUE)?;
    if address == 0 || bytes == 0 {
        return Err(errors::INVALID_VALUE);
    }
    let mut ranges = ranges();
    // Ranges do not overlap, so that only the last one before the end can meet this one.
    let before = ranges.range(..end).next_back();
    if before.is_some_and(|(start, range)| start + range.bytes > address) {
        return Err(errors::ALREADY_REGISTERED);
    }
    ranges.insert(address, Range { bytes, view: None });
    Ok(())
}

/// Ends a registration; the device address becomes invalid.
pub(crate) fn unregister(address: u64) -> Result<(), Code> {
    let removed = ranges().remove(&address).ok_or(errors::NOT_REGISTERED)?;
    match removed.view {
        Some(view) => call(Op::Free, Message::new().put_u64(view.address)).map(drop),
        None => Ok(()),
    }
}

/// Forgets every range: the device was reset.
pub(crate) fn forget_all() {
    ranges().clear();
}

/// Reports whether the program registered the memory at an address.
pub(crate) fn holds(address: u64) -> bool {
    let ranges = ranges();
    let found = ranges.range(..=address).next_back();
    found.is_some_and(|(start, range)| address - start < range.bytes)
}

/// Returns the device address of registered memory.
pub(crate) fn device_address(address: u64) -> Result<u64, Code> {
    let mut ranges = ranges();
    let found = ranges.range_mut(..=address).next_back();
    let found = found.filter(|(start, range)| address - **start < range.bytes);
    let (start, range) = found.ok_or(errors::INVALID_VALUE)?;
    let view = match &range.view {
        Some(view) => view,
        None => range.view.insert(View::new(range.bytes)?),
    };
    state().has_views.store(true, Ordering::Relaxed);
    Ok(view.address + (address - start))
}

impl View {
    fn new(bytes: u64) -> Result<View, Code> {
        let mut head = Message::new();
        head.put_u64(bytes).put_u32(kind::PINNED).put_u64(NO_POOL);
        let reply = call(Op::Allocate, &head)?;
        let mut fields = reply.fields();
        let address = fields.u64().map_err(|_| errors::UNKNOWN)?;
        let path = fields.str().map_err(|_| errors::UNKNOWN)?;
        let file = File::options().read(true).write(true).open(path);
        Ok(View {
            address,
            file: file.map_err(|error| report(&error))?,
            offset: address % PAGE,
            known: vec![0; bytes as usize],
        })
    }

    /// Gives the device what the host wrote.
    fn give(&mut self, host: u64) -> io::Result<()> {
        let from: *const u8 = std::ptr::with_exposed_provenance(host as usize);
        // SAFETY: the program registered these bytes and has not ended the registration.
        let now = unsafe { std::slice::from_raw_parts(from, self.known.len()) };
        for (number, (known, now)) in (0..).zip(chunks(&mut self.known, now)) {
            if known != now {
                self.file.write_all_at(now, self.offset + number * PAGE)?;
                known.copy_from_slice(now);
            }
        }
        Ok(())
    }

    /// Takes what the device wrote.
    fn take(&mut self, host: u64) -> io::Result<()> {
        let mut now = vec![0; self.known.len()];
        self.file.read_exact_at(&mut now, self.offset)?;
        for (number, (known, now)) in (0..).zip(chunks(&mut self.known, &now)) {
            if known != now {
                let to = std::ptr::with_exposed_provenance_mut((host + number * PAGE) as usize);
                // SAFETY: as in `give`; the bytes do not overlap with the copy of this view.
                unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), to, now.len()) };
                known.copy_from_slice(now);
            }
        }
        Ok(())
    }
}

/// Pairs of page-sized parts.
fn chunks<'a>(
    known: &'a mut [u8],
    now: &'a [u8],
) -> impl Iterator<Item = (&'a mut [u8], &'a [u8])> {
    let page = PAGE as usize;
    known.chunks_mut(page).zip(now.chunks(page))
}

fn report(error: &io::Error) -> Code {
    say_once(&format!("registered memory cannot be exchanged: {error}"));
    errors::UNKNOWN
}

/// Performs an operation of the device between two exchanges of registered memory.
pub(crate) fn exchanged<T>(operation: impl FnOnce() -> Result<T, Code>) -> Result<T, Code> {
    if !state().has_views.load(Ordering::Relaxed) {
        return operation();
    }
    exchange(View::give)?;
    let done = operation()?;
    exchange(View::take)?;
    Ok(done)
}

fn exchange(direction: impl Fn(&mut View, u64) -> io::Result<()>) -> Result<(), Code> {
    for (start, range) in ranges().iter_mut() {
        if let Some(view) = &mut range.view {
            direction(view, *start).map_err(|error| report(&error))?;
        }
    }
    Ok(())
}
