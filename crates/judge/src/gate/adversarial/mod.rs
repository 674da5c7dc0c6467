//! Inputs that are hard on purpose, for the operations whose oracles are built in.
//!
//! Random numbers hide mistakes: a softmax without its maximum is right on N(0, 1), a dropped key
//! of small weight is below every tolerance, a tile that reads its neighbour multiplies it by zero.
//! Each case here makes one kind of mistake loud. A user's own operation gets its declared fill
//! with several seeds instead, for nobody knows what is hard for it.

mod attention;
mod others;

use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument, PlanReference, Role};

/// What the inputs of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Data {
    /// Seed of everything random in them.
    pub seed: u64,
    /// The hard case; `None` for the declared fills.
    pub case: Option<Case>,
}

impl Data {
    /// The declared fills with a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, case: None }
    }
}

impl std::fmt::Display for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.case {
            Some(case) => write!(f, "adversarial input `{}`", case.name()),
            None => write!(f, "seed {}", self.seed),
        }
    }
}

/// A kind of hard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    /// Each result is a copy of one input element, all of them distinct: any wrong index shows, bit
    /// for bit. In attention each query attends to one key only.
    Selection,
    /// Small whole numbers: every sum is exact in any order, so the result is, bit for bit.
    Integers,
    /// All weights alike: no scores (K = 0, V = 1), constant rows.
    Uniform,
    /// K = 0 and V counts keys: the mean of what is visible.
    Means,
    /// Scores up to ±10⁴: overflow where the maximum is not subtracted.
    Large,
    /// One huge element at the start of what is summed.
    OutlierFirst,
    /// One huge element at its end.
    OutlierLast,
    /// Rising scores: the running maximum changes at every step.
    Ascending,
    /// Falling scores: it never does.
    Descending,
    /// The largest numbers of the type next to its smallest.
    Extremes,
    /// Half of each row is minus infinity.
    Masked,
    /// A NaN in one place: what does not depend on it has the same bits as without it.
    Contained,
}

impl Case {
    /// Its name for people.
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
        }
    }

    /// The cases of a built-in oracle, the most telling first: where there is time for a few only,
    /// these are they.
    #[must_use]
    pub fn of(oracle: &str) -> &'static [Self] {
        match oracle {
            "attention" | "attention_f8" => &[
                Self::Selection,
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
                Self::Contained,
                Self::OutlierLast,
                Self::OutlierFirst,
                Self::Uniform,
                Self::Ascending,
                Self::Descending,
            ],
            "reduce_sum" => &[
                Self::Integers,
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

/// The built-in oracle that knows a plan's operation, where there is one.
#[must_use]
pub(crate) fn oracle_of(plan: &Plan) -> Option<&str> {
    match &plan.reference {
        PlanReference::Oracle(name) => Some(name),
        PlanReference::Kernel { oracle, .. } => oracle.as_deref(),
        PlanReference::None | PlanReference::Values(_) => None,
    }
}

/// Inputs of a case, and how its result is judged.
#[derive(Debug, Clone)]
pub(super) struct Made {
    /// By argument of the plan; `None` for those that are no inputs.
    pub(super) inputs: Arc<Vec<Option<Arc<[u8]>>>>,
    /// The first output must be the rounded exact value, bit for bit.
    pub(super) exact: bool,
    /// Elements of the first output that may be anything.
    pub(super) excused: Vec<Range<u64>>,
}

/// The inputs of a case; `None` where the plan has no place for it (one head, one row, a type
/// without infinities).
pub(super) fn make(plan: &Plan, data: Data) -> Option<Made> {
    let case = data.case?;
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
        input.then(|| filled.next()).flatten().map(Arc::from)
    });
    Some(Made {
        inputs: Arc::new(inputs.collect()),
        exact: built.exact,
        excused: built.excused,
    })
}

/// Bytes of all inputs in order, and how the result is judged.
struct Built {
    inputs: Vec<Vec<u8>>,
    exact: bool,
    excused: Vec<Range<u64>>,
}

impl Built {
    fn judged_by_oracle(inputs: Vec<Vec<u8>>) -> Self {
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

/// A plan's arguments as the cases see them.
struct Form<'a> {
    plan: &'a Plan,
    inputs: Vec<&'a PlanArgument>,
    output: &'a PlanArgument,
    seed: u64,
}

impl<'a> Form<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Option<Self> {
        let of = |role: Role| plan.arguments.iter().filter(move |a| a.role == role);
        if of(Role::Inout).next().is_some() {
            // No case says what such a buffer begins with.
            return None;
        }
        let output = of(Role::Output).next()?;
        Some(Self {
            plan,
            inputs: of(Role::Input).collect(),
            output,
            // Another stream of numbers than the declared fills have.
            seed: seed ^ 0xad5e_55a1,
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

    /// Bytes of an input from the value of each element.
    fn fill(&self, input: usize, value: impl Fn(u64) -> f64) -> Vec<u8> {
        let Some(argument) = self.inputs.get(input) else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        for index in 0..argument.count() {
            argument.element.encode(value(index), &mut bytes);
        }
        bytes
    }

    /// N(0, 1), no further out than 4.
    fn noise(&self, input: usize, index: u64) -> f64 {
        let fill = Fill::Normal {
            mean: 0.0,
            std: 1.0,
        };
        fill.value(self.seed, input as u64, index).clamp(-4.0, 4.0)
    }

    /// A number at the ends of a type, by chance: the largest tried, of either sign, its smallest step
    /// or zero.
    fn end(&self, input: usize, index: u64, most: f64) -> f64 {
        match self.chance(input as u64, index, 4) {
            0 => most,
            1 => -most,
            2 => self.element(input).smallest_step(),
            _ => 0.0,
        }
    }

    /// A whole number from 0 up to `below`, by chance.
    fn chance(&self, stream: u64, index: u64, below: u64) -> u64 {
        let fill = Fill::Uniform { min: 0.0, max: 1.0 };
        let share = fill.value(self.seed, stream.wrapping_add(1 << 32), index);
        ((share * below as f64) as u64).min(below.saturating_sub(1))
    }
}

/// Distinct-looking whole numbers that both types hold exactly, of either sign.
fn representable(index: u64, types: [Element; 2]) -> f64 {
    let limit = types
        .map(|element| match element.unit_roundoff() {
            0.0 => 64.0,
            u => (1.0 / u).min(1024.0),
        })
        .into_iter()
        .fold(1024.0, f64::min);
    let span = 2 * limit as u64 - 1;
    (index % span) as f64 - (limit - 1.0)
}

/// The largest number that is tried: the type's own where sums of them stay finite in float32.
fn extreme(element: Element) -> f64 {
    match element {
        Element::F16 => 65504.0,
        Element::F8e4m3 => 448.0,
        Element::F8e5m2 => 57344.0,
        _ => 1e30,
    }
}

#[cfg(test)]
mod tests;
