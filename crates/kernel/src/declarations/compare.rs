//! Comparison of a launch's arguments with the parameters of its kernel, and its diagnostics.
#![expect(
    clippy::indexing_slicing,
    reason = "files, arguments and parameters are numbered by the specification and the sources they were found in"
)]

use super::places::Declaration;
use super::source::File;
use super::types::{Fit, Form, Parameter};
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::plan::Role;
use tuner_core::units::counted;
use tuner_space::{Argument, Diagnostic, KernelSpec};

/// A launch and the kernel that it names.
pub(super) struct LaunchedKernel<'a> {
    pub(super) spec: &'a KernelSpec,
    /// `kernel` or `reference kernel`.
    pub(super) what: &'static str,
    /// The kernel's name.
    pub(super) entry: &'a str,
    /// Indices of the arguments.
    pub(super) args: &'a [usize],
    /// Position of the kernel's name in the search space.
    pub(super) at: Range<usize>,
    /// The files of the kernel's source.
    pub(super) files: &'a [File],
    /// Its declaration, if the text shows it.
    pub(super) declared: Option<&'a Declaration>,
    /// Its file and line from the compiler.
    pub(super) place: Option<String>,
    /// Its parameters from the compiler.
    pub(super) parameters: &'a [Parameter],
}

/// Findings of the comparison.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Errors.
    pub(super) errors: Vec<Diagnostic>,
    /// Warnings on accepted differences.
    pub(super) warnings: Vec<Diagnostic>,
    /// Buffers with whether the kernel may write them, and the message if none may.
    pub(super) buffers: Vec<(usize, bool, String)>,
}

impl LaunchedKernel<'_> {
    pub(super) fn compare(&self, findings: &mut Findings) {
        if self.args.len() != self.parameters.len() {
            // From the missing one on, each parameter would be compared with the wrong argument.
            findings.errors.push(self.count());
            return;
        }
        for (number, (index, parameter)) in self.args.iter().zip(self.parameters).enumerate() {
            self.compare_parameter(number, *index, parameter, findings);
        }
    }

    fn compare_parameter(
        &self,
        number: usize,
        index: usize,
        parameter: &Parameter,
        findings: &mut Findings,
    ) {
        let argument = &self.spec.arguments[index];
        let (role, ty) = (argument.role, argument.ty);
        let place = &self.spec.places().arguments[index];
        let (name, described) = (&argument.name, self.described(number));
        let form = parameter.form();
        if let (Form::Value, false) | (Form::Pointer { .. }, true) = (form, role == Role::Scalar) {
            let error = Diagnostic::new(
                format!(
                    "`{name}` is {} of `{}`, but {described}",
                    if role == Role::Scalar {
                        "a scalar"
                    } else {
                        "a buffer"
                    },
                    type_name(argument)
                ),
                place.role.clone(),
            );
            findings.errors.push(error.help(form_help(argument)));
            return;
        }
        let fit = match (role, &argument.record) {
            _ if argument.any_type && matches!(form, Form::Pointer { .. }) => Fit::Same,
            (_, Some(record)) => parameter.takes_record(record.size),
            (Role::Scalar, None) if argument.lanes > 1 => {
                parameter.takes_vector(ty, argument.lanes)
            }
            (Role::Scalar, None) => parameter.takes_scalar(ty),
            (Role::Input | Role::Output | Role::Inout | Role::Scratch, None) => {
                parameter.takes_buffer(ty)
            }
        };
        let at = place.ty.clone();
        let declared = format!("`{name}` is declared `{}`", type_name(argument));
        match fit {
            Fit::Same => {}
            Fit::Loose(why) => {
                let warning = Diagnostic::new(format!("{declared}, and {described}: {why}"), at);
                findings.warnings.push(warning);
            }
            Fit::Wrong => {
                let error = Diagnostic::new(format!("{declared}, but {described}"), at);
                findings
                    .errors
                    .push(error.help(type_help(argument, parameter)));
            }
        }
        if let Form::Pointer { constant } = form {
            findings.buffers.push((index, !constant, described));
        }
    }

    /// Formats `parameter 1 of the kernel `k` is `const T* x`, that is `__half const*` (k.cu:3:7)`.
    fn described(&self, number: usize) -> String {
        let ty = &self.parameters[number].ty;
        let text = self
            .declared
            // A macro in the list can make the compiler's number of parameters differ from the text's.
            .filter(|it| it.parameters.len() == self.parameters.len());
        let (spelled, place) = match text {
            Some(declared) => {
                let (file, at) = (&self.files[declared.file], &declared.parameters[number]);
                let words: Vec<&str> = file.text[at.clone()].split_whitespace().collect();
                (words.join(" "), file.format_position(at.start))
            }
            None => (ty.clone(), self.kernel_place()),
        };
        // Both forms are given only if a macro or a typedef is involved.
        let short = spelled.contains("unsigned");
        // The compiler names `unsigned` in full, as `unsigned int`.
        let plain =
            |word: &str| matches!(word, "const" | "volatile" | "") || (word == "int" && short);
        let mut words = ty.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let meaning = if words.all(|word| plain(word) || spelled.contains(word)) {
            String::new()
        } else {
            format!(", that is `{ty}`")
        };
        format!(
            "parameter {} of the {} `{}` is `{spelled}`{meaning} ({place})",
            number + 1,
            self.what,
            self.entry
        )
    }

    fn kernel_place(&self) -> String {
        match (self.declared, &self.place) {
            (Some(declared), _) => self.files[declared.file].format_position(declared.name.start),
            (None, Some(place)) => place.clone(),
            (None, None) => self
                .files
                .first()
                .map_or_else(String::new, |file| file.name.clone()),
        }
    }

    /// Reports that the launch passes more or fewer arguments than the kernel takes.
    fn count(&self) -> Diagnostic {
        let (given, taken) = (self.args.len(), self.parameters.len());
        let names = |args: &[usize]| -> Vec<&str> {
            args.iter()
                .map(|at| &*self.spec.arguments[*at].name)
                .collect()
        };
        let types: Vec<&str> = self.parameters.iter().map(|each| &*each.ty).collect();
        let message = format!(
            "the {} `{}` takes {} ({}), but gets {}: {} ({})",
            self.what,
            self.entry,
            counted(taken, "parameter"),
            if types.is_empty() {
                "none".to_owned()
            } else {
                types.join(", ")
            },
            counted(given, "argument"),
            names(self.args).join(", "),
            self.kernel_place(),
        );
        let help = if given < taken {
            let missing: Vec<String> = (given..taken)
                .map(|number| self.described(number))
                .collect();
            format!("add to `arguments` what is missing: {}", missing.join("; "))
        } else if self.what == "kernel" {
            format!(
                "name what it takes, as `args: [{}]`, or add the parameters to the kernel",
                names(&self.args[..taken]).join(", ")
            )
        } else {
            "a reference kernel takes all arguments, in order: add the parameters to it".to_owned()
        };
        Diagnostic::new(message, self.at.clone()).help(help)
    }
}

/// Returns the declared type in the space's terms.
fn type_name(argument: &Argument) -> String {
    match (&argument.record, argument.lanes) {
        _ if argument.is_tensor_map() => "tensor_map".to_owned(),
        (Some(record), _) => format!("struct of {} bytes", record.size),
        (None, 1) => argument.ty.name().to_owned(),
        (None, lanes) => format!("{} x {lanes}", argument.ty.name()),
    }
}

fn constant(argument: &Argument) -> &'static str {
    if argument.role == Role::Input {
        "const "
    } else {
        ""
    }
}

fn form_help(argument: &Argument) -> String {
    let (ty, name) = (argument.ty.cpp_name(), &argument.name);
    if argument.role == Role::Scalar {
        format!(
            "write `role: input` with a `shape` here, or take `{ty} {name}` by value in the kernel"
        )
    } else {
        let constant = constant(argument);
        format!(
            "write `role: scalar` with a `value` here, or take `{constant}{ty}* {name}` in the \
             kernel"
        )
    }
}

fn type_help(argument: &Argument, parameter: &Parameter) -> String {
    if argument.is_tensor_map() {
        return "take `const __grid_constant__ CUtensorMap` in the kernel, and include `<cuda.h>`"
            .to_owned();
    }
    if argument.record.is_some() {
        return format!(
            "write the fields of the kernel's type in their order, {} bytes in all (a field whose \
             name begins with `_` only pads)",
            parameter.bytes
        );
    }
    if argument.lanes > 1 {
        let element = parameter.declaration().map_or("its own", Element::name);
        return format!("write the vector that the kernel takes here; its numbers are {element}");
    }
    let ty = argument.ty.cpp_name();
    let kernel = match argument.role {
        Role::Scalar => format!("`{ty} {}`", argument.name),
        _ => format!("`{}{ty}* {}`", constant(argument), argument.name),
    };
    match parameter
        .declaration()
        .filter(|right| *right != argument.ty)
    {
        Some(right) => format!(
            "write `type: {}` here, or {kernel} in the kernel",
            right.name()
        ),
        None => format!("write {kernel} in the kernel; no declared type is what it takes now"),
    }
}
