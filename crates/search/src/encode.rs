//! Encoding of configurations as points of the unit cube.

use std::f64::consts::FRAC_1_SQRT_2;
use tuner_core::value::Value;
use tuner_space::{Config, Parameter, Space};

/// Minimum ratio of the largest to the smallest value for sizes to be compared by logarithm.
const MIN_RATIO_SPAN: f64 = 4.0;
/// Minimum number of values for a parameter to get an alignment coordinate.
const MIN_ALIGNED_VALUES: usize = 5;
/// Largest number of values of an ordered parameter for separate coordinates of its values.
const MAX_ONE_HOT_VALUES: usize = 8;
/// Largest exponent of two that counts as alignment: no hardware width exceeds this power of two.
const MAX_ALIGNED_BITS: u32 = 7;

/// One coordinate of the cube, with the position of each choice of its parameter.
#[derive(Debug)]
struct Coordinate {
    parameter: usize,
    positions: Vec<f64>,
    axis: Axis,
}

/// Mapping of a parameter's values to a coordinate.
#[derive(Debug, Clone)]
enum Axis {
    /// Size of the value, by logarithm if `ratio`.
    Size { ratio: bool, normalizer: Normalizer },
    /// Exponent of two in the value.
    Twos { normalizer: Normalizer },
    /// One-hot coordinate of this choice.
    Corner { choice: u32 },
}

impl Axis {
    fn position(&self, parameter: &Parameter, value: &Value) -> Option<f64> {
        match self {
            Self::Size { ratio, normalizer } => {
                let number = value.as_f64()?;
                let size = if *ratio { number.log2() } else { number };
                // Only a positive number has a logarithm.
                Some(normalizer.normalize(size)).filter(|position| position.is_finite())
            }
            Self::Twos { normalizer } => {
                let number = value.as_f64().filter(is_integer)?;
                Some(normalizer.normalize(trailing_twos(number)))
            }
            Self::Corner { choice } => {
                let here = parameter.index_of(value) == Some(*choice);
                // Two corners are at distance one.
                Some(if here { FRAC_1_SQRT_2 } else { 0.0 })
            }
        }
    }
}

/// Linear map of the numbers of one axis to the unit interval.
#[derive(Debug, Clone, Copy)]
struct Normalizer {
    low: f64,
    width: f64,
}

impl Normalizer {
    fn new(numbers: &[f64]) -> Self {
        let (low, high) = min_max(numbers);
        let width = if high > low { high - low } else { 1.0 };
        Self { low, width }
    }

    fn normalize(&self, number: f64) -> f64 {
        (number - self.low) / self.width
    }
}

/// Encoder of configurations as points.
///
/// An ordered parameter has one coordinate, by logarithm if its values span ratios. A second
/// coordinate holds the exponent of two, unless it follows from the size. It separates 96, 112 and
/// 128 threads, which are close in size but differ in alignment. The values of an unordered
/// parameter are at distance one from each other. So are those of a short ordered parameter, in an
/// additional dimension: a tile of 64 need not perform between tiles of 32 and 128.
#[derive(Debug)]
pub(super) struct Encoder {
    coordinates: Vec<Coordinate>,
    /// Dimension of each coordinate, ascending. Coordinates of one dimension share a length scale.
    dimension_of: Vec<usize>,
    dimensions: usize,
    /// Number of coordinates before those that separate the values of ordered parameters.
    smooth: usize,
}

impl Encoder {
    pub(super) fn new(space: &Space, alignment: bool, one_hot: bool) -> Self {
        let mut encoder = Self {
            coordinates: Vec::new(),
            dimension_of: Vec::new(),
            dimensions: 0,
            smooth: 0,
        };
        for (at, parameter) in space.parameters().iter().enumerate() {
            if parameter.values.len() < 2 {
                continue;
            }
            for axes in dimensions(parameter, alignment) {
                encoder.push(at, parameter, axes);
            }
        }
        encoder.smooth = encoder.coordinates.len();
        // Last, so that the other coordinates have equal indices with and without these.
        for (at, parameter) in space.parameters().iter().enumerate() {
            if one_hot
                && parameter.ordered
                // Two values are separate in their first coordinate.
                && (3..=MAX_ONE_HOT_VALUES).contains(&parameter.values.len())
            {
                encoder.push(at, parameter, corners(parameter));
            }
        }
        encoder
    }

    /// Adds a dimension with these coordinates.
    fn push(&mut self, at: usize, parameter: &Parameter, axes: Vec<Axis>) {
        for axis in axes {
            let position = |value| axis.position(parameter, value).unwrap_or(0.0);
            self.coordinates.push(Coordinate {
                parameter: at,
                positions: parameter.values.iter().map(position).collect(),
                axis,
            });
            self.dimension_of.push(self.dimensions);
        }
        self.dimensions += 1;
    }

    /// Returns the dimension of every coordinate.
    pub(super) fn dimension_of(&self) -> &[usize] {
        &self.dimension_of
    }

    /// Returns the dimensions without the coordinates that separate values of ordered parameters.
    pub(super) fn smooth(&self) -> &[usize] {
        &self.dimension_of[..self.smooth]
    }

    pub(super) fn encode(&self, config: &Config) -> Vec<f64> {
        self.coordinates
            .iter()
            .map(|each| each.positions[config.choices()[each.parameter] as usize])
            .collect()
    }

    /// Returns the coordinates of these parameters, and the dimension of each.
    pub(super) fn coordinates_of(&self, parameters: &[usize]) -> (Vec<usize>, Vec<usize>) {
        (0..self.coordinates.len())
            .filter(|at| parameters.contains(&self.coordinates[*at].parameter))
            .map(|at| (at, self.dimension_of[at]))
            .unzip()
    }

    /// Maps a value of another space to a coordinate of this one, outside the unit interval if the
    /// value is outside the range here; `None` if the coordinate has no position for it.
    pub(super) fn position_of(
        &self,
        space: &Space,
        coordinate: usize,
        value: &Value,
    ) -> Option<f64> {
        let coordinate = &self.coordinates[coordinate];
        let parameter = &space.parameters()[coordinate.parameter];
        coordinate.axis.position(parameter, value)
    }

    /// Returns the parameter of a coordinate.
    pub(super) fn parameter_of(&self, coordinate: usize) -> usize {
        self.coordinates[coordinate].parameter
    }
}

/// Returns the dimensions of a parameter, each with its axes.
fn dimensions(parameter: &Parameter, alignment: bool) -> Vec<Vec<Axis>> {
    if !parameter.ordered {
        return vec![corners(parameter)];
    }
    let numbers: Vec<f64> = parameter.values.iter().filter_map(Value::as_f64).collect();
    let (ratio, line) = scale_sizes(&numbers);
    let mut dimensions = vec![vec![Axis::Size {
        ratio,
        normalizer: Normalizer::new(&line),
    }]];
    if let Some(twos) = powers_of_two(&numbers).filter(|_| alignment) {
        dimensions.push(vec![Axis::Twos {
            normalizer: Normalizer::new(&twos),
        }]);
    }
    dimensions
}

/// Returns one-hot axes, which put all values at distance one.
fn corners(parameter: &Parameter) -> Vec<Axis> {
    let choices = 0..parameter.values.len() as u32;
    choices.map(|choice| Axis::Corner { choice }).collect()
}

/// Returns logarithms if the numbers span ratios, else the numbers, with a flag for logarithms.
fn scale_sizes(numbers: &[f64]) -> (bool, Vec<f64>) {
    let (low, high) = min_max(numbers);
    if low > 0.0 && high / low >= MIN_RATIO_SPAN {
        (true, numbers.iter().map(|number| number.log2()).collect())
    } else {
        (false, numbers.to_vec())
    }
}

/// Returns the exponent of two of each value. `None` if the values are not integers, are few, or are all
/// powers of two, which the size already expresses.
fn powers_of_two(numbers: &[f64]) -> Option<Vec<f64>> {
    let power = |number: &f64| (*number as u64).is_power_of_two();
    let independent = numbers.len() >= MIN_ALIGNED_VALUES
        && numbers.iter().all(is_integer)
        && !numbers.iter().all(power);
    independent.then(|| numbers.iter().copied().map(trailing_twos).collect())
}

fn is_integer(number: &f64) -> bool {
    number.fract() == 0.0 && (1.0..1e9).contains(number)
}

fn trailing_twos(number: f64) -> f64 {
    f64::from((number as u64).trailing_zeros().min(MAX_ALIGNED_BITS))
}

fn min_max(numbers: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    numbers.iter().fold(start, |(low, high), number| {
        (low.min(*number), high.max(*number))
    })
}

#[cfg(test)]
mod tests;
