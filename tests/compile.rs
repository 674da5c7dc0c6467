//! The compile stage against the real NVRTC, in worker processes of the real binary.
//!
//! `make test` gets NVRTC before it runs these.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tuner_core::plan::PlanLaunch;
use tuner_core::value::Value;
use tuner_kernel::compile::{
    CompileOutcome, Compiler, CompilerSettings, Image, Isolation, Source, Surroundings, Template,
    render,
};

const SCALE: &str = r#"
extern "C" __global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
"#;

fn settings(cache: Option<&Path>) -> CompilerSettings {
    CompilerSettings {
        jobs: 2,
        cache: cache.map(Path::to_owned),
        isolation: Isolation::Workers {
            program: PathBuf::from(env!("CARGO_BIN_EXE_tuner")),
        },
        ..CompilerSettings::default()
    }
}

fn compiler(cache: Option<&Path>) -> Compiler {
    Compiler::new(settings(cache)).expect("NVRTC is present")
}

fn source(text: &str, factor: i64) -> Source {
    source_for(text, factor, "sm_90", "scale")
}

fn source_for(text: &str, factor: i64, arch: &str, entry: &str) -> Source {
    let template = Template::new("templates/scale/kernel.cu", text, Vec::new(), Vec::new());
    let macros = [("FACTOR".to_owned(), Value::Int(factor))];
    let launch = PlanLaunch {
        shared_bytes: 100,
        ..PlanLaunch::new(entry, [1; 3], [1; 3], Vec::new())
    };
    render(&template, &macros, &[], &[launch], arch)
}

fn image(outcome: CompileOutcome) -> std::sync::Arc<Image> {
    outcome.unwrap_or_else(|failed| panic!("{failed}"))
}

fn failure(outcome: CompileOutcome) -> String {
    outcome.expect_err("a failure").detail
}

#[test]
fn a_kernel_compiles_to_ptx_and_machine_code_with_its_resources() {
    for arch in ["sm_80", "sm_89", "sm_90"] {
        let image = image(
            compiler(None)
                .compile(&source_for(SCALE, 3, arch, "scale"))
                .unwrap(),
        );
        assert!(
            image.ptx.contains(&format!(".target {arch}")),
            "{}",
            image.ptx
        );
        assert!(
            image.ptx.contains(".file\t1 \"templates/scale/kernel.cu\""),
            "{}",
            image.ptx
        );
        assert!(image.cubin.starts_with(b"\x7fELF"));
        assert_eq!(image.facts.arch, arch);
        assert!((1..=255).contains(&image.facts.registers));
        assert_eq!(image.facts.spill_bytes, 0);
        assert_eq!(image.facts.shared_bytes, 100);
        assert_eq!(image.kernels["scale"].registers, image.facts.registers);
        assert_eq!(image.log, "");
    }
}

#[test]
fn spills_stack_and_static_shared_memory_are_reported() {
    let text = r#"
extern "C" __global__ void __launch_bounds__(1024, 2) scale(float* x, int n) {
  __shared__ float tile[512];
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = x[i * n + threadIdx.x];
  tile[threadIdx.x % 512] = v[n & 63];
  __syncthreads();
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i * 7 + 1) & 63] + tile[i];
  for (int i = 0; i < 64; ++i) x[i * n + threadIdx.x] = v[i] * FACTOR;
}
"#;
    let image = image(compiler(None).compile(&source(text, 1)).unwrap());
    let kernel = image.kernels["scale"];
    assert_eq!(kernel.static_shared, 2048);
    assert_eq!(image.facts.shared_bytes, 2148);
    assert_eq!(
        kernel.registers, 32,
        "1024 threads twice leave 32 registers each"
    );
    assert!(
        kernel.spill_store > 0 && kernel.spill_load > 0,
        "{kernel:?}"
    );
    assert!(kernel.stack >= 256, "{kernel:?}");
}

/// A launch of `scale` with blocks of so many threads.
fn launch(threads: u32) -> PlanLaunch {
    PlanLaunch {
        shared_bytes: 100,
        ..PlanLaunch::new("scale", [1, 1, 1], [threads, 1, 1], Vec::new())
    }
}

#[test]
fn ptx_alone_is_enough_where_the_kernel_bounds_its_threads_and_is_the_same_ptx() {
    let bounded = SCALE.replace("void scale", "void __launch_bounds__(128) scale");
    let (whole, cache) = (compiler(None), tempfile::tempdir().expect("a folder"));
    for arch in ["sm_80", "sm_90a"] {
        let bounded = source_for(&bounded, 3, arch, "scale");
        let short = whole.compile_ptx(&bounded, &[launch(128)]).unwrap();
        let short = image(short.expect("a bound of 128 threads"));
        let full = image(whole.compile(&bounded).unwrap());
        assert_eq!(short.ptx, full.ptx);
        assert!(short.cubin.is_empty() && !full.cubin.is_empty());
        assert_eq!((short.facts.registers, short.facts.shared_bytes), (0, 100));
        assert!(short.bounds_threads() && full.bounds_threads());
    }
    let bounded = source(&bounded, 3);
    let none = |source: &Source, launches: &[PlanLaunch]| {
        let made = whole.compile_ptx(source, launches).unwrap();
        assert!(made.is_none(), "{made:?}");
    };
    none(&bounded, &[launch(256)]);
    let cooperative = PlanLaunch {
        cooperative: true,
        ..launch(128)
    };
    none(&bounded, &[cooperative]);
    none(&source(SCALE, 3), &[launch(32)]);
    let unbounded = image(whole.compile(&source(SCALE, 3)).unwrap());
    assert!(!unbounded.bounds_threads());
    none(&source("no C++", 3), &[launch(32)]);
    // What was compiled before is at hand, with its machine code.
    let remembers = compiler(Some(cache.path()));
    image(remembers.compile(&bounded).unwrap());
    let again = remembers.compile_ptx(&bounded, &[launch(128)]).unwrap();
    assert!(!image(again.expect("it is remembered")).cubin.is_empty());
}

#[test]
fn errors_point_into_the_template_at_its_own_line() {
    let broken = SCALE.replace("*= FACTOR", "*= FACTOR_");
    let log = failure(compiler(None).compile(&source(&broken, 1)).unwrap());
    assert!(
        log.contains("templates/scale/kernel.cu(4): error: identifier \"FACTOR_\""),
        "{log}"
    );
    let refused = format!("#if FACTOR > 2\n#error FACTOR must be at most 2\n#endif\n{SCALE}");
    let log = failure(compiler(None).compile(&source(&refused, 3)).unwrap());
    assert!(log.contains("templates/scale/kernel.cu(2)"), "{log}");
    assert!(log.contains("FACTOR must be at most 2"), "{log}");
}

#[test]
fn a_kernel_that_is_not_there_is_a_failure_that_names_those_that_are() {
    let source = source_for(SCALE, 1, "sm_90", "scael");
    let log = failure(compiler(None).compile(&source).unwrap());
    assert!(log.contains("no kernel `scael` (found: scale)"), "{log}");
}

#[test]
fn an_unknown_target_or_option_is_a_failure_with_the_compilers_words() {
    let log = failure(
        compiler(None)
            .compile(&source_for(SCALE, 1, "sm_12", "scale"))
            .unwrap(),
    );
    assert!(log.contains("gpu-architecture"), "{log}");
}

#[test]
fn a_comment_changes_no_hash_and_a_constant_does() {
    let compiler = compiler(None);
    let hash = |text: &str, factor| {
        image(compiler.compile(&source(text, factor)).unwrap())
            .facts
            .cubin_hash
            .clone()
    };
    let commented = SCALE.replace("  if", "  // a comment, and a line more\n\n  if");
    assert_eq!(hash(SCALE, 3), hash(&commented, 3));
    assert_ne!(hash(SCALE, 3), hash(SCALE, 5));
    assert_ne!(
        source(SCALE, 3).identity("13.0"),
        source(&commented, 3).identity("13.0"),
        "an edited template is another candidate"
    );
}

#[test]
fn included_files_come_from_memory_and_cuda_headers_from_the_installation() {
    let text = "#include \"twice.cuh\"\n#include <cuda_fp16.h>\nextern \"C\" __global__ void scale(__half* x) \
                { x[0] = __float2half(twice(FACTOR * __half2float(x[0]))); }\n";
    let header = tuner_kernel::compile::Header {
        spelled: "twice.cuh".into(),
        path: "templates/scale/twice.cuh".into(),
        text: "#pragma once\n__device__ inline float twice(float x) { return 2 * x; }\n".into(),
    };
    let template = Template::new("templates/scale/kernel.cu", text, vec![header], Vec::new());
    let macros = [("FACTOR".to_owned(), Value::Int(2))];
    let launch = PlanLaunch::new("scale", [1; 3], [1; 3], Vec::new());
    let source = render(&template, &macros, &[], &[launch], "sm_89");
    let compiled = image(compiler(None).compile(&source).unwrap());
    assert!(
        compiled.ptx.contains("\"templates/scale/twice.cuh\""),
        "{}",
        compiled.ptx
    );
    let mut broken = source;
    broken.headers[0].text = "#pragma once\nfloat twice(float x) { return y; }\n".into();
    let log = failure(compiler(None).compile(&broken).unwrap());
    assert!(log.contains("templates/scale/twice.cuh(2): error"), "{log}");
}

#[test]
fn a_cached_result_is_the_same_and_took_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = image(
        compiler(Some(dir.path()))
            .compile(&source(SCALE, 3))
            .unwrap(),
    );
    let again = image(
        compiler(Some(dir.path()))
            .compile(&source(SCALE, 3))
            .unwrap(),
    );
    assert!(first.facts.compile_us > 0);
    assert_eq!(again.facts.compile_us, 0);
    assert_eq!(first.ptx, again.ptx);
    assert_eq!(first.cubin, again.cubin);
    assert_eq!(first.kernels, again.kernels);
}

/// A compiler whose workers misbehave on sources that contain `tuner_fault`. The variable is set
/// for a shell between, because this test's own environment is shared by all its threads.
fn faulty_compiler(
    fault: &str,
    dir: &Path,
    change: impl FnOnce(&mut CompilerSettings),
) -> Compiler {
    let program = dir.join("worker.sh");
    let tuner = crate::rig::program().display();
    let text = format!("#!/bin/sh\nTUNER_COMPILE_FAULT={fault} exec {tuner} \"$@\"\n");
    crate::rig::executable::script(&program, &text);
    let mut settings = settings(None);
    settings.isolation = Isolation::Workers { program };
    change(&mut settings);
    Compiler::new(settings).expect("NVRTC is present")
}

#[test]
fn the_pool_survives_a_worker_that_hangs_or_crashes_and_noise_on_its_output() {
    let bad = source(&format!("// tuner_fault\n{SCALE}"), 3);
    let good = source(SCALE, 3);
    let dir = tempfile::tempdir().unwrap();
    let hanging = faulty_compiler("hang", dir.path(), |settings| {
        settings.jobs = 1;
        settings.deadline = Duration::from_secs(3);
    });
    for _ in 0..2 {
        let detail = failure(hanging.compile(&bad).unwrap());
        assert!(detail.contains("did not end within 3 s"), "{detail}");
        image(hanging.compile(&good).unwrap());
    }
    drop(hanging);
    let crashing = faulty_compiler("crash", dir.path(), |settings| settings.jobs = 1);
    for _ in 0..2 {
        let detail = failure(crashing.compile(&bad).unwrap());
        assert!(detail.contains("signal: 6"), "{detail}");
        image(crashing.compile(&good).unwrap());
    }
    drop(crashing);
    let noisy = faulty_compiler("noise", dir.path(), |settings| settings.jobs = 1);
    image(noisy.compile(&bad).unwrap());
}

#[test]
fn a_worker_in_the_middle_of_a_compile_ends_with_its_parent() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let frame = |number: u32, json: serde_json::Value| {
        tuner_process::encode(number, &[json.to_string().as_bytes()]).unwrap()
    };
    let library = compiler(None).nvrtc().library.clone();
    let mut child = Command::new(crate::rig::program())
        .arg(tuner_kernel::compile::WORKER_COMMAND)
        .env("TUNER_COMPILE_FAULT", "hang")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let hello = serde_json::json!({ "library": library, "address_space_bytes": 8_u64 << 30 });
    let request =
        serde_json::json!({ "text": "// tuner_fault", "names": [], "headers": [], "options": [] });
    pipe.write_all(&frame(0, hello)).unwrap();
    pipe.write_all(&frame(1, request)).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        child.try_wait().unwrap().is_none(),
        "it hangs in the compile"
    );
    // What the system does with the parent's end of the pipe when the parent is killed.
    drop(pipe);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_source_that_bloats_the_compiler_is_an_outcome_and_the_pool_goes_on() {
    // Each line doubles the text: 2^28 additions do not fit.
    let mut text = String::from("#define D0 + FACTOR\n");
    for level in 1..=28 {
        text.push_str(&format!("#define D{level} D{} D{}\n", level - 1, level - 1));
    }
    text.push_str("extern \"C\" __global__ void scale(int* x) { x[0] = 0 D28; }\n");
    let mut settings = settings(None);
    settings.memory_bytes = 400 << 20;
    settings.jobs = 1;
    let compiler = Compiler::new(settings).expect("NVRTC is present");
    let detail = failure(compiler.compile(&source(&text, 1)).unwrap());
    assert!(detail.contains("needed more than 400 MiB"), "{detail}");
    image(compiler.compile(&source(SCALE, 1)).unwrap());
}

#[test]
fn without_nvrtc_the_message_says_where_was_looked_and_what_helps() {
    let settings = CompilerSettings {
        surroundings: Surroundings {
            explicit: Some(PathBuf::from("/nowhere/libnvrtc.so")),
            ..Surroundings::default()
        },
        ..settings(None)
    };
    let message = Compiler::new(settings).unwrap_err().to_string();
    assert!(message.contains("/nowhere/libnvrtc.so"), "{message}");
    assert!(message.contains("make nvrtc"), "{message}");
}

#[test]
fn a_file_that_is_no_library_is_named_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libnvrtc.so.13");
    std::fs::write(&library, "not a library").unwrap();
    let surroundings = Surroundings {
        explicit: Some(library.clone()),
        ..Surroundings::default()
    };
    let error = tuner_kernel::compile::Nvrtc::find(&surroundings)
        .unwrap_err()
        .to_string();
    assert!(error.contains(library.to_str().unwrap()), "{error}");
}

#[test]
fn candidates_with_precompiled_libraries_are_those_without() {
    let text = SCALE.replacen(
        "extern",
        "#include <cooperative_groups.h>\nnamespace groups = cooperative_groups;\nextern",
        1,
    );
    let text = text.replace(
        "int i = ",
        "groups::this_thread_block().sync();\n  int i = ",
    );
    let folder = tempfile::tempdir().unwrap();
    let with = compiler(Some(folder.path()));
    // Without a cache there is no place for precompiled headers.
    let without = compiler(None);
    let preludes = folder.path().join("preludes");
    for factor in 1..5 {
        let source = source(&text, factor);
        let compiled = image(with.compile(&source).unwrap());
        let plain = image(without.compile(&source).unwrap());
        assert_eq!(compiled.ptx, plain.ptx, "{factor}");
    }
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let workers = entries(&preludes);
    assert_eq!(workers.len(), 1, "{workers:?}");
    let mode = std::fs::metadata(&workers[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(entries(&workers[0]), Vec::<PathBuf>::new());
    drop(with);
    assert_eq!(entries(&preludes), Vec::<PathBuf>::new());
}

#[test]
fn folders_of_workers_that_were_killed_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let preludes = folder.path().join("preludes");
    // No process has a number above 2²².
    let own = format!("worker-{}-x", std::process::id());
    let [old, new] = ["worker-99999999-x", &own].map(|name| preludes.join(name));
    std::fs::create_dir_all(old.join("more")).unwrap();
    std::fs::create_dir_all(&new).unwrap();
    let compiler = compiler(Some(folder.path()));
    image(compiler.compile(&source(SCALE, 3)).unwrap());
    assert!(!old.exists() && new.exists());
}

#[test]
fn where_others_can_write_nothing_is_precompiled() {
    let folder = tempfile::tempdir().unwrap();
    let preludes = folder.path().join("preludes");
    std::fs::create_dir(&preludes).unwrap();
    std::fs::set_permissions(&preludes, std::fs::Permissions::from_mode(0o777)).unwrap();
    let compiler = compiler(Some(folder.path()));
    let text = format!("#include <cooperative_groups.h>\n{SCALE}");
    for factor in 1..4 {
        image(compiler.compile(&source(&text, factor)).unwrap());
    }
    assert_eq!(std::fs::read_dir(&preludes).unwrap().count(), 0);
}

#[test]
fn options_of_one_compile_change_no_other() {
    // NVRTC keeps each of these options in force for the later compiles of a process.
    let text = r#"
struct Table { unsigned long long words[16]; };
extern "C" __global__ void scale(float* x, const float* y, const __grid_constant__ Table table) {
  __shared__ float s[256];
  float sum = 0;
  for (int i = threadIdx.x; i < FACTOR; i += blockDim.x) {
    s[i & 255] = y[i];
    __syncthreads();
    for (int j = 0; j < 8; j++) sum += s[(i + j) & 255] * y[i * 8 + j];
    x[i] = sum + table.words[threadIdx.x & 15];
  }
}
"#;
    let with = |option: &str| {
        let template = Template::new("scale.cu", text, Vec::new(), Vec::new());
        let macros = [("FACTOR".to_owned(), Value::Int(4096))];
        let options: Vec<String> = option.split_whitespace().map(str::to_owned).collect();
        let launch = PlanLaunch::new("scale", [1; 3], [1; 3], Vec::new());
        render(&template, &macros, &options, &[launch], "sm_90")
    };
    let one = |compiler: &Compiler, option: &str| {
        image(compiler.compile(&with(option)).unwrap()).ptx.clone()
    };
    let settings = || CompilerSettings {
        jobs: 1,
        ..settings(None)
    };
    let fresh = |option: &str| one(&Compiler::new(settings()).unwrap(), option);
    let used = Compiler::new(settings()).unwrap();
    let plain = fresh("");
    for option in ["--device-debug", "--restrict", "--Ofast-compile=max"] {
        let changed = one(&used, option);
        assert_eq!(changed, fresh(option), "{option}");
        assert_ne!(changed, plain, "{option}");
        assert_eq!(one(&used, ""), plain, "after {option}");
        assert_eq!(one(&used, "--use_fast_math"), fresh("--use_fast_math"));
    }
}
