//! C expressions of size terms over the values of `number.c`.
#![expect(
    clippy::indexing_slicing,
    reason = "the parser has checked the number of operands of each function"
)]

use std::collections::{BTreeMap, BTreeSet};
use tuner_space::{Op, Term, TermId, Terms, Val};

/// The functions, one for each paragraph; `K_` is replaced by the header's prefix.
const FUNCTIONS: &str = include_str!("number.c");

/// Returns the type and the functions that a text uses, in dependency order.
pub(super) fn functions(lower: &str, upper: &str, text: &str) -> String {
    let prefix = format!("{lower}_");
    let paragraphs: Vec<&str> = FUNCTIONS.trim_end().split("\n\n").collect();
    let mut needed: BTreeSet<&str> = names(text, &prefix).collect();
    let mut kept = Vec::new();
    // A function uses only those above it.
    for paragraph in paragraphs.into_iter().rev() {
        let head = paragraph.find("FUNCTION").map_or("", |at| &paragraph[at..]);
        let Some(name) = names(head, "K_").find(|name| *name != "number") else {
            kept.push(paragraph);
            continue;
        };
        if needed.contains(name) {
            needed.extend(names(paragraph, "K_"));
            kept.push(paragraph);
        }
    }
    kept.reverse();
    kept.join("\n\n")
        .replace("K_", &prefix)
        .replace("FUNCTION", &format!("{upper}FUNCTION"))
        + "\n"
}

/// Returns the names that follow a prefix anywhere in a text.
fn names<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(prefix).map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// Writer of terms.
pub(super) struct Printer<'t> {
    pub(super) terms: &'t Terms,
    /// The header's prefix, in lower case.
    pub(super) lower: &'t str,
    /// C variable of each free size.
    pub(super) sizes: &'t [String],
    /// Terms with a temporary.
    pub(super) named: &'t BTreeMap<TermId, String>,
}

impl Printer<'_> {
    pub(super) fn call(&self, name: &str, operands: &[String]) -> String {
        format!("{}_{name}({})", self.lower, operands.join(", "))
    }

    /// Returns a C expression of a term's value.
    pub(super) fn text(&self, id: TermId) -> String {
        if let Some(name) = self.named.get(&id) {
            return name.clone();
        }
        match self.terms.term(id) {
            Term::Const(value) => self.constant(value),
            Term::Var(at) => self.sizes.get(*at as usize).cloned().unwrap_or_default(),
            Term::Op(op, args) => self.operation(*op, args),
        }
    }

    fn constant(&self, value: &Val) -> String {
        match value {
            Val::Float(value) => self.call("real", &[format!("{value:?}")]),
            _ => match value.int().and_then(|whole| i64::try_from(whole).ok()) {
                Some(i64::MIN) => self.call("int", &[format!("-{}LL - 1", i64::MAX)]),
                Some(whole) => self.call("int", &[format!("{whole}LL")]),
                None => self.call("none", &[]),
            },
        }
    }

    fn operation(&self, op: Op, args: &[TermId]) -> String {
        match (op, args) {
            (Op::In, [item, list]) => self.member(*item, *list),
            (Op::NotIn, [item, list]) => self.call("not", &[self.member(*item, *list)]),
            (Op::Pos, [operand]) => self.text(*operand),
            (Op::Min | Op::Max, [list]) => self.fold(op, self.items(*list)),
            (Op::Int | Op::Floor | Op::Ceil, [inner]) => self.whole(op, *inner),
            _ => self.fold(op, args.iter().map(|id| self.text(*id)).collect()),
        }
    }

    /// Nests calls if C's function takes two operands and the operation more. `and` and `or` return
    /// the first operand that decides, whatever the nesting.
    fn fold(&self, op: Op, operands: Vec<String>) -> String {
        let many = matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Min | Op::Max);
        if !many {
            return self.call(function(op), &operands);
        }
        operands
            .into_iter()
            .reduce(|left, right| self.call(function(op), &[left, right]))
            .unwrap_or_else(|| self.call("none", &[]))
    }

    /// Converts a number to an integer. A logarithm is not rounded first.
    fn whole(&self, op: Op, inner: TermId) -> String {
        let way = match op {
            Op::Floor => "-1",
            Op::Int => "0",
            _ => "1",
        };
        match self.terms.term(inner) {
            Term::Op(Op::Log2, of) if !self.named.contains_key(&inner) => {
                self.call("log2whole", &[self.text(of[0]), way.to_owned()])
            }
            _ => self.call(function(op), &[self.text(inner)]),
        }
    }

    /// Returns the numbers of a list. Text and lists in it equal no number.
    fn items(&self, list: TermId) -> Vec<String> {
        match self.terms.term(list) {
            Term::Op(Op::List, items) => items.iter().map(|id| self.text(*id)).collect(),
            Term::Const(Val::List(items)) => items
                .iter()
                .filter(|item| is_number(item))
                .map(|item| self.constant(item))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn member(&self, item: TermId, list: TermId) -> String {
        let item = self.text(item);
        self.items(list)
            .into_iter()
            .map(|other| self.call("eq", &[item.clone(), other]))
            .reduce(|left, right| self.call("either", &[left, right]))
            // Nothing is in an empty list, except undefined values.
            .unwrap_or_else(|| self.call("ne", &[item.clone(), item]))
    }
}

/// Reports whether a constant is a number.
pub(super) fn is_number(value: &Val) -> bool {
    matches!(value, Val::Bool(_) | Val::Int(_) | Val::Float(_))
}

/// Returns the function in `number.c`, which implements every operation that `rules` accepts.
fn function(op: Op) -> &'static str {
    match op {
        Op::In | Op::NotIn => "either",
        Op::Int => "trunc",
        // Handled before, or refused by `rules`.
        Op::Pos | Op::List | Op::Len => "none",
        other => other.into(),
    }
}
