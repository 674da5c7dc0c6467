//! What may be tried: parameters, expressions and constraints as an exact, compressed set.

mod value;

pub use value::Value;
