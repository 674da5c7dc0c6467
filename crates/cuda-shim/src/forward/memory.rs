//! Memory of the device that a launch can reach.

use std::collections::BTreeSet;
use std::ffi::{CString, c_uint, c_void};

use super::real;
use super::wanted::Wanted;
use crate::errors::{self, Code};

/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;
/// `CU_POINTER_ATTRIBUTE_RANGE_START_ADDR` and `CU_POINTER_ATTRIBUTE_RANGE_SIZE`.
const RANGE_START: c_uint = 11;
const RANGE_BYTES: c_uint = 12;
/// Addresses in device memory lead to further memory; of so many allocations and words at most.
const MAX_ALLOCATIONS: usize = 4096;
const MAX_WORDS: usize = 1 << 16;
/// Addresses of the memory of a process differ below this bit.
const COMMON_BITS: u32 = 40;

/// Memory that a launch may use.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Its name where it is a variable of the module.
    pub(super) variable: String,
}

impl Memory {
    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.bytes
    }
}

/// Reason why memory was not copied.
#[derive(Debug)]
pub(super) enum Failure {
    /// It has more bytes than there is room for.
    NoRoom(u64),
    /// The driver's error.
    Unreadable(Code),
}

/// The variables of the module and the allocations that words of parameters, variables and memory lead to; the
/// parameters and the contents of all of it, one after the other.
pub(super) fn gather(
    wanted: &Wanted,
    parameters: &[u8],
    function: *mut c_void,
) -> Result<(Vec<Memory>, Vec<u8>), Failure> {
    let variables = wanted.variables.iter();
    let mut found: Vec<Memory> = variables
        .filter_map(|name| find_variable(name, function))
        .collect();
    for parameter in &wanted.info.parameters {
        let range = parameter.offset as usize..(parameter.offset + parameter.bytes) as usize;
        let words = addresses(parameters.get(range).unwrap_or_default());
        words.for_each(|address| add_allocation(&mut found, address));
    }
    let mut contents = parameters.to_vec();
    let mut next = 0;
    let mut words_left = MAX_WORDS;
    while next < found.len() {
        let bytes: u64 = found.iter().map(|item| item.bytes).sum();
        if bytes > wanted.room {
            return Err(Failure::NoRoom(bytes));
        }
        let start = contents.len();
        let item = found.get(next..=next).unwrap_or_default();
        read(item, &mut contents).map_err(Failure::Unreadable)?;
        // Numbers have other high bits than addresses.
        let high: BTreeSet<u64> = found.iter().map(|it| it.address >> COMMON_BITS).collect();
        let own = contents.get(start..).unwrap_or_default();
        for address in addresses(own).filter(|it| high.contains(&(it >> COMMON_BITS))) {
            if words_left > 0 && found.len() < MAX_ALLOCATIONS {
                words_left -= 1;
                add_allocation(&mut found, address);
            }
        }
        next += 1;
    }
    Ok((found, contents))
}

/// Appends the contents of memory of the device.
pub(super) fn read(memory: &[Memory], to: &mut Vec<u8>) -> Result<(), Code> {
    for item in memory {
        let start = to.len();
        let bytes = usize::try_from(item.bytes).map_err(|_| errors::INVALID_VALUE)?;
        to.resize(start + bytes, 0);
        let place = to.get_mut(start..).unwrap_or_default();
        // SAFETY: the place has so many bytes; the driver checks the address.
        match unsafe { real::cuMemcpyDtoH_v2(place.as_mut_ptr().cast(), item.address, bytes) } {
            errors::SUCCESS => {}
            code => return Err(code),
        }
    }
    Ok(())
}

fn addresses(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(ADDRESS_BYTES);
    words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
}

fn find_variable(name: &str, function: *mut c_void) -> Option<Memory> {
    let text = CString::new(name).ok()?;
    let (mut module, mut address, mut bytes) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: handles of the driver; writes a handle, an address and a size.
    let code = unsafe {
        match real::cuFuncGetModule(&raw mut module, function) {
            errors::SUCCESS => {
                real::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, text.as_ptr())
            }
            code => code,
        }
    };
    (code == errors::SUCCESS).then(|| Memory {
        address,
        bytes: bytes as u64,
        variable: name.to_owned(),
    })
}

/// Adds the allocation that holds an address, if the word is one.
fn add_allocation(found: &mut Vec<Memory>, address: u64) {
    // The first pages are nobody's: most words of parameters are small numbers.
    const FIRST: u64 = 1 << 16;
    if address < FIRST || found.iter().any(|item| item.holds(address)) {
        return;
    }
    let mut range = [0_u64; 2];
    for (value, number) in range.iter_mut().zip([RANGE_START, RANGE_BYTES]) {
        let to = std::ptr::from_mut(value).cast();
        // SAFETY: writes 8 bytes; the driver checks the address.
        if unsafe { real::cuPointerGetAttribute(to, number, address) } != errors::SUCCESS {
            return;
        }
    }
    let [start, bytes] = range;
    let item = Memory {
        address: start,
        bytes,
        variable: String::new(),
    };
    if item.holds(address) {
        found.push(item);
    }
}
