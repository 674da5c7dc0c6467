//! Conversion of a T1 problem to a complete search space: source, grid, arguments and parameters.

use serde_json::Value as Json;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use tuner_core::escape;
use tuner_core::escape::yaml as quoted;
use tuner_core::value::Value;
use tuner_space::{BareSpace, KernelSpec, Parameter};

/// Names in the problem's expressions.
struct Names<'a> {
    sizes: Vec<Size>,
    parameters: &'a [Parameter],
}

/// A size of the problem: `ProblemSize[0]` is `PROBLEM_SIZE_0`.
struct Size {
    /// Index in `ProblemSize`, whose other entries may not be numbers.
    at: usize,
    name: String,
    value: String,
}

/// Builds a complete search space, or returns the reason why the problem lacks data. `rest` is the part
/// with parameters and constraints.
pub(super) fn whole(
    json: &Json,
    bare: &BareSpace,
    file: &Path,
    output: &Path,
    rest: &str,
) -> Result<String, String> {
    let kernel = &json["KernelSpecification"];
    let name = kernel["KernelName"]
        .as_str()
        .ok_or("it has no KernelName")?;
    let source = kernel["KernelFile"]
        .as_str()
        .ok_or("it has no KernelFile")?;
    let arguments = kernel["Arguments"]
        .as_array()
        .ok_or("it has no Arguments")?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside = output.parent().unwrap_or(Path::new(""));
    let source = tuner_adopt::relative(beside, &folder.join(source))
        .ok_or_else(|| format!("KernelFile {source} has no path from here"))?;
    let names = Names {
        sizes: sizes(kernel),
        parameters: &bare.parameters,
    };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "version: 1\nkernel: {}\nsource: {}",
        quoted(name),
        quoted(&source)
    );
    let list: Vec<String> = names
        .sizes
        .iter()
        .map(|size| format!("{}: {}", size.name, size.value))
        .collect();
    let _ = writeln!(text, "problems: {{ imported: {{ {} }} }}", list.join(", "));
    text.push_str(rest);
    let (symbols, taken): (Vec<_>, Vec<_>) = arguments
        .iter()
        .enumerate()
        .partition(|(_, argument)| argument["MemoryType"] == "Symbol");
    text.push_str("arguments:\n");
    for (at, argument) in &taken {
        text.push_str(&self::argument(argument, *at, &names)?);
    }
    let constants = taken
        .iter()
        .filter(|(_, argument)| argument["MemType"] == "Constant");
    variables(
        &mut text,
        constants.chain(&symbols).map(|(_, it)| *it),
        &names,
    )?;
    launch(&mut text, kernel, name, &names)?;
    text.push_str("reference: none   # a T1 problem does not say what is computed: hazards only\n");
    let options = strings(&kernel["CompilerOptions"]);
    let options = quoted_list(options.filter(|option| !option.trim().is_empty()));
    if !options.is_empty() {
        let _ = writeln!(text, "compile: {{ options: [{options}] }}");
    }
    // Expressions of T1 are translated as text: the parser decides whether the result is a space.
    KernelSpec::parse(&text, output).map_err(|error| error.to_string())?;
    Ok(text)
}

fn quoted_list(all: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = all.into_iter().map(|one| quoted(&one)).collect();
    all.join(", ")
}

fn strings(json: &Json) -> impl Iterator<Item = String> {
    let all = json.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|one| Some(one.as_str()?.to_owned()))
}

/// Returns the problem's sizes.
fn sizes(kernel: &Json) -> Vec<Size> {
    let size = &kernel["ProblemSize"];
    let all = match size {
        Json::Array(all) => all.clone(),
        Json::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let number = |one: &Json| match one {
        Json::Number(number) => Some(number.to_string()),
        Json::String(text) => text
            .trim()
            .parse::<i64>()
            .ok()
            .map(|number| number.to_string()),
        _ => None,
    };
    let named = all.iter().enumerate();
    named
        .filter_map(|(at, one)| {
            Some(Size {
                at,
                name: format!("PROBLEM_SIZE_{at}"),
                value: number(one)?,
            })
        })
        .collect()
}

/// Translates an expression to the search space's names.
fn expression(json: &Json, names: &Names<'_>) -> Option<String> {
    let text = match json {
        Json::Number(number) => return Some(number.to_string()),
        Json::String(text) => text,
        _ => return None,
    };
    let spelled = text.replace("&&", " and ").replace("||", " or ");
    let known = names.sizes.iter().fold(spelled, |text, size| {
        let text = text.replace(&format!("ProblemSize[{}]", size.at), &size.name);
        match ["X", "Y", "Z"].get(size.at) {
            Some(axis) => text.replace(&format!("ProblemSize.{axis}"), &size.name),
            None => text,
        }
    });
    Some(with_extremes(&known, names.parameters))
}

/// Replaces `max(PARAMETER)` by its largest value and `min(PARAMETER)` by its smallest: for a
/// single parameter these range over its values.
fn with_extremes(text: &str, parameters: &[Parameter]) -> String {
    let mut text = text.to_owned();
    for parameter in parameters {
        let numbers = parameter.values.iter().filter_map(Value::as_f64);
        let extremes = [
            ("max", numbers.clone().fold(f64::NEG_INFINITY, f64::max)),
            ("min", numbers.fold(f64::INFINITY, f64::min)),
        ];
        for (function, number) in extremes {
            let mut from = 0;
            while let Some(call) = call_of(&text, function, &parameter.name, from) {
                from = call.start;
                text.replace_range(call, &number.to_string());
            }
        }
    }
    text
}

/// Finds the first call of a function with only this name as argument, from a byte position.
fn call_of(text: &str, function: &str, name: &str, from: usize) -> Option<Range<usize>> {
    // The end of another name, such as `argmax`, is not the function.
    let begins = |at: usize| {
        let before = text.get(..at).unwrap_or_default().chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    let calls = text.match_indices(function);
    let mut calls = calls.filter(|(at, _)| *at >= from && begins(*at));
    calls.find_map(|(at, _)| {
        let inside = text.get(at + function.len()..)?.trim_start();
        let (argument, rest) = inside.strip_prefix('(')?.split_once(')')?;
        (argument.trim() == name).then(|| at..text.len() - rest.len())
    })
}

fn argument(json: &Json, at: usize, names: &Names<'_>) -> Result<String, String> {
    let name = json["Name"]
        .as_str()
        .map_or_else(|| format!("argument_{at}"), str::to_owned);
    let spelled = json["Type"].as_str().unwrap_or("float");
    let ty =
        element(spelled).ok_or_else(|| format!("the type {spelled} of `{name}` is not known"))?;
    let mut text = format!("  - {{ name: {}, type: {ty}", quoted(&name));
    let is_scalar = json["MemoryType"].as_str() == Some("Scalar");
    if is_scalar {
        let value = expression(&json["FillValue"], names)
            .or_else(|| expression(&json["Value"], names))
            .ok_or_else(|| format!("the scalar `{name}` has no FillValue"))?;
        let _ = writeln!(text, ", role: scalar, value: {} }}", quoted(&value));
        return Ok(text);
    }
    if json["MemoryType"].as_str() == Some("Local") {
        return Err(format!(
            "the argument `{name}` is local memory; write its bytes as `shared` of the launch"
        ));
    }
    let role = match json["AccessType"].as_str() {
        // A buffer that the problem fills has contents before the launch.
        Some("WriteOnly") if json["FillType"].is_null() => "output",
        Some("WriteOnly") => "inout",
        Some("ReadWrite") => "inout",
        _ => "input",
    };
    let shape = shape(json, &name, names)?;
    let _ = write!(text, ", role: {role}, shape: [{}]", quoted(&shape));
    if role != "output" {
        let _ = write!(text, ", fill: {}", fill(json, &name, &ty)?);
    }
    text.push_str(" }\n");
    Ok(text)
}

/// Formats the constant-memory variables: symbols, and arguments that are copied to one.
fn variables<'j>(
    text: &mut String,
    all: impl Iterator<Item = &'j Json>,
    names: &Names<'_>,
) -> Result<(), String> {
    let mut title = "variables:\n";
    for json in all {
        let name = json["Name"].as_str().ok_or("a variable has no Name")?;
        let spelled = json["Type"].as_str().unwrap_or("float");
        let ty = element(spelled)
            .ok_or_else(|| format!("the type {spelled} of `{name}` is not known"))?;
        let (shape, fill) = (shape(json, name, names)?, fill(json, name, &ty)?);
        let (name, shape) = (quoted(name), quoted(&shape));
        text.push_str(std::mem::take(&mut title));
        let _ = writeln!(
            text,
            "  {name}: {{ type: {ty}, shape: [{shape}], fill: {fill} }}"
        );
    }
    Ok(())
}

/// Returns the number of elements of a vector.
fn shape(json: &Json, name: &str, names: &Names<'_>) -> Result<String, String> {
    let every: Vec<&str> = names.sizes.iter().map(|size| size.name.as_str()).collect();
    expression(&json["Size"], names)
        .or_else(|| (!every.is_empty()).then(|| every.join(" * ")))
        .ok_or_else(|| format!("the vector `{name}` has no Size"))
}

/// Returns the initial contents of a vector.
fn fill(json: &Json, name: &str, ty: &str) -> Result<String, String> {
    let source = json["DataSource"].as_str().unwrap_or_default().trim();
    let cannot = |what: &str, fix: &str| {
        let what = escape::line(what);
        Err(format!("the contents of `{name}` are {what}; {fix}"))
    };
    match json["FillType"].as_str().unwrap_or("Random") {
        "Constant" => match &json["FillValue"] {
            Json::Number(value) => Ok(format!("{{ constant: {value} }}")),
            _ => cannot("Constant without a FillValue", "write its number"),
        },
        "BinaryRaw" if !source.is_empty() => Ok(format!("{{ file: {} }}", quoted(source))),
        // KTT evaluates it for each index `i`.
        "Generator" if source == "i" => Ok("arange".to_owned()),
        "Generator" => match source.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(format!("{{ constant: {value} }}")),
            _ => cannot(
                &format!("generated by `{source}`"),
                "write a generator into the source and `fill: { kernel: NAME }`",
            ),
        },
        "Random" if ty.starts_with(['i', 'u']) => {
            Ok("{ uniform: { min: 0, max: 100 } }".to_owned())
        }
        "Random" => Ok("{ uniform: { min: 0.0, max: 1.0 } }".to_owned()),
        other => cannot(other, "write them to a file and `fill: { file: PATH }`"),
    }
}

fn element(spelled: &str) -> Option<String> {
    let known = match spelled {
        "float" | "float32" => "f32",
        "double" | "float64" => "f64",
        "half" | "float16" => "f16",
        "bool" => "bool",
        "int8" | "char" => "i8",
        "uint8" | "unsigned char" => "u8",
        "int16" | "short" => "i16",
        "uint16" | "unsigned short" => "u16",
        "int" | "int32" => "i32",
        "uint" | "uint32" | "unsigned" | "unsigned int" => "u32",
        "long" | "int64" => "i64",
        "ulong" | "uint64" | "size_t" => "u64",
        vector if vector.ends_with(['2', '3', '4']) => vector,
        _ => return None,
    };
    Some(known.to_owned())
}

fn launch(text: &mut String, kernel: &Json, name: &str, names: &Names<'_>) -> Result<(), String> {
    let axes = ["X", "Y", "Z"];
    let local =
        axes.map(|axis| expression(kernel["LocalSize"].get(axis).unwrap_or(&Json::Null), names));
    let [Some(_), ..] = &local else {
        return Err("it has no LocalSize".to_owned());
    };
    // OpenCL's global size counts work items, CUDA's grid counts blocks.
    let threads = kernel["GlobalSizeType"].as_str() == Some("OpenCL")
        || kernel["GlobalSizeType"].is_null() && kernel["Language"].as_str() == Some("OpenCL");
    let mut grid = Vec::new();
    for (at, (axis, block)) in axes.into_iter().zip(&local).enumerate() {
        let divisor = strings(&kernel[format!("GridDiv{axis}")].clone()).collect::<Vec<_>>();
        let global = expression(kernel["GlobalSize"].get(axis).unwrap_or(&Json::Null), names);
        let block = block.as_deref().unwrap_or("1");
        let size = names.sizes.iter().find(|size| size.at == at);
        let size = size.map(|size| size.name.as_str());
        grid.push(match (global, size) {
            // Kernel Tuner, which defined this key, divides the problem and ignores GlobalSize.
            (_, Some(size)) if !divisor.is_empty() => {
                format!("ceil_div({size}, ({}))", divisor.join(") * ("))
            }
            (Some(global), _) if threads => format!("ceil_div({global}, {block})"),
            (Some(global), _) => global,
            (None, None) if !divisor.is_empty() && kernel["ProblemSize"].get(at).is_some() => {
                return Err(format!(
                    "GridDiv{axis} divides ProblemSize[{at}], which is not a number"
                ));
            }
            (None, _) => "1".to_owned(),
        });
    }
    if kernel["GlobalSize"].is_null() && kernel["GridDivX"].is_null() {
        return Err("it has no GlobalSize".to_owned());
    }
    let block = local.map(|one| one.unwrap_or_else(|| "1".to_owned()));
    let _ = write!(
        text,
        "launches:\n  - {{ entry: {}, grid: [{}], block: [{}]",
        quoted(name),
        quoted_list(grid),
        quoted_list(block)
    );
    if let Some(shared) = expression(&kernel["SharedMemory"], names) {
        let _ = write!(text, ", shared: {}", quoted(&shared));
    }
    text.push_str(" }\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_keep_their_index_beside_entries_that_are_no_numbers() {
        let kernel = json!({
            "ProblemSize": ["rows", 64, " 32 ", 16],
            "LocalSize": { "X": "BLOCK" },
            "GridDivX": ["BLOCK"],
        });
        let names = Names {
            sizes: sizes(&kernel),
            parameters: &[],
        };
        let translated = |text: &str| expression(&json!(text), &names).unwrap();
        assert_eq!(
            translated("ProblemSize[1] * ProblemSize[2] * ProblemSize[3]"),
            "PROBLEM_SIZE_1 * PROBLEM_SIZE_2 * PROBLEM_SIZE_3"
        );
        assert_eq!(translated("ProblemSize.Y"), "PROBLEM_SIZE_1");
        // They have no value, and the parser of the search space reports that.
        for unknown in ["ProblemSize[0]", "ProblemSize.X"] {
            assert_eq!(translated(unknown), unknown);
        }
        let mut text = String::new();
        let why = launch(&mut text, &kernel, "k", &names).unwrap_err();
        assert!(why.contains("GridDivX divides ProblemSize[0]"), "{why}");
    }

    #[test]
    fn a_grid_divides_the_size_of_its_own_axis() {
        let kernel = json!({
            "ProblemSize": ["rows", 64],
            "LocalSize": { "X": "BLOCK" },
            "GlobalSize": { "X": 8 },
            "GridDivY": ["BLOCK"],
        });
        let names = Names {
            sizes: sizes(&kernel),
            parameters: &[],
        };
        let mut text = String::new();
        launch(&mut text, &kernel, "k", &names).unwrap();
        let grid = r#"grid: ["8", "ceil_div(PROBLEM_SIZE_1, (BLOCK))", "1"]"#;
        assert!(text.contains(grid), "{text}");
    }
}
