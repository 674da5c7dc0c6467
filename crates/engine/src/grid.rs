//! Grid of shapes: the problems of an expression such as `S=128..16384:x2,D=64,128,T=S`.

use std::str::FromStr;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;
use tuner_space::{KernelSpec, Problem, suggest};

/// Limit of the number of shapes.
const MAX_SHAPES: usize = 128;
/// Largest size: kernels and launchers take 32-bit integers.
const MAX_SIZE: i64 = i32::MAX as i64;

/// Sizes of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Sizes with several values, in the order of the text.
    axes: Vec<(String, Vec<i64>)>,
    /// Sizes that equal another one.
    equal: Vec<(String, String)>,
    /// Problem of the file that supplies the other sizes; the first by default.
    base: Option<String>,
}

/// Problem of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridProblem {
    /// Problem with all its sizes.
    pub problem: Problem,
    /// Index of its value on each axis.
    pub place: Vec<usize>,
}

/// Problems of a run that replace those of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shapes {
    /// A grid.
    Grid(Grid),
    /// Names with sizes.
    Listed(Vec<(String, ConfigValues)>),
}

impl Shapes {
    /// Returns the problems for a kernel.
    ///
    /// # Errors
    /// As for [`Grid::problems`], and listed sizes that are not those of the kernel.
    pub fn problems(&self, spec: &KernelSpec) -> Result<Vec<Problem>, String> {
        match self {
            Self::Grid(grid) => {
                let shapes = grid.problems(spec)?.into_iter();
                Ok(shapes.map(|shape| shape.problem).collect())
            }
            Self::Listed(listed) => listed
                .iter()
                .map(|(name, sizes)| listed_problem(spec, name, sizes))
                .collect(),
        }
    }
}

/// Checks that sizes have the names of the kernel's sizes.
fn listed_problem(spec: &KernelSpec, name: &str, sizes: &ConfigValues) -> Result<Problem, String> {
    let base = spec.problems.first().ok_or("the kernel has no problem")?;
    for (size, _) in sizes {
        size_of(base, size)?;
    }
    let missing = base
        .sizes
        .iter()
        .find(|(size, _)| sizes.iter().all(|(one, _)| one != size));
    if let Some((size, _)) = missing {
        return Err(format!("problem `{name}` lacks the size `{size}`"));
    }
    Ok(Problem {
        name: name.to_owned(),
        sizes: sizes.clone(),
        weight: None,
    })
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut grid = Self {
            axes: Vec::new(),
            equal: Vec::new(),
            base: None,
        };
        for item in text.split(',').map(str::trim) {
            let values = match item.split_once('=') {
                Some((name, values)) => {
                    let name = name.trim();
                    grid.declare(name)?;
                    let values = values.trim();
                    if values.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                    {
                        grid.equal.push((name.to_owned(), values.to_owned()));
                        continue;
                    }
                    grid.axes.push((name.to_owned(), Vec::new()));
                    values
                }
                None => item,
            };
            let Some((name, known)) = grid.axes.last_mut() else {
                return Err(format!(
                    "`{item}` has no name; type S=128..16384:x2,D=64,128"
                ));
            };
            known.extend(parse_values(values).map_err(|why| format!("{name}: {why}"))?);
            known.sort_unstable();
            // A value named twice would make two problems of the same name.
            known.dedup();
        }
        grid.check()?;
        Ok(grid)
    }
}

impl Grid {
    /// Sets the problem of the file that supplies the other sizes.
    #[must_use]
    pub fn with_base(mut self, base: Option<String>) -> Self {
        self.base = base;
        self
    }

    /// Returns the sizes with several values.
    #[must_use]
    pub fn axes(&self) -> &[(String, Vec<i64>)] {
        &self.axes
    }

    fn declare(&self, name: &str) -> Result<(), String> {
        let known = self.axes.iter().map(|(known, _)| known);
        let mut known = known.chain(self.equal.iter().map(|(known, _)| known));
        if name.is_empty() {
            return Err("a size has no name; type S=128..16384:x2,D=64,128".to_owned());
        }
        match known.any(|known| known == name) {
            true => Err(format!("`{name}` is named twice")),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.axes.is_empty() {
            return Err("no size has values; type S=128..16384:x2,D=64,128".to_owned());
        }
        for (name, other) in &self.equal {
            if self.axes.iter().all(|(axis, _)| axis != other) {
                return Err(format!(
                    "{name}={other}: `{other}` has no values in this grid; add {other}=VALUES"
                ));
            }
        }
        let count = self.axes.iter().try_fold(1_usize, |count, (_, values)| {
            count
                .checked_mul(values.len())
                .filter(|count| *count <= MAX_SHAPES)
        });
        match count {
            Some(_) => Ok(()),
            None => Err(format!(
                "a grid has at most {MAX_SHAPES} shapes; use larger steps"
            )),
        }
    }

    /// Returns the problems of the grid for a kernel; a size without values takes that of the base
    /// problem.
    ///
    /// # Errors
    /// A name that is not a size of the kernel, an unknown base problem, and sizes of zero.
    pub fn problems(&self, spec: &KernelSpec) -> Result<Vec<GridProblem>, String> {
        let base = match &self.base {
            Some(name) => spec.problem(name).ok_or_else(|| {
                let names = spec.problems.iter().map(|problem| &*problem.name);
                let known: Vec<&str> = names.collect();
                format!(
                    "the problem `{name}` is not known; choose from: {}",
                    known.join(", ")
                )
            })?,
            None => spec.problems.first().ok_or("the kernel has no problem")?,
        };
        for (name, _) in &self.axes {
            size_of(base, name)?;
        }
        for (name, _) in &self.equal {
            size_of(base, name)?;
        }
        for (name, values) in &self.axes {
            // Zero is a value of flags only.
            let flag = matches!(size_of(base, name)?, Value::Int(0 | 1) | Value::Bool(_));
            if !flag && values.contains(&0) {
                return Err(format!("{name}=0: a size of at least 1 is needed"));
            }
        }
        let mut places = vec![Vec::new()];
        for (_, values) in &self.axes {
            let longer = places.iter().flat_map(|place: &Vec<usize>| {
                (0..values.len()).map(|next| [place.as_slice(), &[next]].concat())
            });
            places = longer.collect();
        }
        Ok(places
            .into_iter()
            .map(|place| self.problem(spec, base, place))
            .collect())
    }

    fn problem(&self, spec: &KernelSpec, base: &Problem, place: Vec<usize>) -> GridProblem {
        let of_axis = |name: &str| {
            let mut axes = self.axes.iter().zip(&place);
            let found = axes.find(|((axis, _), _)| axis == name);
            found.and_then(|((_, values), place)| values.get(*place).copied())
        };
        let value = |name: &str, known: &Value| {
            let same = self.equal.iter().find(|(other, _)| other == name);
            let number = of_axis(same.map_or(name, |(_, other)| other));
            match (number, known) {
                (None, known) => known.clone(),
                (Some(number), Value::Bool(_)) => Value::Bool(number != 0),
                (Some(number), _) => Value::Int(number),
            }
        };
        let sizes = base.sizes.iter();
        let sizes: ConfigValues = sizes
            .map(|(name, known)| (name.clone(), value(name, known)))
            .collect();
        // Results of a problem of the file also count for equal sizes in a grid.
        let declared = spec.problems.iter().find(|known| known.sizes == sizes);
        let problem = declared.cloned().unwrap_or_else(|| Problem {
            name: sizes
                .iter()
                .map(|(name, value)| format!("{}{value}", name.to_lowercase()))
                .collect::<Vec<_>>()
                .join("_"),
            sizes,
            weight: None,
        });
        GridProblem { problem, place }
    }
}

/// Returns the value of a size.
fn size_of<'p>(base: &'p Problem, name: &str) -> Result<&'p Value, String> {
    let found = base.sizes.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value).ok_or_else(|| {
        let names = || base.sizes.iter().map(|(name, _)| name.as_str());
        let near = suggest(name, names());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!(
            "`{name}` is not a size of the kernel{near} It has {}",
            names().collect::<Vec<_>>().join(", ")
        )
    })
}

/// Parses `64`, `128..16384:x2` or `1..4:+1`.
fn parse_values(text: &str) -> Result<Vec<i64>, String> {
    let number = |text: &str| {
        let number: Result<i64, _> = text.trim().parse();
        match number {
            Ok(number) if (0..=MAX_SIZE).contains(&number) => Ok(number),
            Ok(number) => Err(format!("{number} is not from 0 to {MAX_SIZE}")),
            Err(_) => Err(format!(
                "`{text}` is not a whole number; type values such as 64,128 or a range such as \
                 128..16384:x2"
            )),
        }
    };
    let Some((range, step)) = text.split_once(':') else {
        return match text.contains("..") {
            true => Err(format!(
                "`{text}` has no step; type {text}:x2 or {text}:+64"
            )),
            false => Ok(vec![number(text)?]),
        };
    };
    let (from, to) = range
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is not a range; type 128..16384:x2"))?;
    let (from, to) = (number(from)?, number(to)?);
    let step = step.trim();
    let next: Box<dyn Fn(i64) -> i64> = match (step.strip_prefix('x'), step.strip_prefix('+')) {
        (Some(factor), _) if from > 0 && number(factor)? > 1 => {
            let factor = number(factor)?;
            Box::new(move |value| value.saturating_mul(factor))
        }
        (None, Some(add)) if number(add)? > 0 => {
            let add = number(add)?;
            Box::new(move |value| value.saturating_add(add))
        }
        _ => {
            return Err(format!(
                "`{step}` is not a step from {from}; type x2 (a factor over 1, from at least 1) or +64"
            ));
        }
    };
    if from > to {
        return Err(format!(
            "{from} is larger than {to}; type {to}..{from}:{step}"
        ));
    }
    let values = std::iter::successors(Some(from), |value| Some(next(*value)));
    // One more than allowed, so that `check` refuses the range instead of shortening it.
    let values = values.take_while(|value| *value <= to).take(MAX_SHAPES + 1);
    Ok(values.collect())
}

#[cfg(test)]
mod tests;
