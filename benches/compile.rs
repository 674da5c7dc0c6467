//! Figures of the compile stage: time of one compile, of a cache hit, how the pool scales, and what
//! precompiled library headers save.
//!
//! `cargo bench --bench compile`
#![expect(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should end"
)]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::time::Instant;
use tuner_core::plan::PlanLaunch;
use tuner_core::value::Value;
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation, Source, Template, render};

const COMPILES: i64 = 24;

fn source(template: &Template, number: i64) -> Source {
    // Different in a macro that nothing uses, so that each is a source of its own.
    let macros = [("NUMBER".to_owned(), Value::Int(number))];
    let launch = PlanLaunch::new("gemm_f32", [1; 3], [1; 3], Vec::new());
    render(template, &macros, &[], &[launch], "sm_90")
}

fn compile_all(compiler: &Compiler, sources: &[Source], threads: usize) -> f64 {
    let start = Instant::now();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(source) =
                    sources.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let outcome = compiler.compile(source).expect("the compiler works");
                    assert!(outcome.is_ok(), "{outcome:?}");
                }
            });
        }
    });
    start.elapsed().as_secs_f64() * 1e3
}

/// Prints the time of a kernel's first candidate and of later ones, which find the library's
/// headers precompiled.
fn compile_with_header(header: &str) {
    let text = format!(
        "#include <{header}>\nextern \"C\" __global__ void k(float* x) {{ x[threadIdx.x] = NUMBER; }}\n"
    );
    let template = Template::new("k.cu", &text, Vec::new(), Vec::new());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiler = compiler(1, folder.path());
    let launch = PlanLaunch::new("k", [1; 3], [1; 3], Vec::new());
    let times: Vec<f64> = (0..6)
        .map(|number| {
            let macros = [("NUMBER".to_owned(), Value::Int(number))];
            let source = render(
                &template,
                &macros,
                &[],
                std::slice::from_ref(&launch),
                "sm_90",
            );
            compile_all(&compiler, &[source], 1)
        })
        .collect();
    let [first, second, later @ ..] = times.as_slice() else {
        return;
    };
    println!(
        "compile with <{header}>: {first:.0} ms, {second:.0} ms with the precompiled header made, \
         then {:.0} ms each",
        later.iter().sum::<f64>() / later.len() as f64
    );
}

fn compiler(jobs: usize, cache: &std::path::Path) -> Compiler {
    Compiler::new(CompilerSettings {
        jobs,
        cache: Some(cache.to_owned()),
        isolation: Isolation::Workers {
            program: PathBuf::from(env!("CARGO_BIN_EXE_tuner")),
        },
        ..CompilerSettings::default()
    })
    .expect("NVRTC is present")
}

fn main() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/gemm_f32/kernel.cu");
    let text = std::fs::read_to_string(path).expect("the template is there");
    let template = Template::new(
        "templates/gemm_f32/kernel.cu",
        &text,
        Vec::new(),
        Vec::new(),
    );
    let sources: Vec<Source> = (0..COMPILES)
        .map(|number| source(&template, number))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for jobs in [1, cores] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let compiler = compiler(jobs, folder.path());
        let cold = compile_all(&compiler, &sources, jobs);
        let warm = compile_all(&compiler, &sources, jobs);
        println!(
            "compile gemm_f32, {jobs} workers: {:.1} ms each, {:.1} a second",
            cold / COMPILES as f64,
            COMPILES as f64 * 1e3 / cold
        );
        println!(
            "cache hit, {jobs} threads: {:.3} ms each",
            warm / COMPILES as f64
        );
    }
    for header in [
        "cuda_fp16.h",
        "cooperative_groups.h",
        "cuda/barrier",
        "cub/cub.cuh",
    ] {
        compile_with_header(header);
    }
}
