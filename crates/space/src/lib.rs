//! Search spaces: parameters, expressions and constraints as an exact, compressed set.
//!
//! A constraint is parsed once ([`Expr`]), its names are resolved to shared terms, and the parameters are
//! split into groups that share no constraint. Each group becomes a decision diagram: one layer per
//! parameter, one node for all partial choices with the same completions. Configurations are never
//! enumerated, so spaces of 10^15 configurations are common.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod bind;
mod build;
mod compose;
mod construct;
mod diagnostic;
mod diagram;
mod expr;
mod file;
mod frontier;
mod group;
mod groups;
mod interval;
mod outlook;
mod parameter;
mod reference;
mod resolved;
mod set;
mod spec;
mod states;
mod tensor_map;

pub use bind::{BindError, Binder, Bound};
pub use construct::resolve;
pub use construct::{Constraint, Environment, Place, SpaceError};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use expr::{Bits, Kind, Program, Scope, Term, TermId, Terms};
pub use expr::{EvaluateError, Expr, ExprError, Fault, Node, Op, Val, nearest_or_all, suggest};
pub use file::{ArgumentPlace, BareSpace, Places, is_kernel_name, json_schema};
pub use parameter::{Config, Neighbourhood, Parameter};
pub use reference::reference;
pub use resolved::Resolved;
pub use set::{ConfigError, Space};
pub use spec::{
    Argument, DEVICE_NAMES, DeviceLimits, Gate, KernelSpec, Launch, MapText, Piece, PieceValue,
    Problem, Record, RecordField, Reference, SameValueWrites, Sizes,
};
