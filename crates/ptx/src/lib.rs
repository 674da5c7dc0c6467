//! PTX text to syntax tree.
//!
//! The reader is our own: the crate `ptx-parser` 0.1.6 (nom, 1.4 kloc) splits a module into lines
//! of unparsed text, knows neither operands nor positions, and keeps its types private.

pub mod ast;
pub mod lexer;
mod parser;
mod body;
pub mod contract;
pub mod definedness;
pub mod flow;
pub mod intent;
pub mod pointers;
pub mod sharing;
pub mod skeleton;
pub mod stored;
pub mod stores;
pub mod structs;

pub use parser::parse;

/// PTX that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}, column {column}: {message}")]
pub struct PtxError {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What kind of trouble.
    pub kind: PtxErrorKind,
    /// What is wrong and what was expected.
    pub message: String,
}

/// Kinds of [`PtxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtxErrorKind {
    /// A character no token starts with.
    Lexical,
    /// The text ended too early.
    Truncated,
    /// Tokens in the wrong order.
    Syntax,
    /// A directive or version that is not known.
    UnknownDirective,
    /// A name that was not declared, or declared twice.
    Name,
}
