//! Tables of sector numbers.

use vgpu::table::{Numbers, Table};

/// A set of sectors.
pub(super) type Sectors = Numbers<u64>;
/// A table with a value per sector.
pub(super) type BySector<T> = Table<u64, T>;
