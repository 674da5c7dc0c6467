//! Plan of a bound configuration: renders and compiles the candidate for one problem.

use super::launch_limits::explain_refusal;
use super::scaled::ScaledCheck;
use crate::catalog::{Kernel, shown};
use crate::compile::{CompileError, CompileOutcome, Compiler, Image, Source, render, render_bound};
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, KernelNeeds, Plan, PlanGate, PlanLaunch, PlanReference};
use tuner_core::record::Verdict;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;
use tuner_space::{
    BindError, Binder, Bound, Config, DeviceLimits, Problem, Reference, SameValueWrites,
};

/// One kernel on one problem, ready to build plans of configurations.
pub struct PlanBuilder {
    kernel: Arc<Kernel>,
    problem: String,
    binder: Binder,
    arch: String,
    limits: DeviceLimits,
    /// The reference kernel's binding of the default configuration.
    default_bound: Result<Bound, String>,
    scaled: ScaledCheck,
}

/// Maximum tile sizes in a plan: a parameter may have thousands of values.
const TILE_SIZES_MAX: usize = 64;

/// A candidate ready for a device.
#[derive(Debug, Clone)]
pub struct BuiltCandidate {
    /// The plan.
    pub plan: Plan,
    /// Result of the compiler.
    pub image: Arc<Image>,
    /// Identity of the candidate.
    pub candidate: ContentHash,
}

/// A candidate that failed before it could be run.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedBuild {
    /// Identity of the candidate.
    pub candidate: ContentHash,
    /// The reason.
    pub judgement: Judgement,
}

impl PlanBuilder {
    /// Creates a builder for a problem of a kernel on a device whose portable target is `arch`, or
    /// for the target of `--arch`.
    ///
    /// # Errors
    /// An unknown problem, or expressions that are wrong for it.
    pub fn new(
        kernel: Arc<Kernel>,
        problem: &str,
        limits: &DeviceLimits,
        arch: &str,
    ) -> Result<Self, BindError> {
        let binder = kernel.spec.binder(problem, limits)?;
        let default_bound = binder
            .bind(&kernel.spec.default_config())
            .map_err(|error| kernel.spec.explain_unbound(&error, problem).to_string());
        Ok(Self {
            default_bound,
            problem: problem.to_owned(),
            binder,
            arch: kernel.spec.target(arch),
            limits: *limits,
            kernel,
            scaled: ScaledCheck::default(),
        })
    }

    /// Returns builders of the kernel's check problems on the same device; none for a check
    /// problem.
    ///
    /// # Errors
    /// Expressions that are wrong for one of them.
    pub fn check_problems(&self) -> Result<Vec<Self>, BindError> {
        let checks = &self.kernel.spec.check_problems;
        if checks.iter().any(|check| check.name == self.problem) {
            return Ok(Vec::new());
        }
        let builder =
            |name: &str| Self::new(Arc::clone(&self.kernel), name, &self.limits, &self.arch);
        checks.iter().map(|check| builder(&check.name)).collect()
    }

    /// Returns a builder for the same kernel and device on a problem that is not in its file; `None` if an
    /// expression is wrong for it.
    #[must_use]
    pub(crate) fn on_problem(&self, problem: &Problem) -> Option<Self> {
        let mut kernel = Kernel::clone(&self.kernel);
        let others = &mut kernel.spec.problems;
        others.retain(|other| other.name != problem.name);
        kernel.spec.check_problems = vec![problem.clone()];
        Self::new(Arc::new(kernel), &problem.name, &self.limits, &self.arch).ok()
    }

    /// Returns the problem's sizes, in declared order.
    #[must_use]
    pub(crate) fn problem_sizes(&self) -> Vec<(String, Value)> {
        let problem = self.kernel.spec.problem(&self.problem);
        problem.map(|found| found.sizes.clone()).unwrap_or_default()
    }

    /// Returns the product of the problem's numeric sizes, as a measure of its work.
    #[must_use]
    pub fn size_product(&self) -> f64 {
        let sizes = self.problem_sizes().into_iter();
        sizes.filter_map(|(_, value)| value.as_f64()).product()
    }

    /// Binds a configuration to the space's expressions; `None` if an expression has no usable
    /// value.
    #[must_use]
    pub fn bind(&self, config: &Config) -> Option<Bound> {
        self.binder.bind(config).ok()
    }

    /// Returns the generated check problem that replaces the space's own if their results cannot be
    /// compared.
    #[must_use]
    pub fn scaled_check(&self) -> &ScaledCheck {
        &self.scaled
    }

    /// Formats kernel, problem and the configuration's differences from the defaults.
    #[must_use]
    pub fn describe(&self, config: &Config) -> String {
        let parameters = self.kernel.spec.parameters.iter().zip(config.choices());
        let changed: Vec<String> = parameters
            .filter(|(parameter, choice)| parameter.default != **choice)
            .filter_map(|(parameter, choice)| {
                let value = parameter.values.get(*choice as usize)?;
                Some(format!("{}={value}", parameter.name))
            })
            .collect();
        let changed = if changed.is_empty() {
            "default".to_owned()
        } else {
            changed.join(" ")
        };
        format!("{} {}: {changed}", self.kernel(), self.problem)
    }

    /// Returns the kernel's name.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel.spec.kernel
    }

    /// Returns the problem's name.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Reports whether a configuration satisfies the constraints on this problem. Tiles that fit one head
    /// size may not fit another, so such a problem is not evidence about a configuration.
    #[must_use]
    pub fn admits(&self, config: &Config) -> bool {
        self.binder.holds(config)
    }

    /// Returns the compile target, unless an option of the space names another.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.arch
    }

    /// Returns the search space and everything read for it.
    #[must_use]
    pub fn source(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the identity of the candidate that [`PlanBuilder::build`] builds from a
    /// configuration, without compiling it.
    #[must_use]
    pub fn identity(&self, config: &Config, nvrtc_version: &str) -> ContentHash {
        match self.binder.bind(config) {
            Ok(bound) => {
                render_bound(&self.kernel.template, &bound, &self.arch).identity(nvrtc_version)
            }
            Err(error) => self.nameless(config, &self.why_unbound(&error)),
        }
    }

    fn why_unbound(&self, error: &BindError) -> String {
        let why = self.kernel.spec.explain_unbound(error, &self.problem);
        why.to_string()
    }

    /// Returns an identity from the values and the reason, since a failed rendering has no content to hash.
    fn nameless(&self, config: &Config, why: &str) -> ContentHash {
        let mut parts = vec!["unbound".to_owned(), self.problem.clone(), why.to_owned()];
        let parameters = self.kernel.spec.parameters.iter().zip(config.choices());
        parts.extend(parameters.map(|(parameter, choice)| {
            let value = parameter.values.get(*choice as usize);
            format!("{}={value:?}", parameter.name)
        }));
        ContentHash::from_parts(parts.iter().map(String::as_bytes))
    }

    /// Binds, renders and compiles one configuration. Blocks until the compiler is done.
    ///
    /// # Errors
    /// The compiler itself cannot work; a candidate that fails is the `Ok(Err(_))` case.
    pub fn build(
        &self,
        compiler: &Compiler,
        config: &Config,
    ) -> Result<Result<BuiltCandidate, FailedBuild>, CompileError> {
        self.build_by(config, compiler, |source, _| compiler.compile(source))
    }

    /// Like [`PlanBuilder::build`], for a device that executes PTX. If PTX alone shows that the
    /// kernels can be launched, there is no machine code and no register count.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`].
    pub fn build_ptx(
        &self,
        compiler: &Compiler,
        config: &Config,
    ) -> Result<Result<BuiltCandidate, FailedBuild>, CompileError> {
        self.build_by(config, compiler, |source, bound| {
            match compiler.compile_ptx(source, &bound.launches)? {
                Some(outcome) => Ok(outcome),
                None => compiler.compile(source),
            }
        })
    }

    fn build_by(
        &self,
        config: &Config,
        compiler: &Compiler,
        compile: impl Fn(&Source, &Bound) -> Result<CompileOutcome, CompileError>,
    ) -> Result<Result<BuiltCandidate, FailedBuild>, CompileError> {
        let unbuilt = |candidate, judgement| {
            Ok(Err(FailedBuild {
                candidate,
                judgement,
            }))
        };
        let bound = match self.binder.bind(config) {
            Ok(bound) => bound,
            Err(error) => {
                let why = self.why_unbound(&error);
                let candidate = self.nameless(config, &why);
                return unbuilt(candidate, Judgement::new(Verdict::LaunchFailed, why));
            }
        };
        let source = render_bound(&self.kernel.template, &bound, &self.arch);
        let candidate = source.identity(&compiler.nvrtc().version());
        let spec = &self.kernel.spec;
        // Code for another GPU would compile, but fail at its launch.
        if let Some(why) = spec.explain_target(&source.arch, self.limits.cc) {
            let judgement = Judgement::new(Verdict::LaunchFailed, why.to_string());
            return unbuilt(candidate, judgement);
        }
        if let Some(why) = explain_refusal(&bound.launches, &self.limits) {
            return unbuilt(candidate, Judgement::new(Verdict::LaunchFailed, why));
        }
        let image = match compile(&source, &bound)? {
            Ok(image) => image,
            Err(failed) => return unbuilt(candidate, failed),
        };
        let reference = match self.reference(compiler)? {
            Ok(reference) => reference,
            Err(failed) => return unbuilt(candidate, failed),
        };
        let generators = match self.generators(&bound, compiler)? {
            Ok(generators) => generators,
            Err(failed) => return unbuilt(candidate, failed),
        };
        let mut plan = self.plan(bound, &image, reference);
        plan.generators = generators;
        Ok(Ok(BuiltCandidate {
            plan,
            image,
            candidate,
        }))
    }

    /// Builds the reference: an oracle's name, or the naive kernel compiled for this problem.
    ///
    /// The kernel is bound to the default configuration, independent of the candidate, so that all
    /// candidates share one reference and it cannot contain a candidate's mistake.
    fn reference(
        &self,
        compiler: &Compiler,
    ) -> Result<Result<PlanReference, Judgement>, CompileError> {
        let wrong = |why: String| Ok(Err(Judgement::new(Verdict::CompileFailed, why)));
        match &self.binder.spec().reference {
            Reference::Values { files, .. } => return Ok(Ok(PlanReference::Values(files.clone()))),
            Reference::Oracle(name) => return Ok(Ok(PlanReference::Oracle(name.clone()))),
            Reference::None => return Ok(Ok(PlanReference::None)),
            Reference::Kernel { .. } => {}
        }
        let bound = match &self.default_bound {
            Ok(bound) => bound,
            Err(error) => return wrong(error.clone()),
        };
        let found = self.kernel.reference.as_ref().zip(bound.reference.as_ref());
        let Some((template, launch)) = found else {
            return wrong("the space names no reference".to_owned());
        };
        let options: Vec<String> = bound
            .options
            .iter()
            // Fast math would make the reference as inexact as the candidates.
            .filter(|option| !is_fast_math(option))
            .cloned()
            .collect();
        let launches = std::slice::from_ref(launch);
        let source = render(template, &bound.macros, &options, launches, &self.arch);
        Ok(match compiler.compile(&source)? {
            Ok(image) => Ok(PlanReference::Kernel {
                code: code(&image),
                launch: PlanLaunch {
                    entry: image.symbol(&launch.entry),
                    ..launch.clone()
                },
                oracle: match &self.kernel.spec.reference {
                    Reference::Kernel { proven_by, .. } => proven_by.clone(),
                    Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
                },
            }),
            Err(mut failed) => {
                // A lost compile worker is not a fault of the reference.
                if failed.verdict != Verdict::NotJudged {
                    failed.detail = format!(
                        "error: {}: the reference kernel does not compile on problem `{}`: {}",
                        shown(&self.kernel.path),
                        self.problem,
                        failed.detail
                    );
                }
                Err(failed)
            }
        })
    }

    /// Compiles the kernels that fill arguments, if any: the template for the default
    /// configuration, so that every candidate gets the same data.
    fn generators(
        &self,
        bound: &Bound,
        compiler: &Compiler,
    ) -> Result<Result<Option<Code>, Judgement>, CompileError> {
        let entries = bound
            .arguments
            .iter()
            .filter_map(|argument| match &argument.fill {
                Fill::Kernel(entry) if argument.role.is_filled() => {
                    Some(PlanLaunch::new(&**entry, [1; 3], [1; 3], Vec::new()))
                }
                _ => None,
            });
        let launches: Vec<PlanLaunch> = entries.collect();
        if launches.is_empty() {
            return Ok(Ok(None));
        }
        let bound = match &self.default_bound {
            Ok(bound) => bound,
            Err(error) => {
                let why = format!("the default configuration: {error}");
                return Ok(Err(Judgement::new(Verdict::CompileFailed, why)));
            }
        };
        let (macros, options) = (&bound.macros, &bound.options);
        let template = &self.kernel.template;
        let source = render(template, macros, options, &launches, &self.arch);
        let outcome = compiler.compile(&source)?;
        Ok(outcome
            .map(|image| Some(code(&image)))
            .map_err(|failed| Judgement {
                detail: format!("the generators do not compile: {}", failed.detail),
                ..failed
            }))
    }

    /// Compiles the reference only. The inner error is a complete message for the user.
    ///
    /// # Errors
    /// The compiler itself cannot work.
    pub fn compile_reference(
        &self,
        compiler: &Compiler,
    ) -> Result<Result<(), String>, CompileError> {
        let reference = self.reference(compiler)?;
        Ok(reference.map(|_| ()).map_err(|failed| failed.detail))
    }

    /// Returns integers above 1 among the values of the parameters, ascending; an even selection if
    /// there are many.
    fn tile_sizes(&self) -> Vec<u64> {
        let values = self
            .kernel
            .spec
            .parameters
            .iter()
            .flat_map(|p| p.values.iter());
        let whole = values.filter_map(|value| match value {
            Value::Int(value) => u64::try_from(*value).ok().filter(|size| *size > 1),
            _ => None,
        });
        let all: std::collections::BTreeSet<u64> = whole.collect();
        let step = all.len().div_ceil(TILE_SIZES_MAX).max(1);
        all.into_iter().step_by(step).collect()
    }

    fn plan(&self, bound: Bound, image: &Image, reference: PlanReference) -> Plan {
        let gate = &self.kernel.spec.gate;
        let mut launches = bound.launches;
        for launch in &mut launches {
            launch.entry = image.symbol(&launch.entry);
        }
        let sizes = self.problem_sizes().into_iter();
        Plan {
            problem: self.problem.clone(),
            sizes: sizes
                .filter_map(|(name, value)| Some((name, value.as_f64()?)))
                .collect(),
            arguments: bound.arguments,
            variables: bound.variables,
            generators: None,
            tile_sizes: self.tile_sizes(),
            launches,
            code: code(image),
            reference,
            gate: PlanGate {
                atol: gate.atol,
                rtol: gate.rtol,
                terms: bound.terms,
                deterministic: gate.deterministic,
                same_value_writes: gate.same_value_writes == SameValueWrites::Allow,
            },
            flops: bound.flops,
            bytes: bound.bytes,
        }
    }
}

/// Reports whether an option trades exactness for speed: a reference is compiled without it.
fn is_fast_math(option: &str) -> bool {
    let name = option
        .trim_start_matches('-')
        .split('=')
        .next()
        .unwrap_or_default();
    let name = name.replace('-', "_");
    matches!(
        name.as_str(),
        "use_fast_math" | "ftz" | "prec_div" | "prec_sqrt"
    )
}

/// Converts compiled code to a device's form.
#[must_use]
pub fn code(image: &Image) -> Code {
    let fixed = image
        .kernels
        .values()
        .map(|kernel| kernel.static_shared)
        .max();
    Code {
        ptx: Arc::clone(&image.ptx),
        cubin: Arc::clone(&image.cubin),
        registers: image.facts.registers,
        static_shared_bytes: fixed.unwrap_or(0),
        kernels: image
            .kernels
            .iter()
            .map(|(entry, kernel)| {
                let needs = KernelNeeds {
                    registers: kernel.registers,
                    static_shared_bytes: kernel.static_shared,
                };
                (entry.clone(), needs)
            })
            .collect(),
    }
}
