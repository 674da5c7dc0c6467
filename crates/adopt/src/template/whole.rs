//! Templates that include the headers of the project as they are.

use super::{AdoptError, CompiledTemplate, Settings, relative, source, with_origin};
use crate::cut;
use crate::plan::Plan;
use crate::unit::{Kind, Unit};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tuner_kernel::catalog;
use tuner_kernel::compile::Compiler;
use tuner_kernel::declarations::signature;

/// Returns the template with what the kernel reaches of its own file, and with whole headers; `None` where these do not
/// compile for the device, or a constant of one is to become a parameter.
pub(super) fn with_headers(
    settings: &Settings<'_>,
    unit: &Unit,
    reached: &BTreeSet<usize>,
    plan: &Plan,
    compiler: &Compiler,
) -> Result<Option<CompiledTemplate>, AdoptError> {
    let own = |at: &usize| unit.item(*at).file == 0;
    let (mut kept, used): (BTreeSet<usize>, BTreeSet<usize>) =
        reached.iter().partition(|at| own(at));
    let headers = headers_of(unit, &used);
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
    let cut = cut::write(unit, &kept, &plan.tunables, &|name| {
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

/// Returns the includes of the file whose headers, or headers of theirs, have one of these items.
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

/// Names the headers from the folder of the template.
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
