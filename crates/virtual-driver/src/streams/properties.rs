//! Flags, priority and attributes of a stream.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{GREATEST_PRIORITY, LEAST_PRIORITY};

use super::{NON_BLOCKING, Streams, plain};

/// Size of a `cudaLaunchAttributeValue`, bytes.
const VALUE_BYTES: usize = 64;
/// Priorities: a lower number is a greater priority.
const PRIORITIES: RangeInclusive<i32> = GREATEST_PRIORITY..=LEAST_PRIORITY;

/// `cudaLaunchAttributeID` of the attributes of streams.
const ACCESS_POLICY_WINDOW: u32 = 1;
const SYNCHRONIZATION_POLICY: u32 = 3;
const PRIORITY: u32 = 8;
const SYNC_DOMAIN_MAP: u32 = 9;
const SYNC_DOMAIN: u32 = 10;

/// Flags and priority of a stream, and attributes that the program set. None affects the order.
#[derive(Debug, Default, Clone)]
pub(super) struct Properties {
    pub(super) flags: u32,
    priority: i32,
    values: BTreeMap<u32, [u8; VALUE_BYTES]>,
}

impl Properties {
    /// Creates the properties; an out-of-range priority becomes the nearest valid one.
    pub(super) fn new(flags: u32, priority: i32) -> Properties {
        Properties {
            flags,
            priority: clamped(priority),
            values: BTreeMap::new(),
        }
    }

    pub(super) fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

fn clamped(priority: i32) -> i32 {
    priority.clamp(*PRIORITIES.start(), *PRIORITIES.end())
}

/// Returns the value of an attribute that the program did not set.
fn default_value(attribute: u32) -> Result<[u8; VALUE_BYTES], Code> {
    let mut value = [0; VALUE_BYTES];
    match attribute {
        // `cudaSyncPolicyAuto`.
        SYNCHRONIZATION_POLICY => value[0] = 1,
        // The remote domain; the default one is 0.
        SYNC_DOMAIN_MAP => value[1] = 1,
        ACCESS_POLICY_WINDOW | SYNC_DOMAIN => {}
        _ => return Err(errors::INVALID_VALUE),
    }
    Ok(value)
}

impl Streams {
    fn properties(&self, stream: u64) -> Result<&Properties, Code> {
        let found = self.streams.get(&plain(stream));
        found
            .map(|stream| &stream.properties)
            .ok_or(errors::INVALID_HANDLE)
    }

    fn properties_mut(&mut self, stream: u64) -> Result<&mut Properties, Code> {
        let found = self.streams.get_mut(&plain(stream));
        found
            .map(|stream| &mut stream.properties)
            .ok_or(errors::INVALID_HANDLE)
    }

    /// Returns the flags of a stream.
    pub(crate) fn flags(&self, stream: u64) -> Result<u32, Code> {
        self.properties(stream).map(|properties| properties.flags)
    }

    /// Returns the priority of a stream.
    pub(crate) fn priority(&self, stream: u64) -> Result<i32, Code> {
        self.properties(stream)
            .map(|properties| properties.priority)
    }

    /// Returns the bytes of an attribute.
    pub(crate) fn attribute(&self, stream: u64, attribute: u32) -> Result<Vec<u8>, Code> {
        let properties = self.properties(stream)?;
        if attribute == PRIORITY {
            let mut value = properties.priority.to_le_bytes().to_vec();
            value.resize(VALUE_BYTES, 0);
            return Ok(value);
        }
        let set = properties.values.get(&attribute).copied();
        Ok(set.map_or_else(|| default_value(attribute), Ok)?.to_vec())
    }

    /// Sets an attribute from its bytes.
    pub(crate) fn set_attribute(
        &mut self,
        stream: u64,
        attribute: u32,
        value: &[u8],
    ) -> Result<(), Code> {
        let value: [u8; VALUE_BYTES] = value.try_into().map_err(|_| errors::INVALID_VALUE)?;
        let properties = self.properties_mut(stream)?;
        if attribute == PRIORITY {
            let [a, b, c, d, ..] = value;
            properties.priority = clamped(i32::from_le_bytes([a, b, c, d]));
            return Ok(());
        }
        default_value(attribute)?;
        properties.values.insert(attribute, value);
        Ok(())
    }

    /// Copies the attributes of a stream to another one.
    pub(crate) fn copy_attributes(&mut self, to: u64, from: u64) -> Result<(), Code> {
        let values = self.properties(from)?.values.clone();
        self.properties_mut(to)?.values = values;
        Ok(())
    }
}
