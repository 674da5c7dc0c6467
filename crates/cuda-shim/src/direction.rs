//! Directions of copies.

use crate::errors::{self, Code};

/// Direction that the program states for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `cudaMemcpyHostToHost`.
    HostToHost,
    /// `cudaMemcpyHostToDevice`.
    HostToDevice,
    /// `cudaMemcpyDeviceToHost`.
    DeviceToHost,
    /// `cudaMemcpyDeviceToDevice`.
    DeviceToDevice,
    /// `cudaMemcpyDefault`: by the addresses.
    Inferred,
}

impl Direction {
    /// The direction of a number of the interface.
    pub(crate) fn from_number(number: i32) -> Result<Direction, Code> {
        Ok(match number {
            0 => Direction::HostToHost,
            1 => Direction::HostToDevice,
            2 => Direction::DeviceToHost,
            3 => Direction::DeviceToDevice,
            4 => Direction::Inferred,
            _ => return Err(errors::INVALID_DIRECTION),
        })
    }

    /// Its number in the interface.
    pub(crate) fn number(self) -> i32 {
        match self {
            Direction::HostToHost => 0,
            Direction::HostToDevice => 1,
            Direction::DeviceToHost => 2,
            Direction::DeviceToDevice => 3,
            Direction::Inferred => 4,
        }
    }

    /// Reports whether the pointers fit the direction; shared memory fits each.
    pub(crate) fn admits(self, destination: Side, source: Side) -> bool {
        let host = |side: Side| side != Side::Device;
        let device = |side: Side| side != Side::Host;
        match self {
            Direction::HostToHost => host(destination) && host(source),
            Direction::HostToDevice => device(destination) && host(source),
            Direction::DeviceToHost => host(destination) && device(source),
            Direction::DeviceToDevice => device(destination) && device(source),
            Direction::Inferred => true,
        }
    }
}

/// Access to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Device,
    Shared,
}
