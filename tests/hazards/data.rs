//! Element types and fills of the suite's arguments.

/// Element type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    F16,
    Bf16,
    F32,
    F64,
    U8,
    U16,
    I32,
    U32,
    I64,
    U64,
}

impl Type {
    pub(crate) fn named(name: &str) -> Result<Type, String> {
        Ok(match name {
            "f16" => Type::F16,
            "bf16" => Type::Bf16,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "i32" => Type::I32,
            "u32" => Type::U32,
            "i64" => Type::I64,
            "u64" => Type::U64,
            _ => return Err(format!("unknown type `{name}`")),
        })
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Type::U8 => 1,
            Type::F16 | Type::Bf16 | Type::U16 => 2,
            Type::F32 | Type::I32 | Type::U32 => 4,
            Type::F64 | Type::I64 | Type::U64 => 8,
        }
    }

    /// Little-endian bytes of `value`, which the type must be able to hold.
    pub(crate) fn encode(self, value: f64) -> Vec<u8> {
        match self {
            Type::F16 => half_bits(value).to_le_bytes().to_vec(),
            Type::Bf16 => ((value as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
            Type::F32 => (value as f32).to_le_bytes().to_vec(),
            Type::F64 => value.to_le_bytes().to_vec(),
            _ => (value as i64).to_le_bytes()[..self.bytes()].to_vec(),
        }
    }

    pub(crate) fn decode(self, bytes: &[u8]) -> f64 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Type::F16 => half_value(bits as u16),
            Type::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            Type::F32 => f64::from(f32::from_bits(bits as u32)),
            Type::F64 => f64::from_bits(bits),
            Type::I32 => f64::from(bits as u32 as i32),
            Type::I64 => bits as i64 as f64,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => bits as f64,
        }
    }
}

/// Bits of a half; exact values only, which is all the suite's inputs need.
fn half_bits(value: f64) -> u16 {
    if value == 0.0 {
        return 0;
    }
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023 + 15;
    assert!((1..31).contains(&exponent), "{value} is no normal half");
    assert!(bits.trailing_zeros() >= 42, "{value} is no half");
    ((bits >> 48) as u16 & 0x8000) | (exponent as u16) << 10 | (bits >> 42) as u16 & 0x3ff
}

fn half_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match bits >> 10 & 31 {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    }
}

/// How an argument's elements start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fill {
    Constant(f64),
    Arange,
    /// The index modulo this.
    Mod(u64),
    /// Normally distributed, seeded by the argument's place.
    Normal,
    /// These, over and over.
    List(Vec<f64>),
}

impl Fill {
    pub(crate) fn parse(words: &[&str]) -> Result<Fill, String> {
        let bad = || format!("unknown fill {words:?}");
        match words {
            ["zeros"] => Ok(Fill::Constant(0.0)),
            ["arange"] => Ok(Fill::Arange),
            ["normal"] => Ok(Fill::Normal),
            ["constant", value] => value.parse().map(Fill::Constant).map_err(|_| bad()),
            ["list", values @ ..] if !values.is_empty() => {
                let values: Result<_, _> = values.iter().map(|v| v.parse()).collect();
                values.map(Fill::List).map_err(|_| bad())
            }
            ["mod", value] => value.parse().map(Fill::Mod).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }

    /// `length` values as `element` holds them. `salt` makes arguments differ.
    pub(crate) fn values(&self, element: Type, length: usize, salt: u64) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(salt + 1);
        (0..length)
            .map(|i| match self {
                Fill::Constant(value) => *value,
                Fill::Arange => i as f64,
                Fill::Mod(modulus) => (i as u64 % *modulus) as f64,
                Fill::Normal => normal(&mut state),
                Fill::List(values) => values[i % values.len()],
            })
            .map(|value| element.decode(&element.encode(value)))
            .collect()
    }
}

/// A sum of twelve uniform draws: close enough to normal for a test.
fn normal(state: &mut u64) -> f64 {
    let mut draw = || {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..12).map(|_| draw()).sum::<f64>() - 6.0
}
