//! Launches of one kernel among the captured ones.

use super::refuse;
use crate::plan::{Argument, Plan};
use crate::unit::Unit;
use crate::{AdoptError, Settings};
use capture::{Capture, Launch, base_name};
use sha2::Digest as _;
use std::collections::BTreeSet;
use tuner_core::plan::Role;

/// Captured launches of one instance of a kernel, in the order of the captures.
#[derive(Debug)]
pub(crate) struct Observed<'c> {
    pub(crate) kernel: String,
    /// Name of the instance, with template arguments.
    pub(crate) instance: String,
    /// The same with parameters, which tell overloads apart.
    pub(crate) signature: String,
    pub(crate) launches: Vec<(&'c Capture, &'c Launch)>,
    pub(crate) notes: Vec<String>,
}

impl Observed<'_> {
    /// Keeps only the largest launch, because all of them cannot be described for this reason.
    pub(crate) fn keep_largest(&mut self, why: &AdoptError) {
        let threads = |launch: &Launch| {
            let extents = launch.grid.iter().chain(&launch.block);
            extents.fold(1_u64, |all, extent| all.saturating_mul((*extent).into()))
        };
        let count = self.launches.len();
        let largest = self
            .launches
            .iter()
            .max_by_key(|(_, launch)| threads(launch));
        let largest = largest.copied();
        self.launches
            .retain(|it| largest.is_some_and(|largest| std::ptr::eq(it.1, largest.1)));
        let text = why.to_string();
        let why = text.lines().next().unwrap_or_default();
        self.notes.push(format!(
            "{count} launches were captured, and the largest alone is described: {}",
            why.trim_start_matches("error: ")
        ));
    }

    /// Returns the names of module variables that the launches used.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let buffers = self.launches.iter().flat_map(|(_, launch)| &launch.buffers);
        let names = buffers.filter_map(|buffer| buffer.variable.as_deref());
        names
            .map(|name| name.rsplit("::").next().unwrap_or(name).to_owned())
            .collect()
    }
}

/// Selects the launches of a kernel; `None` if there are no captures.
///
/// # Errors
/// Captures without the kernel, of another version of the source, or invalidated by hazards.
pub(crate) fn select<'c>(
    settings: &Settings<'c>,
    unit: &Unit,
    item: usize,
    kernel: &str,
) -> Result<Option<Observed<'c>>, AdoptError> {
    if settings.captured.is_empty() {
        return Ok(None);
    }
    let mut launches: Vec<(&Capture, &Launch)> = Vec::new();
    for capture in settings.captured {
        let all = capture.document.launches.iter();
        let own = all.filter(|launch| base_name(&launch.kernel) == kernel);
        launches.extend(own.map(|launch| (capture, launch)));
    }
    let Some((_, first)) = launches.first() else {
        return Err(missing(settings, kernel));
    };
    let named = launches.iter();
    let all: Vec<&str> = named
        .map(|(_, launch)| instance_name(&launches, launch))
        .collect();
    let wanted = settings.entry.unwrap_or(&first.kernel);
    let chosen = launches.iter().zip(&all).find(|((_, launch), name)| {
        let names = [launch.kernel.as_str(), **name];
        names.iter().any(|name| plain(name) == plain(wanted))
    });
    let instances: BTreeSet<&str> = all.iter().copied().collect();
    let instances: Vec<&str> = instances.into_iter().collect();
    let Some(((_, chosen), name)) = chosen.map(|(launch, name)| (*launch, *name)) else {
        return Err(refuse(
            kernel,
            format!("no launch of the instance `{wanted}` was captured"),
            format!(
                "the captures have {}: --entry '{}'",
                instances.join(", "),
                pattern(&instances)
            ),
        ));
    };
    let mut notes = Vec::new();
    if instances.len() > 1 {
        notes.push(format!(
            "the captures have {}; this is `{name}`, adopt another with --entry '{}'",
            instances.join(", "),
            pattern(&instances)
        ));
    }
    let mut names = all.into_iter();
    launches.retain(|_| names.next() == Some(name));
    for (capture, launch) in &launches {
        check_version(unit, item, kernel, launch, capture)?;
        if launch.hazards > 0 {
            notes.push(format!(
                "the captured launch {} has hazards, which may make its results depend on chance: see \
                 tuner exec",
                launch.number
            ));
        }
    }
    notes.extend(settings.captured.iter().filter_map(describe_end));
    notes.dedup();
    Ok(Some(Observed {
        kernel: kernel.to_owned(),
        instance: chosen.kernel.clone(),
        signature: chosen.signature.clone(),
        launches,
        notes,
    }))
}

/// Returns the name of a launch's kernel with template arguments, and with parameters if a program launches
/// overloads.
fn instance_name<'c>(launches: &[(&Capture, &Launch)], launch: &'c Launch) -> &'c str {
    let own = launches
        .iter()
        .filter(|(_, other)| other.kernel == launch.kernel);
    // Other builds may have other types under one name.
    let is_overloaded = own.clone().any(|(capture, one)| {
        own.clone()
            .any(|(of, other)| std::ptr::eq(*of, *capture) && one.signature != other.signature)
    });
    let signature = launch.signature.as_str();
    match is_overloaded {
        true => signature.strip_prefix("void ").unwrap_or(signature),
        false => &launch.kernel,
    }
}

/// Returns the notation of `--entry` for instances of these names.
fn pattern(instances: &[&str]) -> &'static str {
    match instances.iter().all(|name| name.ends_with(')')) {
        true => "NAME(…)",
        false => "NAME<…>",
    }
}

/// Describes an abnormal end of a captured program.
fn describe_end(capture: &Capture) -> Option<String> {
    let folder = capture.folder.display();
    match &capture.document.ended {
        None => Some(format!(
            "the capture {folder} was interrupted; what it has is complete"
        )),
        Some(ended) if ended.exit_code != Some(0) => Some(format!(
            "the program captured in {folder} did not end with 0, so its results may be wrong"
        )),
        Some(_) => None,
    }
}

/// Returns a name without spaces and suffixes of literals.
pub(crate) fn plain(name: &str) -> String {
    let text: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    let parts = text.split_inclusive(['<', '>', ',']);
    let parts = parts.map(|part| {
        let end = part.trim_end_matches(['<', '>', ',']);
        let digits = end.trim_end_matches(['u', 'U', 'l', 'L']);
        let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let tail = part.get(end.len()..).unwrap_or_default();
        format!("{}{tail}", if number { digits } else { end })
    });
    parts.collect()
}

fn missing(settings: &Settings<'_>, kernel: &str) -> AdoptError {
    let all = settings.captured.iter().flat_map(|capture| {
        let launches = capture.document.launches.iter();
        launches.map(|launch| base_name(&launch.kernel))
    });
    let known: BTreeSet<&str> = all.collect();
    let known: Vec<&str> = known.into_iter().collect();
    let skipped = settings.captured.iter();
    let skipped = skipped.flat_map(|capture| &capture.document.skipped);
    let about: Vec<&str> = skipped
        .filter(|text| text.contains(kernel))
        .map(String::as_str)
        .collect();
    let help = match (known.as_slice(), about.first()) {
        (_, Some(why)) => format!("the capture says: {why}"),
        ([], None) => {
            "capture the program again: tuner exec --capture DIR -- PROGRAM ARGS".to_owned()
        }
        (known, None) => format!(
            "the captures have {}: --kernel NAME; or run the program so that it launches `{kernel}`",
            known.join(", ")
        ),
    };
    refuse(kernel, "no launch of it was captured".to_owned(), help)
}

/// Rejects a capture of another version of the kernel's file.
fn check_version(
    unit: &Unit,
    item: usize,
    kernel: &str,
    launch: &Launch,
    capture: &Capture,
) -> Result<(), AdoptError> {
    let own = unit.item(item);
    let file = unit.file(own.file);
    let Some(place) = &launch.source else {
        return Ok(());
    };
    // The program may have been built in another folder, so only the file names can agree.
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let help = format!(
        "build the program from this file and capture it again: tuner exec --capture DIR -- {}",
        capture.document.program.join(" ")
    );
    if name(&place.file) != name(&file.path.to_string_lossy()) {
        return Err(refuse(
            kernel,
            format!(
                "the captured kernel is that of {}:{}, and this one is in {}",
                place.file, place.line, file.shown
            ),
            help,
        ));
    }
    let Some(before) = &place.sha256 else {
        return Ok(());
    };
    let now = std::fs::read(&file.path).map(|bytes| hex::encode(sha2::Sha256::digest(bytes)));
    match now {
        Ok(now) if now != *before => Err(refuse(
            kernel,
            format!(
                "{} is not the version that was captured in {}",
                file.shown,
                capture.folder.display()
            ),
            help,
        )),
        _ => Ok(()),
    }
}

/// Rejects launches whose parameters are not those of the source. `sizes` are the sizes of values that the
/// compiler determined.
pub(super) fn check_parameters(
    plan: &Plan,
    observed: &Observed<'_>,
    sizes: &[Option<u64>],
) -> Result<(), AdoptError> {
    let own: Vec<&Argument> = plan
        .arguments
        .iter()
        .filter(|it| it.parameter.is_some())
        .collect();
    let help = || {
        "the program was built from another version of the file: build it again, and capture it into a \
         new folder"
            .to_owned()
    };
    for (_, launch) in &observed.launches {
        let given = launch.parameters.len();
        if given != own.len() {
            let why = format!(
                "the source has {} parameters, and the captured launch {} was given {given}",
                own.len(),
                launch.number
            );
            return Err(refuse(&plan.kernel, why, help()));
        }
        for argument in &own {
            let at = argument.parameter.unwrap_or(0);
            let wanted = match argument.role {
                Role::Scalar => sizes.get(at).copied().flatten(),
                _ => Some(8),
            };
            let given = launch
                .parameters
                .get(at)
                .map_or(0, |it| u64::from(it.bytes));
            if wanted.is_some_and(|wanted| wanted != given) {
                let why = format!(
                    "`{}` has {} bytes in the source, and {given} in the captured launch {}",
                    argument.name,
                    wanted.unwrap_or(0),
                    launch.number
                );
                return Err(refuse(&plan.kernel, why, help()));
            }
        }
        // Memory that no parameter and no variable refers to directly.
        let hidden = launch.buffers.iter().find(|it| it.before.is_none());
        if let Some(buffer) = hidden {
            let why = format!(
                "it reaches {} through an address in memory (a pointer to pointers)",
                buffer.name
            );
            let help = "a search space describes pointers in parameters, structs and variables: write a \
                        `__global__` function that takes the buffers as parameters, and adopt that";
            return Err(refuse(&plan.kernel, why, help.to_owned()));
        }
    }
    Ok(())
}
