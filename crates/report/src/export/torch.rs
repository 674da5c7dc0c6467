//! PyTorch package: a folder with a custom op over the exported variants.
//!
//! The Python files are equal for every kernel except for names of letters, digits and `_`; all other text
//! of search spaces and devices is data in `kernel.json`.

use super::PackageFiles;
use super::launcher::{LauncherError, LauncherImage, LauncherSource, check, launcher_entries};
use super::names::{identifier, is_python_word, target_name};
use super::object;
use super::values::{check_entry, is_flag};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use tuner_core::element::Element;
use tuner_core::entry::Entry;
use tuner_core::escape;
use tuner_core::plan::Role;
use tuner_core::record::value_of;
use tuner_space::{Argument, Expr, KernelSpec, MapText, Reference};

const RUNTIME: &str = include_str!("torch/runtime.py");
const DRIVER: &str = include_str!("torch/driver.py");
const REGISTER: &str = include_str!("torch/register.py");
const ATTENTION: &str = include_str!("torch/sdpa.py");
const TEST: &str = include_str!("torch/test.py");

/// Machine code of a package, with the macros that it was compiled with.
pub type MacroImage = (LauncherImage, Vec<(String, String)>);

/// Writes the package of a kernel's entries.
///
/// # Errors
/// Nothing to export, or a kernel that PyTorch cannot call.
pub fn torch_package(
    kernel: &str,
    entries: &[Entry],
    source: &LauncherSource<'_>,
    images: &[MacroImage],
) -> Result<PackageFiles, LauncherError> {
    check(source.spec)?;
    let entries = launcher_entries(entries);
    // The runtime writes them as macros before the source.
    for entry in &entries {
        check_entry(entry)?;
    }
    let first = entries.first().ok_or(super::ExportError::Empty)?;
    let sizes: Vec<&str> = first.sizes.iter().map(|(name, _)| name.as_str()).collect();
    let names = python_names(&source.spec.arguments, &sizes);
    let known = with_derived(sizes.clone(), source.spec);
    for argument in &source.spec.arguments {
        check_argument(argument, &known)?;
    }
    let is_given = |argument: &Argument| argument.role.is_filled();
    if !source.spec.arguments.iter().any(is_given) {
        let what = "a kernel without input tensors, which name the device".to_owned();
        return Err(LauncherError::Unsupported(what));
    }
    // It is part of file names, whose length is limited.
    let op = identifier(&target_name(kernel)).to_ascii_lowercase();
    let package = format!("{op}_torch");
    let embedded = images
        .iter()
        .map(|(image, macros)| image_json(image, macros, source));
    let embedded: Vec<Json> = embedded.collect();
    let data = json!({
        "format": "tuner-export",
        "version": 1,
        "kernel": kernel,
        "entries": entries.iter().map(entry).collect::<Vec<_>>(),
        "torch": section(&entries, source, &names, &sizes, &embedded),
    });
    let data = serde_json::to_string_pretty(&data).unwrap_or_default();
    let texts = [
        ("pyproject.toml".to_owned(), pyproject(&package)),
        (
            format!("{package}/__init__.py"),
            init(&package, &op, source),
        ),
        (format!("{package}/_runtime.py"), RUNTIME.to_owned()),
        (format!("{package}/_driver.py"), DRIVER.to_owned()),
        (format!("{package}/_register.py"), REGISTER.to_owned()),
        (format!("{package}/kernel.json"), escape::json(&data) + "\n"),
        (
            format!("tests/test_{op}.py"),
            TEST.replace("@PACKAGE@", &package),
        ),
    ];
    let texts = texts.map(|(name, text)| (name, text.into_bytes()));
    let code = images.iter().map(|(image, _)| {
        (
            format!("{package}/{}", file_name(image)),
            image.bytes.clone(),
        )
    });
    Ok(texts.into_iter().chain(code).collect())
}

/// Returns the name of an image's file. Targets only have letters, digits and `_`.
fn file_name(image: &LauncherImage) -> String {
    format!("{}_{}.cubin", image.entry, image.arch)
}

/// Formats the data for choosing an image.
fn image_json(
    image: &LauncherImage,
    macros: &[(String, String)],
    source: &LauncherSource<'_>,
) -> Json {
    let launches = source.spec.launches.iter().map(|launch| &launch.entry);
    let symbols = image.symbols.iter().map(|symbol| json!(symbol));
    let symbols = launches.cloned().zip(symbols);
    // A launch that the entry never performs has no kernel.
    let symbols = symbols.filter(|(_, symbol)| symbol.as_str().is_some_and(|it| !it.is_empty()));
    json!({
        "entry": image.entry,
        "arch": image.arch,
        "file": file_name(image),
        "macros": macros,
        "symbols": symbols.collect::<serde_json::Map<String, Json>>(),
    })
}

/// Formats an entry: its row, and the data for choosing it.
fn entry(entry: &Entry) -> Json {
    let json = serde_json::to_value(&entry.best).unwrap_or_default();
    let mut json = match json {
        Json::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    json.insert("sizes".to_owned(), object(&entry.sizes).into());
    json.insert("cc".to_owned(), json!(entry.cc));
    json.insert("constants".to_owned(), object(&entry.environment).into());
    json.into()
}

fn section(
    entries: &[Entry],
    source: &LauncherSource<'_>,
    names: &[String],
    sizes: &[&str],
    images: &[Json],
) -> Json {
    let spec = source.spec;
    let text = |expr: &Expr| expr.text().to_owned();
    let shown: BTreeSet<&str> = spec
        .arguments
        .iter()
        .filter(|argument| argument.role.is_filled())
        .flat_map(|argument| argument.shape.iter().map(Expr::text))
        .collect();
    let exact = |name: &&&str| {
        let mut values = entries.iter().map(|entry| value_of(&entry.sizes, name));
        values.any(is_flag)
    };
    let own = entries.iter().take(1).flat_map(|entry| &entry.sizes);
    let free = own.filter(|(name, _)| !shown.contains(name.as_str()));
    let free: serde_json::Map<String, Json> = free
        .map(|(name, value)| (name.clone(), json!(value.as_i64())))
        .collect();
    let all: Vec<&str> = spec.arguments.iter().map(|one| one.name.as_str()).collect();
    let arguments = spec.arguments.iter().zip(names).map(|(argument, name)| {
        let size = sizes.contains(&argument.name.as_str());
        let value = argument.value.as_ref().map(text);
        json!({
            "name": argument.name,
            "python": name,
            "type": argument.ty.name(),
            "role": argument.role,
            "shape": argument.shape.iter().map(text).collect::<Vec<_>>(),
            "value": value.clone().or_else(|| size.then(|| argument.name.clone())),
            "free": argument.role == Role::Scalar && value.is_none() && !(size || argument.is_tensor_map()),
            "schema": schema_type(argument.ty),
            "map": argument.tensor_map().map(|(map, of)| map_json(map, all.get(of).copied())),
        })
    });
    let launches = spec.launches.iter().map(|launch| {
        json!({
            "entry": launch.entry,
            "when": launch.when.as_ref().map(text),
            "grid": launch.grid.iter().map(text).collect::<Vec<_>>(),
            "block": launch.block.iter().map(text).collect::<Vec<_>>(),
            "shared": text(&launch.shared),
            "cluster": launch.cluster.as_ref().map(|cluster| cluster.each_ref().map(text)),
            "cooperative": launch.cooperative,
            "args": launch.args.iter().filter_map(|at| all.get(*at)).collect::<Vec<_>>(),
        })
    });
    json!({
        "source": { "text": source.text, "headers": source.headers },
        "options": spec.options,
        "features": spec.arch_features.map_or(("", 0), |features| (features.suffix(), features.first_capability())),
        "arguments": arguments.collect::<Vec<_>>(),
        "sizes": sizes,
        "macro_sizes": sizes.iter().filter(|name| spec.sizes.is_macro(name)).collect::<Vec<_>>(),
        "exact_sizes": sizes.iter().filter(exact).collect::<Vec<_>>(),
        "free_sizes": free,
        "derived": spec.derived.iter().map(|(name, expr)| (name, text(expr))).collect::<Vec<_>>(),
        "constraints": spec.constraints.iter().map(|one| text(&one.rule)).collect::<Vec<_>>(),
        "launches": launches.collect::<Vec<_>>(),
        "fallback": spec.torch_fallback,
        "images": images,
    })
}

/// Formats a tensor map of a buffer.
fn map_json(map: &MapText, of: Option<&str>) -> Json {
    let texts = |all: &[Expr]| {
        all.iter()
            .map(Expr::text)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    json!({
        "of": of,
        "element": map.element as u32,
        "bytes": map.element.bytes(),
        "shape": texts(&map.shape),
        "strides": texts(&map.strides),
        "box": texts(&map.boxes),
        "steps": texts(&map.steps),
        "lower": texts(&map.lower),
        "upper": texts(&map.upper),
        "swizzle": map.swizzle.text(),
        "swizzle_atom": map.swizzle_atom.text(),
        "interleave": map.interleave.text(),
        "l2_promotion": map.l2_promotion.text(),
        "nan_fill": map.nan_fill.text(),
    })
}

/// Rejects arguments that PyTorch or ctypes cannot pass.
fn check_argument(argument: &Argument, known: &[&str]) -> Result<(), LauncherError> {
    let unsupported = |what: String| {
        Err(LauncherError::Unsupported(format!(
            "the argument `{}`: {what}",
            argument.name
        )))
    };
    match argument.role {
        Role::Scalar if argument.is_tensor_map() => Ok(()),
        Role::Scalar if schema_type(argument.ty).is_none() => {
            unsupported(format!("a scalar of type {}", argument.ty.name()))
        }
        Role::Scalar => Ok(()),
        _ if argument.lanes > 1 => unsupported("a vector type".to_owned()),
        _ if !is_tensor_type(argument.ty) => {
            unsupported(format!("PyTorch has no tensors of {}", argument.ty.name()))
        }
        Role::Input | Role::Inout | Role::Output
            if argument.shape.iter().any(|extent| !is_known(extent, known)) =>
        {
            unsupported("its shape depends on the configuration".to_owned())
        }
        Role::Input | Role::Inout | Role::Output | Role::Scratch => Ok(()),
    }
}

/// Reports whether an extent only uses sizes and values derived from them.
fn is_known(extent: &Expr, known: &[&str]) -> bool {
    extent.names().all(|(name, _)| known.contains(&name))
}

/// Adds the values that are derived from sizes only.
fn with_derived<'s>(mut known: Vec<&'s str>, spec: &'s KernelSpec) -> Vec<&'s str> {
    for (name, expr) in &spec.derived {
        if is_known(expr, &known) {
            known.push(name);
        }
    }
    known
}

/// Reports whether PyTorch has tensors of a type, that is, whether the package's `DTYPES` contains it.
fn is_tensor_type(ty: Element) -> bool {
    RUNTIME.contains(&format!("\"{ty}\": torch."))
}

/// Returns the type of a scalar in an op's schema; `None` if it has none.
fn schema_type(ty: Element) -> Option<&'static str> {
    match ty {
        Element::F16 | Element::Bf16 | Element::F32 | Element::F64 => Some("float"),
        Element::Bool => Some("bool"),
        Element::I8 | Element::U8 | Element::I16 | Element::U16 => Some("int"),
        Element::I32 | Element::U32 | Element::I64 | Element::U64 => Some("int"),
        // PyTorch has no conversion of a number to the bits of these types.
        Element::F8e4m3 | Element::F8e5m2 => None,
    }
}

/// Returns Python names of arguments: reserved words and the sizes of other arguments get a `_`.
fn python_names(arguments: &[Argument], sizes: &[&str]) -> Vec<String> {
    let mut used = BTreeSet::new();
    let names = arguments.iter().map(|argument| {
        let mut name = identifier(&argument.name);
        let is_scalar = argument.role == Role::Scalar;
        // `self` and `out` have a special meaning in op schemas.
        while is_python_word(&name)
            || matches!(&*name, "torch" | "self" | "out")
            || used.contains(&name)
            || (!is_scalar && sizes.contains(&name.as_str()))
        {
            name.push('_');
        }
        used.insert(name.clone());
        name
    });
    names.collect()
}

fn pyproject(package: &str) -> String {
    format!(
        "[build-system]\nrequires = [\"setuptools>=68\"]\nbuild-backend = \"setuptools.build_meta\"\n\n\
         [project]\nname = \"{}\"\nversion = \"{}\"\nrequires-python = \">=3.10\"\n\
         dependencies = [\"torch>=2.4\"]\n\n[project.optional-dependencies]\ngpu = [\"cuda-bindings\"]\n\n\
         [tool.setuptools]\npackages = [\"{package}\"]\n\n\
         [tool.setuptools.package-data]\n{package} = [\"kernel.json\", \"*.cubin\"]\n",
        package.replace('_', "-"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Writes the module that registers the op.
fn init(package: &str, op: &str, source: &LauncherSource<'_>) -> String {
    let mut text = format!(
        "\"\"\"Custom op `torch.ops.{package}.{op}`, written by `tuner export --torch`.\"\"\"\n\n\
         import json\nimport pathlib\n\nimport torch\n\n\
         from ._register import register\n\
         from ._runtime import DTYPES, Kernel\n\n\
         kernel = Kernel(json.loads(pathlib.Path(__file__).with_name(\"kernel.json\").read_text(\"utf-8\")))\n\
         op = register(kernel, \"{package}\", \"{op}\")\n",
    );
    let spec = source.spec;
    let plain = |name: &str| spec.arguments.iter().any(|one| one.name == name);
    let attention = matches!(&spec.reference, Reference::Oracle(oracle) if oracle == "attention");
    if attention && ["q", "k", "v"].into_iter().all(plain) {
        text.push_str("_DTYPE = DTYPES[kernel.inputs[0][\"type\"]]\n");
        text.push_str(ATTENTION);
    }
    text
}
