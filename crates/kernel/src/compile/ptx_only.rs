//! Compiles without machine code, for devices that execute PTX: the assembler takes up to half of a
//! compile.
//!
//! What the assembler alone would tell is whether the kernels can be launched: how many registers a
//! thread takes, and whether static shared memory fits. PTX answers both where a kernel bounds its
//! threads (`__launch_bounds__`, `.maxntid`): the assembler gives each thread no more registers than
//! a block of that size can have (PTX ISA, "Performance-Tuning Directives"). Elsewhere there is no
//! short way.

use super::compiler::{CompileError, Compiler};
use super::image::{CompileOutcome, Described, Image, RawStatus};
use super::options;
use super::render::Source;
use super::resources::KernelResources;
use ptx::ast::{Ast, Function, StateSpace};
use std::collections::BTreeMap;
use tuner_core::plan::PlanLaunch;
use tuner_core::units::ContentHash;

/// Static shared memory that every kernel may have, bytes (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
const MAX_STATIC_SHARED_BYTES: u64 = 48 << 10;

impl Compiler {
    /// Compiles one source to PTX, where that tells that each of these launches finds the resources
    /// it needs; `None` where only [`Compiler::compile`] can tell. A result with machine code
    /// that is remembered is taken instead. Registers are 0 in what comes out, and the place of the
    /// machine code's hash is that of the PTX.
    ///
    /// # Errors
    /// Only when the tuner's own tools fail.
    pub fn compile_ptx(
        &self,
        source: &Source,
        launches: &[PlanLaunch],
    ) -> Result<Option<CompileOutcome>, CompileError> {
        if launches.iter().any(|launch| launch.cooperative) {
            return Ok(None);
        }
        let remembered = self.remembered(source);
        if let Some(remembered) = remembered.filter(|it| it.head.status == RawStatus::Compiled) {
            return self.interpreted(remembered, source).map(Some);
        }
        let mut asked = source.clone();
        asked.options = options::front_end(&source.options, &source.arch);
        let Ok(result) = self.raw(&asked, |ptx| ptx)? else {
            return Ok(None);
        };
        if result.head.status != RawStatus::Compiled {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&result.ptx);
        let Some(bounds) = ptx::parse(&text).ok().as_ref().and_then(bounds) else {
            return Ok(None);
        };
        let resources = KernelResources {
            static_shared: bounds.static_shared,
            ..KernelResources::default()
        };
        let names = bounds.threads.keys().cloned();
        let code = Described {
            hash: ContentHash::of([result.ptx.as_slice()]),
            sass_bytes: 0,
            kernels: names.map(|name| (name, resources)).collect(),
        };
        let Ok(image) = result.image(source, code, &self.nvrtc().version()) else {
            return Ok(None);
        };
        let fits = |launch: &PlanLaunch| {
            let bound = bounds.threads.get(&image.symbol(&launch.entry));
            bound.is_some_and(|bound| launch.threads() <= *bound)
        };
        let all_fit = launches.iter().all(fits);
        Ok(all_fit.then(|| Ok(image.into())))
    }
}

impl Image {
    /// Whether some kernel bounds its threads, without which [`Compiler::compile_ptx`] is in vain.
    #[must_use]
    pub fn bounds_threads(&self) -> bool {
        self.ptx.contains(".maxntid") || self.ptx.contains(".reqntid")
    }
}

/// What PTX says of the resources that its kernels take.
struct Bounds {
    /// Static shared memory that a kernel has at most, bytes.
    static_shared: u64,
    /// The most threads that a block may have, by kernel; 0 where PTX does not say.
    threads: BTreeMap<String, u64>,
}

/// The bounds of a module's kernels; `None` where static shared memory may not fit.
fn bounds(module: &Ast<'_>) -> Option<Bounds> {
    let inside = module.functions.iter().filter_map(|f| f.body.as_ref());
    // Whichever function declares a variable, each kernel may reach it: the sum is an upper bound.
    let static_shared: u64 = inside
        .flat_map(|body| &body.variables)
        .chain(&module.variables)
        .filter(|variable| variable.space == StateSpace::Shared)
        .map(|variable| variable.bytes.saturating_add(u64::from(variable.align)))
        .fold(0, u64::saturating_add);
    let threads = |f: &Function<'_>| {
        let sides = f.required_threads.or(f.max_threads);
        sides.map_or(0, |sides| sides.into_iter().map(u64::from).product())
    };
    let entries = module.functions.iter().filter(|f| f.entry);
    (static_shared <= MAX_STATIC_SHARED_BYTES).then(|| Bounds {
        static_shared,
        threads: entries.map(|f| (f.name.to_owned(), threads(f))).collect(),
    })
}

#[cfg(test)]
mod tests;
