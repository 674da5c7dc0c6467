//! Templates that include the headers of the project unchanged.

use super::{AdoptError, CompiledTemplate, Settings, relative, source, with_origin};
use crate::cut;
use crate::plan::Plan;
use crate::tree::words;
use crate::unit::{Kind, Unit};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tuner_kernel::catalog;
use tuner_kernel::compile::Compiler;
use tuner_kernel::declarations::signature;

/// Returns the template with the reachable items of its own file, and with whole headers. `None` if these
/// do not compile for the device, or a constant of one is to become a parameter.
pub(super) fn with_headers(
    settings: &Settings<'_>,
    unit: &Unit,
    reached: &BTreeSet<usize>,
    demanded: &BTreeSet<String>,
    plan: &Plan,
    compiler: &Compiler,
) -> Result<Option<CompiledTemplate>, AdoptError> {
    let own = |at: &usize| unit.item(*at).file == 0;
    let (mut kept, used): (BTreeSet<usize>, BTreeSet<usize>) =
        reached.iter().partition(|at| own(at));
    let headers = with_settings(unit, headers_of(unit, &used));
    if headers.is_empty() || plan.tunables.iter().any(|tunable| !own(&tunable.item)) {
        return Ok(None);
    }
    let mut include = with_origin(settings);
    let paths = headers.iter().filter_map(|at| unit.item(*at).names.first());
    for folder in paths.filter_map(|path| Path::new(path).parent()) {
        if !include.iter().any(|known| known == folder) {
            include.push(folder.to_owned());
        }
    }
    kept.extend(headers);
    // The headers may test or use any macro of the file: without it a different branch of them would be
    // compiled.
    let is_macro = |at: &usize| own(at) && unit.item(*at).kind == Kind::Macro;
    kept.extend((0..unit.items.len()).filter(is_macro));
    let cut = cut::write(unit, &kept, demanded, &plan.tunables, &|name| {
        super::available(compiler, name)
    });
    let text = relative_includes(&cut.text, settings.folder);
    let place = settings.folder.join("template.cu");
    let Ok(headers) = catalog::included(&text, &place, &include) else {
        return Ok(None);
    };
    let source = source(settings, plan, &text, headers);
    let Ok(parameters @ Some(_)) = signature(compiler, &source, &plan.filled_entry())? else {
        return Ok(None);
    };
    let origin = settings.file.display();
    Ok(Some(CompiledTemplate {
        text: format!(
            "// {}, cut out of {origin}, with the headers that it includes.\n{text}",
            plan.kernel
        ),
        parameters,
        include,
        notes: vec!["the template includes headers of the project as they are".to_owned()],
    }))
}

/// Returns the includes of the file whose headers, directly or transitively, have one of these items.
fn headers_of(unit: &Unit, used: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut header = None;
    for (at, item) in unit.items.iter().enumerate() {
        if item.file == 0 {
            header = (item.kind == Kind::Header).then_some(at);
        } else if used.contains(&at) {
            found.extend(header);
        }
    }
    found
}

/// Adds the includes of the file whose headers define or undefine a macro that affects these headers. Such
/// a macro occurs in them, or in a macro of the file that does.
fn with_settings(unit: &Unit, headers: BTreeSet<usize>) -> BTreeSet<usize> {
    let mut found = headers;
    let mut used: BTreeSet<&str> = BTreeSet::new();
    loop {
        let before = (found.len(), used.len());
        let mut header = None;
        for (at, item) in unit.items.iter().enumerate() {
            if item.file == 0 {
                header = (item.kind == Kind::Header).then_some(at);
            }
            let is_used = item.names.iter().any(|name| used.contains(name.as_str()));
            let sets = is_used && matches!(item.kind, Kind::Macro | Kind::Undefine);
            if sets && item.file == 0 {
                used.extend(item.words.iter().map(String::as_str));
            } else if sets {
                found.extend(header);
            }
            // Conditions around code that the parser cannot see count too.
            if item.file != 0 && header.is_some_and(|header| found.contains(&header)) {
                let source = unit.file(item.file);
                used.extend(words(source.code(&(0..source.len()))));
            }
        }
        if before == (found.len(), used.len()) {
            return found;
        }
    }
}

/// Writes the names of headers relative to the folder of the template.
fn relative_includes(text: &str, folder: &Path) -> String {
    let named = |line: &str| {
        let path = line.strip_prefix("#include \"")?.strip_suffix('"')?;
        Some(format!(
            "#include \"{}\"",
            relative(folder, &PathBuf::from(path))?
        ))
    };
    let lines = text
        .lines()
        .map(|line| named(line).unwrap_or_else(|| line.to_owned()));
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}
