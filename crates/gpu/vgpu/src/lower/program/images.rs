//! Operations on texture and surface objects.

use super::Data;

/// Geometry of an image as an instruction names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageShape {
    D1,
    D2,
    D3,
    /// Layers of one dimension (`a1d`): the layer is the first coordinate.
    Layers1,
    /// Layers of two dimensions (`a2d`).
    Layers2,
    /// Six faces, by a direction.
    Cube,
    /// Layers of cube maps (`acube`).
    Cubes,
}

impl ImageShape {
    /// Returns the number of coordinates, the layer included.
    pub(crate) fn coordinates(self) -> usize {
        match self {
            ImageShape::D1 => 1,
            ImageShape::D2 | ImageShape::Layers1 => 2,
            ImageShape::D3 | ImageShape::Layers2 | ImageShape::Cube => 3,
            ImageShape::Cubes => 4,
        }
    }
}

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

/// Treatment of coordinates outside a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    Trap,
    Clamp,
    Zero,
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
