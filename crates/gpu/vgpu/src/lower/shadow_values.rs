//! Floating-point operations of programs with shadow values.

use super::Mods;
use crate::exec::shadow_values::{FloatFormat, ShadowOperation};
use ptx::ast::Type;
use ptx::contract::{SUBTRACT_ADDEND, SUBTRACT_PRODUCT};

/// Returns the operation in double precision; `None` for instructions that do not compute in floating
/// point, round to integers or depend on bits.
pub(super) fn pick(opcode: &str, m: &Mods<'_>) -> Option<ShadowOperation> {
    if opcode == "cvt" {
        return conversion(m);
    }
    if m.types().count() != 1 {
        return None;
    }
    let (format, packed) = match m.ty()? {
        Type::F32 => (FloatFormat::Single, false),
        Type::F64 => (FloatFormat::Double, false),
        Type::F16 => (FloatFormat::Half, false),
        Type::Bf16 => (FloatFormat::Bfloat, false),
        Type::F16x2 => (FloatFormat::Half, true),
        Type::Bf16x2 => (FloatFormat::Bfloat, true),
        _ => return None,
    };
    let addends: &[usize] = match opcode {
        "add" | "sub" => &[0, 1],
        "fma" | "mad" => &[2],
        _ => &[],
    };
    Some(ShadowOperation {
        compute: compute(opcode, m)?,
        from: format,
        to: format,
        packed,
        packs: false,
        addends,
    })
}

fn compute(opcode: &str, m: &Mods<'_>) -> Option<fn([f64; 3]) -> f64> {
    let exact: fn([f64; 3]) -> f64 = match opcode {
        _ if m.has("xorsign") => return None,
        "add" if m.has("sat") => |[a, b, _]| (a + b).clamp(0.0, 1.0),
        "sub" if m.has("sat") => |[a, b, _]| (a - b).clamp(0.0, 1.0),
        "mul" if m.has("sat") => |[a, b, _]| (a * b).clamp(0.0, 1.0),
        "fma" | "mad" if m.has("sat") => |[a, b, c]| a.mul_add(b, c).clamp(0.0, 1.0),
        "fma" if m.has("relu") => |[a, b, c]| a.mul_add(b, c).max(0.0),
        _ if m.has("sat") || m.has("relu") => return None,
        "add" => |[a, b, _]| a + b,
        "sub" => |[a, b, _]| a - b,
        "mul" => |[a, b, _]| a * b,
        "fma" if m.has(SUBTRACT_ADDEND) => |[a, b, c]| a.mul_add(b, -c),
        "fma" if m.has(SUBTRACT_PRODUCT) => |[a, b, c]| (-a).mul_add(b, c),
        "fma" | "mad" => |[a, b, c]| a.mul_add(b, c),
        "div" => |[a, b, _]| a / b,
        "rcp" => |[a, ..]| 1.0 / a,
        "sqrt" => |[a, ..]| a.sqrt(),
        "rsqrt" => |[a, ..]| 1.0 / a.sqrt(),
        "ex2" => |[a, ..]| a.exp2(),
        "lg2" => |[a, ..]| a.log2(),
        "sin" => |[a, ..]| a.sin(),
        "cos" => |[a, ..]| a.cos(),
        "tanh" => |[a, ..]| a.tanh(),
        "neg" => |[a, ..]| -a,
        "abs" => |[a, ..]| a.abs(),
        "min" => |[a, b, _]| a.min(b),
        "max" => |[a, b, _]| a.max(b),
        "copysign" => |[a, b, _]| b.copysign(a),
        _ => return None,
    };
    Some(exact)
}

/// Conversions between floating-point types keep the shadow. Those that round to integers end it:
/// like a branch, the integer follows the ordinary value.
fn conversion(m: &Mods<'_>) -> Option<ShadowOperation> {
    let types: Vec<Type> = m.types().collect();
    let &[to, from] = types.as_slice() else {
        return None;
    };
    if ["rni", "rzi", "rmi", "rpi"].iter().any(|word| m.has(word)) {
        return None;
    }
    let format = |ty| {
        Some(match ty {
            // A TensorFloat-32 is a single whose last bits are ignored.
            Type::F32 | Type::Tf32 => FloatFormat::Single,
            Type::F64 => FloatFormat::Double,
            Type::F16 => FloatFormat::Half,
            Type::Bf16 => FloatFormat::Bfloat,
            _ => return None,
        })
    };
    let packs = matches!(to, Type::F16x2 | Type::Bf16x2);
    let to = match to {
        Type::F16x2 => FloatFormat::Half,
        Type::Bf16x2 => FloatFormat::Bfloat,
        ty => format(ty)?,
    };
    Some(ShadowOperation {
        compute: match (m.has("sat"), m.has("relu")) {
            (true, _) => |[a, ..]| a.clamp(0.0, 1.0),
            (_, true) => |[a, ..]| a.max(0.0),
            _ => |[a, ..]| a,
        },
        from: format(from)?,
        to,
        packed: false,
        packs,
        addends: &[],
    })
}
