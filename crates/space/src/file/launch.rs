//! Checks of arguments and launches.

use super::check::Checker;
use super::de::Spanned;
use super::fills::FillText;
use super::maps::is_map;
use super::origin::ArgumentPlace;
use super::schema::{ArgumentText, Formula, FormulaText, LaunchText};
use super::texts::{ValueText, value_help};
use super::types::Resolved;
use crate::expr::nearest_or_all;
use crate::{Argument, Expr, Launch, PieceValue, Record};
use std::collections::HashSet;
use tuner_core::fill::Fill;
use tuner_core::plan::Role;

/// Parts of an argument or a variable apart from its name and type.
pub(super) struct Parts {
    pub(super) role: Role,
    pub(super) any_type: bool,
    pub(super) shape: Option<Vec<Formula>>,
    pub(super) fill: Option<Spanned<FillText>>,
    pub(super) value: Option<Spanned<ValueText>>,
}

impl Checker<'_> {
    /// Checks the arguments. `sizes` are the problem sizes from which scalars may get their value; an
    /// output is required if results are `compared`.
    pub(super) fn arguments(
        &mut self,
        texts: Vec<ArgumentText>,
        sizes: &HashSet<String>,
        compared: bool,
    ) -> Vec<Argument> {
        let mut arguments: Vec<Argument> = Vec::new();
        let mut names = HashSet::new();
        for text in texts {
            if !names.insert(text.name.value.clone()) {
                self.error(
                    format!("the argument `{}` is given twice", text.name.value),
                    text.name.at.clone(),
                    "rename one of the two",
                );
            }
            if let Some(argument) = self.argument(text, &arguments, sizes) {
                arguments.push(argument);
            }
        }
        let written = arguments.iter().any(|argument| argument.role.is_compared());
        // If there are other errors, the output may be among the arguments that could not be read.
        if compared && !written && self.errors.is_empty() {
            self.error(
                "no argument has the role output",
                0..1,
                "mark what the kernel writes with `role: output` (or `inout`): it is what gets \
                 checked; where only hazards matter, write `reference: none`",
            );
        }
        arguments
    }

    fn argument(
        &mut self,
        text: ArgumentText,
        known: &[Argument],
        sizes: &HashSet<String>,
    ) -> Option<Argument> {
        self.places.arguments.push(ArgumentPlace {
            ty: text.ty.at.clone(),
            role: text.role.at.clone(),
        });
        let any_type = self.any_type(&text);
        if is_map(&text) {
            return self.map(text, known);
        }
        self.no_map_keys(&text);
        let name = text.name.value;
        let role = text.role.value;
        let scalar = role == Role::Scalar;
        let (shape, mut value) = (text.shape, text.value);
        if scalar && value.is_none() && sizes.contains(&name) {
            // A scalar without a value whose name is a size has that size.
            value = Some(Spanned {
                value: ValueText::One(FormulaText(name.clone())),
                at: text.name.at.clone(),
            });
        }
        match (scalar, &shape, &value) {
            (true, Some(shape), _) => {
                let message = format!("the scalar `{name}` has a shape");
                self.error(message, shape.at.clone(), "give it a `value` instead");
            }
            (true, None, None) => {
                let help = value_help(&name, sizes, &self.macro_sizes);
                let message = format!("the scalar `{name}` has no value");
                self.error(message, text.role.at.clone(), help);
            }
            (false, None, _) => self.error(
                format!("the buffer `{name}` has no shape"),
                text.role.at.clone(),
                "add `shape: [M, N]`",
            ),
            (false, Some(shape), _) if shape.value.is_empty() => {
                let message = format!("the shape of `{name}` is empty");
                self.error(message, shape.at.clone(), "write `[1]` for one element");
            }
            (false, _, Some(value)) => {
                let message = format!("the buffer `{name}` has a value");
                self.error(
                    message,
                    value.at.clone(),
                    "fill it with `fill: { constant: … }`",
                );
            }
            _ => {}
        }
        if let (Some(fill), false) = (&text.fill, role.is_filled()) {
            self.error(
                format!("`{name}` is not an input, and is not filled"),
                fill.at.clone(),
                "remove `fill`: outputs and scratch begin as NaN, so that forgotten elements show \
                 (a buffer that is changed in place is `role: inout`)",
            );
        }
        let ty = self.resolve_type(&text.ty);
        let guessed = text.guessed.unwrap_or_default();
        let guessed_extent = text.guessed_extent.unwrap_or_default();
        let fill = text.fill.filter(|_| role.is_filled());
        let parts = Parts {
            role,
            any_type,
            shape: shape.map(|shape| shape.value),
            fill,
            value: value.filter(|_| scalar),
        };
        let argument = self.composed(name, ty?, parts, known)?;
        Some(Argument {
            guessed,
            guessed_extent,
            ..argument
        })
    }

    /// Adds the extent of a buffer's elements if they are vectors or structs.
    fn element_shape(&mut self, name: &str, ty: &Resolved, shape: &mut Vec<Expr>) {
        let inner = match &ty.record {
            Some(record) => record.size,
            None => u64::from(ty.lanes),
        };
        if ty.record.is_some() || inner > 1 {
            shape.extend(Expr::parse(&inner.to_string()).ok());
        }
        let pointers = |record: &Record| record.fields.iter().any(|field| field.pointer);
        if ty.record.as_ref().is_some_and(pointers) {
            let message = format!("the structs of the buffer `{name}` have pointers");
            let help = "only a struct that is passed by value may have some";
            self.error(message, 0..1, help);
        }
    }

    /// Builds an argument or a variable of a resolved type.
    pub(super) fn composed(
        &mut self,
        name: String,
        ty: Resolved,
        parts: Parts,
        known: &[Argument],
    ) -> Option<Argument> {
        let role = parts.role;
        let extents = parts.shape.unwrap_or_default().into_iter();
        let mut shape: Vec<Expr> = extents.filter_map(|extent| self.formula(extent)).collect();
        if role != Role::Scalar {
            self.element_shape(&name, &ty, &mut shape);
        }
        let (fill, fill_sizes) = match &parts.fill {
            Some(fill) => {
                let (fill, sizes) = self.fill(&name, fill, ty.element)?;
                (Some(fill), sizes)
            }
            None => (
                role.is_filled().then(|| Fill::default_for(ty.element)),
                Vec::new(),
            ),
        };
        let is_whole = ty.record.is_none() && ty.element.is_integer();
        let any_value = is_whole && role.is_filled() && parts.fill.is_none();
        let (mut value, mut pieces) = (None, Vec::new());
        match parts.value {
            Some(given) if ty.record.is_some() || ty.lanes > 1 => {
                pieces = self.pieces(&name, &ty, given, known);
            }
            Some(Spanned {
                value: ValueText::One(text),
                at,
            }) => {
                value = self.formula(Spanned { value: text, at });
            }
            Some(given) => self.error(
                format!("`{name}` is one number, and gets several"),
                given.at,
                "write one expression, or a type of several: `float4`, `{ x: f32, n: i32 }`",
            ),
            None => {}
        }
        Some(Argument {
            ty: ty.element,
            lanes: ty.lanes,
            record: ty.record,
            any_type: parts.any_type,
            any_value,
            role,
            shape,
            fill,
            fill_sizes,
            value,
            pieces,
            name,
            guessed: false,
            guessed_extent: false,
        })
    }

    pub(super) fn launches(
        &mut self,
        texts: Vec<LaunchText>,
        arguments: &[Argument],
        variables: &[Argument],
    ) -> Vec<Launch> {
        if texts.is_empty() {
            self.error("`launches` is empty", 0..1, "name at least one launch");
        }
        let launches = texts
            .into_iter()
            .filter_map(|text| self.launch(text, arguments, variables));
        launches.collect()
    }

    fn launch(
        &mut self,
        text: LaunchText,
        arguments: &[Argument],
        variables: &[Argument],
    ) -> Option<Launch> {
        let args = match text.args {
            None => passed(arguments, variables),
            Some(names) => names
                .into_iter()
                .filter_map(|name| self.argument_index(name, arguments))
                .collect(),
        };
        self.entry(&text.entry);
        self.places.launches.push(text.entry.at.clone());
        // No `?` before the last expression: one reading reports the errors of all.
        let when = text.when.map(|when| self.formula(when));
        let grid = self.extents(text.grid);
        let block = self.extents(text.block);
        let cluster = text.cluster.map(|cluster| self.extents(cluster));
        let shared = self.shared(text.shared);
        Some(Launch {
            entry: text.entry.value,
            when: match when {
                Some(parsed) => Some(parsed?),
                None => None,
            },
            args,
            grid: grid?,
            block: block?,
            cluster: match cluster {
                Some(cluster) => Some(cluster?),
                None => None,
            },
            shared: shared?,
            cooperative: text.cooperative.unwrap_or_default(),
            guessed: text.guessed.unwrap_or_default(),
        })
    }

    /// Checks an entry: a function name, or a C++ expression with namespaces and template arguments
    /// in which `{NAME}` is the value of a macro.
    pub(super) fn entry(&mut self, entry: &Spanned<String>) {
        let text = entry.value.as_str();
        let letter = |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric();
        let is_name = !text.is_empty()
            && text.chars().all(letter)
            && !text.starts_with(|c: char| c.is_ascii_digit());
        let allowed = |c: char| letter(c) || c == '.' || " :<>,{}()*&+-/%'".contains(c);
        let begins =
            text.starts_with(|c: char| c == ':' || c == '(' || c == '_' || c.is_alphabetic());
        let is_expression = begins && text.contains(['<', ':', '(']) && text.chars().all(allowed);
        if !is_name && !is_expression {
            self.error(
                format!("`{text}` cannot be a kernel function"),
                entry.at.clone(),
                "write the name of a `__global__` function, of a template with its arguments: \
                 `entry: \"ns::gemm<BM, {STAGES}>\"`",
            );
        }
        self.braced(entry);
    }

    fn argument_index(&mut self, name: Spanned<String>, arguments: &[Argument]) -> Option<usize> {
        let names: Vec<&str> = arguments.iter().map(|known| known.name.as_str()).collect();
        let found = names.iter().position(|known| *known == name.value);
        if found.is_none() && !arguments.is_empty() {
            let help = nearest_or_all(&name.value, &names, "the arguments are");
            self.error(format!("unknown argument `{}`", name.value), name.at, help);
        }
        found
    }

    /// Reads one to three extents; missing ones are 1.
    pub(super) fn extents(&mut self, list: Spanned<Vec<Formula>>) -> Option<[Expr; 3]> {
        if list.value.is_empty() || list.value.len() > 3 {
            self.error(
                format!("expected one to three extents, found {}", list.value.len()),
                list.at,
                "write x, y and z, for example `[\"ceil_div(N, BN)\", M, 1]`",
            );
            return None;
        }
        let count = list.value.len();
        let parsed: Vec<Expr> = list
            .value
            .into_iter()
            .filter_map(|extent| self.formula(extent))
            .collect();
        if parsed.len() < count {
            return None;
        }
        let mut extents = parsed.into_iter().map(Some);
        let mut next = || extents.next().flatten().or_else(|| Expr::parse("1").ok());
        Some([next()?, next()?, next()?])
    }

    pub(super) fn shared(&mut self, shared: Option<Formula>) -> Option<Expr> {
        match shared {
            Some(shared) => self.formula(shared),
            None => Expr::parse("0").ok(),
        }
    }
}

/// Returns the arguments of a launch that does not list them: all except those to which a variable or a
/// struct points.
fn passed(arguments: &[Argument], variables: &[Argument]) -> Vec<usize> {
    let holders: Vec<&Argument> = arguments.iter().chain(variables).collect();
    let all = 0..arguments.len();
    all.filter(|index| !pointed(*index, &holders)).collect()
}

/// Returns the arguments of a reference kernel: all, but with the buffers of tensor maps instead of the
/// maps.
pub(super) fn taken_by_reference(arguments: &[Argument], variables: &[Argument]) -> Vec<usize> {
    let all = arguments.iter().chain(variables);
    let holders: Vec<&Argument> = all.filter(|holder| !holder.is_tensor_map()).collect();
    let all = arguments.iter().enumerate();
    all.filter(|(index, argument)| !argument.is_tensor_map() && !pointed(*index, &holders))
        .map(|(index, _)| index)
        .collect()
}

/// Reports whether one of these values contains the address of an argument.
fn pointed(index: usize, holders: &[&Argument]) -> bool {
    let mut pieces = holders.iter().flat_map(|holder| &holder.pieces);
    pieces.any(|piece| matches!(piece.value, PieceValue::Address(to) if to == index))
}
