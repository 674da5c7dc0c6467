//! Numbers, types and operators of C++ as far as extents are made of them.

use crate::expr::Expr;
use crate::types::bytes_of;

/// An operator of C++ between two expressions.
pub(super) fn operation(operator: &str, left: Expr, right: Expr) -> Option<Expr> {
    Some(match operator {
        "+" => Expr::binary("+", left, right),
        "-" => Expr::binary("-", left, right),
        "*" => Expr::binary("*", left, right),
        "/" => Expr::binary("//", left, right),
        "%" => Expr::binary("%", left, right),
        "<<" => Expr::binary("*", left, Expr::binary("**", Expr::Number(2), right)),
        ">>" => Expr::binary("//", left, Expr::binary("**", Expr::Number(2), right)),
        _ => return None,
    })
}

/// Whether an operand is written as a floating-point number: a literal, or a cast to such a type.
pub(super) fn is_real(text: &str) -> bool {
    let plain = text.replace([' ', '('], "");
    let casts = [
        "float)",
        "double)",
        "float",
        "double",
        "static_cast<float>",
        "static_cast<double>",
    ];
    let cast = text.contains('(') && casts.iter().any(|cast| plain.starts_with(cast));
    let digits = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    cast || digits && !hexadecimal && text.contains(['.', 'e', 'E', 'f', 'F'])
}

/// A literal.
pub(super) fn number(text: &str) -> Option<Expr> {
    let plain = text.replace('\'', "");
    let lower = plain.to_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        let digits = digits.trim_end_matches(['u', 'l']);
        return i64::from_str_radix(digits, 16).ok().map(Expr::Number);
    }
    let whole = lower.trim_end_matches(['u', 'l']);
    if let Ok(value) = whole.parse() {
        return Some(Expr::Number(value));
    }
    let real: f64 = lower.trim_end_matches(['f', 'l']).parse().ok()?;
    Some(if real.fract() == 0.0 && real.abs() < 1e15 {
        Expr::Number(real as i64)
    } else {
        Expr::Real(real)
    })
}

/// What `sizeof` gives: the bytes of a type that CUDA has, else a name that [`sizeof`] reads.
pub(super) fn size_of(text: &str) -> Expr {
    let inner = text
        .trim_start_matches("sizeof")
        .trim_matches(['(', ')', ' ']);
    match bytes_of(inner) {
        Some(bytes) => Expr::Number(bytes),
        None => Expr::Name(format!("sizeof({inner})")),
    }
}

/// The type whose size an expression's name stands for.
pub(crate) fn sizeof(name: &str) -> Option<&str> {
    name.strip_prefix("sizeof(")?.strip_suffix(')')
}
