//! What names the kernel: namespaces, name and template arguments.

use super::{Known, MAX_PARAMETERS, Plan, Proposed};
use crate::cut::{looks_like_tiling, neighbours};
use crate::host::{Host, bytes_of};
use crate::kernel::{self, TemplateParameter};
use crate::tree;
use crate::unit::{Around, Kind, Unit};

impl Plan {
    /// Names the entry; the template's values that look like tiles become parameters.
    pub(super) fn name_entry<'u>(&mut self, known: &Known<'u>, host: &mut Host<'u>) {
        let spaces = known.own.around.iter().filter_map(|around| match around {
            Around::Namespace(name) if !name.is_empty() => Some(format!("{name}::")),
            _ => None,
        });
        let path = spaces.chain([self.kernel.clone()]).collect::<String>();
        let parameters = kernel::template_parameters(known.source, known.node);
        if parameters.is_empty() {
            self.entry = path;
            return;
        }
        let mut arguments = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let launch = known.launch.as_ref();
            let given = launch.and_then(|launch| launch.template.get(at)).cloned();
            let given = given.or_else(|| parameter.default.clone());
            arguments.push(if parameter.is_type {
                self.type_argument(known.unit, parameter, given)
            } else {
                self.value_argument(known, parameter, given, host)
            });
        }
        self.entry = format!("{path}<{}>", arguments.join(", "));
    }

    fn type_argument(
        &mut self,
        unit: &Unit,
        parameter: &TemplateParameter,
        given: Option<String>,
    ) -> String {
        // A type parameter of the function that launches is not known here.
        let known = |text: &String| {
            let declared = |word: &str| {
                unit.items
                    .iter()
                    .any(|item| item.names.iter().any(|name| name == word))
            };
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
        self.notes.push(format!(
            "`{}` of the template is taken as float; write another type in `entry` where that is wrong",
            parameter.name
        ));
        "float".to_owned()
    }

    fn value_argument<'u>(
        &mut self,
        known: &Known<'u>,
        parameter: &TemplateParameter,
        text: Option<String>,
        host: &mut Host<'u>,
    ) -> String {
        if let Some(text) = &text
            && (text == "true" || text == "false" || text.contains("::"))
        {
            return text.clone();
        }
        // A function that is a template's argument.
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
        let scope = known.scope();
        let number = text
            .as_ref()
            .and_then(|text| host.of_text(scope, text))
            .and_then(|it| it.number());
        let name = &parameter.name;
        let value = number.unwrap_or_else(|| {
            let guess = if looks_like_tiling(name, 16) { 16 } else { 1 };
            self.guessed_entry.push(name.clone());
            self.notes.push(format!(
                "`{name}` of the template has no value in the file; {guess} was guessed, write yours in `entry`"
            ));
            guess
        });
        if !looks_like_tiling(name, value) || self.parameters.len() >= MAX_PARAMETERS {
            return value.to_string();
        }
        // The name itself would be replaced in the template's own declaration.
        let proposed = format!("TUNE_{}", name.to_uppercase());
        if let (Some(scope), Some(text)) = (scope, &text)
            && text.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit())
        {
            host.bind(scope, text, &proposed);
        }
        self.parameters.push(Proposed {
            name: proposed.clone(),
            default: value,
            values: neighbours(value),
            doc: format!("the template's {name}"),
        });
        format!("{{{proposed}}}")
    }
}
