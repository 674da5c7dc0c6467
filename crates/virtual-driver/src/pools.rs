//! Memory pools: kinds of memory, attributes, and the bytes that the program allocated from each.
//!
//! A pool never keeps freed memory, so its reserved bytes are its used bytes.

use std::collections::BTreeMap;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{
    CURRENT_POOL, DEVICE_ACCESS, GRANULARITY, HOST_ACCESS, MAX_BYTES, NO_POOL, NO_STREAM, Shape,
    kind,
};

use crate::device::Device;
use crate::memory::access;

/// Handle of the device's initial pool.
const DEFAULT_DEVICE: u64 = 0x5000_0000;
/// Handle of the default pool of host memory.
const DEFAULT_HOST: u64 = 0x5000_0010;
/// Handle of the default pool of managed memory.
const DEFAULT_MANAGED: u64 = 0x5000_0020;
/// First handle of a created pool.
const FIRST_CREATED: u64 = 0x5000_0100;
/// Distance between handles.
const HANDLE_STEP: u64 = 16;

/// `cudaMemPoolAttr`: reuse policies.
const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: u64 = 3;

#[derive(Debug, Clone)]
struct Pool {
    /// One of [`kind`].
    kind: u32,
    /// Attributes that the program can set.
    attributes: BTreeMap<u32, u64>,
    used: u64,
    used_high: u64,
    reserved_high: u64,
}

impl Pool {
    fn new(memory: u32) -> Pool {
        let reuse = REUSE.map(|attribute| (attribute, 1));
        let access = |permitted: bool| if permitted { READ_WRITE } else { 0 };
        let others = [
            (RELEASE_THRESHOLD, 0),
            (MAX_BYTES, 0),
            (HOST_ACCESS, access(memory != kind::DEVICE)),
            (DEVICE_ACCESS, access(memory != kind::PINNED)),
        ];
        Pool {
            kind: memory,
            attributes: reuse.chain(others).collect(),
            used: 0,
            used_high: 0,
            reserved_high: 0,
        }
    }
}

/// Pools of one process.
#[derive(Debug)]
pub(crate) struct Pools {
    by_handle: BTreeMap<u64, Pool>,
    /// Pools that the program selected, by kind; else the default ones.
    selected: BTreeMap<u32, u64>,
    next: u64,
}

impl Default for Pools {
    fn default() -> Pools {
        let kinds = [kind::DEVICE, kind::PINNED, kind::MANAGED];
        let pools = kinds.map(|kind| (default_of(kind), Pool::new(kind)));
        Pools {
            by_handle: pools.into_iter().collect(),
            selected: BTreeMap::new(),
            next: FIRST_CREATED,
        }
    }
}

fn default_of(kind: u32) -> u64 {
    match kind {
        kind::PINNED => DEFAULT_HOST,
        kind::MANAGED => DEFAULT_MANAGED,
        _ => DEFAULT_DEVICE,
    }
}

fn check_kind(kind: u32) -> Result<(), Code> {
    match kind {
        kind::DEVICE | kind::PINNED | kind::MANAGED => Ok(()),
        _ => Err(errors::INVALID_VALUE),
    }
}

impl Pools {
    /// Creates a pool of a kind of memory; returns its handle.
    pub(crate) fn create(&mut self, kind: u32) -> Result<u64, Code> {
        check_kind(kind)?;
        let handle = self.next;
        self.next += HANDLE_STEP;
        self.by_handle.insert(handle, Pool::new(kind));
        Ok(handle)
    }

    /// Destroys a created pool; its memory stays allocated.
    pub(crate) fn destroy(&mut self, pool: u64) -> Result<(), Code> {
        if pool < FIRST_CREATED {
            return Err(errors::INVALID_VALUE);
        }
        self.selected.retain(|_, selected| *selected != pool);
        let removed = self.by_handle.remove(&pool);
        removed.map(drop).ok_or(errors::INVALID_VALUE)
    }

    /// Returns the pool of a kind of memory; with `default`, the initial one.
    pub(crate) fn find(&self, kind: u32, default: bool) -> Result<u64, Code> {
        check_kind(kind)?;
        let selected = self.selected.get(&kind).filter(|_| !default);
        Ok(selected.copied().unwrap_or(default_of(kind)))
    }

    /// Selects the pool of a kind of memory.
    pub(crate) fn select(&mut self, pool: u64, kind: u32) -> Result<(), Code> {
        if self.kind(pool)? != kind {
            return Err(errors::INVALID_VALUE);
        }
        self.selected.insert(kind, pool);
        Ok(())
    }

    /// Returns the kind of a pool's memory.
    pub(crate) fn kind(&self, pool: u64) -> Result<u32, Code> {
        let found = self.by_handle.get(&pool);
        found.map(|pool| pool.kind).ok_or(errors::INVALID_VALUE)
    }

    /// Returns the pool of an allocation; `None` for an allocation without a pool.
    pub(crate) fn resolve(&self, pool: u64, kind: u32) -> Result<Option<u64>, Code> {
        match pool {
            NO_POOL => Ok(None),
            CURRENT_POOL => self.find(kind, false).map(Some),
            pool if self.kind(pool)? == kind => Ok(Some(pool)),
            _ => Err(errors::INVALID_VALUE),
        }
    }

    /// Reports whether a pool may hold more bytes.
    pub(crate) fn has_room(&self, pool: u64, bytes: u64) -> bool {
        self.by_handle.get(&pool).is_none_or(|pool| {
            let most = pool.attributes.get(&MAX_BYTES).copied().unwrap_or(0);
            // A pool allocates memory in pieces.
            let most = most.checked_next_multiple_of(GRANULARITY).unwrap_or(0);
            most == 0 || pool.used.checked_add(bytes).is_some_and(|all| all <= most)
        })
    }

    /// Counts an allocation.
    pub(crate) fn add(&mut self, pool: u64, bytes: u64) {
        if let Some(pool) = self.by_handle.get_mut(&pool) {
            pool.used += bytes;
            pool.used_high = pool.used_high.max(pool.used);
            pool.reserved_high = pool.reserved_high.max(pool.used);
        }
    }

    /// Counts a free.
    pub(crate) fn remove(&mut self, pool: u64, bytes: u64) {
        if let Some(pool) = self.by_handle.get_mut(&pool) {
            pool.used = pool.used.saturating_sub(bytes);
        }
    }

    /// Returns an attribute by its number in `cudaMemPoolAttr`.
    pub(crate) fn attribute(&self, pool: u64, attribute: u32) -> Result<u64, Code> {
        let pool = self.by_handle.get(&pool).ok_or(errors::INVALID_VALUE)?;
        match attribute {
            RESERVED | USED => Ok(pool.used),
            RESERVED_HIGH => Ok(pool.reserved_high),
            USED_HIGH => Ok(pool.used_high),
            _ => {
                let value = pool.attributes.get(&attribute);
                value.copied().ok_or(errors::INVALID_VALUE)
            }
        }
    }

    /// Sets an attribute; a high-water mark can only be reset.
    pub(crate) fn set_attribute(
        &mut self,
        pool: u64,
        attribute: u32,
        value: u64,
    ) -> Result<(), Code> {
        let pool = self.by_handle.get_mut(&pool).ok_or(errors::INVALID_VALUE)?;
        match (attribute, value) {
            (RESERVED_HIGH, 0) => pool.reserved_high = pool.used,
            (USED_HIGH, 0) => pool.used_high = pool.used,
            _ => {
                let place = pool.attributes.get_mut(&attribute);
                *place.ok_or(errors::INVALID_VALUE)? = value;
            }
        }
        Ok(())
    }
}

impl Device {
    /// Frees memory of the device after the work of a stream, without a wait.
    pub(crate) fn free_in_order(&mut self, address: u64, stream: u64) -> Result<(), Code> {
        let found = self.freeable(address)?;
        if stream != NO_STREAM {
            self.check_stream(stream)?;
            // CUDA also frees memory of `cudaMalloc` this way, and no other memory outside of pools.
            if found.pool.is_none() && found.kind != kind::DEVICE {
                return Err(errors::INVALID_VALUE);
            }
            let freed = access(address, Shape::linear(found.bytes), true);
            self.order(stream, "free", 0.0, vec![freed]);
        }
        self.remove(address);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_pools_are_distinct_and_selected_by_kind() {
        let mut pools = Pools::default();
        let (Ok(one), Ok(other)) = (pools.create(kind::DEVICE), pools.create(kind::DEVICE)) else {
            panic!("device pools");
        };
        assert_ne!(one, other);
        assert_eq!(pools.select(other, kind::DEVICE), Ok(()));
        assert_eq!(pools.find(kind::DEVICE, false), Ok(other));
        assert_eq!(pools.find(kind::DEVICE, true), Ok(DEFAULT_DEVICE));
        assert_eq!(
            pools.select(other, kind::MANAGED),
            Err(errors::INVALID_VALUE)
        );
        assert_eq!(pools.destroy(other), Ok(()));
        assert_eq!(pools.find(kind::DEVICE, false), Ok(DEFAULT_DEVICE));
        assert_eq!(pools.destroy(DEFAULT_DEVICE), Err(errors::INVALID_VALUE));
    }

    #[test]
    fn attributes_are_kept_and_bytes_are_counted() {
        let mut pools = Pools::default();
        let pool = DEFAULT_DEVICE;
        assert_eq!(pools.set_attribute(pool, RELEASE_THRESHOLD, 9), Ok(()));
        assert_eq!(pools.attribute(pool, RELEASE_THRESHOLD), Ok(9));
        pools.add(pool, 64);
        pools.remove(pool, 48);
        assert_eq!(pools.attribute(pool, USED), Ok(16));
        assert_eq!(pools.attribute(pool, USED_HIGH), Ok(64));
        assert_eq!(pools.set_attribute(pool, USED_HIGH, 0), Ok(()));
        assert_eq!(pools.attribute(pool, USED_HIGH), Ok(16));
        let invalid = pools.set_attribute(pool, USED, 0);
        assert_eq!(invalid, Err(errors::INVALID_VALUE));
    }
}
