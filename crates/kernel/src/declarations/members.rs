//! Comparison of struct fields with the members of the kernels' structs.

use super::types::Fit;
use super::{Side, question};
use crate::compile::ProbedKernel;
use std::ops::Range;
use tuner_core::plan::PlanLaunch;
use tuner_space::Diagnostic;

/// A field of a struct passed by a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Index of the kernel among the queried ones.
    pub(super) entry: usize,
    /// Number of the kernel's parameter.
    pub(super) parameter: usize,
    /// Index of the argument.
    pub(super) argument: usize,
    /// Index of the field.
    pub(super) field: usize,
}

impl Side<'_> {
    /// Returns the fields of structs that these launches pass.
    #[expect(
        clippy::indexing_slicing,
        reason = "arguments and entries are numbered by the specification they were found in"
    )]
    pub(super) fn members(
        &self,
        launches: &[(PlanLaunch, Range<usize>)],
        entries: &[&str],
    ) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (launch, _) in launches {
            let entry = entries.iter().position(|entry| *entry == launch.entry);
            for (parameter, argument) in launch.arguments.iter().enumerate() {
                let declared = &self.spec.arguments[*argument];
                let record = declared.record.as_ref().filter(|_| !declared.any_type);
                for field in 0..record.map_or(0, |record| record.fields.len()) {
                    let member = Member {
                        entry: entry.unwrap_or(0),
                        parameter,
                        argument: *argument,
                        field,
                    };
                    if !members.contains(&member) {
                        members.push(member);
                    }
                }
            }
        }
        members
    }

    /// Compares the offsets of fields with those of the kernel's own struct.
    #[expect(
        clippy::indexing_slicing,
        reason = "arguments and entries are numbered by the specification they were found in"
    )]
    pub(super) fn compare_members(
        &mut self,
        members: &[Member],
        entries: &[&str],
        answer: &[ProbedKernel],
    ) {
        for (index, member) in members.iter().enumerate() {
            let argument = &self.spec.arguments[member.argument];
            let fields = argument.record.as_ref().map(|record| &record.fields);
            let Some(field) = fields.and_then(|fields| fields.get(member.field)) else {
                continue;
            };
            let signature = question::signature(answer, member.entry);
            let parameter = signature.as_ref().and_then(|all| all.get(member.parameter));
            // Bytes and `void*` have no members; other types that are not structs are reported
            // elsewhere.
            if parameter.is_none_or(|it| it.takes_record(it.bytes) != Fit::Same) {
                continue;
            }
            let ty = parameter.map_or("", |it| &*it.ty).trim_end_matches('*');
            let ty = ty.trim_end_matches(" const");
            let (name, entry) = (&argument.name, entries[member.entry]);
            let size = field.count * field.ty.size() as u64;
            let text = match question::member(answer, index) {
                Some(None) => format!(
                    "`{name}` has a field `{}`, but the struct `{ty}` of the {} `{entry}` has no \
                     member `{}`",
                    field.name, self.what, field.name
                ),
                Some(Some(found)) if found != (field.offset, size) => format!(
                    "`{name}.{}` is declared at byte {} with {size} bytes, but `{ty}` of the {} \
                     `{entry}` has it at byte {} with {}",
                    field.name, field.offset, self.what, found.0, found.1
                ),
                _ => continue,
            };
            let at = self.spec.places().arguments[member.argument].ty.clone();
            let error = Diagnostic::new(text, at).help(
                "write the fields in the order of the struct, each with its type (a field whose \
                 name begins with `_` only pads)",
            );
            if !self.findings.errors.contains(&error) {
                self.findings.errors.push(error);
            }
        }
    }
}
