//! Adversarial inputs for the operations with built-in oracles.
//!
//! Random numbers hide mistakes: a softmax without its maximum is correct on N(0, 1), a dropped key of small
//! weight is below every tolerance, a tile that reads its neighbour multiplies it by zero. Each case
//! exposes one kind of mistake. The hard inputs of a user's operation are unknown. It gets its declared
//! fill with several seeds instead, and runs with zeros, without positive numbers, with large and with equal
//! numbers, with a long row and empty rows of a graph, and with whole numbers over their whole range.

mod attention;
mod long_row;
mod numbers;
mod others;
mod repeated;
mod scaled;
mod signs;
mod zeros;

use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::{Fill, in_pieces};
use tuner_core::plan::{Plan, PlanArgument, PlanReference, Role};

/// Inputs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Data {
    /// Seed of all random values.
    pub seed: u64,
    /// The hard case; `None` for the declared fills.
    pub case: Option<Case>,
    /// Set of elements that receive the extreme values; `None` leaves all values as drawn.
    pub unread: Option<u64>,
}

impl Data {
    /// Returns the declared fills with a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            case: None,
            unread: None,
        }
    }
}

impl std::fmt::Display for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.case {
            Some(case) => write!(f, "adversarial input `{}`", case.name()),
            None if self.unread.is_some() => write!(
                f,
                "seed {}, extreme values of the inputs moved to elements that the kernel does not read",
                self.seed
            ),
            None => write!(f, "seed {}", self.seed),
        }
    }
}

/// A kind of hard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    /// Each result is a copy of one distinct input element, so any wrong index shows in the bits.
    /// In attention each query attends to one key only.
    Selection,
    /// Small integers: sums are exact in any order, so the result is exact.
    Integers,
    /// Equal weights: scores of zero (K = 0, V = 1), constant rows.
    Uniform,
    /// K = 0 and V counts keys: the mean of the visible keys.
    Means,
    /// Scores up to ±10⁴: overflow if the maximum is not subtracted.
    Large,
    /// One huge element at the start of the summed elements.
    OutlierFirst,
    /// One huge element at the end of the summed elements.
    OutlierLast,
    /// Rising scores: the running maximum changes at every step.
    Ascending,
    /// Falling scores: the running maximum never changes.
    Descending,
    /// The largest numbers of the type next to the smallest.
    Extremes,
    /// Half of each row is minus infinity.
    Masked,
    /// One NaN: elements that do not depend on it keep their bits.
    Contained,
    /// Zeros among the declared values, with a reference kernel.
    Zeros,
    /// A row of a sparse matrix or graph with half of all entries, with a reference kernel.
    LongRow,
    /// Whole numbers of 8 and 16 bits over their whole range unless a fill limits them, with a reference
    /// kernel.
    WholeRange,
    /// Whole numbers of 32 and 64 bits above zero over a wide range unless a fill limits them, with a
    /// reference kernel.
    WideRange,
    /// Some whole numbers are negative ones that the reference compares with.
    Markers,
    /// Some whole numbers of 32 and 64 bits are negative, with a reference kernel.
    Signed,
    /// Whole numbers in long runs of equal ones, with a reference kernel.
    Runs,
    /// Floating-point numbers of which each occurs many times, with a reference kernel.
    Ties,
    /// No positive numbers: declared values without those above zero beside a reference kernel, else scores
    /// far below zero.
    Negative,
    /// Declared values without those below zero, with a reference kernel.
    Positive,
    /// Default values times a power of two, with a reference kernel.
    Scaled,
    /// Numbers close to zero.
    Small,
    /// Rows whose mean is far larger than their deviation.
    Shifted,
}

impl Case {
    /// Returns the display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Selection => "selection",
            Self::Integers => "small integers",
            Self::Uniform => "equal weights",
            Self::Means => "prefix means",
            Self::Large => "large scores",
            Self::OutlierFirst => "outlier first",
            Self::OutlierLast => "outlier last",
            Self::Ascending => "ascending",
            Self::Descending => "descending",
            Self::Extremes => "largest and smallest numbers",
            Self::Masked => "masked",
            Self::Contained => "NaN elsewhere",
            Self::Zeros => "zeros",
            Self::LongRow => "one long row, others empty",
            Self::WholeRange => "short whole numbers of the whole range",
            Self::WideRange => "whole numbers of a wide range",
            Self::Markers => "whole numbers that mark an element",
            Self::Signed => "negative whole numbers",
            Self::Runs => "runs of equal numbers",
            Self::Ties => "equal numbers",
            Self::Negative => "no positive numbers",
            Self::Positive => "no negative numbers",
            Self::Scaled => "large numbers",
            Self::Small => "small numbers",
            Self::Shifted => "rows of a large mean",
        }
    }

    /// Returns the cases of a built-in oracle, the most revealing first: a small budget runs a
    /// prefix.
    #[must_use]
    pub fn list(oracle: &str) -> &'static [Self] {
        match oracle {
            "attention" | "attention_f8" => &[
                Self::Selection,
                Self::Negative,
                Self::Large,
                Self::Contained,
                Self::OutlierLast,
                Self::Ascending,
                Self::Descending,
                Self::OutlierFirst,
                Self::Uniform,
                Self::Means,
                Self::Extremes,
            ],
            "gemm" => &[
                Self::Integers,
                Self::Contained,
                Self::Selection,
                Self::OutlierLast,
                Self::OutlierFirst,
                Self::Extremes,
                Self::Uniform,
            ],
            "softmax" => &[
                Self::Negative,
                Self::Large,
                Self::Contained,
                Self::Masked,
                Self::OutlierLast,
                Self::OutlierFirst,
                Self::Ascending,
                Self::Descending,
                Self::Uniform,
                Self::Extremes,
            ],
            "layernorm" => &[
                Self::Shifted,
                Self::Contained,
                Self::OutlierLast,
                Self::OutlierFirst,
                Self::Uniform,
                Self::Ascending,
                Self::Descending,
            ],
            "reduce_sum" => &[
                Self::Integers,
                Self::Small,
                Self::Contained,
                Self::OutlierLast,
                Self::OutlierFirst,
                Self::Uniform,
                Self::Extremes,
            ],
            "conv2d" => &[
                Self::Integers,
                Self::Contained,
                Self::Selection,
                Self::OutlierLast,
                Self::OutlierFirst,
            ],
            _ => &[],
        }
    }
}

/// Returns the built-in oracle of a plan's operation, if it has one.
#[must_use]
pub(crate) fn oracle_of(plan: &Plan) -> Option<&str> {
    match &plan.reference {
        PlanReference::Oracle(name) => Some(name),
        PlanReference::Kernel { oracle, .. } => oracle.as_deref(),
        PlanReference::None | PlanReference::Values(_) => None,
    }
}

/// Inputs of a case and the rules for its result.
#[derive(Debug, Clone)]
pub(super) struct CaseInputs {
    /// Inputs by argument of the plan; `None` for outputs, scratch and scalars.
    pub(super) inputs: Arc<Vec<Option<Arc<[u8]>>>>,
    /// The first output must be the rounded exact value, bit for bit.
    pub(super) exact: bool,
    /// Elements of the first output that may hold any value.
    pub(super) excused: Vec<Range<u64>>,
}

/// Builds the inputs of a case; `None` if the plan cannot express it (one head, one row, a type
/// without infinities).
pub(super) fn make(plan: &Plan, data: Data) -> Option<CaseInputs> {
    let case = data.case?;
    match case {
        Case::Zeros => return zeros::make(plan, data.seed),
        Case::LongRow => return long_row::make(plan, data.seed),
        Case::WholeRange => return numbers::short(plan, data.seed),
        Case::WideRange => return numbers::wide(plan, data.seed),
        Case::Markers => return numbers::markers(plan, data.seed),
        Case::Signed => return numbers::signed(plan, data.seed),
        Case::Runs => return repeated::runs(plan, data.seed),
        Case::Ties => return repeated::ties(plan, data.seed),
        Case::Scaled => return scaled::make(plan, data.seed),
        Case::Negative if oracle_of(plan).is_none() => return signs::make(plan, data.seed, -1.0),
        Case::Positive => return signs::make(plan, data.seed, 1.0),
        _ => {}
    }
    let form = Form::new(plan, data.seed)?;
    let built = match oracle_of(plan)? {
        "attention" | "attention_f8" => attention::fills(&form, case),
        "gemm" => others::gemm(&form, case),
        "softmax" => others::softmax(&form, case),
        "layernorm" => others::layernorm(&form, case),
        "reduce_sum" => others::sum(&form, case),
        "conv2d" => others::conv2d(&form, case),
        _ => None,
    }?;
    let mut filled = built.inputs.into_iter();
    let inputs = plan.arguments.iter().map(|argument| {
        let input = argument.role == Role::Input;
        input.then(|| filled.next()).flatten()
    });
    Some(CaseInputs {
        inputs: Arc::new(inputs.collect()),
        exact: built.exact,
        excused: built.excused,
    })
}

/// Builds the inputs of a case for a plan with a reference kernel: those that `changed` returns by the
/// index of an argument, and the declared ones for the others. `None` if a built-in oracle has its own
/// cases, or generators produce the inputs.
fn beside_reference(
    plan: &Plan,
    seed: u64,
    changed: impl Fn(u64, &PlanArgument) -> Option<Arc<[u8]>>,
) -> Option<CaseInputs> {
    let kernel = matches!(plan.reference, PlanReference::Kernel { oracle: None, .. });
    if !kernel || plan.generators.is_some() {
        return None;
    }
    let mut inputs = Vec::with_capacity(plan.arguments.len());
    for (index, argument) in (0..).zip(&plan.arguments) {
        inputs.push(match argument.role.is_filled() {
            true => match changed(index, argument) {
                Some(made) => Some(made),
                None => Some(argument.content(seed, index).ok()?),
            },
            false => None,
        });
    }
    Some(CaseInputs {
        inputs: Arc::new(inputs),
        exact: false,
        excused: Vec::new(),
    })
}

/// Builds the inputs of a case for a plan with a reference kernel: those that `takes` accepts are what `change`
/// makes of their index and declared content. `None` without such an input.
fn beside_reference_if(
    plan: &Plan,
    seed: u64,
    takes: impl Fn(&PlanArgument) -> bool,
    change: impl Fn(u64, &PlanArgument, Arc<[u8]>) -> Arc<[u8]>,
) -> Option<CaseInputs> {
    if !plan.arguments.iter().any(&takes) {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        if !takes(argument) {
            return None;
        }
        let content = argument.content(seed, index).ok()?;
        Some(change(index, argument, content))
    })
}

/// Builds an input from each number of its content.
fn each_number(argument: &PlanArgument, content: &[u8], change: impl Fn(f64) -> f64) -> Arc<[u8]> {
    let mut made = Vec::with_capacity(content.len());
    for value in content.chunks_exact(argument.element.size()) {
        let number = argument.element.decode(value);
        argument.element.encode(change(number), &mut made);
    }
    made.into()
}

/// Reports whether an argument is filled with floating-point numbers that are not fields of structs.
fn is_plain_float(argument: &PlanArgument) -> bool {
    argument.role.is_filled() && argument.layout.is_none() && argument.element.is_float()
}

/// Bytes of all inputs in order and the rules for the result.
struct CaseData {
    inputs: Vec<Arc<[u8]>>,
    exact: bool,
    excused: Vec<Range<u64>>,
}

impl CaseData {
    fn judged_by_oracle(inputs: Vec<Arc<[u8]>>) -> Self {
        Self {
            inputs,
            exact: false,
            excused: Vec::new(),
        }
    }

    fn exact_if(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    fn excusing(mut self, excused: Vec<Range<u64>>) -> Self {
        self.excused = excused;
        self
    }
}

/// Value that is XORed into a seed to get another random stream than the declared fills.
const OTHER_STREAM: u64 = 0xad5e_55a1;

/// Arguments of a plan, as the cases see them.
struct Form<'a> {
    plan: &'a Plan,
    inputs: Vec<&'a PlanArgument>,
    output: &'a PlanArgument,
    seed: u64,
}

impl<'a> Form<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Option<Self> {
        let of = |role: Role| plan.arguments.iter().filter(move |a| a.role == role);
        if plan.arguments.iter().any(|a| a.role.is_updated()) {
            // No case defines the initial contents of such a buffer.
            return None;
        }
        let output = of(Role::Output).next()?;
        Some(Self {
            plan,
            inputs: of(Role::Input).collect(),
            output,
            seed: seed ^ OTHER_STREAM,
        })
    }

    fn shape(&self, input: usize) -> &[u64] {
        self.inputs
            .get(input)
            .map_or(&[], |argument| &argument.shape)
    }

    fn element(&self, input: usize) -> Element {
        self.inputs
            .get(input)
            .map_or(Element::F32, |argument| argument.element)
    }

    fn scalar(&self, name: &str) -> Option<f64> {
        let found = self.plan.arguments.iter().find(|a| a.name == name)?;
        (found.role == Role::Scalar).then(|| found.element.round(found.value))
    }

    fn flag(&self, name: &str) -> bool {
        let sizes = self.plan.sizes.iter();
        sizes
            .into_iter()
            .any(|(size, value)| size == name && *value != 0.0)
    }

    /// Encodes an input from the value of each element.
    fn fill(&self, input: usize, value: impl Fn(u64) -> f64 + Sync) -> Arc<[u8]> {
        let Some(argument) = self.inputs.get(input) else {
            return Arc::new([]);
        };
        in_pieces(argument.element, argument.count(), |range, bytes| {
            for index in range {
                argument.element.encode(value(index), bytes);
            }
        })
    }

    /// Returns an input of the clean run.
    fn declared(&self, input: usize) -> Arc<[u8]> {
        let places = self.plan.arguments.iter().enumerate();
        let mut inputs = places.filter(|(_, argument)| argument.role == Role::Input);
        let found = inputs.nth(input);
        let content = found.and_then(|(number, argument)| {
            argument
                // `seed` is of the other stream; the XOR restores the declared seed.
                .content(self.seed ^ OTHER_STREAM, number as u64)
                .ok()
        });
        content.unwrap_or_else(|| self.fill(input, |_| 0.0))
    }

    /// Returns an input of the clean run whose elements of `range` are NaN.
    fn declared_with_nan(&self, input: usize, range: Range<u64>) -> Arc<[u8]> {
        let mut bytes = self.declared(input);
        let element = self.element(input);
        let mut nan = Vec::new();
        element.encode(f64::NAN, &mut nan);
        let at = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
        let place =
            at(range.start).saturating_mul(nan.len())..at(range.end).saturating_mul(nan.len());
        if let Some(place) = Arc::make_mut(&mut bytes).get_mut(place) {
            place
                .chunks_mut(nan.len())
                .for_each(|one| one.copy_from_slice(&nan));
        }
        bytes
    }

    /// Draws from N(0, 1), truncated at ±4.
    fn noise(&self, input: usize, index: u64) -> f64 {
        let fill = Fill::Normal {
            mean: 0.0,
            std: 1.0,
        };
        fill.value(self.seed, input as u64, index).clamp(-4.0, 4.0)
    }

    /// Draws an extreme value of a type: the largest tried of either sign, the smallest step or
    /// zero.
    fn end(&self, input: usize, index: u64, most: f64) -> f64 {
        match self.chance(input as u64, index, 4) {
            0 => most,
            1 => -most,
            2 => self.element(input).smallest_step(),
            _ => 0.0,
        }
    }

    /// Draws an integer in `0..below`.
    fn chance(&self, stream: u64, index: u64, below: u64) -> u64 {
        let fill = Fill::Uniform { min: 0.0, max: 1.0 };
        // Separate from the streams of `noise`, which are numbered by input.
        let share = fill.value(self.seed, stream.wrapping_add(1 << 32), index);
        ((share * below as f64) as u64).min(below.saturating_sub(1))
    }
}

/// Integers of either sign that both types represent exactly and that rarely repeat.
fn representable(index: u64, types: [Element; 2]) -> f64 {
    let limit = types
        // A type of unit roundoff u holds all whole numbers up to 1/u; for integers u is 0.
        .map(|element| match element.unit_roundoff() {
            0.0 => 64.0,
            u => (1.0 / u).min(1024.0),
        })
        .into_iter()
        .fold(1024.0, f64::min);
    let span = 2 * limit as u64 - 1;
    (index % span) as f64 - (limit - 1.0)
}

/// Returns the largest number to try: the type's maximum if sums of it stay finite in float32.
fn extreme(element: Element) -> f64 {
    match element {
        Element::F16 => 65504.0,
        Element::F8e4m3 => 448.0,
        Element::F8e5m2 => 57344.0,
        Element::Bf16 | Element::F32 | Element::F64 | Element::Bool => 1e30,
        Element::I8 | Element::U8 | Element::I16 | Element::U16 => 1e30,
        Element::I32 | Element::U32 | Element::I64 | Element::U64 => 1e30,
    }
}

#[cfg(test)]
mod tests;
