//! The arguments of a tensor map and their encoding.
//!
//! This file stands alone: the client side of the virtual CUDA device includes it as a module.
//!
//! The driver's encoding is secret, but for the fields of `tensormap.replace`, which ptxas changes by ordinary
//! code. This one has them at the same places; the others are behind them.
//! The limits are those of its documentation (CUDA driver interface, tensor map object management).

#[path = "elements.rs"]
mod elements;
#[path = "fields.rs"]
mod fields;

pub use elements::{PADDED_ELEMENTS, TensorElement};
pub use fields::Field;

use std::fmt;

/// Bytes of a tensor map, as of `CUtensorMap`.
pub const TENSOR_MAP_BYTES: usize = 128;

/// Dimensions of a tensor at most.
pub const MAX_RANK: usize = 5;

/// Pixels of a column at most.
const MAX_PIXELS: u32 = 1024;

/// Bounds of the coordinates of a corner with one, two and three spatial dimensions.
const CORNER_LIMITS: [i32; 3] = [1 << 15, 1 << 7, 1 << 4];

/// Offset of the tensor's address in an encoded map, bytes.
pub const ADDRESS_OFFSET: u64 = 0;

/// Words of an encoded map.
struct Words([u32; TENSOR_MAP_BYTES / 4]);

impl Words {
    fn get(&self, field: Field) -> u32 {
        let word = self.0.get(field.offset as usize / 4).copied();
        (word.unwrap_or_default() & field.mask()) >> field.low
    }

    fn put(&mut self, field: Field, value: u32) {
        if let Some(word) = self.0.get_mut(field.offset as usize / 4) {
            *word = *word & !field.mask() | value << field.low & field.mask();
        }
    }
}

/// Content of a word that marks an encoded map.
const MAGIC: u32 = u32::from_le_bytes(*b"TMAP");

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
        let alignment = match self.interleave == 2 || self.element.is_padded() {
            true => 32,
            false => 16,
        };
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
        self.check_packed()?;
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

    /// Checks the innermost dimension of packed types, and their swizzles.
    fn check_packed(&self) -> Result<(), TensorMapError> {
        let fail = |text: &str| Err(TensorMapError(text.to_owned()));
        let [size, inner] = [
            self.sizes.first().copied().unwrap_or_default(),
            self.boxes.first().copied().unwrap_or_default().into(),
        ];
        let most = u64::from(PADDED_ELEMENTS);
        match self.element {
            TensorElement::U4 if !size.is_multiple_of(2) => {
                fail("an odd innermost dimension of elements of 4 bits")
            }
            other if !other.is_padded() => Ok(()),
            _ if !size.is_multiple_of(most) || inner != most => fail(
                "the innermost dimension of padded elements is a multiple of 128, and 128 of the box",
            ),
            _ if self.interleave != 0 || !matches!(self.swizzle, 0 | 3 | 4 | 6) => {
                fail("padded elements have no interleave and no swizzle but that of 128 bytes")
            }
            _ => Ok(()),
        }
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

    /// Returns the bytes of the box's innermost dimension in shared memory.
    fn inner_bytes(&self) -> u32 {
        let elements = self.boxes.first().copied().unwrap_or_default();
        match self.element {
            TensorElement::U4 => elements / 2,
            element => elements * element.bytes(),
        }
    }

    /// Returns the map's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut words = Words([0; TENSOR_MAP_BYTES / 4]);
        let mut put = |field: Field, value: u64| words.put(field, value as u32);
        put(Field::ADDRESS, self.address);
        put(Field::ADDRESS_HIGH, self.address >> 32);
        put(Field::RANK, (self.sizes.len() as u64).wrapping_sub(1));
        let (code, rounded) = self.element.code();
        put(Field::ELEMENT, code.into());
        put(Field::ROUNDED, rounded.into());
        put(Field::INTERLEAVE, self.interleave.into());
        put(Field::SWIZZLE, self.swizzle.min(3).into());
        put(Field::ATOMS, self.swizzle.saturating_sub(3).into());
        put(Field::FILL, self.fills_nan.into());
        for (index, stride) in (0..).zip(&self.strides) {
            put(Field::stride(index), stride >> 4);
            put(Field::stride_high(index), stride >> 36);
        }
        // 2^32 elements are possible, none are not.
        for (dimension, size) in (0..).zip(&self.sizes) {
            put(Field::size(dimension), size.wrapping_sub(1));
        }
        for (dimension, step) in (0..).zip(&self.steps) {
            put(Field::step(dimension), u64::from(step.wrapping_sub(1)));
        }
        let extents = match self.pixels {
            // The pixels of a column may be more than the extent of a box.
            Some(_) => self.boxes.get(..1).unwrap_or_default(),
            None => &self.boxes,
        };
        for (dimension, extent) in (0..).zip(extents) {
            put(Field::extent(dimension), u64::from(extent.wrapping_sub(1)));
        }
        put(Field::MAGIC, MAGIC.into());
        put(Field::PROMOTION, self.promotion.into());
        if let Some(pixels) = &self.pixels {
            put(Field::COLUMN, 1);
            put(
                Field::PIXELS,
                self.boxes.get(1).copied().unwrap_or_default().into(),
            );
            for (upper, corner) in [(false, &pixels.lower), (true, &pixels.upper)] {
                for (dimension, at) in (0..).zip(corner) {
                    put(Field::corner(upper, dimension), *at as u64);
                }
            }
        }
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words.0) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the map of these bytes.
    ///
    /// # Errors
    /// [`encode`](Self::encode) did not make them, or a limit of the driver that the map breaks: a kernel may
    /// have replaced fields of it.
    pub fn decode(bytes: &[u8]) -> Result<Self, TensorMapError> {
        let fail = |text: &str| Err(TensorMapError(text.to_owned()));
        let mut words = Words([0; TENSOR_MAP_BYTES / 4]);
        for (word, bytes) in words.0.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let get = |field: Field| words.get(field);
        if bytes.len() < TENSOR_MAP_BYTES || get(Field::MAGIC) != MAGIC {
            return fail("the bytes are no tensor map");
        }
        let code = (get(Field::ELEMENT), get(Field::ROUNDED) == 1);
        let Some(element) = elements::ELEMENTS.into_iter().find(|it| it.code() == code) else {
            return fail("an unknown type of elements");
        };
        let swizzle = match (get(Field::SWIZZLE), get(Field::ATOMS)) {
            _ if get(Field::SWIZZLE_96) != 0 => {
                return fail("a swizzle of 96 bytes, which is not supported");
            }
            (mode, 0) => mode,
            (3, atoms) => 3 + atoms,
            _ => return fail("swizzles of 16-byte atoms are those of 32 and 64 bytes"),
        };
        let rank = get(Field::RANK) + 1;
        let column = get(Field::COLUMN) == 1;
        let dimensions = 0..rank.min(MAX_RANK as u32);
        let spatial = 0..rank.saturating_sub(2).min(CORNER_LIMITS.len() as u32);
        let corner = |upper: bool| {
            let at = |dimension| i32::from(get(Field::corner(upper, dimension)) as u16 as i16);
            spatial.clone().map(at).collect()
        };
        let stride = |index: u32| {
            let [low, high] = [Field::stride(index), Field::stride_high(index)].map(get);
            u64::from(low) << 4 | u64::from(high) << 36
        };
        let map = Self {
            element,
            address: u64::from(get(Field::ADDRESS)) | u64::from(get(Field::ADDRESS_HIGH)) << 32,
            sizes: (dimensions.clone())
                .map(|dimension| u64::from(get(Field::size(dimension))) + 1)
                .collect(),
            strides: (0..dimensions.end - 1).map(stride).collect(),
            boxes: match column {
                true => vec![get(Field::extent(0)) + 1, get(Field::PIXELS)],
                false => (dimensions.clone())
                    .map(|dimension| get(Field::extent(dimension)) + 1)
                    .collect(),
            },
            steps: dimensions
                .map(|dimension| get(Field::step(dimension)) + 1)
                .collect(),
            interleave: get(Field::INTERLEAVE),
            swizzle,
            promotion: get(Field::PROMOTION),
            fills_nan: get(Field::FILL) == 1,
            pixels: column.then(|| PixelBox {
                lower: corner(false),
                upper: corner(true),
            }),
        };
        if rank > MAX_RANK as u32 {
            return fail(&format!(
                "a tensor of {rank} dimensions; 1 to {MAX_RANK} are possible"
            ));
        }
        map.check().map(|()| map)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
