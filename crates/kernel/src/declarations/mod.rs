//! Comparison of a search space's declarations with the parameters of its kernels.
//!
//! Only the compiler can determine the types of a kernel's parameters: they depend on typedefs, macros,
//! templates and the search space's own parameters. NVRTC is queried once for each template and each
//! set of values on which its parameter lists can depend. The answers are cached like compiles.
//! [`overrides()`] needs no compiler: it finds definitions in a template that would replace the search
//! space's.
#![expect(
    clippy::indexing_slicing,
    reason = "files, tokens and arguments are numbered by the sources and the specification they were found in"
)]

mod collisions;
mod compare;
mod conclude;
mod cover;
mod members;
mod overrides;
mod places;
mod question;
mod source;
mod types;
mod variables;

pub use overrides::overrides;
pub use question::split;
pub use types::Parameter;
pub use variables::variables;

use crate::catalog::kernel::Kernel;
use crate::compile::{CompileError, Compiler, Probe, ProbedKernel, Source, Template, render_bound};
use compare::{Findings, LaunchedKernel};
use cover::Influences;
use members::Member;
use overrides::Override;
use places::Declaration;
use source::{File, is_name};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tuner_core::activity;
use tuner_core::plan::PlanLaunch;
use tuner_core::value::Value;
use tuner_space::{
    BindError, Bound, DeviceLimits, Diagnostic, Diagnostics, KernelSpec, Reference, Space,
};

/// Reason why the declarations are wrong or could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum DeclarationError {
    /// They differ from the kernels' types.
    #[error("{0}")]
    Wrong(Box<Diagnostics>),
    /// A problem or an expression is wrong.
    #[error("error: {0}")]
    Bind(#[from] BindError),
    /// The compiler cannot work.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Compares the arguments of every launch with the parameters of its kernel, on these problems.
/// Returns warnings on arguments whose type cannot be compared.
///
/// A source that does not compile is reported by the judgement on its candidates.
///
/// # Errors
/// Declarations that differ from the kernels' types, or overridden macros, with both positions; a
/// compiler that cannot work.
pub fn check(
    subject: &Kernel,
    problems: &[(&str, &Space)],
    limits: &DeviceLimits,
    arch: &str,
    compiler: &Compiler,
) -> Result<Vec<String>, DeclarationError> {
    let _doing = activity::begin("reading", format!("the types of {}", subject.spec.kernel));
    let mut warnings = Vec::new();
    let spec = &subject.spec;
    let arch = &spec.target(arch);
    let mut kernel = Side::new(spec, &subject.template, "kernel");
    let reference = subject.reference.as_ref();
    let mut reference = reference.map(|it| Side::new(spec, it, "reference kernel"));
    for (problem, space) in problems {
        let binder = spec.binder(problem, limits)?;
        let all = kernel.influences.configurations(spec, space, &binder);
        // Only the default must compile.
        let mut all = all.into_iter();
        if let Some(default) = all.next() {
            let launches = kernel.launches(&default);
            kernel.ask(&default, &launches, arch, compiler)?;
        }
        kernel.ask_together(all, arch, compiler)?;
        let Some(reference) = &mut reference else {
            continue;
        };
        if let Ok(bound) = binder.bind(&spec.default_config())
            && let Some(launch) = bound.reference.clone()
        {
            let at = spec.places().reference.clone().unwrap_or(0..1);
            reference.ask(&bound, &[(launch, at)], arch, compiler)?;
        }
    }
    for side in [Some(kernel), reference].into_iter().flatten() {
        warnings.extend(side.finish()?);
    }
    Ok(warnings)
}

/// Parameters of a kernel; the inner error holds the compiler's messages about the source.
pub type Signature = Result<Option<Vec<Parameter>>, String>;

/// Returns the parameters of a kernel from the compiler, or `None` if unknown, for a source that
/// the compiler's front end accepts with the launched kernels.
///
/// # Errors
/// A compiler that cannot work.
pub fn signature(
    compiler: &Compiler,
    source: &Source,
    entry: &str,
) -> Result<Signature, CompileError> {
    for question in [question::ask(&[entry.to_owned()], &[], &[]), String::new()] {
        match compiler.probe(source, &question)? {
            Probe::Kernels(answer) => return Ok(Ok(question::signature(&answer, 0))),
            Probe::Refused { log } if question.is_empty() || !log.contains(question::NAME) => {
                return Ok(Err(log));
            }
            Probe::Refused { .. } => {}
            Probe::GaveUp { why } => return Ok(Err(why)),
        }
    }
    Ok(Ok(None))
}

/// One source and its findings.
struct Side<'a> {
    spec: &'a KernelSpec,
    template: &'a Template,
    what: &'static str,
    files: Vec<File>,
    declared: BTreeMap<String, Vec<Declaration>>,
    /// Definitions that override a macro under conditions that only the compiler can evaluate.
    suspects: Vec<Override>,
    influences: Influences,
    /// Queries made so far.
    asked: BTreeSet<Key>,
    /// The source does not compile, or the compiler does not end: no further queries.
    silent: bool,
    findings: Findings,
    /// Kernels with known parameters.
    known: BTreeSet<String>,
}

/// Values that determine types, kernels and options.
type Key = (Vec<(String, String)>, Vec<String>, Vec<String>);

impl<'a> Side<'a> {
    fn new(spec: &'a KernelSpec, template: &'a Template, what: &'static str) -> Self {
        let files = File::from_template(template);
        let (mut suspects, _) = overrides::walked(spec, &files);
        suspects.retain(|each| !each.certain);
        let mut declared = BTreeMap::new();
        for entry in entries(spec, what) {
            declared.insert(
                entry.clone(),
                places::declarations(&files, base_name(&entry)),
            );
        }
        let conditions = suspects
            .iter()
            .flat_map(|each| each.conditions.iter().cloned());
        let mut names = places::closure(&files, conditions.collect());
        for all in declared.values() {
            // A kernel declared by a macro can depend on everything that its file's directives
            // mention.
            names.extend(if all.is_empty() {
                places::closure(&files, directive_names(&files))
            } else {
                places::influences(&files, all)
            });
        }
        // Template arguments determine types.
        let entries: Vec<String> = entries(spec, what).collect();
        Self {
            influences: Influences::new(spec, &names, &entries),
            spec,
            template,
            what,
            files,
            declared,
            suspects,
            asked: BTreeSet::new(),
            silent: false,
            findings: Findings::default(),
            known: BTreeSet::new(),
        }
    }

    /// Returns the launches of a configuration, with the positions of their kernels' names in the
    /// search space.
    fn launches(&self, bound: &Bound) -> Vec<(PlanLaunch, Range<usize>)> {
        let places = &self.spec.places().launches;
        let of = |launch: &PlanLaunch| {
            let same = |known: &tuner_space::Launch| {
                base_name(&known.entry) == base_name(&launch.entry)
                    && known.args == launch.arguments
            };
            let index = self.spec.launches.iter().position(same);
            let place = index.and_then(|index| places.get(index)).cloned();
            (launch.clone(), place.unwrap_or(0..1))
        };
        bound.launches.iter().map(of).collect()
    }

    /// Queries configurations with the same source in one request: they only name other instances of its
    /// templates.
    fn ask_together(
        &mut self,
        all: impl Iterator<Item = Bound>,
        arch: &str,
        compiler: &Compiler,
    ) -> Result<(), DeclarationError> {
        let mut groups: BTreeMap<_, Vec<Bound>> = BTreeMap::new();
        for bound in all {
            let key = (self.influences.source_key(&bound), bound.options.clone());
            groups.entry(key).or_default().push(bound);
        }
        for group in groups.into_values() {
            if self.silent {
                break;
            }
            let mut launches: Vec<(PlanLaunch, Range<usize>)> = Vec::new();
            for launch in group.iter().flat_map(|bound| self.launches(bound)) {
                if !launches.contains(&launch) {
                    launches.push(launch);
                }
            }
            let Some(first) = group.first() else {
                continue;
            };
            let warned = self.findings.warnings.len();
            self.ask(first, &launches, arch, compiler)?;
            // One instance that cannot be named must not hide the others.
            if self.silent && group.len() > 1 {
                self.silent = false;
                self.findings.warnings.truncate(warned);
                for bound in &group {
                    let launches = self.launches(bound);
                    self.ask(bound, &launches, arch, compiler)?;
                }
            }
        }
        Ok(())
    }

    fn ask(
        &mut self,
        bound: &Bound,
        launches: &[(PlanLaunch, Range<usize>)],
        arch: &str,
        compiler: &Compiler,
    ) -> Result<(), DeclarationError> {
        let mut entries: Vec<&str> = launches.iter().map(|(each, _)| &*each.entry).collect();
        entries.sort_unstable();
        entries.dedup();
        let key = (
            self.influences.key(bound),
            entries.iter().map(|each| (*each).to_owned()).collect(),
            bound.options.clone(),
        );
        if self.silent || !self.asked.insert(key) {
            return Ok(());
        }
        let source = render_bound(self.template, bound, arch);
        let members = self.members(launches, &entries);
        let Some(answer) = self.answer(&source, bound, &entries, &members, compiler)? else {
            return Ok(());
        };
        self.compare_members(&members, &entries, &answer);
        self.suspected(bound, &answer)?;
        for (launch, at) in launches {
            let index = entries.iter().position(|entry| *entry == launch.entry);
            if let Some(index) = index {
                self.compare(launch, at.clone(), index, &answer);
            }
        }
        Ok(())
    }

    /// Queries the compiler about these kernels; `None` without an answer.
    fn answer(
        &mut self,
        source: &Source,
        bound: &Bound,
        entries: &[&str],
        members: &[Member],
        compiler: &Compiler,
    ) -> Result<Option<Vec<ProbedKernel>>, DeclarationError> {
        let names: Vec<String> = entries.iter().map(|entry| self.qualified(entry)).collect();
        let macros = self.suspected_macros(bound);
        let asked = |member: &Member| {
            let argument = &self.spec.arguments[member.argument];
            let fields = argument.record.as_ref().map(|record| &record.fields);
            let field = fields.and_then(|fields| fields.get(member.field));
            let name = field.map_or("", |field| &*field.name);
            (member.entry, member.parameter, name)
        };
        let asked: Vec<(usize, usize, &str)> = members.iter().map(asked).collect();
        // The query names kernels itself, and instances that do not compile would prevent an
        // answer.
        let mut source = source.clone();
        source.launches.clear();
        match compiler.probe(&source, &question::ask(&names, &macros, &asked))? {
            Probe::Kernels(answer) => Ok(Some(answer)),
            Probe::GaveUp { why } => {
                tracing::debug!("{}: the types are not known: {why}", source.name);
                self.silent = true;
                Ok(None)
            }
            // Members that cannot be queried, such as bit fields, must not hide the rest.
            Probe::Refused { .. } if !members.is_empty() => {
                self.answer(&source, bound, entries, &[], compiler)
            }
            Probe::Refused { log } => {
                tracing::debug!("{}: the types are not known: {log}", source.name);
                self.silent = true;
                let nvrtc = compiler.nvrtc();
                let own = nvrtc.include.iter().chain(&nvrtc.libraries);
                let folders: Vec<_> = own.chain(&source.include_dirs).cloned().collect();
                if let Some(wrong) = self.named_by_macro(&log, &folders) {
                    return Err(DeclarationError::Wrong(Box::new(wrong)));
                }
                // Errors of the source itself are reported by the candidates.
                let own = log.lines().find(|line| line.contains(": error"));
                if let Some(why) = own.and_then(|line| line.split_once(question::NAME)) {
                    for entry in entries {
                        self.unknown(entry, why.1.trim_start_matches(|c| c != ':'));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Warns that the types of a kernel are not compared.
    fn unknown(&mut self, entry: &str, why: &str) {
        let index = self
            .spec
            .launches
            .iter()
            .position(|each| base_name(&each.entry) == base_name(entry));
        let places = self.spec.places();
        let at = match index {
            Some(index) if self.what == "kernel" => places.launches.get(index).cloned(),
            _ => places.reference.clone(),
        };
        let text = format!(
            "the compiler does not tell the parameters of the {} `{entry}`, so no types are \
             compared{why}",
            self.what
        );
        let warning = Diagnostic::new(text, at.unwrap_or(0..1));
        self.findings.warnings.push(warning);
    }

    /// Returns the declarations of a kernel in the text.
    fn declared_as(&self, entry: &str) -> Vec<Declaration> {
        let same = |known: &&String| base_name(known) == base_name(entry);
        let found = self.declared.iter().filter(|(known, _)| same(known));
        found.flat_map(|(_, all)| all.iter().cloned()).collect()
    }

    /// Returns a kernel's fully qualified name.
    fn qualified(&self, entry: &str) -> String {
        if base_name(entry) != entry {
            return entry.to_owned();
        }
        let all = self.declared.get(entry);
        let namespaces = all.and_then(|all| all.first()).map(|each| &each.namespaces);
        let mut name: String = namespaces
            .into_iter()
            .flatten()
            .fold(String::new(), |path, each| path + each + "::");
        name.push_str(entry);
        name
    }

    /// Returns macros with a conditional definition, and their required values.
    fn suspected_macros<'b>(&self, bound: &'b Bound) -> Vec<(&'b str, &'b Value)> {
        let suspected = |name: &str| self.suspects.iter().any(|each| each.name == name);
        let macros = bound.macros.iter().filter(|(name, _)| suspected(name));
        macros.map(|(name, value)| (&**name, value)).collect()
    }

    fn suspected(&self, bound: &Bound, answer: &[ProbedKernel]) -> Result<(), DeclarationError> {
        for (index, (name, _)) in self.suspected_macros(bound).iter().enumerate() {
            if question::unchanged(answer, index) != Some(false) {
                continue;
            }
            if let Some(found) = self.suspects.iter().find(|each| each.name == *name) {
                let file = &self.files[found.file];
                let item = found.diagnostic(self.spec);
                let wrong = Diagnostics::new(&*file.name, &file.text, vec![item]);
                return Err(DeclarationError::Wrong(Box::new(wrong)));
            }
        }
        Ok(())
    }

    fn compare(
        &mut self,
        launch: &PlanLaunch,
        at: Range<usize>,
        index: usize,
        answer: &[ProbedKernel],
    ) {
        let Some(parameters) = question::signature(answer, index) else {
            self.unknown(&launch.entry, "");
            return;
        };
        let kernel = answer.iter().find(|kernel| kernel.name == launch.entry);
        let place = kernel.and_then(|kernel| kernel.place.as_ref());
        let all = self.declared_as(&launch.entry);
        let launched = LaunchedKernel {
            spec: self.spec,
            what: self.what,
            entry: &launch.entry,
            args: &launch.arguments,
            at,
            files: &self.files,
            declared: places::chosen(&all, &self.files, place),
            place: place.map(|(file, line)| format!("{file}:{line}")),
            parameters: &parameters,
        };
        launched.compare(&mut self.findings);
        self.known.insert(base_name(&launch.entry).to_owned());
    }
}

/// Returns the function's unqualified name: `gemm` of `ns::gemm<float, {BM}>`.
fn base_name(entry: &str) -> &str {
    let name = entry.split('<').next().unwrap_or(entry);
    let name = name.rsplit("::").next().unwrap_or(name);
    name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
}

fn entries(spec: &KernelSpec, what: &str) -> impl Iterator<Item = String> {
    let names: Vec<String> = match &spec.reference {
        Reference::Kernel { launch, .. } if what != "kernel" => vec![launch.entry.clone()],
        _ => spec
            .launches
            .iter()
            .map(|launch| launch.entry.clone())
            .collect(),
    };
    names.into_iter()
}

/// Returns every name in a directive.
fn directive_names(files: &[File]) -> Vec<String> {
    let directives = files.iter().flat_map(|file| {
        let tokens = file.directives.iter().flat_map(|each| &each.tokens);
        tokens
            .map(|token| file.word(token))
            .filter(|word| is_name(word))
    });
    directives.map(str::to_owned).collect()
}
