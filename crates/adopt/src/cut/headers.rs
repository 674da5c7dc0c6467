//! Headers outside the project that a template includes.

use super::{GROUPS, PRELUDE, Template};
use crate::tree::{self, Source, visit, words};
use crate::unit::{Around, Item, Kind, Unit};
use std::collections::BTreeSet;
use std::path::Path;
use tuner_kernel::compile::{self, included_host_headers, is_host_header};

/// Headers that cost compile time, each with the identifiers that require it.
const ON_WORD: [(&str, &[&str]); 15] = [
    ("cooperative_groups*", &GROUPS),
    ("cub/*", &["cub"]),
    ("cuda/*", &["cuda"]),
    ("thrust/*", &["thrust"]),
    ("mma.h", &["nvcuda", "wmma"]),
    ("type_traits", &["std"]),
    ("functional", &["std"]),
    ("algorithm", &["std", "min", "max"]),
    (
        "curand*",
        &["curand", "curandState", "curandState_t", "curand_init"],
    ),
    ("cmath", &["std"]),
    ("cstdint", &["std"]),
    ("cstring", &["std"]),
    (
        "cuda_fp8.h",
        &["__nv_fp8_e4m3", "__nv_fp8_e5m2", "__nv_fp8_storage_t"],
    ),
    ("cuda_fp4.h", &["__nv_fp4_e2m1"]),
    ("cuda.h", &["CUtensorMap"]),
];

/// Returns the directive for an include of the file if the template needs it.
pub(super) fn include(
    unit: &Unit,
    item: &Item,
    template: &mut Template,
    available: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let spelled = item.names.first()?;
    if PRELUDE.contains(&format!("<{spelled}>")) {
        return None;
    }
    let rule = ON_WORD
        .iter()
        .find(|(name, _)| match name.strip_suffix('*') {
            Some(start) => spelled.starts_with(start),
            None => spelled == name,
        });
    match rule {
        Some((_, needed)) if !needed.iter().any(|word| template.words.contains(*word)) => {
            return None;
        }
        // The prelude has the other names of host headers that kernels use.
        None if is_host_header(spelled) && !offers(unit, spelled, &template.words) => return None,
        _ => {}
    }
    if !available(spelled) {
        // A branch for another compiler or device may be dropped.
        let always = |around: &Around| !matches!(around, Around::Condition(_));
        if item.around.iter().all(always) {
            template.missing.push(spelled.clone());
        }
        return None;
    }
    Some(format!("#include <{spelled}>\n"))
}

/// Reports whether one of these words is a name that a host header declares in `std`.
fn offers(unit: &Unit, header: &str, used: &BTreeSet<String>) -> bool {
    // Names such as `size` and `next` are also those of variables.
    let of_std = |item: &Item| {
        let path = item.names.first().filter(|_| item.kind == Kind::Using);
        path.is_some_and(|path| path.contains("std"))
    };
    let named = used.contains("std") || unit.items.iter().any(of_std);
    named && declared(header).iter().any(|name| used.contains(name))
}

/// Returns the names that a host header declares in `std`.
fn declared(header: &str) -> BTreeSet<String> {
    let text = format!("#include <{header}>\n");
    let template = compile::Template::new("template.cu", &text, Vec::new(), Vec::new());
    let mut found = BTreeSet::new();
    let headers = included_host_headers(&template).into_iter();
    let own = headers.filter(|each| each.spelled == header);
    let sources = own.filter_map(|each| Source::parse(Path::new(""), String::new(), each.text));
    for source in sources {
        visit(source.tree().root_node(), &mut |node| match node.kind() {
            "namespace_definition" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| source.node_text(name).to_owned());
                found.extend(name.filter(|name| name != "std"));
                true
            }
            "using_declaration" => {
                let name = words(source.node_text(node)).pop();
                found.extend(name.map(str::to_owned));
                false
            }
            "declaration"
            | "function_definition"
            | "template_declaration"
            | "alias_declaration" => {
                found.extend(tree::declared(&source, node));
                false
            }
            _ => true,
        });
    }
    found
}

#[cfg(test)]
mod tests;
