//! Structs: fields at their places, as C++ lays them out.

use crate::element::Element;
use crate::fill::Fill;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the elements of a buffer are made of fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes of one element, padding at its end included.
    pub size: u64,
    /// The fields, in declared order. What lies between them is padding.
    pub fields: Vec<Field>,
}

/// One field: a number, a vector, or an array of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Type of its numbers.
    pub element: Element,
    /// How many numbers it is.
    pub count: u64,
    /// Where it begins, bytes.
    pub offset: u64,
    /// What it is filled with.
    pub fill: Fill,
}

impl Field {
    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.element.size() as u64)
    }

    /// Its bytes in element number `index` of a buffer.
    fn within(&self, size: u64, index: u64) -> Range<usize> {
        let start = index.saturating_mul(size).saturating_add(self.offset);
        let end = start.saturating_add(self.bytes());
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        at(start)..at(end)
    }
}

impl Layout {
    /// The content of a buffer of so many elements.
    #[must_use]
    pub fn content(&self, seed: u64, buffer: u64, elements: u64) -> Vec<u8> {
        let total = usize::try_from(elements.saturating_mul(self.size)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; total];
        for (number, field) in (1_u64..).zip(&self.fields) {
            // Each field has a stream of numbers of its own.
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

    /// A field of every element, one behind the other.
    #[must_use]
    pub fn column(&self, field: &Field, bytes: &[u8]) -> Vec<u8> {
        let elements = bytes.len() as u64 / self.size.max(1);
        let parts = (0..elements).filter_map(|index| bytes.get(field.within(self.size, index)));
        parts.flatten().copied().collect()
    }

    /// The numbers of a field's column of which all bytes lie in these ranges of the buffer, which
    /// are ascending and apart.
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

    /// The parts of these ranges of the buffer that belong to fields, ascending.
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

    /// Whether a byte of the buffer belongs to no field.
    #[must_use]
    pub fn is_padding(&self, byte: u64) -> bool {
        let at = byte % self.size.max(1);
        let holds = |field: &Field| (field.offset..field.offset + field.bytes()).contains(&at);
        !self.fields.iter().any(holds)
    }
}

#[cfg(test)]
mod tests;
