//! Forms of a translated expression: integers, truth values, fractions, lists.

use tuner_space::{Op, Val};

#[derive(Debug, Clone)]
pub(super) struct Int {
    pub(super) text: String,
    pub(super) literal: Option<i64>,
    pub(super) nonnegative: bool,
    /// Upper bound of its absolute value and that of every part.
    pub(super) bound: f64,
}

impl Int {
    /// Creates one with an unknown value.
    pub(super) fn new(text: String, nonnegative: bool, bound: f64) -> Self {
        Self {
            text,
            literal: None,
            nonnegative,
            bound,
        }
    }

    /// Reports whether no part of it can exceed 64 bits, which constant expressions must not.
    pub(super) fn fits(&self) -> bool {
        self.bound < 9.2e18
    }
}

/// A translated part.
#[derive(Debug, Clone)]
pub(super) enum Form {
    Int(Int),
    /// 0 or 1.
    Truth(String),
    /// Numerator and denominator.
    Ratio(Int, Int),
    List(Vec<Form>),
}

impl Form {
    /// Reports whether no part of it can exceed 64 bits.
    pub(super) fn fits(&self) -> bool {
        match self {
            Self::Int(int) => int.fits(),
            Self::Truth(_) => true,
            Self::Ratio(numerator, denominator) => numerator.fits() && denominator.fits(),
            Self::List(items) => items.iter().all(Self::fits),
        }
    }

    pub(super) fn truth(&self) -> String {
        match self {
            Self::Int(int) => format!("({} != 0)", int.text),
            Self::Truth(text) => text.clone(),
            Self::Ratio(numerator, _) => format!("({} != 0)", numerator.text),
            Self::List(items) => usize::from(!items.is_empty()).to_string(),
        }
    }

    pub(super) fn int(&self) -> Option<Int> {
        match self {
            Self::Int(int) => Some(int.clone()),
            Self::Truth(text) => Some(Int::new(format!("(long long){text}"), true, 1.0)),
            Self::Ratio(..) | Self::List(_) => None,
        }
    }

    pub(super) fn ratio(&self) -> Option<(Int, Int)> {
        match self {
            Self::Ratio(numerator, denominator) => Some((numerator.clone(), denominator.clone())),
            other => Some((other.int()?, literal(1))),
        }
    }
}

pub(super) fn literal(value: i64) -> Int {
    Int {
        text: if value < 0 {
            format!("({value}LL)")
        } else {
            format!("{value}LL")
        },
        literal: Some(value),
        nonnegative: value >= 0,
        bound: value.unsigned_abs() as f64,
    }
}

pub(super) fn binary(left: &Int, sign: &str, right: &Int, nonnegative: bool) -> Int {
    let result = match sign {
        "+" | "-" => left.bound + right.bound,
        "*" => left.bound * right.bound,
        "<<" => left.bound * right.bound.exp2(),
        "&" | "|" | "^" => 2.0 * left.bound.max(right.bound) + 1.0,
        _ => 0.0,
    };
    let text = format!("({} {sign} {})", left.text, right.text);
    Int::new(text, nonnegative, result.max(left.bound).max(right.bound))
}

pub(super) fn times(left: &Int, right: &Int) -> Int {
    match (left.literal, right.literal) {
        (Some(1), _) => right.clone(),
        (_, Some(1)) => left.clone(),
        _ => binary(left, "*", right, left.nonnegative && right.nonnegative),
    }
}

pub(super) fn constant(value: &Val) -> Option<Form> {
    match value {
        Val::Bool(value) => Some(Form::Truth(u8::from(*value).to_string())),
        Val::Int(value) => Some(Form::Int(literal(i64::try_from(*value).ok()?))),
        Val::Float(value) => {
            // Exact for common fractions such as 0.5 and 1.25; 0.1 is not a short binary fraction.
            let mut denominator = 1_i64;
            while (value * denominator as f64).fract() != 0.0 {
                denominator = denominator.checked_mul(2).filter(|d| *d <= 1 << 20)?;
            }
            let numerator = value * denominator as f64;
            (numerator.abs() < 9.0e15)
                .then(|| Form::Ratio(literal(numerator as i64), literal(denominator)))
        }
        _ => None,
    }
}

pub(super) fn power(base: &Int, exponent: &Int) -> Option<Int> {
    if base.literal == Some(2) && exponent.nonnegative {
        return Some(binary(&literal(1), "<<", exponent, true));
    }
    let exponent = exponent.literal.filter(|e| (0..=6).contains(e))?;
    Some((0..exponent).fold(literal(1), |product, _| times(&product, base)))
}

pub(super) fn member(item: &Form, items: &[Form], inside: bool) -> Option<Form> {
    let parts: Option<Vec<String>> = items
        .iter()
        .map(|other| Some(compare(Op::Eq, item, other)?.truth()))
        .collect();
    let any = match parts?.as_slice() {
        [] => "0".to_owned(),
        parts => format!("({})", parts.join(" || ")),
    };
    Some(Form::Truth(if inside { any } else { format!("(!{any})") }))
}

pub(super) fn compare(op: Op, left: &Form, right: &Form) -> Option<Form> {
    let (sign, mirrored) = match op {
        Op::Lt => ("<", ">"),
        Op::Le => ("<=", ">="),
        Op::Gt => (">", "<"),
        Op::Ge => (">=", "<="),
        Op::Eq => ("==", "=="),
        Op::Ne => ("!=", "!="),
        _ => return None,
    };
    let ((a, b), (c, d)) = (left.ratio()?, right.ratio()?);
    let (left, right, scale) = (times(&a, &d), times(&c, &b), times(&b, &d));
    if !(left.fits() && right.fits() && scale.fits()) {
        return None;
    }
    let plain = format!("({} {sign} {})", left.text, right.text);
    let positive = b.literal.is_some_and(|b| b > 0) && d.literal.is_some_and(|d| d > 0);
    if positive {
        return Some(Form::Truth(plain));
    }
    // Multiplying by a negative number reverses a comparison; zero was excluded.
    Some(Form::Truth(format!(
        "({scale} != 0 && ({scale} > 0 ? {plain} : ({} {mirrored} {})))",
        left.text,
        right.text,
        scale = scale.text,
    )))
}
