//! `tuner export --launcher`: the header with the kernel's source or machine code, and its launches; and the
//! machine code of `--torch`.

use super::Args;
use crate::cli::stale::Present;
use crate::cli::{CliError, usage};
use clap::ValueEnum;
use tuner_core::entry::Entry;
use tuner_core::plan::PlanLaunch;
use tuner_core::target::ComputeTarget;
use tuner_core::value::Value;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Compiler, CompilerSettings, Header, included_host_headers, render};
use tuner_report::export::{
    Launcher, LauncherError, LauncherImage, LauncherSource, launcher_entries,
};
use tuner_store::Board;

/// Languages of launchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// One C++17 header
    Cpp,
}

/// Shapes that a launcher accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Checked {
    /// Classes that the gate has checked
    On,
    /// All for which the rules hold; the default configuration if there is no entry
    Off,
}

/// Code embedded in a launcher in addition to the source.
#[derive(Debug, Default, PartialEq, Eq)]
struct Embed {
    /// Targets with machine code.
    cubin: Vec<String>,
    /// PTX for each entry's own device.
    ptx: bool,
}

/// Reads `cubin:sm_89,sm_90a,ptx`.
fn embedded(text: &str) -> Result<Embed, CliError> {
    let mut embed = Embed::default();
    for item in text.split(',').map(str::trim) {
        let (is_cubin, target) = match item.strip_prefix("cubin:") {
            Some(target) => (true, target),
            // The kind is written once: the targets after `cubin:sm_89` have no prefix.
            None => (!embed.cubin.is_empty(), item),
        };
        let digits = target.strip_prefix("sm_").unwrap_or_default();
        let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
        let is_target = digits.len() >= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        match item {
            "ptx" => embed.ptx = true,
            _ if is_cubin && is_target => embed.cubin.push(target.to_owned()),
            _ => refuse!("--embed: `{item}` is not `ptx` or a target; type cubin:sm_89,sm_90a,ptx"),
        }
    }
    Ok(embed)
}

/// Writes the launcher of the boards' entries.
pub(super) fn render_launcher(
    args: &Args,
    name: &str,
    boards: &[Board],
    entries: &[Entry],
) -> Result<String, CliError> {
    let kernel = present_kernel("--launcher", name, boards)?;
    let entries = launcher_entries(entries);
    let mentions = |name: &str| kernel.template.mentions(name);
    let source = launcher_source(&kernel, &mentions, args.checked_only == Checked::On);
    let launcher = Launcher::new(name, &entries, &source).map_err(|error| match error {
        LauncherError::Unsupported(_) => usage(format!("--launcher: {error}")),
        error => usage(error),
    })?;
    let images = embedded_images(args, &launcher, &kernel, &entries)?;
    Ok(launcher.text(&images))
}

/// Compiles the entries for the targets of `--embed`.
pub(super) fn embedded_images(
    args: &Args,
    launcher: &Launcher<'_>,
    kernel: &Kernel,
    entries: &[Entry],
) -> Result<Vec<LauncherImage>, CliError> {
    let Some(embed) = args.embed.as_deref().map(embedded).transpose()? else {
        return Ok(Vec::new());
    };
    if args.torch && embed.ptx {
        refuse!("--embed: a PyTorch package holds machine code only; type cubin:sm_89,sm_90a");
    }
    let compiler = Compiler::new(CompilerSettings::default())?;
    let known = compiler.nvrtc().architectures();
    for target in &embed.cubin {
        let plain = target.trim_end_matches(['a', 'f']);
        if !known.iter().any(|arch| arch == plain || arch == target) {
            refuse!(
                "--embed: NVRTC {} has no target {target}; it has {}",
                compiler.nvrtc().version(),
                known.join(", ")
            );
        }
    }
    let ahead = AheadCompiler {
        launcher,
        kernel,
        compiler: &compiler,
        embed: &embed,
    };
    let mut images = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        images.extend(ahead.compile(index, entry)?);
    }
    Ok(images)
}

/// Returns the kernel of the boards; its template must be unchanged since the measurement.
pub(super) fn present_kernel(
    option: &str,
    name: &str,
    boards: &[Board],
) -> Result<Kernel, CliError> {
    let mut present = Present::default();
    let Some(mut kernel) = boards
        .iter()
        .find_map(|board| present.kernel(board).cloned())
    else {
        refuse!(
            "{option}: the search space and the template of `{name}` are not here; run it where they are"
        );
    };
    let stale = boards
        .iter()
        .flat_map(|board| &board.rows)
        .find(|row| row.stale == Some(true));
    if let Some(row) = stale {
        refuse!(
            "{option}: the template of `{name}` was edited since {} on {} was measured, and the template is \
             exported: tune again",
            row.problem,
            row.device
        );
    }
    if !kernel.template.include_dirs.is_empty() {
        let is_parameter = |name: &String| kernel.spec.parameters.iter().any(|it| it.name == *name);
        let mut unknown = kernel.template.undefined_includes();
        unknown.retain(|name| !is_parameter(name));
        if let Some(unknown) = unknown.first() {
            refuse!(
                "{option}: `{name}` has `#include {unknown}`, whose file from `compile: include` only a \
                 compile finds: include it by name, or export the header alone"
            );
        }
        kernel.template = kernel.template.without_folders();
    }
    Ok(kernel)
}

/// Returns the kernel in the form of exports that embed its source.
pub(super) fn launcher_source<'a>(
    kernel: &'a Kernel,
    mentions: &'a dyn Fn(&str) -> bool,
    checked_only: bool,
) -> LauncherSource<'a> {
    let own = kernel.template.headers.iter().cloned();
    let headers = own.chain(included_host_headers(&kernel.template));
    LauncherSource {
        spec: &kernel.spec,
        name: &kernel.template.name,
        text: &kernel.template.text,
        headers: headers
            .map(|Header { spelled, text, .. }| (spelled, text))
            .collect(),
        mentions,
        checked_only,
    }
}

/// Compiler of a launcher's entries.
struct AheadCompiler<'a> {
    launcher: &'a Launcher<'a>,
    kernel: &'a Kernel,
    compiler: &'a Compiler,
    embed: &'a Embed,
}

impl AheadCompiler<'_> {
    /// Compiles an entry for the requested targets.
    fn compile(&self, index: usize, entry: &Entry) -> Result<Vec<LauncherImage>, CliError> {
        let own = format!("sm_{}", entry.cc.unwrap_or(80));
        let mut targets: Vec<(&str, bool)> = self
            .embed
            .cubin
            .iter()
            .map(|arch| (&**arch, false))
            .collect();
        if self.embed.ptx {
            targets.push((&own, true));
        }
        let macros = self.launcher.own_macros(index).into_iter();
        let macros: Vec<(String, Value)> = macros
            .map(|(name, value)| (name, Value::Text(value.into())))
            .collect();
        let options = self.launcher.options(index);
        let kernels = self.launcher.kernels(index);
        let launches: Vec<PlanLaunch> = kernels
            .iter()
            .flatten()
            .map(|kernel| PlanLaunch::new(*kernel, [1; 3], [1; 3], Vec::new()))
            .collect();
        let mut images = Vec::new();
        for (arch, is_ptx) in targets {
            // With the architecture features of the search space, as the tuner compiles it.
            let target: ComputeTarget = arch.parse().map_err(usage)?;
            let arch = &target
                .with_features(self.kernel.spec.arch_features)
                .to_string();
            let source = render(&self.kernel.template, &macros, &options, &launches, arch);
            let image = match self.compiler.compile(&source).map_err(usage)? {
                Ok(image) => image,
                Err(failed) => refuse!(
                    "--embed: entry {index} does not compile for {arch}: {}",
                    failed.detail
                ),
            };
            images.push(LauncherImage {
                entry: index,
                arch: arch.to_owned(),
                is_ptx,
                bytes: match is_ptx {
                    true => image.ptx.as_bytes().to_vec(),
                    false => image.cubin.to_vec(),
                },
                symbols: kernels
                    .iter()
                    .map(|kernel| kernel.map_or_else(String::new, |kernel| image.symbol(kernel)))
                    .collect(),
            });
        }
        Ok(images)
    }
}

#[cfg(test)]
mod tests;
