//! Configurations as points.

use std::f64::consts::FRAC_1_SQRT_2;
use tuner_core::value::Value;
use tuner_space::{Config, Parameter, Space};

/// Sizes are compared by ratio if the largest is this many times the smallest.
const BY_RATIO: f64 = 4.0;
/// Fewer values than this need no second coordinate.
const ALIGNED_VALUES: usize = 5;
/// An ordered parameter of at most so many values has each of them told from its neighbours too.
const APART_VALUES: usize = 8;
/// Multiples of 2 to the power of this are as good as any: no hardware width is beyond it.
const ALIGNED_BITS: u32 = 7;

/// One coordinate: where each choice of a parameter lies on it.
#[derive(Debug)]
struct Coordinate {
    parameter: usize,
    places: Vec<f64>,
    axis: Axis,
}

/// How a value becomes a place.
#[derive(Debug, Clone)]
enum Axis {
    /// By its size.
    Size { ratio: bool, spread: Spread },
    /// By how often two divides it.
    Twos { spread: Spread },
    /// On the corner of this choice, or not.
    Corner { choice: u32 },
}

impl Axis {
    fn place(&self, parameter: &Parameter, value: &Value) -> Option<f64> {
        match self {
            Self::Size { ratio, spread } => {
                let number = value.as_f64()?;
                let size = if *ratio { number.log2() } else { number };
                Some(spread.of(size)).filter(|place| place.is_finite())
            }
            Self::Twos { spread } => {
                let number = value.as_f64().filter(whole)?;
                Some(spread.of(trailing_twos(number)))
            }
            Self::Corner { choice } => {
                let here = parameter.index_of(value) == Some(*choice);
                Some(if here { FRAC_1_SQRT_2 } else { 0.0 })
            }
        }
    }
}

/// Takes the numbers of one axis into the unit interval.
#[derive(Debug, Clone, Copy)]
struct Spread {
    low: f64,
    width: f64,
}

impl Spread {
    fn new(numbers: &[f64]) -> Self {
        let (low, high) = ends(numbers);
        let width = if high > low { high - low } else { 1.0 };
        Self { low, width }
    }

    fn of(&self, number: f64) -> f64 {
        (number - self.low) / self.width
    }
}

/// Turns configurations into points of a cube.
///
/// An ordered parameter lies on one line, by logarithm if it spans ratios. A second line tells how
/// often two divides a value, unless the size alone says so: 96, 112 and 128 threads are close in
/// size and far apart in what they are multiples of. The values of any other parameter are all at
/// distance one. So are those of an ordered parameter of few values, in a dimension of its own
/// beside the line: what the compiler makes of a tile of 64 need not lie between what it makes of 32
/// and of 128.
#[derive(Debug)]
pub(super) struct Encoder {
    coordinates: Vec<Coordinate>,
    /// Coordinates of one dimension share a length scale; rising.
    dimension_of: Vec<usize>,
    dimensions: usize,
    /// Coordinates before those that tell values of ordered parameters apart.
    smooth: usize,
}

impl Encoder {
    pub(super) fn new(space: &Space, alignment: bool, apart: bool) -> Self {
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
        // Last, so that coordinates have the same places without them.
        for (at, parameter) in space.parameters().iter().enumerate() {
            if apart && parameter.ordered && (3..=APART_VALUES).contains(&parameter.values.len()) {
                encoder.push(at, parameter, corners(parameter));
            }
        }
        encoder
    }

    /// Adds a dimension of these coordinates.
    fn push(&mut self, at: usize, parameter: &Parameter, axes: Vec<Axis>) {
        for axis in axes {
            let place = |value| axis.place(parameter, value).unwrap_or(0.0);
            self.coordinates.push(Coordinate {
                parameter: at,
                places: parameter.values.iter().map(place).collect(),
                axis,
            });
            self.dimension_of.push(self.dimensions);
        }
        self.dimensions += 1;
    }

    /// The dimension of every coordinate.
    pub(super) fn dimension_of(&self) -> &[usize] {
        &self.dimension_of
    }

    /// The same without those last coordinates that tell values of ordered parameters apart.
    pub(super) fn smooth(&self) -> &[usize] {
        &self.dimension_of[..self.smooth]
    }

    pub(super) fn encode(&self, config: &Config) -> Vec<f64> {
        self.coordinates
            .iter()
            .map(|each| each.places[config.choices()[each.parameter] as usize])
            .collect()
    }

    /// The coordinates of these parameters, and the dimension of each.
    pub(super) fn coordinates_of(&self, parameters: &[usize]) -> (Vec<usize>, Vec<usize>) {
        (0..self.coordinates.len())
            .filter(|at| parameters.contains(&self.coordinates[*at].parameter))
            .map(|at| (at, self.dimension_of[at]))
            .unzip()
    }

    /// Where a value of another space lies on a coordinate of this one, beyond its ends where it is
    /// beyond the values here; `None` where it has no place.
    pub(super) fn place_of(&self, space: &Space, coordinate: usize, value: &Value) -> Option<f64> {
        let coordinate = &self.coordinates[coordinate];
        let parameter = &space.parameters()[coordinate.parameter];
        coordinate.axis.place(parameter, value)
    }

    /// The parameter of a coordinate.
    pub(super) fn parameter_of(&self, coordinate: usize) -> usize {
        self.coordinates[coordinate].parameter
    }
}

/// The dimensions of a parameter, each with its axes.
fn dimensions(parameter: &Parameter, alignment: bool) -> Vec<Vec<Axis>> {
    if !parameter.ordered {
        return vec![corners(parameter)];
    }
    let numbers: Vec<f64> = parameter.values.iter().filter_map(Value::as_f64).collect();
    let (ratio, line) = line(&numbers);
    let mut dimensions = vec![vec![Axis::Size {
        ratio,
        spread: Spread::new(&line),
    }]];
    if let Some(twos) = twos(&numbers).filter(|_| alignment) {
        dimensions.push(vec![Axis::Twos {
            spread: Spread::new(&twos),
        }]);
    }
    dimensions
}

/// All values at distance one.
fn corners(parameter: &Parameter) -> Vec<Axis> {
    let choices = 0..parameter.values.len() as u32;
    choices.map(|choice| Axis::Corner { choice }).collect()
}

/// Sizes matter by their ratio, counts by their difference.
fn line(numbers: &[f64]) -> (bool, Vec<f64>) {
    let (low, high) = ends(numbers);
    if low > 0.0 && high / low >= BY_RATIO {
        (true, numbers.iter().map(|number| number.log2()).collect())
    } else {
        (false, numbers.to_vec())
    }
}

/// How often two divides each value; `None` where the values are no whole numbers, few, or all
/// powers of two.
fn twos(numbers: &[f64]) -> Option<Vec<f64>> {
    let power = |number: &f64| (*number as u64).is_power_of_two();
    let tells =
        numbers.len() >= ALIGNED_VALUES && numbers.iter().all(whole) && !numbers.iter().all(power);
    tells.then(|| numbers.iter().copied().map(trailing_twos).collect())
}

fn whole(number: &f64) -> bool {
    number.fract() == 0.0 && (1.0..1e9).contains(number)
}

fn trailing_twos(number: f64) -> f64 {
    f64::from((number as u64).trailing_zeros().min(ALIGNED_BITS))
}

fn ends(numbers: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    numbers.iter().fold(start, |(low, high), number| {
        (low.min(*number), high.max(*number))
    })
}

#[cfg(test)]
mod tests;
