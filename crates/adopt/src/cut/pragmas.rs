//! `#pragma` in templates. NVRTC ignores `push_macro` and `pop_macro`, which the directives of the macro replace.

use super::{Tunable, text_of};
use crate::unit::{Item, Kind, Unit};
use std::collections::BTreeSet;

/// Returns the text of a pragma; notes one that has no effect.
pub(super) fn written(
    unit: &Unit,
    at: usize,
    kept: &BTreeSet<usize>,
    tunables: &[Tunable],
    notes: &mut Vec<String>,
) -> Option<String> {
    let text = unit.text(unit.item(at)).trim_end();
    let Some(name) = argument(text, "pop_macro") else {
        return Some(format!("{text}\n"));
    };
    let names_it = |each: &usize| {
        let item = unit.item(*each);
        item.kind == Kind::Macro && item.names.iter().any(|known| known == name)
    };
    let undefine = format!("#undef {name}\n");
    if !kept.iter().any(names_it) {
        return Some(undefine);
    }
    let saved = pushed(unit, at, name).and_then(|push| saved(unit, push, name));
    match saved {
        Some(None) => Some(undefine),
        Some(Some(definition)) => {
            Some(undefine + &text_of(unit, definition, tunables).unwrap_or_default())
        }
        None => {
            let item = unit.item(at);
            let file = unit.file(item.file);
            notes.push(format!(
                "{}:{}: NVRTC ignores `{text}`, and `{name}` is defined under conditions: write its definition there",
                file.shown,
                file.line(item.at.start)
            ));
            Some(format!("{text}\n"))
        }
    }
}

/// Reports whether a macro is pushed: the tuner's definition of it would be popped.
pub(crate) fn is_pushed(unit: &Unit, name: &str) -> bool {
    let mut pragmas = unit.items.iter().filter(|item| item.kind == Kind::Pragma);
    pragmas.any(|item| argument(unit.text(item), "push_macro") == Some(name))
}

/// Returns the macro of a pragma of this name.
fn argument<'t>(text: &'t str, pragma: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(pragma)?;
    // `_Pragma` has escaped quotes.
    rest.split(['"', '\\'])
        .find(|piece| !piece.is_empty() && !piece.contains('('))
}

/// Returns the index of the pragma that saved what another restores.
fn pushed(unit: &Unit, pop: usize, name: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let before = unit.items.iter().enumerate().take(pop).rev();
    let mut before = before.filter(|(_, item)| item.kind == Kind::Pragma);
    before.find_map(|(at, item)| {
        let text = unit.text(item);
        if argument(text, "pop_macro") == Some(name) {
            depth += 1;
        } else if argument(text, "push_macro") == Some(name) {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some(at),
            }
        }
        None
    })
}

/// Returns the definition that is saved at a pragma, `Some(None)` if the macro is not defined there; `None` if
/// conditions decide.
fn saved(unit: &Unit, push: usize, name: &str) -> Option<Option<usize>> {
    let sets = |item: &Item| {
        matches!(item.kind, Kind::Macro | Kind::Undefine)
            && item.names.iter().any(|known| known == name)
    };
    let mut before = unit.items.iter().enumerate().take(push).rev();
    let Some((at, item)) = before.find(|(_, item)| sets(item)) else {
        return Some(None);
    };
    let is_certain = unit.item(push).around.starts_with(&item.around);
    is_certain.then(|| Some(at).filter(|_| item.kind == Kind::Macro))
}
