//! Advice on managed memory: kept for the program's questions, without another effect.

use crate::errors::{self, Code};
use crate::memory::{find_allocation, find_mapping};
use crate::pools::Location;
use crate::protocol::kind;
use crate::state::{lock, state};

/// `cudaMemLocationTypeDevice` and `cudaMemLocationTypeHost`.
const DEVICE: i32 = 1;
const HOST: i32 = 2;
/// `cudaCpuDeviceId` and `cudaInvalidDeviceId`.
const HOST_NUMBER: i32 = -1;
const NO_NUMBER: i32 = -2;

/// Statements of the program about a managed allocation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Advice {
    read_mostly: bool,
    preferred: Option<Location>,
    accessed_by: Option<i32>,
    prefetched: Option<Location>,
}

/// Managed memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl Range {
    /// The managed allocation that holds the range.
    fn allocation(self) -> Result<u64, Code> {
        let (base, bytes, kind) = match find_mapping(self.address) {
            Some((base, mapping)) => (base, mapping.bytes, mapping.kind),
            // The other interface of the same program mapped it.
            None => {
                let found = find_allocation(self.address).map_err(|_| errors::INVALID_VALUE)?;
                (found.address, found.bytes, found.kind)
            }
        };
        let end = self.address.checked_add(self.bytes as u64);
        let fits = end.is_some_and(|end| end <= base + bytes);
        match kind == kind::MANAGED && self.bytes > 0 && fits {
            true => Ok(base),
            false => Err(errors::INVALID_VALUE),
        }
    }

    fn change(self, change: impl FnOnce(&mut Advice)) -> Result<(), Code> {
        let base = self.allocation()?;
        let mut advice = lock(&state().advice);
        change(advice.entry(base).or_default());
        Ok(())
    }
}

impl Location {
    /// The location that older functions name by a device's number.
    pub(crate) fn of_device(number: i32) -> Location {
        match number {
            HOST_NUMBER => Location::new(HOST, 0),
            number => Location::new(DEVICE, number),
        }
    }

    fn check(self) -> Result<Location, Code> {
        match (self.kind(), self.number()) {
            // Nodes of the host's memory are types 3 and 4.
            (HOST..=4, _) | (DEVICE, 0) => Ok(self),
            _ => Err(errors::INVALID_DEVICE),
        }
    }

    fn device_number(self) -> i32 {
        match self.kind() {
            DEVICE => self.number(),
            _ => HOST_NUMBER,
        }
    }
}

/// Keeps advice (`cudaMemoryAdvise`).
pub(crate) fn advise(range: Range, number: u32, location: Location) -> Result<(), Code> {
    match number {
        1 | 2 => range.change(|advice| advice.read_mostly = number == 1),
        3 => {
            let location = location.check()?;
            range.change(|advice| advice.preferred = Some(location))
        }
        4 => range.change(|advice| advice.preferred = None),
        5 => {
            let device = location.check()?.device_number();
            range.change(|advice| advice.accessed_by = Some(device))
        }
        6 => range.change(|advice| advice.accessed_by = None),
        _ => Err(errors::INVALID_VALUE),
    }
}

/// Keeps where the program moves managed memory.
pub(crate) fn prefetch(range: Range, location: Location) -> Result<(), Code> {
    let location = location.check()?;
    range.change(|advice| advice.prefetched = Some(location))
}

/// Forgets the advice on memory that is freed.
pub(crate) fn forget(address: u64) {
    let mut advice = lock(&state().advice);
    advice.remove(&address);
}

/// Returns an attribute of a range (`cudaMemRangeAttribute`) as words.
fn attribute(range: Range, number: u32, words: usize) -> Result<Vec<i32>, Code> {
    let base = range.allocation()?;
    let advice = lock(&state().advice);
    let advice = advice.get(&base).copied().unwrap_or_default();
    let device = |location: Option<Location>| location.map_or(NO_NUMBER, Location::device_number);
    let kind = |location: Option<Location>| location.map_or(0, Location::kind);
    let id = |location: Option<Location>| location.map_or(0, Location::number);
    let value = match number {
        1 => advice.read_mostly.into(),
        2 => device(advice.preferred),
        3 => advice.accessed_by.unwrap_or(NO_NUMBER),
        4 => device(advice.prefetched),
        5 => kind(advice.preferred),
        6 => id(advice.preferred),
        7 => kind(advice.prefetched),
        8 => id(advice.prefetched),
        _ => return Err(errors::INVALID_VALUE),
    };
    let mut all = vec![NO_NUMBER; words];
    *all.first_mut().ok_or(errors::INVALID_VALUE)? = value;
    Ok(all)
}

/// Stores an attribute of a range.
///
/// # Safety
/// `to` is null or has room for `bytes` bytes.
pub(crate) unsafe fn store_attribute(
    to: *mut i32,
    bytes: usize,
    number: u32,
    range: Range,
) -> Result<(), Code> {
    if to.is_null() || !bytes.is_multiple_of(size_of::<i32>()) {
        return Err(errors::INVALID_VALUE);
    }
    let values = attribute(range, number, bytes / size_of::<i32>())?;
    // SAFETY: the caller's promise; as many words as fit.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len()) };
    Ok(())
}

/// Lists of attributes with their sizes and where they go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) to: *mut *mut i32,
    pub(crate) bytes: *const usize,
    pub(crate) numbers: *const u32,
    pub(crate) count: usize,
}

/// Stores attributes of a range.
///
/// # Safety
/// The lists are null or as long as stated.
pub(crate) unsafe fn store_attributes(wanted: Attributes, range: Range) -> Result<(), Code> {
    let Attributes {
        to,
        bytes,
        numbers,
        count,
    } = wanted;
    if to.is_null() || bytes.is_null() || numbers.is_null() || count == 0 {
        return Err(errors::INVALID_VALUE);
    }
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe { store_attribute(*to.add(at), *bytes.add(at), *numbers.add(at), range)? };
    }
    Ok(())
}
