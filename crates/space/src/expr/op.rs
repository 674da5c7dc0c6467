//! Names of the operations.

/// One operation. Its arity is fixed except for `Add Mul And Or List Min Max`. Its name as text is
/// lowercase, such as `floordiv`.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::IntoStaticStr
)]
#[strum(serialize_all = "lowercase")]
pub enum Op {
    /// `-a`
    Neg,
    /// `+a`
    Pos,
    /// `~a`
    Invert,
    /// `not a`
    Not,
    /// `a + b + …`
    Add,
    /// `a - b`
    Sub,
    /// `a * b * …`
    Mul,
    /// `a / b`, true division
    Div,
    /// `a // b`
    FloorDiv,
    /// `a % b`, with the sign of `b`
    Mod,
    /// `a ** b`
    Pow,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `a << b`
    Shl,
    /// `a >> b`
    Shr,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a in b`
    In,
    /// `a not in b`
    NotIn,
    /// `a and b and …`
    And,
    /// `a or b or …`
    Or,
    /// The second operand if the first is true, else the third.
    If,
    /// `[a, b, …]`
    List,
    /// `min(a, b, …)`
    Min,
    /// `max(a, b, …)`
    Max,
    /// `abs(a)`
    Abs,
    /// `ceil_div(a, b)`: `a / b` rounded up
    CeilDiv,
    /// `sqrt(a)`
    Sqrt,
    /// `log2(a)`
    Log2,
    /// `int(a)`
    Int,
    /// `float(a)`
    Float,
    /// `bool(a)`
    Bool,
    /// `len(a)`
    Len,
    /// `round(a)`, halves to even
    Round,
    /// `floor(a)`
    Floor,
    /// `ceil(a)`
    Ceil,
}

impl Op {
    /// Returns the notation of the operation for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Neg | Self::Sub => "`-`",
            Self::Pos | Self::Add => "`+`",
            Self::Invert => "`~`",
            Self::Not => "`not`",
            Self::Mul => "`*`",
            Self::Div => "`/`",
            Self::FloorDiv => "`//`",
            Self::Mod => "`%`",
            Self::Pow => "`**`",
            Self::BitAnd => "`&`",
            Self::BitOr => "`|`",
            Self::BitXor => "`^`",
            Self::Shl => "`<<`",
            Self::Shr => "`>>`",
            Self::Lt => "`<`",
            Self::Le => "`<=`",
            Self::Gt => "`>`",
            Self::Ge => "`>=`",
            Self::Eq => "`==`",
            Self::Ne => "`!=`",
            Self::In => "`in`",
            Self::NotIn => "`not in`",
            Self::And => "`and`",
            Self::Or => "`or`",
            Self::If => "`if`",
            Self::List => "a list",
            Self::Min => "`min`",
            Self::Max => "`max`",
            Self::Abs => "`abs`",
            Self::CeilDiv => "`ceil_div`",
            Self::Sqrt => "`sqrt`",
            Self::Log2 => "`log2`",
            Self::Int => "`int`",
            Self::Float => "`float`",
            Self::Bool => "`bool`",
            Self::Len => "`len`",
            Self::Round => "`round`",
            Self::Floor => "`floor`",
            Self::Ceil => "`ceil`",
        }
    }
}
