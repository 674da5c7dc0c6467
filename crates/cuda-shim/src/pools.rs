//! Memory pools. The device holds them, so that both interfaces see the same ones.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::store;
use crate::connection::call;
use crate::errors::{self, Code};
use crate::memory::{address_of, pointer_to};
use crate::protocol::{DEVICE_ACCESS, HOST_ACCESS, MAX_BYTES, Message, NO_POOL, Op, kind};

/// `CUmemLocation`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemPoolProps`, as far as it matters here.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Properties {
    allocation: c_uint,
    handles: c_int,
    location: Location,
    security: *const c_void,
    max_bytes: usize,
}

/// `CUmemAllocationType`.
pub(crate) const PINNED: c_uint = 1;
const MANAGED: c_uint = 2;
/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Permission {
    location: Location,
    flags: c_uint,
}

impl Permission {
    /// The flags, which are for the device.
    pub(crate) fn flags_for_device(self) -> Result<c_uint, Code> {
        match (self.location.kind, self.location.id) {
            (ON_DEVICE, 0) => Ok(self.flags),
            (ON_DEVICE, _) => Err(errors::INVALID_DEVICE),
            _ => Err(errors::NOT_SUPPORTED),
        }
    }
}

/// `CUmemLocationType`: nowhere in particular, a device, and three names of the host.
const NOWHERE: c_int = 0;
pub(crate) const ON_DEVICE: c_int = 1;
const ON_HOST: std::ops::RangeInclusive<c_int> = 2..=4;

/// Attributes whose value is an `int`; the others are of 64 bits.
const INT_ATTRIBUTES: std::ops::RangeInclusive<c_uint> = 1..=3;

/// `CU_MEM_ACCESS_FLAGS_PROT_NONE` and `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const NO_ACCESS: u64 = 0;
const READ_WRITE: u64 = 3;

impl Location {
    /// A location of a type with a number.
    pub(crate) fn new(kind: c_int, id: c_int) -> Location {
        Location { kind, id }
    }

    /// Its `CUmemLocationType`.
    pub(crate) fn kind(self) -> c_int {
        self.kind
    }

    /// The number of the device or of the host's node.
    pub(crate) fn number(self) -> c_int {
        self.id
    }

    /// The kind of memory that an allocation of a type has here.
    fn allocation_kind(self, allocation: c_uint) -> Result<u32, Code> {
        match (allocation, self.kind) {
            (PINNED | MANAGED, ON_DEVICE) if self.id != 0 => Err(errors::INVALID_DEVICE),
            (PINNED, ON_DEVICE) => Ok(kind::DEVICE),
            (PINNED, place) if ON_HOST.contains(&place) => Ok(kind::PINNED),
            (MANAGED, NOWHERE | ON_DEVICE) => Ok(kind::MANAGED),
            (MANAGED, place) if ON_HOST.contains(&place) => Ok(kind::MANAGED),
            _ => Err(errors::INVALID_VALUE),
        }
    }
}

fn request(op: Op, pool: u64, words: &[u32]) -> Result<crate::connection::Reply, Code> {
    let mut head = Message::new();
    head.put_u64(pool);
    for word in words {
        head.put_u32(*word);
    }
    call(op, &head)
}

/// The kind of a pool's memory.
pub(crate) fn kind_of(pool: *mut c_void) -> Result<u32, Code> {
    let reply = request(Op::DescribePool, address_of(pool), &[])?;
    reply.fields().u32().map_err(|_| errors::UNKNOWN)
}

/// Creates a pool; stores its handle.
///
/// # Safety
/// The pointers are null, or `to` writable and `properties` readable.
pub(crate) unsafe fn create(
    to: *mut *mut c_void,
    properties: *const Properties,
) -> Result<(), Code> {
    if to.is_null() || properties.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let properties = unsafe { properties.read_unaligned() };
    let mut head = Message::new();
    head.put_u32(properties.location.allocation_kind(properties.allocation)?);
    let reply = call(Op::CreatePool, &head)?;
    let pool = reply.fields().u64().map_err(|_| errors::UNKNOWN)?;
    // Only where its memory is has access from the start.
    let place = properties.location.kind;
    let access = |is_there: bool| {
        if is_there || place == NOWHERE {
            READ_WRITE
        } else {
            NO_ACCESS
        }
    };
    put_attribute(pool, HOST_ACCESS, access(ON_HOST.contains(&place)))?;
    put_attribute(pool, DEVICE_ACCESS, access(place == ON_DEVICE))?;
    put_attribute(pool, MAX_BYTES, properties.max_bytes as u64)?;
    // SAFETY: as above.
    unsafe { store(to, pointer_to(pool)) }
}

fn put_attribute(pool: u64, attribute: c_uint, value: u64) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(pool).put_u32(attribute).put_u64(value);
    call(Op::SetPoolAttribute, &head).map(drop)
}

fn attribute(pool: u64, attribute: c_uint) -> Result<u64, Code> {
    let reply = request(Op::GetPoolAttribute, pool, &[attribute])?;
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

impl Location {
    /// The attribute of a pool that holds the access from here.
    fn access(self) -> c_uint {
        match ON_HOST.contains(&self.kind) {
            true => HOST_ACCESS,
            false => DEVICE_ACCESS,
        }
    }
}

/// Gives or takes the access of locations to the memory of a pool.
///
/// # Safety
/// As many permissions as stated are readable.
pub(crate) unsafe fn set_access(
    pool: *mut c_void,
    permissions: *const Permission,
    count: usize,
) -> Result<(), Code> {
    kind_of(pool)?;
    for index in 0..if permissions.is_null() { 0 } else { count } {
        // SAFETY: the caller's promise.
        let permission = unsafe { permissions.add(index).read_unaligned() };
        let place = permission.location.access();
        put_attribute(address_of(pool), place, permission.flags.into())?;
    }
    Ok(())
}

/// Reports whether the device has access to the memory of a pool, or to memory without one.
pub(crate) fn reaches_device(pool: u64) -> bool {
    pool == NO_POOL || attribute(pool, DEVICE_ACCESS).is_ok_and(|flags| flags != NO_ACCESS)
}

/// Destroys a pool; its memory stays allocated.
pub(crate) fn destroy(pool: *mut c_void) -> Result<(), Code> {
    request(Op::DestroyPool, address_of(pool), &[]).map(drop)
}

/// Stores the pool that a kind of memory comes from; with `default`, the one from the start.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn find(to: *mut *mut c_void, kind: u32, default: bool) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u32(kind).put_u32(default.into());
    let reply = call(Op::FindPool, &head)?;
    let pool = reply.fields().u64().map_err(|_| errors::UNKNOWN)?;
    // SAFETY: the caller's promise.
    unsafe { store(to, pointer_to(pool)) }
}

/// The same for allocations of a type at a location.
///
/// # Safety
/// `to` is null or writable, `location` null or readable.
pub(crate) unsafe fn find_at(
    to: *mut *mut c_void,
    location: *const Location,
    allocation: c_uint,
    default: bool,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        let location = location.as_ref().ok_or(errors::INVALID_VALUE)?;
        find(to, location.allocation_kind(allocation)?, default)
    }
}

/// Lets a kind of memory come from a pool.
pub(crate) fn select(pool: *mut c_void, kind: u32) -> Result<(), Code> {
    request(Op::SelectPool, address_of(pool), &[kind]).map(drop)
}

/// The same for allocations of a type at a location.
///
/// # Safety
/// `location` is null or readable.
pub(crate) unsafe fn select_at(
    location: *const Location,
    allocation: c_uint,
    pool: *mut c_void,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let location = unsafe { location.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    select(pool, location.allocation_kind(allocation)?)
}

/// Stores an attribute of a pool.
///
/// # Safety
/// `value` is null, or writable as the attribute's type.
pub(crate) unsafe fn store_attribute(
    pool: *mut c_void,
    attribute: c_uint,
    value: *mut c_void,
) -> Result<(), Code> {
    let found = self::attribute(address_of(pool), attribute)?;
    // SAFETY: the caller's promise.
    unsafe {
        match INT_ATTRIBUTES.contains(&attribute) {
            true => store(value.cast::<c_int>(), found as c_int),
            false => store(value.cast::<u64>(), found),
        }
    }
}

/// Sets an attribute of a pool.
///
/// # Safety
/// `value` is null, or readable as the attribute's type.
pub(crate) unsafe fn set_attribute(
    pool: *mut c_void,
    attribute: c_uint,
    value: *const c_void,
) -> Result<(), Code> {
    if value.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let value = unsafe {
        match INT_ATTRIBUTES.contains(&attribute) {
            true => u64::from(value.cast::<c_uint>().read_unaligned() != 0),
            false => value.cast::<u64>().read_unaligned(),
        }
    };
    put_attribute(address_of(pool), attribute, value)
}

/// Stores the access of a location to the memory of a pool.
///
/// # Safety
/// `flags` is null or writable, `location` null or readable.
pub(crate) unsafe fn store_access(
    flags: *mut c_uint,
    pool: *mut c_void,
    location: *const Location,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let location = unsafe { location.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    let access = attribute(address_of(pool), location.access())?;
    // SAFETY: as above.
    unsafe { store(flags, access as c_uint) }
}
