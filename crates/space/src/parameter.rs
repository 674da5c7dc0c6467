//! Parameters and configurations.

use std::collections::HashSet;
use std::sync::Arc;
use tuner_core::value::Value;

/// One tunable parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Name, which is also the macro's name in the template.
    pub name: String,
    /// The possible values, in declared order, without repeats.
    pub values: Arc<[Value]>,
    /// Index of the default value.
    pub default: u32,
    /// Description for users; may be empty.
    pub doc: String,
    /// The values are numbers in ascending or descending order, so that a step up or down is meaningful.
    pub ordered: bool,
}

impl Parameter {
    /// Creates a parameter whose default is its first value.
    #[must_use]
    pub fn new(name: impl Into<String>, values: impl Into<Arc<[Value]>>) -> Self {
        let values: Arc<[Value]> = values.into();
        Self {
            name: name.into(),
            ordered: is_ordered(&values),
            values,
            default: 0,
            doc: String::new(),
        }
    }

    /// Returns the index of a value. Numbers match by value, so that `1` finds `1.0`, but an
    /// identical value takes precedence.
    #[must_use]
    pub fn index_of(&self, wanted: &Value) -> Option<u32> {
        let exact = self.values.iter().position(|value| value == wanted);
        exact
            .or_else(|| {
                let number = wanted.as_f64()?;
                self.values
                    .iter()
                    .position(|value| value.as_f64() == Some(number))
            })
            .map(|at| at as u32)
    }
}

fn is_ordered(values: &[Value]) -> bool {
    // As numbers booleans would be 0 and 1, but a step up from `false` is meaningless.
    if values.iter().any(|value| matches!(value, Value::Bool(_))) {
        return false;
    }
    let Some(numbers) = values
        .iter()
        .map(Value::as_f64)
        .collect::<Option<Vec<f64>>>()
    else {
        return false;
    };
    numbers.is_sorted_by(|a, b| a < b) || numbers.is_sorted_by(|a, b| a > b)
}

/// One configuration: for every parameter, in declared order, the index of its chosen value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Config(Box<[u32]>);

impl Config {
    /// Creates a configuration of these choices.
    #[must_use]
    pub fn new(choices: impl Into<Box<[u32]>>) -> Self {
        Self(choices.into())
    }

    /// Creates the configuration of the parameters' defaults.
    pub(super) fn of_defaults(parameters: &[Parameter]) -> Self {
        Self(parameters.iter().map(|each| each.default).collect())
    }

    /// Returns the choices, in the order of the parameters.
    #[must_use]
    pub fn choices(&self) -> &[u32] {
        &self.0
    }

    /// Reports whether the configuration has a valid choice for each of these parameters.
    #[must_use]
    pub(super) fn fits(&self, parameters: &[Parameter]) -> bool {
        let within = |(choice, parameter): (&u32, &Parameter)| {
            usize::try_from(*choice).is_ok_and(|choice| choice < parameter.values.len())
        };
        self.0.len() == parameters.len() && self.0.iter().zip(parameters).all(within)
    }

    /// Returns a copy with one choice changed.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "a window of two has two elements, and parameters are numbered by their space"
    )]
    pub fn with(&self, parameter: usize, choice: u32) -> Self {
        let mut choices = self.0.clone();
        choices[parameter] = choice;
        Self(choices)
    }
}

/// Definition of neighbouring configurations; all differ in one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbourhood {
    /// Any other value of the parameter.
    Hamming,
    /// The next value up or down if its values are ordered; any other value if they are not.
    Adjacent,
}

/// Returns the position of the first repeated value.
#[expect(
    clippy::indexing_slicing,
    reason = "a window of two has two elements, and parameters are numbered by their space"
)]
pub(super) fn repeated(values: &[Value]) -> Option<usize> {
    // Most lists ascend and cannot have repeats.
    if values.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    let mut seen = HashSet::with_capacity(values.len());
    values.iter().position(|value| !seen.insert(value))
}
