//! Regions of memory that copies name.

use std::io;

use super::{Fields, Message};

/// A region of rows: `width` bytes a row, `height` rows a slice, `depth` slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from slice to slice.
    pub slice: u64,
}

impl Shape {
    /// A contiguous range.
    #[must_use]
    pub fn linear(bytes: u64) -> Shape {
        Shape {
            width: bytes,
            height: 1,
            depth: 1,
            pitch: bytes,
            slice: bytes,
        }
    }

    /// Rows at a pitch, in one slice.
    #[must_use]
    pub fn rows(width: u64, height: u64, pitch: u64) -> Shape {
        Shape {
            width,
            height,
            depth: 1,
            pitch,
            slice: pitch.saturating_mul(height),
        }
    }

    /// Bytes that belong to the region; `None` on overflow.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// Offset of each row from the first, in bytes. Rows that touch are one.
    pub fn runs(self) -> impl Iterator<Item = Run> {
        let row_joined = self.pitch == self.width;
        let all_joined = row_joined && self.slice == self.width.wrapping_mul(self.height);
        let (rows, slices, length) = match (row_joined, all_joined) {
            (_, true) => (1, 1, self.width * self.height * self.depth),
            (true, false) => (1, self.depth, self.width * self.height),
            (false, false) => (self.height, self.depth, self.width),
        };
        (0..slices).flat_map(move |z| {
            (0..rows).map(move |y| Run {
                offset: z * self.slice + y * self.pitch,
                bytes: length,
            })
        })
    }

    /// Appends the fields.
    pub fn put(&self, message: &mut Message) {
        for field in [self.width, self.height, self.depth, self.pitch, self.slice] {
            message.put_u64(field);
        }
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn take(fields: &mut Fields<'_>) -> io::Result<Shape> {
        Ok(Shape {
            width: fields.u64()?,
            height: fields.u64()?,
            depth: fields.u64()?,
            pitch: fields.u64()?,
            slice: fields.u64()?,
        })
    }
}

/// Contiguous bytes of a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Offset from the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}
