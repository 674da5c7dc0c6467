//! Pattern of the wrong elements of an output: positions and kind of difference.
//!
//! A wrong reference and swapped arguments look like a wrong kernel. If every element differs in
//! the same way, either side may be wrong, and the description says so.

/// Wrong elements of one output, accumulated in ascending order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WrongElements {
    first: u64,
    last: u64,
    count: u64,
    /// Greatest common divisor of the distances between them.
    stride: u64,
    /// Smallest and largest quotient of actual and expected.
    factor: Range,
    /// Smallest and largest difference of actual and expected.
    offset: Range,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn new(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    fn join(&mut self, other: Self) {
        // A range with NaN stays NaN.
        let ends = [self.low, self.high, other.low, other.high];
        if ends.iter().any(|end| end.is_nan()) {
            *self = Self::new(f64::NAN);
            return;
        }
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// Returns the single value that all are close to, relative to its size.
    fn single(self) -> Option<f64> {
        let middle = f64::midpoint(self.low, self.high);
        let near = self.high - self.low <= 2e-3 * middle.abs();
        (near && middle.is_finite()).then_some(middle)
    }
}

impl WrongElements {
    /// Starts with one wrong element.
    pub(super) fn new(index: u64, got: f64, want: f64) -> Self {
        let factor = if want == 0.0 { f64::NAN } else { got / want };
        Self {
            first: index,
            last: index,
            count: 1,
            stride: 0,
            factor: Range::new(factor),
            offset: Range::new(got - want),
        }
    }

    /// Adds further elements, none of which precedes a recorded one.
    pub(super) fn join(&mut self, other: &Self) {
        let (before, after) = if self.first <= other.first {
            (*self, *other)
        } else {
            (*other, *self)
        };
        let gap = after.first.saturating_sub(before.last);
        self.stride = gcd(gcd(before.stride, after.stride), gap);
        self.first = before.first;
        self.last = before.last.max(after.last);
        self.count += other.count;
        self.factor.join(other.factor);
        self.offset.join(other.offset);
    }

    /// Describes positions and differences as clauses that each begin with `; `. `compared`
    /// elements were compared.
    pub(super) fn describe(&self, compared: u64, shape: &[u64]) -> String {
        let mut text = String::new();
        if let Some(place) = self.describe_position(compared, shape) {
            text.push_str("; ");
            text.push_str(&place);
        }
        let alike = self.alike();
        if let Some(alike) = &alike {
            text.push_str("; ");
            text.push_str(alike);
        }
        let everywhere = self.count == compared && compared > 1;
        if everywhere {
            let why = if alike.is_some() {
                "the kernel or its reference is off by that in a formula, or a scalar differs"
            } else {
                "arguments may be in another order than the kernel's, or the reference may compute \
                 something else"
            };
            text.push_str("; either side may be wrong: ");
            text.push_str(why);
        }
        text
    }

    fn describe_position(&self, compared: u64, shape: &[u64]) -> Option<String> {
        let total: u64 = shape.iter().product();
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let span = self.last - self.first + 1;
        if self.count < 2 {
            return None;
        }
        if self.count == compared {
            return Some("every element that was compared differs".to_owned());
        }
        if span == self.count && self.last + 1 == total {
            return Some(format!("they are the last {span} of {total}"));
        }
        let row = self.first / columns;
        if shape.len() > 1 && row == self.last / columns {
            return Some(format!("all lie in row {row} ({columns} elements a row)"));
        }
        let regular = self.stride > 1 && (self.last - self.first) / self.stride + 1 == self.count;
        if regular && self.stride == columns && shape.len() > 1 {
            return Some(format!("all lie in column {}", self.first % columns));
        }
        if regular && self.count > 2 {
            let (stride, first) = (self.stride, self.first);
            return Some(format!("one element in {stride}, from {first} on"));
        }
        if span == self.count {
            let (first, last) = (self.first, self.last);
            return Some(format!("they are elements {first} to {last}"));
        }
        if self.count <= compared / 2 {
            let (first, last) = (self.first, self.last);
            return Some(format!("they lie between elements {first} and {last}"));
        }
        None
    }

    fn alike(&self) -> Option<String> {
        if self.count < 2 {
            return None;
        }
        if let Some(factor) = self.factor.single().filter(|factor| *factor != 1.0) {
            return Some(format!("each is {factor:.4} times what is expected"));
        }
        let offset = self.offset.single()?;
        Some(format!("each is what is expected {offset:+}"))
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
