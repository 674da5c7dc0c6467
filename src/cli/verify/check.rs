//! Rebuild and gate of the entries of a file.

use super::{Args, Artefact, Line, Outcome};
use crate::cli::{CliError, usage};
use std::collections::BTreeMap;
use std::path::Path;
use tuner_core::record::{ConfigValues, Measurement, TimingKind, Verdict};
use tuner_device::{DeviceSelector, limits};
use tuner_engine::grid::Shapes;
use tuner_engine::job::{self, Prepared, Request, SourceText};
use tuner_engine::{Judged, Rounds};
use tuner_kernel::catalog;
use tuner_report::export::{CodeChange, Shipped};
use tuner_space::Config;

/// Entries that are checked on one device with one kernel.
struct Group<'a> {
    kernel: String,
    device: String,
    entries: Vec<&'a Shipped>,
}

/// Checks every entry of a file.
pub(super) fn check_artefact(args: &Args, artefact: &Artefact) -> Result<Vec<Line>, CliError> {
    let mut lines = Vec::new();
    for group in groups(args, artefact)? {
        lines.extend(group.check(args, artefact)?);
    }
    Ok(lines)
}

/// Groups the entries by kernel and device of the check.
fn groups<'a>(args: &Args, artefact: &'a Artefact) -> Result<Vec<Group<'a>>, CliError> {
    let mut groups: BTreeMap<(String, String), Vec<&Shipped>> = BTreeMap::new();
    for entry in &artefact.entries {
        let kernel = args.kernel.clone().or_else(|| entry.kernel.clone());
        let Some(kernel) = kernel else {
            return Err(usage(format!(
                "{} does not name its kernel; add --kernel NAME, or export it again",
                artefact.path.display()
            )));
        };
        if args.kernel.is_none() && !is_plain(&kernel) {
            return Err(usage(format!(
                "{} names the kernel {kernel:?}, which is not a valid kernel name; add --kernel NAME",
                artefact.path.display()
            )));
        }
        let device = device_of(args, entry);
        groups.entry((kernel, device)).or_default().push(entry);
    }
    let groups = groups.into_iter();
    Ok(groups
        .map(|((kernel, device), entries)| Group {
            kernel,
            device,
            entries,
        })
        .collect())
}

/// Reports whether a kernel's name from a file is a plain name and not a path, which could select another
/// file.
fn is_plain(name: &str) -> bool {
    tuner_space::is_kernel_name(name) && Path::new(name).extension().is_none()
}

/// Returns the device of the check of an entry.
fn device_of(args: &Args, entry: &Shipped) -> String {
    match &args.device {
        DeviceSelector::Auto if job::automatic().0 => "cuda:0".to_owned(),
        DeviceSelector::Auto => {
            let own = entry.device.parse::<DeviceSelector>();
            match own {
                Ok(own @ DeviceSelector::Vgpu(_)) => own.to_string(),
                _ => DeviceSelector::Vgpu(limits::DEFAULT.to_owned()).to_string(),
            }
        }
        given => given.to_string(),
    }
}

/// Returns the sizes for which the entries were tuned, each with a name.
fn shapes(kernel: &str, entries: &[&Shipped]) -> Result<Vec<(String, ConfigValues)>, CliError> {
    let mut shapes: Vec<(String, ConfigValues)> = Vec::new();
    let mut declared = None;
    for entry in entries {
        let sizes = match entry.sizes.is_empty() {
            false => entry.sizes.clone(),
            // Files of earlier versions have only the problem's name.
            true => {
                if declared.is_none() {
                    let folder = std::env::current_dir()?;
                    let kernels = catalog::resolve(&[kernel.to_owned()], &folder)?;
                    declared = kernels.into_iter().next();
                }
                let spec = declared.as_ref().map(|kernel| &kernel.spec);
                let problem = spec.and_then(|spec| spec.problem(&entry.problem));
                let Some(problem) = problem else {
                    refuse!(
                        "the sizes of problem `{}` are not recorded, and the search space has no such \
                         problem",
                        entry.problem
                    );
                };
                problem.sizes.clone()
            }
        };
        if !shapes.contains(&(entry.problem.clone(), sizes.clone())) {
            shapes.push((entry.problem.clone(), sizes));
        }
    }
    Ok(shapes)
}

impl Group<'_> {
    fn check(&self, args: &Args, artefact: &Artefact) -> Result<Vec<Line>, CliError> {
        let source = artefact.source.as_ref().map(|source| SourceText {
            text: source.text.clone(),
            headers: source.headers.clone(),
        });
        let request = Request {
            kernels: vec![self.kernel.clone()],
            device: self.device.clone(),
            evals: Some(1),
            prove_budget: args.prove_budget,
            shapes: Some(Shapes::Listed(shapes(&self.kernel, &self.entries)?)),
            source,
            ..Request::default()
        };
        let folder = std::env::current_dir()?;
        let prepared = Prepared::new(&request, &folder).map_err(|error| {
            usage(format!(
                "{}: cannot be rebuilt here: {error}",
                artefact.path.display()
            ))
        })?;
        let check = Check {
            args,
            artefact,
            prepared: &prepared,
        };
        self.entries
            .iter()
            .map(|entry| check.entry(entry))
            .collect()
    }
}

/// Check of entries on a prepared device.
struct Check<'a> {
    args: &'a Args,
    artefact: &'a Artefact,
    prepared: &'a Prepared,
}

impl Check<'_> {
    fn entry(&self, entry: &Shipped) -> Result<Line, CliError> {
        let facts = self.prepared.facts();
        let tasks = &self.prepared.plan().tasks;
        let mut line = Line {
            file: self.artefact.path.display().to_string(),
            kernel: entry.kernel.clone().unwrap_or_default(),
            problem: entry.problem.clone(),
            shipped_device: entry.device.clone(),
            device: facts.name.clone(),
            config: entry.config.clone(),
            outcome: Outcome::Skipped,
            detail: String::new(),
            verdict: None,
            compared: None,
            source: match self.artefact.source {
                Some(_) => "shipped",
                None => "project",
            },
            changes: None,
            timing: entry.timing,
            shipped_us_p50: entry.p50_us,
            now_us_p50: None,
            ratio: None,
        };
        let task = tasks
            .iter()
            .position(|task| task.key.problem == entry.problem);
        let Some((index, task)) = task.and_then(|index| Some((index, tasks.get(index)?))) else {
            "the device has no valid configuration for these sizes".clone_into(&mut line.detail);
            return Ok(line);
        };
        line.kernel.clone_from(&task.key.kernel);
        let config = task.space.config_from_values(&entry.config);
        let config: Result<Config, String> = config.map_err(|error| error.to_string());
        let config = config.and_then(|config| match task.space.reject_reason(&config) {
            Some(why) => Err(why),
            None => Ok(config),
        });
        match config {
            Ok(config) => {
                let rounds = Rounds::judge(self.prepared, index, &config, None, 1)?;
                self.fill(&mut line, entry, &rounds.shipped);
            }
            Err(why) => {
                line.detail = format!("not in the space of {}: {why}", facts.name);
                // It was valid on this device when it was tuned, and the space has changed since.
                if entry.device == facts.name {
                    line.outcome = Outcome::Wrong;
                }
            }
        }
        Ok(line)
    }

    fn fill(&self, line: &mut Line, entry: &Shipped, judged: &Judged) {
        let judgement = &judged.found.judgement;
        line.verdict = Some(judged.verdict());
        line.compared = judgement.compared;
        line.changes = self.changes(entry, judged);
        line.now_us_p50 = judged.time().map(|time| time.p50.get());
        if judged.verdict() != Verdict::Ok {
            line.outcome = Outcome::Wrong;
            let first = judgement.detail.lines().next().unwrap_or_default();
            line.detail = format!("{}: {first}", judged.verdict());
            return;
        }
        line.outcome = Outcome::Passed;
        let comparable = |time: &&Measurement| {
            entry.device == line.device
                && entry.timing == Some(time.kind)
                && time.kind != TimingKind::Recorded
        };
        let Some(time) = judged.time().filter(comparable) else {
            return;
        };
        let ratio = time.p50.get() / entry.p50_us;
        line.ratio = Some(ratio);
        let allowed = 1.0 + self.args.max_regression / 100.0;
        // The slower end of a measured interval may be noise.
        if ratio > allowed && time.ci95[0].get() > entry.p50_us {
            line.outcome = Outcome::Regression;
            line.detail = format!(
                "{:+.2} % against the recorded time, more than {} %",
                100.0 * (ratio - 1.0),
                self.args.max_regression
            );
        }
    }

    /// Compares the code, if it is for the same compute capability and was recorded.
    fn changes(&self, entry: &Shipped, judged: &Judged) -> Option<Vec<CodeChange>> {
        let facts = self.prepared.facts();
        let cc = facts.limits.map(|limits| limits.cc);
        let same = entry.device == facts.name || (entry.cc.is_some() && entry.cc == cc);
        let built = judged.compilation.as_ref()?;
        (same && entry.cubin_hash.is_some()).then(|| entry.code_changes(built))
    }
}
