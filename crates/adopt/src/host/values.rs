//! C++ numbers, types and operators in extents.

use crate::expr::Expr;
use crate::tree::Source;
use crate::types::bytes_of;
use std::path::Path;

/// Variable of a parsed expression.
pub(super) const VALUE: &str = "tuner_value";

/// Parses an expression as the initial value of [`VALUE`].
pub(crate) fn initialised(expression: &str) -> Option<Source> {
    let whole = format!("int {VALUE} = {expression};");
    Source::parse(Path::new(""), String::new(), whole)
}

/// Applies a binary operator of C++ to two expressions.
pub(super) fn operation(operator: &str, left: Expr, right: Expr) -> Option<Expr> {
    Some(match operator {
        "+" => Expr::binary("+", left, right),
        "-" => Expr::binary("-", left, right),
        "*" => Expr::binary("*", left, right),
        // Sizes are not negative, so C++'s truncation equals `//`, which rounds down.
        "/" => Expr::binary("//", left, right),
        "%" => Expr::binary("%", left, right),
        "<<" => Expr::binary("*", left, Expr::binary("**", Expr::Number(2), right)),
        ">>" => Expr::binary("//", left, Expr::binary("**", Expr::Number(2), right)),
        _ => return None,
    })
}

/// Reports whether an operand is a floating-point literal or a cast to a floating-point type.
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

/// Parses a literal.
pub(super) fn number(text: &str) -> Option<Expr> {
    let plain = text.replace('\'', "");
    let lower = plain.to_lowercase();
    let whole = lower.trim_end_matches(['u', 'l']);
    if let Some((digits, radix)) = cuda_source::radix_of(whole) {
        return i64::from_str_radix(digits, radix).ok().map(Expr::Number);
    }
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

/// Translates `sizeof`: the bytes of a CUDA type, else a name that [`sizeof`] parses.
pub(super) fn size_of(text: &str) -> Expr {
    let inner = text
        .trim_start_matches("sizeof")
        .trim_matches(['(', ')', ' ']);
    match bytes_of(inner) {
        Some(bytes) => Expr::Number(bytes),
        None => Expr::Name(format!("sizeof({inner})")),
    }
}

/// Returns the type of a name created by [`size_of`].
pub(crate) fn sizeof(name: &str) -> Option<&str> {
    name.strip_prefix("sizeof(")?.strip_suffix(')')
}

#[cfg(test)]
mod tests;
