//! Abstract evaluation of constraints over ranges.
//!
//! A constraint with open parameters is evaluated over the ranges of their values. A state whose
//! constraint cannot become true is dropped at once. If a constraint cannot become false, its slots
//! are cleared so that more states merge. Floating point is monotone, so the results at the bounds
//! bound all results. Beyond 2^53, where whole numbers are exact and floats are not, bounds are
//! widened.

use super::expr::{Op, Val};

/// The set of values that a term may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Abs {
    /// Bounds, if the term is a number.
    lo: f64,
    hi: f64,
    /// The term may be true.
    pub(super) yes: bool,
    pub(super) no: bool,
    fault: bool,
    /// The term depends on a cleared slot of the state.
    pub(super) unset: bool,
}

/// Largest magnitude up to which floats represent every whole number.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

impl Abs {
    const ANY: Self = Self {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
        yes: true,
        no: true,
        fault: true,
        unset: false,
    };

    pub(super) const UNSET: Self = Self {
        unset: true,
        ..Self::ANY
    };

    fn range(lo: f64, hi: f64) -> Self {
        let widen = |bound: f64, outward: f64| {
            if bound.abs() <= MAX_EXACT {
                bound
            } else {
                outward
            }
        };
        let (lo, hi) = (widen(lo, lo.next_down()), widen(hi, hi.next_up()));
        // Near the limit of 127 bits a result may be a fault; comparisons with NaN are false.
        if !(lo >= -1e38 && hi <= 1e38) {
            return Self::ANY;
        }
        Self {
            lo,
            hi,
            yes: lo != 0.0 || hi != 0.0,
            no: lo <= 0.0 && hi >= 0.0,
            fault: false,
            unset: false,
        }
    }

    fn truth(yes: bool, no: bool, fault: bool) -> Self {
        Self {
            lo: f64::from(u8::from(!no)),
            hi: f64::from(u8::from(yes)),
            yes,
            no,
            fault,
            unset: false,
        }
    }

    /// Creates the set of exactly one value.
    pub(super) fn from_value(value: &Val) -> Self {
        match value {
            Val::Unset => Self::UNSET,
            Val::Bool(value) => Self::truth(*value, !*value, false),
            Val::Fault(_) => Self {
                fault: true,
                yes: false,
                no: false,
                ..Self::ANY
            },
            Val::Text(_) | Val::List(_) => Self::ANY,
            Val::Int(_) | Val::Float(_) => {
                let value = value.float().unwrap_or(f64::NAN);
                Self::range(value, value)
            }
        }
    }

    /// Returns the smallest representable superset of both sets.
    pub(super) fn hull(self, other: Self) -> Self {
        Self {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
            yes: self.yes || other.yes,
            no: self.no || other.no,
            fault: self.fault || other.fault,
            unset: self.unset || other.unset,
        }
    }

    fn with_fault(mut self, fault: bool) -> Self {
        self.fault |= fault;
        self
    }

    /// Reports whether the constraint is true for all open parameters.
    pub(super) fn always(self) -> bool {
        self.unset || (self.yes && !self.no && !self.fault)
    }

    /// Reports whether the constraint cannot be true.
    pub(super) fn never(self) -> bool {
        !self.unset && !self.yes
    }
}

/// Applies an operation to sets.
pub(super) fn apply(op: Op, args: &[Abs]) -> Abs {
    // A slot is cleared only once all its constraints are satisfied.
    if args.iter().any(|arg| arg.unset) {
        return Abs::UNSET;
    }
    match (op, args) {
        (Op::And, _) => junction(args, false),
        (Op::Or, _) => junction(args, true),
        (Op::If, [condition, yes, no]) => choose(*condition, *yes, *no),
        (Op::Not, [a]) => Abs::truth(a.no, a.yes, a.fault),
        (Op::Bool, [a]) => Abs::truth(a.yes, a.no, a.fault),
        _ => {
            let fault = args.iter().any(|arg| arg.fault);
            // An operand that is always a fault makes the result a fault.
            if args.iter().any(|arg| !arg.yes && !arg.no) {
                return Abs::truth(false, false, true);
            }
            numeric(op, args).with_fault(fault)
        }
    }
}

/// Evaluates `and`/`or`: an operand is evaluated if all earlier operands may have left the result
/// undetermined.
fn junction(args: &[Abs], stop: bool) -> Abs {
    let mut hull: Option<Abs> = None;
    let (mut stopped, mut fault) = (false, false);
    for (at, arg) in args.iter().enumerate() {
        let (stops, passes) = if stop {
            (arg.yes, arg.no)
        } else {
            (arg.no, arg.yes)
        };
        hull = Some(hull.map_or(*arg, |hull| hull.hull(*arg)));
        stopped |= stops;
        fault |= arg.fault;
        let last = at + 1 == args.len();
        // Operands after one that always determines the result are never evaluated.
        if !passes || last {
            let (yes, no) = if stop {
                (stopped, last && passes)
            } else {
                (last && passes, stopped)
            };
            let hull = hull.unwrap_or(Abs::ANY);
            return Abs {
                yes,
                no,
                fault,
                ..hull
            };
        }
    }
    Abs::ANY
}

fn choose(condition: Abs, yes: Abs, no: Abs) -> Abs {
    let chosen = match (condition.yes, condition.no) {
        (true, true) => yes.hull(no),
        (true, false) => yes,
        (false, true) => no,
        (false, false) => return Abs::truth(false, false, true),
    };
    chosen.with_fault(condition.fault)
}

#[expect(
    clippy::indexing_slicing,
    reason = "the parser has checked that these operations have operands"
)]
fn numeric(op: Op, args: &[Abs]) -> Abs {
    match (op, args) {
        (Op::Add, _) => args.iter().skip(1).fold(args[0], |sum, next| {
            Abs::range(sum.lo + next.lo, sum.hi + next.hi)
        }),
        (Op::Mul, _) => args.iter().skip(1).fold(args[0], |product, next| {
            corners(product, *next, |a, b| a * b)
        }),
        (Op::Min | Op::Max, [_, _, ..]) => args.iter().skip(1).fold(args[0], |best, next| {
            if op == Op::Min {
                Abs::range(best.lo.min(next.lo), best.hi.min(next.hi))
            } else {
                Abs::range(best.lo.max(next.lo), best.hi.max(next.hi))
            }
        }),
        (Op::Neg, [a]) => Abs::range(-a.hi, -a.lo),
        (Op::Pos, [a]) => Abs::range(a.lo, a.hi),
        (Op::Abs, [a]) => {
            let far = a.lo.abs().max(a.hi.abs());
            let near = if a.lo <= 0.0 && a.hi >= 0.0 {
                0.0
            } else {
                a.lo.abs().min(a.hi.abs())
            };
            Abs::range(near, far)
        }
        (Op::Sub, [a, b]) => Abs::range(a.lo - b.hi, a.hi - b.lo),
        (Op::Div | Op::FloorDiv | Op::CeilDiv, [a, b]) => quotient(op, *a, *b),
        (Op::Mod, [a, b]) => remainder(*a, *b),
        (Op::Lt, [a, b]) => compare(a.lo < b.hi, a.hi >= b.lo, a, b),
        (Op::Le, [a, b]) => compare(a.lo <= b.hi, a.hi > b.lo, a, b),
        (Op::Gt, [a, b]) => compare(a.hi > b.lo, a.lo <= b.hi, a, b),
        (Op::Ge, [a, b]) => compare(a.hi >= b.lo, a.lo < b.hi, a, b),
        (Op::Eq | Op::Ne, [a, b]) => {
            let meet = a.lo <= b.hi && b.lo <= a.hi;
            let single = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo && a.lo.abs() < MAX_EXACT;
            // Text and lists have the widest range, so their equality stays undecided.
            if op == Op::Eq {
                Abs::truth(meet, !single, false)
            } else {
                Abs::truth(!single, meet, false)
            }
        }
        (Op::In | Op::NotIn, _) => Abs::truth(true, true, true),
        _ => Abs::ANY,
    }
}

/// Returns the result of a comparison; an operand of unknown kind may be text, whose comparison
/// with a number is a fault.
fn compare(yes: bool, no: bool, a: &Abs, b: &Abs) -> Abs {
    let unknown = a.lo == f64::NEG_INFINITY || b.lo == f64::NEG_INFINITY;
    if unknown {
        return Abs::truth(true, true, true);
    }
    Abs::truth(yes, no, false)
}

/// Returns the extremes of a function that is monotone in each argument.
fn corners(a: Abs, b: Abs, f: impl Fn(f64, f64) -> f64) -> Abs {
    let all = [f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)];
    // An unbounded operand produces NaN at a corner: ∞ · 0 and ∞ / ∞.
    if all.iter().any(|corner| corner.is_nan()) {
        return Abs::ANY;
    }
    Abs::range(
        all.iter().copied().fold(f64::INFINITY, f64::min),
        all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}

fn quotient(op: Op, a: Abs, b: Abs) -> Abs {
    // The divisor may be 0, which is a fault, and near 0 the quotient is unbounded.
    if b.lo <= 0.0 && b.hi >= 0.0 {
        return Abs::ANY;
    }
    let quotient = corners(a, b, |a, b| a / b);
    // If both operands are this small, the rounded quotient has the floor of the exact one.
    const SMALL: f64 = 1_099_511_627_776.0;
    let small = [a.lo, a.hi, b.lo, b.hi].iter().all(|x| x.abs() <= SMALL);
    match op {
        Op::Div => quotient,
        _ if !small => Abs::range(quotient.lo.floor() - 1.0, quotient.hi.ceil() + 1.0),
        Op::FloorDiv => Abs::range(quotient.lo.floor(), quotient.hi.floor()),
        _ => Abs::range(quotient.lo.ceil(), quotient.hi.ceil()),
    }
}

fn remainder(a: Abs, b: Abs) -> Abs {
    if b.lo > 0.0 {
        // A dividend below every divisor is its own remainder.
        if a.lo >= 0.0 && a.hi < b.lo {
            return Abs::range(a.lo, a.hi);
        }
        Abs::range(0.0, b.hi)
    } else if b.hi < 0.0 {
        // Python's remainder has the sign of the divisor.
        Abs::range(b.lo, 0.0)
    } else {
        Abs::ANY
    }
}
