//! The template: cut out and compiled until it contains all needed items of the unit.

pub(crate) mod compiled;
mod unknown;
mod whole;

use super::cut::{self, Template};
use super::plan::Plan;
use super::unit::{Around, Kind, Unit, node_of};
use super::{AdoptError, Settings};
use crate::tree::visit;
use compiled::CompiledTemplate;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use tuner_core::plan::PlanLaunch;
use tuner_core::value::Value;
use tuner_kernel::catalog;
use tuner_kernel::compile;
use tuner_kernel::compile::{Compiler, Probe, Source, is_host_header, render};
use tuner_kernel::declarations::{Parameter, signature};
use unknown::{Unknown, undefined_in_conditions};

/// Maximum number of compiles to find missing items.
const MAX_ROUNDS: usize = 8;
/// Compiler lines shown.
const LINES_SHOWN: usize = 12;
/// Headers named.
const HEADERS_SHOWN: usize = 6;
/// Compiler option that treats unannotated functions as device functions.
pub(crate) const DEVICE_DEFAULT: &str = "--device-as-default-execution-space";

/// Cuts a kernel out and compiles it.
pub(crate) fn make(
    settings: &Settings<'_>,
    unit: &Unit,
    kernel: usize,
    plan: &Plan,
    compiler: &Compiler,
) -> Result<CompiledTemplate, AdoptError> {
    check_launches(unit, kernel, plan)?;
    let available = |name: &str| available(compiler, name);
    let mut demanded: BTreeSet<String> = plan.reached.iter().cloned().collect();
    // Only the instance names template arguments such as functors.
    let entry = plan.filled_entry();
    demanded.extend(super::tree::words(&entry).into_iter().map(str::to_owned));
    // Items that do not compile and are not known to be needed.
    let mut excluded: BTreeSet<usize> = BTreeSet::new();
    // Excluded items that are needed: the user must see their errors.
    let mut needed: BTreeSet<usize> = BTreeSet::new();
    let mut log = String::new();
    let mut cut = Template::default();
    for _ in 0..MAX_ROUNDS {
        let mut kept = cut::reach(unit, kernel, &demanded);
        kept.retain(|at| !excluded.contains(at));
        cut = cut::write(unit, &kept, &demanded, &plan.tunables, &available);
        let source = source(settings, plan, &cut.text, Vec::new());
        match signature(compiler, &source, &plan.filled_entry())? {
            Ok(None) if !is_compiled(compiler, &source, plan)? => {
                return Err(not_compiled(unit, kernel, plan));
            }
            Ok(parameters) => return referred(settings, unit, plan, compiler, cut, parameters),
            Err(why) => log = why,
        }
        let missed: BTreeSet<String> = undefined(&log).collect();
        let names = |at: &usize| unit.item(*at).names.iter();
        let back = |at: &usize| names(at).any(|name| missed.contains(name));
        let back: Vec<usize> = excluded.iter().copied().filter(back).collect();
        if !back.is_empty() {
            excluded.retain(|at| !back.contains(at));
            needed.extend(back);
            continue;
        }
        let known = demanded.len();
        demanded.extend(missed.into_iter().filter(|name| has(unit, name)));
        if demanded.len() > known {
            continue;
        }
        // Items cut out of a header may need definitions that the parser did not see in it.
        if excluded.is_empty()
            && let Some(made) =
                whole::with_headers(settings, unit, &kept, &demanded, plan, compiler)?
        {
            return Ok(made);
        }
        let known = excluded.len();
        excluded.extend(wrong(unit, kernel, &kept, &log).filter(|at| !needed.contains(at)));
        if excluded.len() == known {
            break;
        }
    }
    Err(AdoptError::Refused {
        kernel: plan.kernel.clone(),
        log: errors_of(&log)
            .iter()
            .take(LINES_SHOWN)
            .map(|line| format!("  {line}\n"))
            .collect(),
        help: help(plan, &cut.missing, &Unknown::find(unit, &log)),
    })
}

/// Rejects a kernel that launches kernels.
fn check_launches(unit: &Unit, kernel: usize, plan: &Plan) -> Result<(), AdoptError> {
    let mut launches = false;
    if let Some((_, node)) = node_of(unit, unit.item(kernel)) {
        visit(node, &mut |node| {
            launches |= node.kind() == "kernel_call_syntax";
            !launches
        });
    }
    match launches {
        false => Ok(()),
        true => Err(AdoptError::Unsupported {
            kernel: plan.kernel.clone(),
            why: "it launches kernels, and a search space runs kernels that launch none".to_owned(),
            help: "adopt a kernel that it launches: --kernel NAME; `tuner exec` runs the whole program".to_owned(),
        }),
    }
}

/// Reports whether the compiler emits code for the kernel. A template without an instance has none.
fn is_compiled(compiler: &Compiler, source: &Source, plan: &Plan) -> Result<bool, AdoptError> {
    if plan.entry.contains('<') {
        return Ok(true);
    }
    Ok(match compiler.probe(source, "")? {
        Probe::Kernels(all) => all.iter().any(|each| each.name.contains(&plan.kernel)),
        // Only a compile that succeeds without the kernel proves that a condition excludes it.
        Probe::Refused { .. } | Probe::GaveUp { .. } => true,
    })
}

fn not_compiled(unit: &Unit, kernel: usize, plan: &Plan) -> AdoptError {
    let around = unit.item(kernel).around.iter();
    let conditions = around.filter_map(|around| match around {
        Around::Condition(branch) => Some(branch.opening.as_str()),
        _ => None,
    });
    AdoptError::NotCompiled {
        kernel: plan.kernel.clone(),
        place: super::plan::format_position(unit, kernel),
        condition: conditions.collect::<Vec<_>>().join("\n"),
    }
}

/// Returns the lines of a compiler's log without its warnings, which may precede all errors.
fn errors_of(log: &str) -> Vec<&str> {
    let mut shown = true;
    let mut lines = Vec::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let warning = line.contains("): warning") || line.contains("): remark");
        if warning || line.trim_start().starts_with("Remark: ") {
            shown = false;
        } else if line.contains("error:") || line.contains(" detected in the compilation") {
            shown = true;
        }
        if shown {
            lines.push(line);
        }
    }
    lines
}

fn help(plan: &Plan, missing: &[String], unknown: &Unknown) -> String {
    let guessed = [plan.guessed_types.as_slice(), &plan.guessed_entry].concat();
    if missing.is_empty() && !guessed.is_empty() {
        return format!(
            "{} of the template was guessed, as the file gives it no value; name the instance that \
             you run: --kernel {} --entry '{}'",
            guessed.join(", "),
            plan.kernel,
            plan.filled_entry()
        );
    }
    if missing.is_empty() && !unknown.functions.is_empty() {
        return format!(
            "what the kernel reaches calls {}, which neither the device nor a file that was found has: move host \
             code out of the types and functions that the kernel uses; write out what a program replaces in the \
             text before it compiles; where a header has them for the device, name its folder: -I FOLDER",
            unknown.functions.join(", ")
        );
    }
    let unknown = &unknown.values;
    if missing.is_empty() && !unknown.is_empty() {
        let given: Vec<String> = unknown
            .iter()
            .map(|name| format!("--define {name}=VALUE"))
            .collect();
        return format!(
            "nothing in the file or its includes defines {}; where the project's build gives a number, \
             type it: {} (several values, the default first, become a parameter: --define \
             {}=128,256); where a header has it, name the header's folder: -I FOLDER",
            unknown.join(", "),
            given.join(" "),
            unknown.first().map_or("NAME", String::as_str)
        );
    }
    if missing.is_empty() {
        return "what the messages name is not in the file or its includes; name the folder of the \
                headers that have it: -I FOLDER"
            .to_owned();
    }
    let more = if missing.len() > HEADERS_SHOWN {
        ", …"
    } else {
        ""
    };
    let first: Vec<&str> = missing
        .iter()
        .take(HEADERS_SHOWN)
        .map(String::as_str)
        .collect();
    format!(
        "these headers were not found: {}{more}; name the folders that have them: -I FOLDER",
        first.join(", ")
    )
}

/// Returns the original file if it compiles unchanged and no constant becomes a parameter.
fn referred(
    settings: &Settings<'_>,
    unit: &Unit,
    plan: &Plan,
    compiler: &Compiler,
    cut: Template,
    parameters: Option<Vec<Parameter>>,
) -> Result<CompiledTemplate, AdoptError> {
    let origin = settings.file.display();
    let host_only = ["<<<", "cudaMalloc", "cudaError_t", "int main("];
    let is_host = |source: &super::tree::Source| {
        let all = source.code(&(0..source.len()));
        host_only.iter().any(|text| all.contains(text))
    };
    if plan.tunables.is_empty()
        && !unit.files.iter().any(is_host)
        && let Some(path) = relative(settings.folder, settings.file)
    {
        let text = format!(
            "// {}: the kernel is read from its own file.\n{}#include \"{path}\"\n",
            plan.kernel,
            cut::PRELUDE
        );
        let place = settings.folder.join("template.cu");
        let folders = with_origin(settings);
        if let Ok(headers) = catalog::included(&text, &place, &folders) {
            let source = source(settings, plan, &text, headers);
            if signature(compiler, &source, &plan.filled_entry())?.is_ok() {
                return Ok(CompiledTemplate {
                    text,
                    parameters,
                    include: folders,
                    notes: vec![format!(
                        "the template includes {origin}: edit the kernel there"
                    )],
                });
            }
        }
    }
    let text = format!(
        "// {}, cut out of {origin} with what it reaches; lines are the original's.\n// `tuner adopt \
         --force` cuts it out again.\n{}",
        plan.kernel, cut.text
    );
    let mut notes = cut.notes;
    notes.extend(undefined_in_conditions(unit, plan, &cut.text));
    Ok(CompiledTemplate {
        text,
        parameters,
        include: include_folders(settings, &cut.text),
        notes,
    })
}

/// Returns the include folders, with the file's own if the template has an include of a project file, such as
/// one in a function's body.
fn include_folders(settings: &Settings<'_>, text: &str) -> Vec<PathBuf> {
    let mut folders = settings.include.to_vec();
    let includes = |line: &str| {
        let rest = line.trim_start().strip_prefix('#').map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with("include \""))
    };
    if text.lines().any(includes) {
        folders.push(folder_of(settings.file).to_owned());
    }
    folders
}

/// Returns the folder of a file.
fn folder_of(file: &Path) -> &Path {
    let parent = file.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Returns the include folders, with the file's own if the template needs it.
fn with_origin(settings: &Settings<'_>) -> Vec<PathBuf> {
    let mut folders = settings.include.to_vec();
    let origin = folder_of(settings.file);
    let real = |path: &Path| path.canonicalize().ok();
    let inside = match (real(origin), real(settings.folder)) {
        (Some(origin), Some(folder)) => origin.starts_with(folder),
        _ => false,
    };
    if !inside {
        folders.push(origin.to_owned());
    }
    folders
}

fn source(
    settings: &Settings<'_>,
    plan: &Plan,
    text: &str,
    headers: Vec<compile::Header>,
) -> Source {
    // The compiler runs in another folder.
    let include = include_folders(settings, text);
    let include = include
        .iter()
        .map(|folder| catalog::absolute(folder))
        .collect();
    let template = compile::Template::new("template.cu", text, headers, include);
    let macros: Vec<(String, Value)> = plan
        .parameters
        .iter()
        .map(|each| (each.name.clone(), Value::Int(each.default)))
        .collect();
    let launch = PlanLaunch::new(plan.filled_entry(), [1; 3], [1; 3], Vec::new());
    let options: Vec<String> = settings.options().collect();
    render(&template, &macros, &options, &[launch], settings.arch)
}

/// Reports whether a header can be included.
fn available(compiler: &Compiler, name: &str) -> bool {
    let nvrtc = compiler.nvrtc();
    let folders = [&nvrtc.include, &nvrtc.libraries];
    is_host_header(name)
        || folders
            .into_iter()
            .flatten()
            .any(|folder| folder.join(name).is_file())
}

/// Parses the undefined names of a compiler log.
fn undefined(log: &str) -> impl Iterator<Item = String> {
    let errors = log.lines().filter(|line| line.contains("error"));
    errors.flat_map(|line| {
        let quoted = line.split('"').skip(1).step_by(2);
        quoted
            .flat_map(super::tree::words)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    })
}

/// Returns the items other than the kernel with compiler errors.
fn wrong<'l>(
    unit: &'l Unit,
    kernel: usize,
    kept: &'l BTreeSet<usize>,
    log: &'l str,
) -> impl Iterator<Item = usize> + 'l {
    let places = log.lines().filter_map(|line| {
        let (place, _) = line.split_once("): error")?;
        let (file, line) = place.rsplit_once('(')?;
        Some((file.trim(), line.parse::<usize>().ok()?))
    });
    places.filter_map(move |(file, line)| {
        kept.iter().copied().find(|at| {
            let item = unit.item(*at);
            let source = unit.file(item.file);
            let lines = source.line(item.at.start)..=source.line(item.at.end);
            // `#line` in the template makes the compiler name the original's files and lines.
            *at != kernel && source.shown == file && lines.contains(&line)
        })
    })
}

/// Reports whether the unit has host code of this name.
fn has(unit: &Unit, name: &str) -> bool {
    unit.declaring(name)
        .any(|(item, ..)| matches!(item.kind, Kind::Host | Kind::HostVariable))
}

/// Returns the relative path from a folder to a file for `#include` and YAML; `None` if there is none or it
/// cannot be quoted.
#[must_use]
pub fn relative(folder: &Path, file: &Path) -> Option<String> {
    let absolute = |path: &Path| {
        // The parent of a bare file name is empty.
        let here = path.as_os_str().is_empty();
        let path = std::path::absolute(if here { Path::new(".") } else { path }).ok()?;
        let parts: Vec<String> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_str().map(str::to_owned)),
                Component::ParentDir => Some(None),
                _ => None,
            })
            .collect::<Option<_>>()?;
        Some(parts)
    };
    let (from, to) = (absolute(folder)?, absolute(file)?);
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - same).map(str::to_owned);
    let way: Vec<String> = up.chain(to.iter().skip(same).cloned()).collect();
    let way = way.join("/");
    (!way.contains(['"', '\\', '\n'])).then_some(way)
}

#[cfg(test)]
mod tests;
