//! Variables with the values that the program set.

use super::{Work, same_variable, variable};
use crate::AdoptError;
use crate::captured::values::{Layout, Part, layout};
use crate::expr::Expr;
use crate::plan::{Plan, Variable, VariableContent};
use capture::Launch;
use std::collections::BTreeSet;

/// Prefix of the names of tables of CUDA's math functions, which are not data of the program.
const CUDA_MATH_PREFIX: &str = "__cudart_";

impl Work<'_, '_> {
    /// Sets variables to their captured contents.
    pub(super) fn variables(&mut self, plan: &mut Plan) -> Result<(), AdoptError> {
        let problems = self.problems;
        let Some(first) = problems.all.first() else {
            return Ok(());
        };
        let mut kept = Vec::new();
        for mut held in std::mem::take(&mut plan.variables) {
            let Some(buffer) = variable(first.launch, &held.name) else {
                continue;
            };
            let (bytes, name) = (buffer.bytes, held.name.clone());
            if let Some(ty) = fitting_type(&held, bytes) {
                held.ty = ty;
            }
            let element = layout(&held.ty);
            let whole = element.as_ref().filter(|layout| layout.bytes == bytes);
            let constant = match (&held.held, whole) {
                (VariableContent::Value(_), Some(layout)) => self.constant(&name, layout)?,
                _ => None,
            };
            match (&held.held, element) {
                (VariableContent::Pointer(to), _) => {
                    let known = plan.arguments.iter().any(|argument| argument.name == *to);
                    let first = buffer.pointers.first();
                    let same = first.and_then(|it| self.names.get(&(it.buffer, it.offset)));
                    match (known, same) {
                        (true, _) => {}
                        (false, Some(same)) => held.held = VariableContent::Pointer(same.clone()),
                        (false, None) => continue,
                    }
                }
                (VariableContent::Value(_), Some(_)) if constant.is_some() => {
                    held.held = VariableContent::Value(constant.unwrap_or_default());
                }
                // A file would contain the addresses of the captured process.
                (_, Some(layout)) if layout.parts.iter().any(Part::is_pointer) => continue,
                (_, Some(layout)) if layout.bytes > 0 && bytes % layout.bytes == 0 => {
                    let count = i64::try_from(bytes / layout.bytes).unwrap_or(1);
                    held.held = VariableContent::Array(vec![Expr::Number(count)]);
                    let file = name.replace("::", "_");
                    let fill = format!("{{ file: {} }}", self.quoted(&file, "bin"));
                    self.data.variable_fills.insert(name.clone(), fill);
                    for problem in &problems.all {
                        let own = variable(problem.launch, &name);
                        let hash = own.and_then(|own| own.before.as_deref());
                        self.store(problem, &file, "bin", hash, &(0..bytes))?;
                    }
                }
                _ => continue,
            }
            if !buffer.written.is_empty() {
                self.notes.insert(format!(
                    "it writes to the variable `{name}`, and a search space compares buffers only"
                ));
            }
            kept.push(held);
        }
        self.note_unset(first.launch, &kept);
        plan.variables = kept;
        Ok(())
    }

    /// Records the variables that the launch read and that the search space does not set.
    fn note_unset(&mut self, launch: &Launch, kept: &[Variable]) {
        for buffer in &launch.buffers {
            let Some(name) = &buffer.variable else {
                continue;
            };
            if name.starts_with(CUDA_MATH_PREFIX) {
                continue;
            }
            if kept.iter().all(|it| !same_variable(&it.name, name)) && !buffer.read.is_empty() {
                self.notes.insert(format!(
                    "the variable `{name}` is left as the file has it; write it under `variables` where the \
                     program sets it: docs/arguments.md"
                ));
            }
        }
    }

    /// Returns the value of a variable in the notation of a search space. `None` if the captured launches
    /// had different values, or if it has no text: a non-finite number, an unknown address.
    fn constant(&self, name: &str, layout: &Layout) -> Result<Option<String>, AdoptError> {
        let mut texts = BTreeSet::new();
        for problem in &self.problems.all {
            let own = variable(problem.launch, name);
            let Some((own, hash)) = own.and_then(|own| Some((own, own.before.as_deref()?))) else {
                continue;
            };
            let pointed = |offset: u64| {
                let mut pointers = own.pointers.iter();
                let pointer = pointers.find(|it| u64::from(it.at) == offset)?;
                self.names.get(&(pointer.buffer, pointer.offset)).cloned()
            };
            let bytes = self.contents(problem, Some(hash))?;
            texts.insert(layout.text(&bytes, pointed));
        }
        let text = texts.pop_first().flatten();
        Ok(text.filter(|_| texts.is_empty()))
    }
}

/// Returns another type of a variable with the program's number of bytes: branches of conditional
/// compilation may define different types.
fn fitting_type(held: &Variable, bytes: u64) -> Option<String> {
    let fits = |ty: &str| {
        let own = layout(ty).map_or(0, |layout| layout.bytes);
        match held.held {
            VariableContent::Value(_) => own == bytes,
            VariableContent::Array(_) => own > 0 && bytes.is_multiple_of(own),
            VariableContent::Pointer(_) => true,
        }
    };
    if fits(&held.ty) {
        return None;
    }
    held.alternatives.iter().find(|ty| fits(ty)).cloned()
}

#[cfg(test)]
mod tests;
