//! Tensor maps of a launcher: encoded at each launch, since they contain the buffers' addresses.

use super::super::lookup;
use super::{Launcher, Parameter};
use std::fmt::Write as _;
use tuner_core::escape::CLiteral;
use tuner_space::{Expr, Launch, MapText};

/// Functions of launchers with tensor maps, inserted after the runtime.
const RUNTIME: &str = include_str!("../tensor_maps.hpp");

/// Returns the expressions of a map, in the order in which [`initializer`] expects their C texts.
pub(super) fn expressions(map: &MapText) -> Vec<&Expr> {
    let single = [
        &map.swizzle,
        &map.swizzle_atom,
        &map.interleave,
        &map.l2_promotion,
        &map.nan_fill,
    ];
    let lists = [
        &map.shape,
        &map.strides,
        &map.boxes,
        &map.steps,
        &map.lower,
        &map.upper,
    ];
    lists.into_iter().flatten().chain(single).collect()
}

/// Formats a map in C from the texts of its expressions.
pub(super) fn initializer(map: &MapText, texts: Vec<String>) -> String {
    let mut texts = texts
        .into_iter()
        .map(|text| format!("static_cast<long long>({text})"));
    // The innermost dimension is first.
    let mut list = |of: &[Expr], missing: Vec<&str>| {
        let mut values: Vec<String> = texts.by_ref().take(of.len()).collect();
        values.reverse();
        let missing = missing.into_iter().map(str::to_owned);
        values.extend(missing.filter(|_| of.is_empty()));
        format!("{{{}}}", values.join(", "))
    };
    let each = |missing| vec![missing; map.shape.len()];
    let lists = [
        list(&map.shape, each("1")),
        list(&map.strides, each("0")),
        list(&map.boxes, each("1")),
        list(&map.steps, each("1")),
        list(&map.lower, vec!["0"]),
        list(&map.upper, vec!["0"]),
        u32::from(!map.lower.is_empty()).to_string(),
    ];
    let single: Vec<String> = texts.collect();
    format!(
        "{{{}, {}, {}, {}, {}}}",
        map.element as u32,
        map.element.bytes(),
        map.shape.len(),
        lists.join(", "),
        single.join(", ")
    )
}

impl Launcher<'_> {
    /// Iterates over the tensor maps, each with its map and the name of its buffer.
    fn maps(&self) -> impl Iterator<Item = (&Parameter<'_>, &str)> {
        self.arguments.iter().filter_map(|parameter| {
            let (_, of) = parameter.argument.tensor_map()?;
            Some((parameter, self.arguments.get(of)?.name.as_str()))
        })
    }

    /// Returns the functions that encode maps; empty without maps.
    pub(super) fn map_runtime(&self) -> &'static str {
        if self.maps().next().is_some() {
            RUNTIME
        } else {
            ""
        }
    }

    /// Writes the maps of each configuration as a function of the sizes.
    pub(super) fn map_functions(&self, text: &mut String) {
        if self.maps().next().is_none() {
            return;
        }
        let parameters = lookup::parameters(self.plan.sizes.iter());
        let comma = if parameters.is_empty() { "" } else { ", " };
        let unused = self.unused_sizes();
        for (index, code) in self.codes.iter().enumerate() {
            let _ = writeln!(
                text,
                "\nstatic void maps_{index}({parameters}{comma}Map *maps) {{\n  {unused}"
            );
            for (at, map) in code.maps.iter().enumerate() {
                let _ = writeln!(text, "  maps[{at}] = {map};");
            }
            text.push_str("}\n");
        }
        let all: String = (0..self.codes.len())
            .map(|index| format!("maps_{index}, "))
            .collect();
        let _ = writeln!(
            text,
            "static void (*const all_maps[])({parameters}{comma}Map *) = {{{all}}};"
        );
    }

    /// Writes the encoding of the maps that the performed launches use.
    pub(super) fn map_values(&self, text: &mut String, sizes: &str) {
        let count = self.maps().count();
        if count == 0 {
            return;
        }
        let comma = if sizes.is_empty() { "" } else { ", " };
        let _ = writeln!(
            text,
            "  Map maps[{count}] = {{}};\n  all_maps[chosen]({sizes}{comma}maps);"
        );
        let launches = || self.plan.launches.iter().zip(&self.source.spec.launches);
        for (at, (parameter, of)) in self.maps().enumerate() {
            let name = &parameter.name;
            let mut arguments = self.source.spec.arguments.iter();
            let number = arguments.position(|it| std::ptr::eq(it, parameter.argument));
            let takes = |(_, launch): &(&String, &Launch)| {
                number.is_some_and(|number| launch.args.contains(&number))
            };
            let made: Vec<String> = launches()
                .filter(takes)
                .map(|(launch, _)| format!("Made_{launch}.runs"))
                .collect();
            if made.is_empty() {
                continue;
            }
            let _ = writeln!(
                text,
                "  CUtensorMap {name} = {{}};\n  if (({}) && (status = encode({name}, maps[{at}], {of}, {})) != fine) return status;",
                made.join(" || "),
                CLiteral::new(&parameter.argument.name),
            );
        }
    }
}
