//! Attributes of launches.

use super::{Dim3, Launch};
use crate::errors::{self, Code};
use crate::graph::{Node, submit, submit_launch};
use crate::protocol::COOPERATIVE;

/// Attributes of a launch (`cudaLaunchAttribute`): 72 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

const ATTRIBUTE_COOPERATIVE: u32 = 2;
const ATTRIBUTE_CLUSTER: u32 = 4;
const ATTRIBUTE_PROGRAMMATIC_EVENT: u32 = 7;
const ATTRIBUTE_COMPLETION_EVENT: u32 = 12;
/// Numbers of attributes without an effect here. That of a cooperative launch has one where its value is not 0.
const OTHER_ATTRIBUTES: [std::ops::RangeInclusive<u32>; 4] = [0..=3, 5..=6, 8..=11, 13..=16];

/// Events that a launch records.
#[derive(Debug, Default)]
pub(crate) struct LaunchEvents {
    /// Those that occur when all blocks have begun: nothing of the kernel is known to be done.
    at_begin: Vec<u64>,
    /// Those that occur at its end.
    at_end: Vec<u64>,
}

impl LaunchEvents {
    /// Runs a kernel in its stream, or adds it to the graph that the stream captures, and records the events.
    pub(crate) fn submit_with(&self, launch: Launch) -> Result<(), Code> {
        let stream = launch.stream;
        let record = |events: &[u64]| {
            let mut events = events.iter();
            events.try_for_each(|event| submit(stream, Node::Record(*event)))
        };
        if !self.at_begin.is_empty() {
            // A launch that is refused records nothing.
            launch.check()?;
        }
        record(&self.at_begin)?;
        submit_launch(launch)?;
        record(&self.at_end)
    }
}

/// Reads the attributes that change what a launch does. Returns the events to record.
///
/// # Safety
/// As many attributes as stated are readable.
pub(crate) unsafe fn read_attributes(
    launch: &mut Launch,
    attributes: *const LaunchAttribute,
    count: u32,
) -> Result<LaunchEvents, Code> {
    let mut events = LaunchEvents::default();
    if count == 0 {
        return Ok(events);
    }
    if attributes.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let attributes = unsafe { std::slice::from_raw_parts(attributes, count as usize) };
    for attribute in attributes {
        let [x, y, z, at_block_start, ..] = attribute.value;
        let event = u64::from(x) | u64::from(y) << 32;
        match attribute.id {
            ATTRIBUTE_COOPERATIVE if x != 0 => launch.flags |= COOPERATIVE,
            ATTRIBUTE_CLUSTER => launch.cluster = Dim3 { x, y, z },
            ATTRIBUTE_PROGRAMMATIC_EVENT if at_block_start == 0 => events.at_end.push(event),
            ATTRIBUTE_PROGRAMMATIC_EVENT | ATTRIBUTE_COMPLETION_EVENT => {
                events.at_begin.push(event);
            }
            number if OTHER_ATTRIBUTES.iter().any(|known| known.contains(&number)) => {}
            _ => return Err(errors::INVALID_VALUE),
        }
    }
    Ok(events)
}
