//! Struct layout: fields at their offsets, as in C++.

use crate::element::Element;
use crate::fill::Fill;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Fields of the elements of a buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes of one element, including padding at its end.
    pub size: u64,
    /// The fields, in declared order. The gaps are padding.
    pub fields: Vec<Field>,
}

/// One field: a number, a vector, or an array of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Type of its numbers.
    pub element: Element,
    /// Number of its numbers.
    pub count: u64,
    /// Offset, bytes.
    pub offset: u64,
    /// Fill.
    pub fill: Fill,
}

impl Field {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.element.size() as u64)
    }

    /// Returns its bytes in element number `index` of a buffer.
    fn within(&self, size: u64, index: u64) -> Range<usize> {
        let start = index.saturating_mul(size).saturating_add(self.offset);
        let end = start.saturating_add(self.bytes());
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        at(start)..at(end)
    }
}

impl Layout {
    /// Returns the content of a buffer of `elements` elements.
    #[must_use]
    pub fn content(&self, seed: u64, buffer: u64, elements: u64) -> Vec<u8> {
        let total = usize::try_from(elements.saturating_mul(self.size)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; total];
        for (number, field) in (1_u64..).zip(&self.fields) {
            // Each field has a separate random stream.
            let stream = buffer.wrapping_add(number << 32);
            let count = elements.saturating_mul(field.count);
            let values = field.fill.bytes(field.element, seed, stream, count);
            let each = values.chunks_exact(usize::try_from(field.bytes()).unwrap_or(1).max(1));
            for (index, value) in (0..elements).zip(each) {
                if let Some(place) = bytes.get_mut(field.within(self.size, index)) {
                    place.copy_from_slice(value);
                }
            }
        }
        bytes
    }

    /// Extracts a field of every element, consecutively.
    #[must_use]
    pub fn column(&self, field: &Field, bytes: &[u8]) -> Vec<u8> {
        let elements = bytes.len() as u64 / self.size.max(1);
        let parts = (0..elements).filter_map(|index| bytes.get(field.within(self.size, index)));
        parts.flatten().copied().collect()
    }

    /// Returns the numbers of a field's column whose bytes are all in these ranges of the buffer,
    /// which are ascending and disjoint.
    #[must_use]
    pub fn known(&self, field: &Field, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut known: Vec<Range<u64>> = Vec::new();
        let size = self.size.max(1);
        for range in ranges {
            let first = range.start.saturating_sub(field.offset).div_ceil(size);
            let behind = range.end.saturating_sub(field.offset + field.bytes());
            if range.end < field.offset + field.bytes() {
                continue;
            }
            let last = behind / size + 1;
            if first >= last {
                continue;
            }
            let numbers = first * field.count..last * field.count;
            match known.last_mut() {
                Some(before) if before.end == numbers.start => before.end = numbers.end,
                _ => known.push(numbers),
            }
        }
        known
    }

    /// Returns the parts of these ranges of the buffer that are in fields, ascending.
    #[must_use]
    pub fn without_padding(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let size = self.size.max(1);
        let mut fields: Vec<&Field> = self.fields.iter().collect();
        fields.sort_by_key(|field| field.offset);
        let mut parts = Vec::new();
        for range in ranges {
            for index in range.start / size..range.end.div_ceil(size) {
                for field in &fields {
                    let start = index * size + field.offset;
                    let part = start.max(range.start)..(start + field.bytes()).min(range.end);
                    if part.start < part.end {
                        parts.push(part);
                    }
                }
            }
        }
        parts
    }

    /// Reports whether a byte of the buffer is padding.
    #[must_use]
    pub fn is_padding(&self, byte: u64) -> bool {
        let at = byte % self.size.max(1);
        let holds = |field: &Field| (field.offset..field.offset + field.bytes()).contains(&at);
        !self.fields.iter().any(holds)
    }
}

#[cfg(test)]
mod tests;
