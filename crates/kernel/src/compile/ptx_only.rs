//! Compiles without machine code, for devices that execute PTX: the assembler takes up to half of a
//! compile.
//!
//! Normally only the assembler shows whether the kernels can be launched: the registers of a thread, and
//! whether static shared memory fits. PTX shows both if a kernel bounds its threads (`__launch_bounds__`,
//! `.maxntid`): the assembler then assigns each thread at most the registers available to a block of that
//! size (PTX ISA, "Performance-Tuning Directives"). Other kernels need the full compile.

use super::compiler::Compiler;
use super::error::CompileError;
use super::image::{CodeFacts, CompileOutcome, Image, RawStatus};
use super::options;
use super::render::Source;
use super::resources::KernelResources;
use ptx::ast::{Ast, Function, StateSpace};
use std::collections::BTreeMap;
use tuner_core::plan::PlanLaunch;
use tuner_core::target::ComputeTarget;
use tuner_core::units::ContentHash;

/// Static shared memory available to every kernel, bytes (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
const MAX_STATIC_SHARED_BYTES: u64 = 48 << 10;

impl Compiler {
    /// Compiles one source to PTX, if that proves that each of these launches has the resources it
    /// needs; `None` if only [`Compiler::compile`] can decide. A cached result with machine code is
    /// preferred. Registers are 0 in the result, and the PTX's hash replaces that of the machine
    /// code.
    ///
    /// # Errors
    /// Only failures of the tuner's tools.
    pub fn compile_ptx(
        &self,
        source: &Source,
        launches: &[PlanLaunch],
    ) -> Result<Option<CompileOutcome>, CompileError> {
        // All blocks must be resident at once, and their number depends on registers.
        if launches.iter().any(|launch| launch.cooperative) {
            return Ok(None);
        }
        if let Some(remembered) = self.remembered(source) {
            // After a rejection only the full compile shows whether another target helps.
            let compiled = remembered.head.status == RawStatus::Compiled;
            let known = compiled.then(|| self.interpreted(remembered, source));
            return known.transpose();
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
        if needs_assembler(&text, &source.arch) {
            return Ok(None);
        }
        let Some(bounds) = ptx::parse(&text).ok().as_ref().and_then(bounds) else {
            return Ok(None);
        };
        let resources = KernelResources {
            static_shared: bounds.static_shared,
            ..KernelResources::default()
        };
        let names = bounds.threads.keys().cloned();
        let code = CodeFacts {
            hash: ContentHash::from_parts([result.ptx.as_slice()]),
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
    /// Reports whether a kernel bounds its threads, without which [`Compiler::compile_ptx`] is
    /// useless.
    #[must_use]
    pub fn bounds_threads(&self) -> bool {
        self.ptx.contains(".maxntid") || self.ptx.contains(".reqntid")
    }
}

/// Instructions and qualifiers that no portable target supports. The front end does not check instructions
/// of inline assembly: only the assembler rejects them.
const ARCHITECTURE_SPECIFIC: [&str; 4] = ["wgmma.", "tcgen05.", ".kind::", ".block_scale"];

/// Reports whether PTX for a portable target may be rejected by the assembler or compiled for an
/// architecture-specific target. Also reports a kernel whose behaviour depends on the number of registers,
/// which only the assembler determines.
fn needs_assembler(ptx: &str, target: &str) -> bool {
    if ptx.contains("setmaxnreg.") {
        return true;
    }
    let target = target.parse::<ComputeTarget>();
    let portable = target.is_ok_and(|target| target.features.is_none());
    portable && ARCHITECTURE_SPECIFIC.iter().any(|word| ptx.contains(word))
}

/// Resource bounds of a module's kernels, from PTX.
struct Bounds {
    /// Maximum static shared memory of a kernel, bytes.
    static_shared: u64,
    /// Maximum threads of a block, by kernel; 0 if PTX does not state it.
    threads: BTreeMap<String, u64>,
}

/// Returns the bounds of a module's kernels; `None` if static shared memory may not fit.
fn bounds(module: &Ast<'_>) -> Option<Bounds> {
    let inside = module.functions.iter().filter_map(|f| f.body.as_ref());
    // Any kernel may reach a variable declared in any function: the sum is an upper bound.
    let static_shared: u64 = inside
        .flat_map(|body| &body.variables)
        .chain(&module.variables)
        .filter(|variable| variable.space == StateSpace::Shared)
        // The padding before a variable is less than its alignment.
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
