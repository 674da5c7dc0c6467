//! The kernel's entry: namespaces, name and template arguments.

use super::{ComputedArgument, KernelContext, MAX_PARAMETERS, Plan, ProposedParameter, deduced};
use crate::cut::{looks_like_tiling, neighbours};
use crate::expr::Expr;
use crate::host::{Host, sizeof};
use crate::kernel::{self, TemplateParameter};
use crate::macros::pieces;
use crate::tree;
use crate::types::{self, bytes_of};
use crate::unit::Kind;

impl Plan {
    /// Builds the entry; template values that look like tile sizes become parameters.
    pub(super) fn name_entry<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        let path = known.own.path(&self.kernel);
        let parameters = kernel::template_parameters(known.source, known.node);
        if parameters.is_empty() {
            // An explicit specialisation has its template arguments in its name.
            let name =
                tree::function(known.node).and_then(|it| it.child_by_field_name("declarator"));
            let name = name.map_or("", |name| known.source.node_text(name));
            let arguments = name.find('<').and_then(|at| name.get(at..));
            self.entry = format!("{path}{}", arguments.unwrap_or_default());
            return;
        }
        let mut arguments = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let launch = known.launch.as_ref();
            let given = launch.and_then(|launch| launch.template.get(at)).cloned();
            let given = given.or_else(|| parameter.default.clone());
            let given = given.or_else(|| match parameter.is_type {
                true => deduced::deduced(known, &parameter.name),
                false => None,
            });
            arguments.push(if parameter.is_type {
                let given =
                    given.map(|given| deduced::instantiated(known, &given).unwrap_or(given));
                self.type_argument(known, parameter, given)
            } else {
                self.value_argument(known, parameter, given, host)
            });
        }
        self.entry = format!("{path}<{}>", arguments.join(", "));
    }

    fn type_argument(
        &mut self,
        context: &KernelContext<'_>,
        parameter: &TemplateParameter,
        given: Option<String>,
    ) -> String {
        // A type parameter of the launching function is unknown here.
        let known = |text: &String| {
            let declared = |word: &str| context.unit.declaring(word).next().is_some();
            let builtin = |word: &str| {
                bytes_of(word).is_some()
                    || matches!(
                        word,
                        "unsigned" | "const" | "signed" | "std" | "cuda" | "long"
                    )
                    || word.starts_with("__")
            };
            tree::words(text)
                .into_iter()
                .all(|word| builtin(word) || declared(word))
        };
        if let Some(given) = given.filter(known) {
            return given;
        }
        let guess = match deduced::indexes(context, &parameter.name) {
            true => "int",
            false => "float",
        };
        self.guessed_types.push(parameter.name.clone());
        self.notes.push(format!(
            "`{}` of the template is taken as {guess}; write another type in `entry` where that is wrong",
            parameter.name
        ));
        guess.to_owned()
    }

    fn value_argument<'u>(
        &mut self,
        known: &KernelContext<'u>,
        parameter: &TemplateParameter,
        text: Option<String>,
        host: &mut Host<'u>,
    ) -> String {
        if let Some(text) = &text
            && let Some(written) = self.as_written(known, &parameter.name, text, host)
        {
            return written;
        }
        // A function passed as a template argument.
        let functions = |text: &String| {
            let items = &known.unit.items;
            items
                .iter()
                .any(|item| item.kind == Kind::Device && item.names.contains(text))
        };
        if let Some(text) = text.as_ref().filter(|text| functions(text)) {
            self.reached.push(text.clone());
            return text.clone();
        }
        if let Some(text) = text.as_ref().and_then(|text| known.by_branch(text)) {
            return text;
        }
        let scope = known.scope();
        let meaning = text.as_ref().and_then(|text| host.of_text(scope, text));
        if let Some(made) = meaning.as_ref().and_then(|it| self.made_of_parameters(it)) {
            return made;
        }
        if let Some(text) = text.as_ref().filter(|_| meaning.is_none())
            && Self::is_known(known, text, host)
            && let Some(written) = self.with_values(known, &parameter.name, text, host)
        {
            return written;
        }
        let size = |name: &str| types::bytes(known.unit, sizeof(name)?).map(Expr::Number);
        let number = meaning.and_then(|it| it.with(&size).number());
        let name = &parameter.name;
        if let (Some(text), Some(value)) = (&text, number)
            && known.is_of_block(
                text,
                host,
                looks_like_tiling(name, value) || is_of_data(name),
            )
        {
            self.computed.push(ComputedArgument {
                name: name.clone(),
                text: text.clone(),
                value: value.to_string(),
                as_written: false,
            });
            return placeholder(name);
        }
        self.number_argument(known, name, text.as_deref(), number, host)
    }

    /// Returns a number as an argument: its value, or a parameter if it looks like a tile size.
    fn number_argument<'u>(
        &mut self,
        known: &KernelContext<'u>,
        name: &str,
        text: Option<&str>,
        number: Option<i64>,
        host: &mut Host<'u>,
    ) -> String {
        let scope = known.scope();
        let value = number.unwrap_or_else(|| {
            let guess = if looks_like_tiling(name, 16) { 16 } else { 1 };
            self.guessed_entry.push(name.to_owned());
            self.notes.push(format!(
                "`{name}` of the template has no value in the file; {guess} was guessed, write yours in `entry`"
            ));
            guess
        });
        let spelled = text.filter(|text| {
            text.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !text.starts_with(|c: char| c.is_ascii_digit())
        });
        if !looks_like_tiling(name, value) || self.parameters.len() >= MAX_PARAMETERS {
            if let (Some(scope), Some(spelled), Some(_)) = (scope, spelled, number) {
                host.fix(scope, spelled, value);
            }
            // The launch's sizes lack it.
            if is_of_data(name) {
                self.dimensions.push(value.max(1));
            }
            return value.to_string();
        }
        // The macro would also replace the name in the template's declaration.
        let proposed = format!("TUNE_{}", name.to_uppercase());
        if let (Some(scope), Some(spelled)) = (scope, spelled) {
            host.bind(scope, spelled, &proposed);
        }
        self.parameters.push(ProposedParameter {
            name: proposed.clone(),
            default: value,
            values: neighbours(value),
            doc: format!("the template's {name}"),
            of_data: false,
        });
        format!("{{{proposed}}}")
    }
}

impl Plan {
    /// Returns an argument in the notation of the launch if its value is not sufficient: a keyword, or an
    /// expression with names of other scopes. A cast to a type of them changes the type of the value.
    fn as_written<'u>(
        &mut self,
        known: &KernelContext<'u>,
        name: &str,
        text: &str,
        host: &mut Host<'u>,
    ) -> Option<String> {
        if matches!(text, "true" | "false") {
            return Some(text.to_owned());
        }
        if !text.contains("::") {
            return None;
        }
        let local = |scope| host.local_names(scope, text);
        let locals = known.scope().map(local).unwrap_or_default();
        let (Some(scope), false) = (known.scope(), locals.is_empty()) else {
            return Some(text.to_owned());
        };
        let mut types = text
            .split("_cast<")
            .skip(1)
            .map(|rest| rest.split('>').next());
        let converts = types.any(|ty| ty.is_some_and(|ty| ty.contains("::")));
        if !converts && host.of_text(Some(scope), text).is_some() {
            return None;
        }
        self.with_values(known, name, text, host)
    }

    /// Reports whether all names of an expression are those of the unit or of the host's function.
    fn is_known(known: &KernelContext<'_>, text: &str, host: &Host<'_>) -> bool {
        let locals = known.scope().map(|scope| host.local_names(scope, text));
        let locals = locals.unwrap_or_default();
        let words = tree::words(text);
        let is_known = |word: &&str| {
            locals.iter().any(|local| local == word) || known.unit.declaring(word).next().is_some()
        };
        words != [text] && words.iter().all(is_known)
    }

    /// Returns the text of an argument with values for the names of the host's function, which the template
    /// lacks.
    fn with_values<'u>(
        &mut self,
        known: &KernelContext<'u>,
        name: &str,
        text: &str,
        host: &mut Host<'u>,
    ) -> Option<String> {
        let scope = known.scope()?;
        let locals = host.local_names(scope, text);
        let mut written = String::new();
        for piece in pieces(text) {
            if written.ends_with("::") || !locals.iter().any(|local| local == piece) {
                written.push_str(piece);
                continue;
            }
            let meaning = host.of_text(Some(scope), piece)?;
            let value = || meaning.number().map(|number| number.to_string());
            written.push_str(&self.made_of_parameters(&meaning).or_else(value)?);
        }
        if !locals
            .iter()
            .any(|local| known.is_of_block(local, host, false))
        {
            return Some(written);
        }
        self.computed.push(ComputedArgument {
            name: name.to_owned(),
            text: text.to_owned(),
            value: written,
            as_written: true,
        });
        Some(placeholder(name))
    }
}

/// Reports whether a template parameter is an extent of the data, judged by its name.
fn is_of_data(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower == "d" || lower.contains("dim") && !lower.contains("tile")
}

/// Returns the placeholder in the entry for an argument that is computed from the block's extents, until
/// these are known.
fn placeholder(name: &str) -> String {
    format!("{{={name}}}")
}

impl Plan {
    /// Replaces the template arguments that the host computes from the block's extents. Each becomes the
    /// same expression of the parameters, so that both vary together; else its value, and then the block is
    /// fixed.
    pub(super) fn compute_arguments<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        for each in std::mem::take(&mut self.computed) {
            let meaning = host.of_text(known.scope(), &each.text);
            let expressed = meaning.as_ref().filter(|_| !each.as_written);
            let made = expressed.and_then(|it| self.made_of_parameters(it));
            let mut names = Vec::new();
            match meaning {
                Some(meaning) => meaning.names(&mut names),
                // It depends on the block in a way that the space's expressions cannot represent.
                None => names = known.names_of_block(host),
            }
            if made.is_none() && !names.is_empty() {
                self.keep_block(&each.name);
                for parameter in &mut self.parameters {
                    if names.contains(&parameter.name) {
                        parameter.values = vec![parameter.default];
                    }
                }
            }
            let argument = made.unwrap_or(each.value);
            self.entry = self.entry.replace(&placeholder(&each.name), &argument);
        }
    }

    /// Fixes the threads of a block, because a template argument depends on them: the one of this name, or
    /// one that the host computes from this name.
    pub(crate) fn keep_block(&mut self, name: &str) {
        self.keeps_block = true;
        self.notes.push(format!(
            "the threads of a block are not varied: template arguments depend on them by `{name}`, and not as an \
             expression of parameters; write one in `entry`, such as ({{THREADS}} / 32), to vary both"
        ));
    }

    /// Formats an expression over parameters as C++ with the parameters in braces.
    fn made_of_parameters(&self, value: &Expr) -> Option<String> {
        fn written(value: &Expr) -> Option<String> {
            Some(match value {
                Expr::Number(number) => number.to_string(),
                Expr::Name(name) => format!("{{{name}}}"),
                // A shift.
                Expr::Binary("**", base, by) if base.number() == Some(2) => {
                    format!("(1 << {})", written(by)?)
                }
                Expr::Binary(operator, left, right) => {
                    let operator = match *operator {
                        same @ ("+" | "-" | "*" | "%") => same,
                        "//" => "/",
                        // Other operators are Python's, or have a different meaning for C++'s integers.
                        _ => return None,
                    };
                    format!("({} {operator} {})", written(left)?, written(right)?)
                }
                Expr::Real(_) | Expr::Call(..) => return None,
            })
        }
        let mut names = Vec::new();
        value.names(&mut names);
        let known = |name: &String| self.parameters.iter().any(|each| each.name == *name);
        let computed = matches!(value, Expr::Binary(..) | Expr::Name(_)) && !names.is_empty();
        (computed && names.iter().all(known)).then(|| written(value))?
    }
}

impl<'u> KernelContext<'u> {
    /// Reports whether a template argument is one of the block's extents, or the host computes it from
    /// them. One that also has another meaning is only `computed`.
    fn is_of_block(&self, text: &str, host: &Host<'u>, computed: bool) -> bool {
        let Some((scope, block)) = self.scope().zip(self.config(1)) else {
            return false;
        };
        let names = host.parts(scope, block).into_iter();
        let mut names = names.map(|(name, _)| name);
        names.any(|name| match name == text {
            true => !computed,
            false => host.depends_on(scope, text, &name),
        })
    }

    /// Returns the names of the search space in the block's extents.
    fn names_of_block(&self, host: &mut Host<'u>) -> Vec<String> {
        let mut names = Vec::new();
        if let Some((scope, block)) = self.scope().zip(self.config(1)) {
            let extents = host.extents(scope, block, 0).unwrap_or_default();
            extents.iter().for_each(|each| each.names(&mut names));
        }
        names
    }

    /// Replaces the value of the launch's branch in a text by the parameter.
    fn by_branch(&self, text: &str) -> Option<String> {
        let (branch, proposed) = self.branch.as_ref()?;
        let value = branch.value.to_string();
        let mut found = false;
        let mut replaced = |piece: &str| {
            let is_it = piece == value;
            found |= is_it;
            if is_it {
                format!("{{{proposed}}}")
            } else {
                piece.to_owned()
            }
        };
        let made: String = pieces(text).into_iter().map(&mut replaced).collect();
        let plain = made.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        let plain = plain.filter(|it| !it.contains(['(', ')']));
        found.then(|| plain.unwrap_or(&made).to_owned())
    }
}
