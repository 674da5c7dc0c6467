//! Checks of the template's variables.

use super::check::Checker;
use super::de::Spanned;
use super::launch::Parts;
use super::schema::{Ordered, VariableText};
use crate::{Argument, Piece, PieceValue};
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::Role;

impl Checker<'_> {
    /// Checks the variables, represented as scalars and inputs.
    pub(super) fn variables(
        &mut self,
        texts: Option<Ordered<VariableText>>,
        arguments: &[Argument],
    ) -> Vec<Argument> {
        let texts = texts.unwrap_or_default().0.into_iter();
        texts
            .filter_map(|(name, text)| self.variable(name, text, arguments))
            .collect()
    }

    /// Checks one variable; reports an invalid one and returns `None`.
    fn variable(
        &mut self,
        name: Spanned<String>,
        text: VariableText,
        arguments: &[Argument],
    ) -> Option<Argument> {
        let letter = |c: char| c == '_' || c == ':' || c.is_ascii_alphanumeric();
        if name.value.is_empty() || !name.value.chars().all(letter) {
            self.error(
                format!("`{}` cannot be a variable", name.value),
                name.at.clone(),
                "write its name as in the template, `space::name` in a namespace",
            );
            return None;
        }
        let at = name.at.clone();
        if let Some(pointer) = &text.pointer {
            if text.ty.is_some() || text.shape.is_some() || text.value.is_some() {
                let help = "keep `pointer` alone: its type is the argument's";
                self.error(format!("`{}` is a pointer", name.value), at, help);
                return None;
            }
            let to = (&pointer.value, &pointer.at);
            let index = self.pointed(&name.value, to.0, to.1, arguments)?;
            self.places.variables.push(at);
            return Some(address(name.value, index));
        }
        let Some(ty) = &text.ty else {
            let help = "add `type: f32` with a `value` or a `shape`, or `pointer: ARGUMENT`";
            self.error(format!("`{}` has no type", name.value), at, help);
            return None;
        };
        let resolved = self.resolve_type(ty);
        let role = match (&text.shape, &text.value) {
            (Some(_), None) => Role::Input,
            (None, Some(_)) if text.fill.is_none() => Role::Scalar,
            _ => {
                self.error(
                    format!("`{}` is either an array or one value", name.value),
                    at,
                    "write `shape` and perhaps `fill` for an array, `value` for one value",
                );
                return None;
            }
        };
        let parts = Parts {
            any_type: false,
            role,
            shape: text.shape.map(|shape| shape.value),
            fill: text.fill,
            value: text.value,
        };
        let variable = self.composed(name.value, resolved?, parts, arguments);
        if let Some(variable) = &variable
            && matches!(variable.fill, Some(Fill::Kernel(_)))
        {
            let message = format!("the variable `{}` cannot have a generator", variable.name);
            self.error(
                message,
                name.at,
                "fill an argument, and let the variable point to it",
            );
        }
        variable
    }
}

/// Creates a variable that holds the address of an argument.
fn address(name: String, index: usize) -> Argument {
    Argument {
        name,
        ty: Element::U64,
        lanes: 1,
        record: None,
        any_type: false,
        any_value: false,
        role: Role::Scalar,
        shape: Vec::new(),
        fill: None,
        fill_sizes: Vec::new(),
        value: None,
        pieces: vec![Piece {
            offset: 0,
            ty: Element::U64,
            value: PieceValue::Address(index),
        }],
        guessed: false,
        guessed_extent: false,
    }
}
