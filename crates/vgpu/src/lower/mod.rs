//! Syntax tree to flat program.
