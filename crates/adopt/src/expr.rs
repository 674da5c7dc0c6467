//! Expressions of host code that determine extents of launches and buffers.

use std::collections::BTreeMap;

/// An expression over the names of a search space.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// An integer.
    Number(i64),
    /// A floating-point number.
    Real(f64),
    /// A size, a parameter or a device property.
    Name(String),
    /// A binary expression; the operator in Python's spelling.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// A function call.
    Call(&'static str, Vec<Expr>),
}

impl Expr {
    pub(crate) fn binary(operator: &'static str, left: Self, right: Self) -> Self {
        if let (Self::Number(a), Self::Number(b)) = (&left, &right)
            && let Some(value) = apply(operator, *a, *b)
        {
            return Self::Number(value);
        }
        match (operator, &left, &right) {
            ("*", Self::Number(1), _) | ("+", Self::Number(0), _) => right,
            ("*" | "//", _, Self::Number(1)) | ("+" | "-", _, Self::Number(0)) => left,
            ("//", ..) => divided(left, right),
            _ => Self::Binary(operator, Box::new(left), Box::new(right)),
        }
    }

    pub(crate) fn call(name: &'static str, arguments: Vec<Self>) -> Self {
        let numbers: Option<Vec<i64>> = arguments.iter().map(Self::number).collect();
        if let Some(numbers) = numbers
            && let Some(value) = function(name, &numbers)
        {
            return Self::Number(value);
        }
        Self::Call(name, arguments)
    }

    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// Reports whether it is a floating-point expression, independent of the types of its names.
    pub(crate) fn is_real(&self) -> bool {
        match self {
            Self::Real(_) => true,
            Self::Number(_) | Self::Name(_) => false,
            Self::Binary(operator, left, right) => {
                *operator == "/" || left.is_real() || right.is_real()
            }
            Self::Call(_, arguments) => arguments.iter().any(Self::is_real),
        }
    }

    /// Returns the expression in integer arithmetic: divisions round down.
    pub(crate) fn floored(&self) -> Self {
        match self {
            Self::Binary(operator, left, right) => {
                let operator = if *operator == "/" { "//" } else { operator };
                Self::binary(operator, left.floored(), right.floored())
            }
            Self::Call(name, arguments) => {
                Self::call(name, arguments.iter().map(Self::floored).collect())
            }
            Self::Number(_) | Self::Real(_) | Self::Name(_) => self.clone(),
        }
    }

    /// Appends every name in it.
    pub(crate) fn names(&self, found: &mut Vec<String>) {
        match self {
            Self::Number(_) | Self::Real(_) => {}
            Self::Name(name) => {
                if !found.contains(name) {
                    found.push(name.clone());
                }
            }
            Self::Binary(_, left, right) => {
                left.names(found);
                right.names(found);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|each| each.names(found)),
        }
    }

    /// Substitutes expressions for names.
    pub(crate) fn with(&self, of: &dyn Fn(&str) -> Option<Self>) -> Self {
        match self {
            Self::Name(name) => of(name).unwrap_or_else(|| self.clone()),
            Self::Binary(operator, left, right) => {
                Self::binary(operator, left.with(of), right.with(of))
            }
            Self::Call(name, arguments) => {
                Self::call(name, arguments.iter().map(|each| each.with(of)).collect())
            }
            Self::Number(_) | Self::Real(_) => self.clone(),
        }
    }

    /// Evaluates it; `None` unless all names have a value.
    pub(crate) fn value(&self, of: &BTreeMap<String, i64>) -> Option<i64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Real(_) => None,
            Self::Name(name) => of.get(name).copied(),
            Self::Binary(operator, left, right) => {
                apply(operator, left.value(of)?, right.value(of)?)
            }
            Self::Call(name, arguments) => {
                let values: Option<Vec<i64>> =
                    arguments.iter().map(|each| each.value(of)).collect();
                function(name, &values?)
            }
        }
    }
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            // `Display` writes a large whole value without a point, which would be an integer.
            Self::Real(value) => write!(f, "{value:?}"),
            Self::Name(name) => f.write_str(name),
            Self::Binary(operator, left, right) => {
                // One level of precedence is sufficient for readers.
                let side = |side: &Self| match side {
                    Self::Binary(inner, ..)
                        if *inner == *operator && matches!(*operator, "+" | "*") =>
                    {
                        side.to_string()
                    }
                    Self::Binary("*", ..) if matches!(*operator, "+" | "-") => side.to_string(),
                    Self::Binary(..) => format!("({side})"),
                    other => other.to_string(),
                };
                write!(f, "{} {operator} {}", side(left), side(right))
            }
            Self::Call(name, arguments) => {
                let all: Vec<String> = arguments.iter().map(Self::to_string).collect();
                write!(f, "{name}({})", all.join(", "))
            }
        }
    }
}

/// Returns the name, changed if a search space reserves it.
pub(crate) fn not_reserved(name: &str) -> String {
    let reserved = [
        "min", "max", "abs", "int", "in", "is", "and", "or", "not", "if", "else", "len", "lambda",
        "sqrt", "log2",
    ];
    if name.is_empty() || reserved.contains(&name) {
        format!("{name}_size")
    } else {
        name.to_owned()
    }
}

/// Simplifies `(a + b - 1) // b` to a division that rounds up.
fn divided(left: Expr, right: Expr) -> Expr {
    let plain = |left: Expr, right: Expr| Expr::Binary("//", Box::new(left), Box::new(right));
    let mut terms = Vec::new();
    sum(&left, 1, &mut terms);
    let constant: i64 = terms
        .iter()
        .filter_map(|(sign, term)| Some(sign.saturating_mul(term.number()?)))
        .fold(0, i64::saturating_add);
    let mut rest: Vec<(i64, Expr)> = terms
        .into_iter()
        .filter(|(_, term)| term.number().is_none())
        .collect();
    if rest.is_empty() {
        return plain(left, right);
    }
    let rounds = match right.number() {
        Some(number) => constant == number - 1,
        None => {
            let at = rest
                .iter()
                .position(|(sign, term)| *sign == 1 && *term == right);
            // Without another term it is `(b - 1) // b`, which is 0 and not a rounding.
            match at.filter(|_| constant == -1 && rest.len() > 1) {
                Some(at) => {
                    rest.remove(at);
                    true
                }
                None => false,
            }
        }
    };
    if !rounds {
        return plain(left, right);
    }
    let mut terms = rest.into_iter();
    // Expressions have no unary minus for a leading subtracted term.
    let Some((1, first)) = terms.next() else {
        return plain(left, right);
    };
    let whole = terms.fold(first, |whole, (sign, term)| {
        Expr::binary(if sign == 1 { "+" } else { "-" }, whole, term)
    });
    Expr::call("ceil_div", vec![whole, right])
}

fn sum(expr: &Expr, sign: i64, terms: &mut Vec<(i64, Expr)>) {
    match expr {
        Expr::Binary(operator @ ("+" | "-"), left, right) => {
            sum(left, sign, terms);
            sum(right, if *operator == "+" { sign } else { -sign }, terms);
        }
        other => terms.push((sign, other.clone())),
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Option<i64> {
    match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "//" => (b != 0).then(|| a.checked_div_euclid(b)).flatten(),
        "%" => (b != 0).then(|| a.checked_rem_euclid(b)).flatten(),
        "**" => a.checked_pow(u32::try_from(b).ok()?),
        _ => None,
    }
}

fn function(name: &str, values: &[i64]) -> Option<i64> {
    match (name, values) {
        ("ceil_div", [a, b]) if *b > 0 => a.checked_add(b - 1)?.checked_div_euclid(*b),
        ("min", values) => values.iter().min().copied(),
        ("max", values) => values.iter().max().copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
