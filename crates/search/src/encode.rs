//! Configurations as points.

use std::f64::consts::FRAC_1_SQRT_2;
use tuner_core::value::Value;
use tuner_space::{Config, Parameter, Space};

/// Sizes are compared by ratio if the largest is this many times the smallest.
const BY_RATIO: f64 = 4.0;
/// Fewer values than this need no second coordinate.
const ALIGNED_VALUES: usize = 5;
/// Multiples of 2 to the power of this are as good as any: no hardware width is beyond it.
const ALIGNED_BITS: u32 = 7;

/// One coordinate: where each choice of a parameter lies on it.
#[derive(Debug)]
struct Coordinate {
    parameter: usize,
    places: Vec<f64>,
}

/// Turns configurations into points of a cube.
///
/// An ordered parameter lies on one line, by logarithm if it spans ratios. A second line tells how
/// often two divides a value, unless the size alone says so: 96, 112 and 128 threads are close in
/// size and far apart in what they are multiples of. The values of any other parameter are all at
/// distance one.
#[derive(Debug)]
pub(super) struct Encoder {
    coordinates: Vec<Coordinate>,
    /// Coordinates of one dimension share a length scale; rising.
    dimension_of: Vec<usize>,
    dimensions: usize,
}

impl Encoder {
    pub(super) fn new(space: &Space, alignment: bool) -> Self {
        let mut encoder = Self {
            coordinates: Vec::new(),
            dimension_of: Vec::new(),
            dimensions: 0,
        };
        for (at, parameter) in space.parameters().iter().enumerate() {
            if parameter.values.len() < 2 {
                continue;
            }
            if !parameter.ordered {
                encoder.push(at, apart(parameter));
                continue;
            }
            let numbers: Vec<f64> = parameter.values.iter().filter_map(Value::as_f64).collect();
            encoder.push(at, vec![spread(&line(&numbers))]);
            if let Some(twos) = twos(&numbers).filter(|_| alignment) {
                encoder.push(at, vec![spread(&twos)]);
            }
        }
        encoder
    }

    /// Adds a dimension of these coordinates.
    fn push(&mut self, parameter: usize, coordinates: Vec<Vec<f64>>) {
        for places in coordinates {
            self.coordinates.push(Coordinate { parameter, places });
            self.dimension_of.push(self.dimensions);
        }
        self.dimensions += 1;
    }

    /// How many length scales there are.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The dimension of every coordinate.
    pub(super) fn dimension_of(&self) -> &[usize] {
        &self.dimension_of
    }

    pub(super) fn encode(&self, config: &Config) -> Vec<f64> {
        self.coordinates
            .iter()
            .map(|each| each.places[config.choices()[each.parameter] as usize])
            .collect()
    }
}

/// Sizes matter by their ratio, counts by their difference.
fn line(numbers: &[f64]) -> Vec<f64> {
    let (low, high) = ends(numbers);
    if low > 0.0 && high / low >= BY_RATIO {
        numbers.iter().map(|number| number.log2()).collect()
    } else {
        numbers.to_vec()
    }
}

/// How often two divides each value; `None` where the values are no whole numbers, few, or all
/// powers of two.
fn twos(numbers: &[f64]) -> Option<Vec<f64>> {
    let whole = |number: &f64| number.fract() == 0.0 && (1.0..1e9).contains(number);
    let power = |number: &f64| (*number as u64).is_power_of_two();
    let tells =
        numbers.len() >= ALIGNED_VALUES && numbers.iter().all(whole) && !numbers.iter().all(power);
    tells.then(|| {
        numbers
            .iter()
            .map(|number| f64::from((*number as u64).trailing_zeros().min(ALIGNED_BITS)))
            .collect()
    })
}

/// Into the unit interval.
fn spread(numbers: &[f64]) -> Vec<f64> {
    let (low, high) = ends(numbers);
    let width = if high > low { high - low } else { 1.0 };
    numbers
        .iter()
        .map(|number| (number - low) / width)
        .collect()
}

fn ends(numbers: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    numbers.iter().fold(start, |(low, high), number| {
        (low.min(*number), high.max(*number))
    })
}

/// A corner of a simplex for each value.
fn apart(parameter: &Parameter) -> Vec<Vec<f64>> {
    let count = parameter.values.len();
    let corner = |value: usize, other: usize| if value == other { FRAC_1_SQRT_2 } else { 0.0 };
    (0..count)
        .map(|value| (0..count).map(|other| corner(value, other)).collect())
        .collect()
}
