//! Parser and analyses of PTX.
//!
//! A separate parser, because the crate `ptx-parser` 0.1.6 (nom, 1.4 kloc) splits a module into
//! lines of unparsed text, parses neither operands nor positions, and keeps its types private.

pub mod ast;
pub mod lexer;
mod parser;
mod body;
pub mod reserved;
mod tensor_maps;
pub mod vector_atomics;
mod wide;
pub mod contract;
pub mod definedness;
mod discards;
pub mod flow;
pub mod intent;
pub mod pointers;
pub mod regalloc;
pub mod skeleton;
pub mod stored;
pub mod stores;
pub mod structs;
pub mod used_bits;

pub use parser::parse;

/// Invalid PTX, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}, column {column}: {message}")]
pub struct PtxError {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Kind of the error.
    pub kind: PtxErrorKind,
    /// Description of the error and of the expected text.
    pub message: String,
}

/// Kinds of [`PtxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtxErrorKind {
    /// A character that starts no token.
    Lexical,
    /// The text ended too early.
    Truncated,
    /// Tokens in the wrong order.
    Syntax,
    /// An unknown directive or version.
    UnknownDirective,
    /// An undeclared or repeated name.
    Name,
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
