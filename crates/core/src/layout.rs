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
mod tests {
    use super::*;

    /// `struct { double a; char b[3]; }`: 16 bytes, five of them padding.
    fn layout() -> Layout {
        let field = |name: &str, element, count, offset| Field {
            name: name.to_owned(),
            element,
            count,
            offset,
            fill: Fill::Arange,
        };
        Layout {
            size: 16,
            fields: vec![
                field("a", Element::F64, 1, 0),
                field("b", Element::I8, 3, 8),
            ],
        }
    }

    #[test]
    fn columns_are_what_the_fields_were_filled_with() {
        let layout = layout();
        let bytes = layout.content(1, 0, 5);
        assert_eq!(bytes.len(), 80);
        let a = layout.column(&layout.fields[0], &bytes);
        let a: Vec<f64> = a.chunks(8).map(|b| Element::F64.decode(b)).collect();
        assert_eq!(a, [0.0, 1.0, 2.0, 3.0, 4.0]);
        let b = layout.column(&layout.fields[1], &bytes);
        assert_eq!(b, (0..15).collect::<Vec<u8>>());
        assert!((11..16).all(|at| layout.is_padding(at) && bytes[at as usize] == 0));
        assert!(!layout.is_padding(16 + 10));
    }

    #[test]
    fn what_is_known_of_a_field_follows_from_the_bytes() {
        let layout = layout();
        let [a, b] = [&layout.fields[0], &layout.fields[1]];
        let range = |start, end| std::iter::once(start..end).collect::<Vec<_>>();
        assert_eq!(layout.known(a, &range(0, 80)), range(0, 5));
        assert_eq!(layout.known(b, &range(0, 80)), range(0, 15));
        assert_eq!(layout.known(a, &range(1, 24)), range(1, 2));
        assert_eq!(layout.known(b, &range(9, 26)), []);
        assert_eq!(layout.known(b, &[0..11, 16..27, 48..59]), [0..6, 9..12]);
        assert_eq!(layout.without_padding(&range(9, 20)), [9..11, 16..20]);
        assert!(layout.without_padding(&range(11, 16)).is_empty());
    }
}
