//! Built-in references: float64 results with an error bound for each element.
//!
//! An oracle computes only the requested elements, so a sample of a large problem costs no more than a
//! small problem. The bounds are derived from intermediate quantities of the reference, not from a flat
//! tolerance: a flat 1e-2 passes an attention kernel that drops keys at S = 8192.

mod attention;
mod conv2d;
mod gemm;
pub(super) mod caching;
pub(super) mod panels;
mod row;

use attention::Attention;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::record::Verdict;

/// An argument with type, shape and bytes.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Argument name.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// Extent of each dimension, outermost first.
    pub shape: Vec<u64>,
    /// Contents, little-endian, row-major. Empty for outputs.
    pub bytes: Arc<[u8]>,
}

impl Tensor {
    /// Returns the number of elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns element `index` as float64.
    #[must_use]
    pub fn value_at(&self, index: u64) -> f64 {
        let start = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.element.size());
        self.bytes
            .get(start..)
            .map_or(f64::NAN, |rest| self.element.decode(rest))
    }

    /// Returns `count` elements from `start` with stride `step`, as float64.
    #[must_use]
    pub fn strided(&self, start: u64, count: u64, step: u64) -> Vec<f64> {
        (0..count)
            .map(|i| self.value_at(start + i * step))
            .collect()
    }
}

/// Arguments and sizes of one problem, for building an oracle.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Inputs, in argument order.
    pub inputs: Vec<Tensor>,
    /// Outputs, in argument order, without bytes.
    pub outputs: Vec<Tensor>,
    /// Scalar arguments by name, as the kernel receives them (rounded to their type).
    pub scalars: BTreeMap<String, f64>,
    /// The problem's sizes and flags by name.
    pub sizes: BTreeMap<String, f64>,
}

/// The expected value of one element and its tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// The value in exact arithmetic, up to float64 rounding.
    pub value: f64,
    /// Largest allowed absolute difference.
    pub tolerance: f64,
    /// Expected root-mean-square error of an honest kernel times a safety factor: the sum of
    /// squares over a tile bounds the tile's error norm.
    pub rms: f64,
}

/// A built-in reference.
pub trait Oracle: Send + Sync {
    /// Computes the expected values of `count` consecutive elements of output number `output` from
    /// `start`.
    fn span(&self, output: usize, start: u64, count: u64) -> Vec<Expected>;

    /// Returns the length of consecutive runs that are judged by their norm.
    fn tile(&self, output: usize) -> u64;

    /// Returns the number of consecutive elements with correlated errors, such as those of a row
    /// whose weights were rounded once: a norm needs several such groups.
    fn together(&self) -> u64 {
        1
    }

    /// Returns the approximate number of multiplications of an element.
    fn work(&self) -> u64 {
        1
    }

    /// Returns the approximate memory used in addition to the inputs, bytes.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Reason why an oracle cannot judge these arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// Unknown oracle name.
    #[error("unknown oracle `{0}`; the built-in ones are {known}", known = names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// The arguments do not have the oracle's form.
    #[error("oracle `{oracle}` needs {needs}")]
    Form {
        /// The oracle.
        oracle: &'static str,
        /// The required form.
        needs: String,
    },
    /// The reference kernel has a hazard.
    #[error("the reference kernel itself is wrong on problem {problem}: {kind}: {detail}")]
    ReferenceHazard {
        /// The verdict that the hazard implies.
        kind: Verdict,
        /// The problem's name.
        problem: String,
        /// The event and its position.
        detail: String,
    },
    /// The reference kernel leaves elements of an output unwritten.
    #[error(
        "the reference kernel leaves elements of `{output}` unwritten on problem {problem}, from \
         element {first} of {count} on: a reference writes every element of every output; see to \
         its `grid` and `block`, and to the ends of its loops, or give `{output}` the role `inout` if \
         it has gaps by design"
    )]
    ReferenceIncomplete {
        /// The output.
        output: String,
        /// The problem's name.
        problem: String,
        /// The first unwritten element.
        first: u64,
        /// Elements of the output.
        count: u64,
    },
    /// The fill data of an argument cannot be used.
    #[error("the data of `{argument}` cannot be used on problem {problem}: {why}")]
    Data {
        /// The argument.
        argument: String,
        /// The problem's name.
        problem: String,
        /// The reason.
        why: String,
    },
    /// The naive reference kernel itself is wrong.
    #[error("the reference kernel disagrees with the float64 oracle `{oracle}`: {detail}")]
    Disagrees {
        /// The oracle.
        oracle: String,
        /// The first difference.
        detail: String,
    },
}

/// A row of [`BUILT_IN`].
struct BuiltIn {
    name: &'static str,
    /// Version of the values and bounds. It is raised when one of them changes, because earlier results
    /// were judged by the old bounds.
    version: u32,
    build: fn(&Problem) -> Result<Arc<dyn Oracle>, OracleError>,
}

const fn built_in(
    name: &'static str,
    version: u32,
    build: fn(&Problem) -> Result<Arc<dyn Oracle>, OracleError>,
) -> BuiltIn {
    BuiltIn {
        name,
        version,
        build,
    }
}

/// The built-in oracles.
static BUILT_IN: [BuiltIn; 7] = [
    built_in("gemm", 1, |it| Ok(Arc::new(gemm::Gemm::new(it)?))),
    // 2: the loss of small weights in float16.
    built_in("attention", 2, |it| Ok(Arc::new(Attention::new(it)?))),
    built_in("attention_f8", 2, |it| Ok(Arc::new(Attention::scaled(it)?))),
    built_in("softmax", 1, |it| Ok(Arc::new(row::Row::softmax(it)?))),
    built_in("layernorm", 1, |it| Ok(Arc::new(row::Row::layernorm(it)?))),
    built_in("reduce_sum", 1, |it| {
        Ok(Arc::new(row::Row::reduce_sum(it)?))
    }),
    built_in("conv2d", 1, |it| Ok(Arc::new(conv2d::Conv2d::new(it)?))),
];

/// Returns the names of the built-in oracles.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|it| it.name)
}

/// Returns the version of an oracle's values and bounds.
#[must_use]
pub fn version(oracle: &str) -> u32 {
    let known = BUILT_IN.iter().find(|it| it.name == oracle);
    known.map_or(1, |it| it.version)
}

/// Builds the oracle of that name for a problem.
///
/// # Errors
/// An unknown name, or arguments whose number or shapes do not fit the operation.
pub fn build(name: &str, problem: &Problem) -> Result<Arc<dyn Oracle>, OracleError> {
    match BUILT_IN.iter().find(|it| it.name == name) {
        Some(known) => (known.build)(problem),
        None => Err(OracleError::Unknown(name.to_owned())),
    }
}

/// Returns the number of elements in whole rows whose norm is judged: enough for a statistic, few enough
/// that one wrong row is not diluted.
fn rows_together(columns: u64) -> u64 {
    const ELEMENTS: u64 = 256;
    let columns = columns.max(1);
    columns * ELEMENTS.div_ceil(columns)
}

/// Computes a range from whole rows, each computed once.
fn by_rows(
    range: Range<u64>,
    columns: u64,
    work_out: impl Fn(u64) -> Vec<Expected>,
) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut current = (u64::MAX, Vec::new());
    for index in range {
        let row = index / columns;
        if current.0 != row {
            current = (row, work_out(row));
        }
        let column = usize::try_from(index % columns).unwrap_or(0);
        expected.extend(current.1.get(column).copied());
    }
    expected
}

/// Error model of a kernel's summation of one result.
#[derive(Debug, Clone, Copy)]
struct Sums {
    /// Terms of a sum.
    terms: f64,
    /// Unit roundoff of the running sum: float64 where the output is, else float32.
    u: f64,
    /// Bits of the narrowest floating-point input.
    bits: usize,
}

impl Sums {
    fn new(terms: u64, inputs: &[&Tensor], out: &Tensor) -> Self {
        let floats = inputs.iter().map(|tensor| tensor.element);
        let bits = floats.filter(|element| element.is_float());
        Self {
            terms: terms as f64,
            u: out.element.accumulator().unit_roundoff(),
            bits: bits.map(|element| 8 * element.size()).min().unwrap_or(64),
        }
    }

    /// Returns the expectation of an output of this type: a sum of products equal to `value` with
    /// root sum of squares `root`, rounded once.
    fn of_products(&self, element: Element, root: f64, value: f64) -> Expected {
        let u = element.unit_roundoff();
        Expected {
            value,
            tolerance: 1.05 * u * value.abs()
                + self.products(root, value)
                + element.smallest_step(),
            rms: (0.6 * u * value).hypot(self.products_rms(root, value)),
        }
    }

    /// Returns the error bound of a sum of products equal to `value` with root sum of squares `root`: four
    /// units for every 16 terms, because tensor cores truncate each accumulation step of 16. At least four
    /// such steps are allowed, so that a handful of terms may be rounded in any order. If the sum is large
    /// compared with `root`, so were its partial sums: each of `terms` roundings errs by up to a unit of
    /// one, at random, and 2 √terms is 3.5 times their rms.
    fn products(&self, root: f64, value: f64) -> f64 {
        ((self.terms / 16.0).max(4.0) * 4.0 * self.u + self.eighths()) * root
            + 2.0 * self.walk(value)
    }

    /// Returns the rms of the same error over many results: a random walk of roundings. If tensor cores may
    /// have multiplied, it includes half a unit lost in each of their steps, always towards zero.
    fn products_rms(&self, root: f64, value: f64) -> f64 {
        let steps = if self.bits <= 16 {
            self.terms / 16.0
        } else {
            0.0
        };
        let walk = self.terms.max(64.0) * (self.u * root).powi(2) + self.walk(value).powi(2);
        (walk + ((steps * self.u + self.eighths() / 3.0) * root).powi(2)).sqrt()
    }

    /// Returns the error bound of a plain sum without tensor cores: four times the random walk
    /// through partial sums that cancel, and as above if they do not cancel.
    fn plain(&self, root: f64, value: f64) -> f64 {
        4.0 * self.terms.sqrt().max(8.0) * self.u * root + 2.0 * self.walk(value)
    }

    /// Returns the rms of the same error.
    fn plain_rms(&self, root: f64, value: f64) -> f64 {
        let walk = self.terms.max(64.0) * (self.u * root).powi(2) + self.walk(value).powi(2);
        walk.sqrt()
    }

    /// Returns the size of a random walk of `terms` roundings of numbers up to `value`.
    fn walk(&self, value: f64) -> f64 {
        self.terms.sqrt() * self.u * value.abs()
    }

    /// Returns the additional loss of 8-bit products.
    fn eighths(&self) -> f64 {
        if self.bits > 8 {
            return 0.0;
        }
        eighths(self.terms)
    }
}

/// Returns the possible loss of a sum of `terms` products over its root sum of squares. Tensor cores of
/// sm_89 and sm_90 keep about 13 bits below the largest of a step's 32 8-bit products and of the partial
/// sum.
pub(super) fn eighths(terms: f64) -> f64 {
    (terms / 32.0).max(4.0) * 3.0 * 2f64.powi(-13)
}

#[cfg(test)]
mod tests;
