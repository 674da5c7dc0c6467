//! The arguments of a tensor map and their encoding.
//!
//! This file stands alone: the client side of the virtual CUDA device includes it as a module.
//!
//! The driver's encoding is secret; this one holds the arguments of `cuTensorMapEncodeTiled` and
//! `cuTensorMapEncodeIm2col` as they are.
//! The limits are those of its documentation (CUDA driver interface, tensor map object management).

use std::fmt;

/// Bytes of a tensor map, as of `CUtensorMap`.
pub const TENSOR_MAP_BYTES: usize = 128;

/// Dimensions of a tensor at most.
pub const MAX_RANK: usize = 5;

/// Pixels of a column at most.
const MAX_PIXELS: u32 = 1024;

/// Bounds of the coordinates of a corner with one, two and three spatial dimensions.
const CORNER_LIMITS: [i32; 3] = [1 << 15, 1 << 7, 1 << 4];

const MAGIC: &[u8; 4] = b"TMAP";

/// Offset of the tensor's address in an encoded map, bytes.
pub const ADDRESS_OFFSET: u64 = 10;

/// Type of a tensor's elements, with the number of `CUtensorMapDataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the driver")]
#[repr(u8)]
pub enum TensorElement {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
}

const ELEMENTS: [TensorElement; 13] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F64,
    TensorElement::Bf16,
    TensorElement::F32Ftz,
    TensorElement::Tf32,
    TensorElement::Tf32Ftz,
];

impl TensorElement {
    /// Returns the type with a number of `CUtensorMapDataType`; `None` for packed types.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        ELEMENTS.get(number as usize).copied()
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }

    fn is_float(self) -> bool {
        !matches!(
            self,
            Self::U8 | Self::U16 | Self::U32 | Self::S32 | Self::U64 | Self::S64
        )
    }
}

/// Corners of the box in which the first pixels of filters lie (`cuTensorMapEncodeIm2col`). One entry for
/// each spatial dimension (width, height, depth).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PixelBox {
    /// First coordinate.
    pub lower: Vec<i32>,
    /// Last coordinate less the last of the tensor.
    pub upper: Vec<i32>,
}

/// A tensor in global memory and the box of it that one copy moves. Lists begin with the innermost
/// dimension and have one entry for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub element: TensorElement,
    /// Device address of the first element.
    pub address: u64,
    /// Elements of each dimension.
    pub sizes: Vec<u64>,
    /// Bytes from one index to the next of each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension; channels of a pixel and pixels of a column of an im2col map.
    pub boxes: Vec<u32>,
    /// Steps between the elements of the box in each dimension.
    pub steps: Vec<u32>,
    /// Number of `CUtensorMapInterleave`.
    pub interleave: u32,
    /// Number of `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// Number of `CUtensorMapL2promotion`.
    pub promotion: u32,
    /// Elements outside the tensor are NaN instead of zero.
    pub fills_nan: bool,
    /// Of an im2col map, whose dimensions are channels, one to three spatial ones and images.
    pub pixels: Option<PixelBox>,
}

/// A limit that a tensor map breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapError(pub String);

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TensorMapError {}

impl TensorMap {
    /// Checks the driver's limits.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn check(&self) -> Result<(), TensorMapError> {
        self.check_form()?;
        let fail = |text: String| Err(TensorMapError(text));
        let alignment = if self.interleave == 2 { 32 } else { 16 };
        if !self.address.is_multiple_of(alignment) {
            return fail(format!(
                "the tensor's address 0x{:x} is not a multiple of {alignment}",
                self.address
            ));
        }
        for (dimension, size) in self.sizes.iter().enumerate() {
            if *size == 0 || *size > 1 << 32 {
                return fail(format!(
                    "dimension {dimension} has {size} elements; 1 to 2^32 are possible"
                ));
            }
        }
        for (dimension, stride) in (1..).zip(&self.strides) {
            if !stride.is_multiple_of(alignment) || *stride >= 1 << 40 {
                return fail(format!(
                    "the stride of dimension {dimension} is {stride} bytes; it must be a multiple of \
                     {alignment} below 2^40"
                ));
            }
        }
        self.check_box()
    }

    fn check_form(&self) -> Result<(), TensorMapError> {
        let fail = |text: String| Err(TensorMapError(text));
        let rank = self.sizes.len();
        let least = match self.interleave == 0 && self.pixels.is_none() {
            true => 1,
            false => 3,
        };
        if rank < least || rank > MAX_RANK {
            return fail(format!(
                "a tensor of {rank} dimensions; {least} to {MAX_RANK} are possible"
            ));
        }
        let extents = if self.pixels.is_some() { 2 } else { rank };
        if self.strides.len() + 1 != rank || self.steps.len() != rank || self.boxes.len() != extents
        {
            return fail(format!(
                "a tensor of {rank} dimensions needs {extents} sizes of the box and {} strides",
                rank - 1
            ));
        }
        if self.interleave > 2 || self.swizzle > 6 || self.promotion > 3 {
            return fail("an unknown interleave, swizzle or L2 promotion".to_owned());
        }
        if self.interleave == 2 && self.swizzle != 1 {
            return fail("an interleave of 32 bytes needs a swizzle of 32 bytes".to_owned());
        }
        if self.fills_nan && !self.element.is_float() {
            return fail("only floating-point tensors can be filled with NaN".to_owned());
        }
        Ok(())
    }

    fn check_box(&self) -> Result<(), TensorMapError> {
        let fail = |text: String| Err(TensorMapError(text));
        for (dimension, size) in self.boxes.iter().enumerate() {
            let most = match (dimension, &self.pixels) {
                (1, Some(_)) => MAX_PIXELS,
                _ => 256,
            };
            if *size == 0 || *size > most {
                return fail(format!(
                    "the box has {size} elements in dimension {dimension}; 1 to {most} are possible"
                ));
            }
        }
        if let Some(pixels) = &self.pixels {
            self.check_pixels(pixels)?;
        }
        if let Some(step) = self.steps.iter().find(|step| !(1..=8).contains(*step)) {
            return fail(format!("an element stride of {step}; 1 to 8 are possible"));
        }
        let inner = self.inner_bytes();
        if self.interleave == 0 && !inner.is_multiple_of(16) {
            return fail(format!(
                "the innermost dimension of the box has {inner} bytes, not a multiple of 16"
            ));
        }
        let span = self.span();
        if self.interleave == 0 && self.swizzle != 0 && inner > span {
            return fail(format!(
                "the innermost dimension of the box has {inner} bytes; a swizzle of {span} bytes allows \
                 {span}"
            ));
        }
        Ok(())
    }

    /// Checks the corners of an im2col map: their ranges, and that a pixel lies between them.
    fn check_pixels(&self, pixels: &PixelBox) -> Result<(), TensorMapError> {
        let fail = |text: String| Err(TensorMapError(text));
        let spatial = self.sizes.len() - 2;
        if pixels.lower.len() != spatial || pixels.upper.len() != spatial {
            return fail(format!(
                "{spatial} spatial dimensions need {spatial} coordinates of each corner"
            ));
        }
        let most = CORNER_LIMITS[spatial - 1];
        let corners = pixels.lower.iter().zip(&pixels.upper);
        for ((lower, upper), size) in corners.zip(self.sizes.iter().skip(1)) {
            for corner in [*lower, *upper] {
                if !(-most..most).contains(&corner) {
                    return fail(format!(
                        "a corner at {corner}; -{most} to {} are possible with {spatial} spatial dimensions",
                        most - 1
                    ));
                }
            }
            if i64::from(*lower) > *size as i64 - 1 + i64::from(*upper) {
                return fail(format!(
                    "no pixel lies between the corners {lower} and {upper} of a dimension of {size}"
                ));
            }
        }
        Ok(())
    }

    /// Returns the bytes in which a swizzle permutes chunks of 16.
    #[must_use]
    pub fn span(&self) -> u32 {
        match self.swizzle {
            1 => 32,
            2 => 64,
            _ => 128,
        }
    }

    /// Returns the bytes of the box's innermost dimension.
    fn inner_bytes(&self) -> u32 {
        self.boxes.first().copied().unwrap_or_default() * self.element.bytes()
    }

    /// Returns the map's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut bytes = Vec::with_capacity(TENSOR_MAP_BYTES);
        bytes.extend(MAGIC);
        let rank = self.sizes.len() as u8;
        bytes.extend([rank, self.element as u8, u8::from(self.fills_nan)]);
        bytes.extend([self.interleave, self.swizzle, self.promotion].map(|number| number as u8));
        bytes.extend(self.address.to_le_bytes());
        for size in &self.sizes {
            // 2^32 elements are possible, none are not.
            bytes.extend((size.wrapping_sub(1) as u32).to_le_bytes());
        }
        for stride in &self.strides {
            bytes.extend(stride.to_le_bytes());
        }
        // An im2col map has fewer extents than dimensions.
        let sizes = self.boxes.iter().chain(std::iter::repeat(&0));
        for (size, step) in sizes.zip(&self.steps) {
            bytes.extend((*size as u16).to_le_bytes());
            bytes.push(*step as u8);
        }
        bytes.push(u8::from(self.pixels.is_some()));
        for corners in self.pixels.iter().flat_map(|p| [&p.lower, &p.upper]) {
            bytes.extend(corners.iter().flat_map(|at| (*at as i16).to_le_bytes()));
        }
        let mut out = [0; TENSOR_MAP_BYTES];
        // Five dimensions take 85 bytes, so that nothing is cut off.
        for (to, from) in out.iter_mut().zip(bytes) {
            *to = from;
        }
        out
    }

    /// Returns the map of these bytes; `None` if [`encode`](Self::encode) did not make them from a map that keeps
    /// the driver's limits.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut take = |count: usize| {
            let (taken, after) = rest.split_at_checked(count)?;
            rest = after;
            let bytes = taken.iter().rev();
            Some(bytes.fold(0, |value: u64, byte| value << 8 | u64::from(*byte)))
        };
        let rank = take(1)? as usize;
        if rank == 0 || rank > MAX_RANK {
            return None;
        }
        let element = TensorElement::from_number(take(1)? as u32)?;
        let fills_nan = take(1)? == 1;
        let [interleave, swizzle, promotion] = [take(1)?, take(1)?, take(1)?].map(|n| n as u32);
        let address = take(8)?;
        let mut map = Self {
            element,
            address,
            sizes: Vec::new(),
            strides: Vec::new(),
            boxes: Vec::new(),
            steps: Vec::new(),
            interleave,
            swizzle,
            promotion,
            fills_nan,
            pixels: None,
        };
        for _ in 0..rank {
            map.sizes.push(take(4)? + 1);
        }
        for _ in 1..rank {
            map.strides.push(take(8)?);
        }
        for _ in 0..rank {
            map.boxes.push(take(2)? as u32);
            map.steps.push(take(1)? as u32);
        }
        if take(1)? == 1 {
            let spatial = rank.checked_sub(2)?;
            map.boxes.truncate(2);
            let mut corner = || {
                (0..spatial)
                    .map(|_| Some(i32::from(take(2)? as i16)))
                    .collect()
            };
            let (lower, upper): (Option<_>, Option<_>) = (corner(), corner());
            map.pixels = Some(PixelBox {
                lower: lower?,
                upper: upper?,
            });
        }
        // The bytes may be a kernel's or another machine's.
        map.check().is_ok().then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            element: TensorElement::F16,
            address: 1 << 20,
            sizes: vec![4096, 1 << 32, 3],
            strides: vec![8192, 1 << 39],
            boxes: vec![64, 128, 1],
            steps: vec![1, 2, 1],
            interleave: 0,
            swizzle: 3,
            promotion: 2,
            fills_nan: true,
            pixels: None,
        }
    }

    fn columns() -> TensorMap {
        TensorMap {
            sizes: vec![64, 9, 14, 64],
            strides: vec![128, 1152, 16128],
            boxes: vec![8, 1024],
            steps: vec![1, 2, 2, 1],
            pixels: Some(PixelBox {
                lower: vec![-1, -128],
                upper: vec![-2, 127],
            }),
            ..map()
        }
    }

    #[test]
    fn a_map_is_decoded_as_it_was_encoded() {
        for map in [map(), columns()] {
            assert_eq!(TensorMap::decode(&map.encode()), Some(map));
        }
        assert_eq!(TensorMap::decode(&[0; TENSOR_MAP_BYTES]), None);
    }

    #[test]
    fn every_limit_of_the_driver_is_checked() {
        type Break = fn(&mut TensorMap);
        assert_eq!(
            map().encode()[ADDRESS_OFFSET as usize..][..8],
            (1u64 << 20).to_le_bytes()
        );
        let cases: [(Break, &str); 14] = [
            (|m| m.address += 8, "multiple of 16"),
            (|m| m.sizes[0] = 0, "1 to 2^32"),
            (|m| m.sizes[1] += 1, "1 to 2^32"),
            (|m| m.strides[0] = 8200, "multiple of 16"),
            (|m| m.strides[1] = 1 << 40, "below 2^40"),
            (|m| m.boxes[1] = 257, "1 to 256"),
            (|m| m.boxes[2] = 0, "1 to 256"),
            (|m| m.steps[1] = 9, "1 to 8"),
            (|m| m.boxes[0] = 60, "not a multiple of 16"),
            (|m| m.boxes[0] = 128, "allows 128"),
            (|m| m.element = TensorElement::U16, "floating-point"),
            (|m| m.interleave = 2, "needs a swizzle of 32"),
            (|m| m.sizes = vec![1; 6], "1 to 5"),
            (|m| m.boxes.truncate(2), "needs 3 sizes"),
        ];
        map().check().unwrap();
        for (number, (change, wanted)) in cases.into_iter().enumerate() {
            let mut broken = map();
            change(&mut broken);
            let said = broken.check().unwrap_err().to_string();
            assert!(said.contains(wanted), "{number}: {said}");
        }
    }

    #[test]
    fn every_limit_of_an_im2col_map_is_checked() {
        type Break = fn(&mut TensorMap);
        fn pixels(map: &mut TensorMap) -> &mut PixelBox {
            map.pixels.as_mut().unwrap()
        }
        let cases: [(Break, &str); 8] = [
            (|m| m.boxes[1] = 1025, "1 to 1024"),
            (|m| m.boxes[0] = 257, "1 to 256"),
            (|m| m.boxes.push(1), "needs 2 sizes"),
            (|m| m.sizes.truncate(2), "3 to 5"),
            (|m| pixels(m).lower[0] = -129, "-128 to 127"),
            (|m| pixels(m).upper[1] = 128, "-128 to 127"),
            (|m| pixels(m).upper[0] = -10, "no pixel"),
            (|m| pixels(m).lower.truncate(1), "2 coordinates"),
        ];
        columns().check().unwrap();
        for (number, (change, wanted)) in cases.into_iter().enumerate() {
            let mut broken = columns();
            change(&mut broken);
            let said = broken.check().unwrap_err().to_string();
            assert!(said.contains(wanted), "{number}: {said}");
        }
    }
}
