//! Numbers, types and operators of C++ as far as extents are made of them.

use crate::expr::Expr;

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

/// Bytes of a type that is spelled as CUDA spells it.
pub(crate) fn bytes_of(ty: &str) -> Option<i64> {
    let ty = ty.replace("const", "");
    let ty = ty.trim().trim_start_matches('*');
    let (base, lanes) = match ty.chars().last() {
        Some(last @ '2'..='4')
            if !matches!(ty, "bfloat162") && !ty.ends_with("64") && !ty.ends_with("32") =>
        {
            (
                &ty[..ty.len() - 1],
                i64::from(u32::from(last) - u32::from('0')),
            )
        }
        _ => (ty, 1),
    };
    let lanes = if lanes == 0 { 1 } else { lanes };
    let each = match base {
        "char" | "uchar" | "bool" | "int8_t" | "uint8_t" | "unsigned char" | "signed char" => 1,
        "short" | "ushort" | "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" | "int16_t"
        | "uint16_t" | "unsigned short" => 2,
        "int" | "uint" | "float" | "unsigned" | "unsigned int" | "int32_t" | "uint32_t" => 4,
        "double" | "long" | "size_t" | "int64_t" | "uint64_t" | "long long" | "unsigned long"
        | "unsigned long long" => 8,
        _ => return None,
    };
    Some(each * lanes)
}
