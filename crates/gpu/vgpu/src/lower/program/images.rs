//! Operations on texture and surface objects.

use super::Data;
pub(crate) use crate::texture::{Boundary, ImageShape};

/// `tex` and `tld4`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fetch {
    /// Row of the handle.
    pub(crate) object: u32,
    pub(crate) shape: ImageShape,
    /// Rows of the coordinates.
    pub(crate) coordinates: Vec<u32>,
    /// The coordinates are numbers of texels.
    pub(crate) integer: bool,
    /// Channel of `tld4`.
    pub(crate) gather: Option<usize>,
    pub(crate) data: Vec<Data>,
    /// Predicate row that tells whether the texels are resident.
    pub(crate) resident: Option<u32>,
}

/// Direction of a surface access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SurfaceKind {
    Load,
    Store,
    /// `sust.p`: words are converted to the format of the surface.
    StoreFormatted,
}

/// `suld` and `sust`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SurfaceAccess {
    /// Row of the handle.
    pub(crate) object: u32,
    pub(crate) shape: ImageShape,
    /// Rows of the coordinates; that in a row of texels counts bytes, but for `sust.p`.
    pub(crate) coordinates: Vec<u32>,
    pub(crate) boundary: Boundary,
    pub(crate) kind: SurfaceKind,
    /// Bytes of an element of the data.
    pub(crate) width: u32,
    pub(crate) data: Vec<Data>,
}

/// Property of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queried {
    Width,
    Height,
    Depth,
    NormalizedCoordinates,
}

/// `txq` and `suq`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageQuery {
    /// Row of the handle.
    pub(crate) object: u32,
    pub(crate) queried: Queried,
    pub(crate) dest: u32,
}
