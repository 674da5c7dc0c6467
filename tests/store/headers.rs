//! The exported header compiles wherever it should, answers lookups, and refuses wrong values.

use crate::store::support::{config, finished, fresh, start, timed};
use std::path::Path;
use std::process::Command;
use tuner_core::entry::Entry;
use tuner_core::plan::PlanLaunch;
use tuner_core::record::{ConstraintDefinition, DeviceKind, LaunchDefinition, ParameterDefinition};
use tuner_core::value::Value;
use tuner_kernel::compile::{
    CompileOutcome, Compiler, CompilerSettings, Isolation, Template, render,
};
use tuner_report::export;
use tuner_store::{LeaderboardQuery, RunStart};

/// What a run of `start`, with a time for each configuration, has to export.
pub(crate) async fn entries_of(starts: &[(RunStart, &[(i64, f64)])]) -> Vec<Entry> {
    let (_directory, store) = fresh().await;
    for (start, times) in starts {
        let trials: Vec<_> = (0..)
            .zip(*times)
            .map(|(sequence, (tile, us))| timed(start, sequence, config(*tile, 0), *us))
            .collect();
        finished(&store, start, &trials).await;
    }
    let boards = store.boards(&LeaderboardQuery::default()).await.unwrap();
    store.entries(&boards).await.unwrap()
}

pub(crate) fn sized(kind: DeviceKind, problem: &str, n: i64, causal: i64) -> RunStart {
    let mut start = start(kind);
    start.tasks[0].problem = problem.to_owned();
    start.tasks[0].sizes = vec![
        ("N".to_owned(), Value::Int(n)),
        ("CAUSAL".to_owned(), Value::Int(causal)),
    ];
    start
}

/// Two problems on a GPU, and what others recorded on another.
pub(crate) async fn example() -> Vec<Entry> {
    let mut starts: Vec<(RunStart, &[(i64, f64)])> = vec![
        (
            sized(DeviceKind::Cuda, "small", 256, 0),
            &[(32, 9.0), (64, 10.0)],
        ),
        (
            sized(DeviceKind::Cuda, "large", 8192, 0),
            &[(64, 100.0), (32, 300.0)],
        ),
        (sized(DeviceKind::Cuda, "masked", 256, 1), &[(16, 5.0)]),
        (sized(DeviceKind::Replay, "small", 256, 0), &[(128, 7.0)]),
    ];
    let definition = &mut starts[3].0.tasks[0].definition;
    definition.derived.clear();
    definition.constraints = vec![ConstraintDefinition {
        rule: "sqrt(TILE) < 12".to_owned(),
        why: "roots have no whole-number form".to_owned(),
    }];
    entries_of(&starts).await
}

fn dated(mut entries: Vec<Entry>) -> Vec<Entry> {
    for entry in &mut entries {
        entry.best.measured_at = "2025-11-21T12:00:00Z".to_owned();
        entry.best.run_id = "run".to_owned();
    }
    entries
}

pub(crate) fn compile(
    directory: &Path,
    compiler: &[&str],
    name: &str,
    source: &str,
) -> Result<(), String> {
    let file = directory.join(name);
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(directory)
        .arg("-o")
        .arg(directory.join("program"))
        .arg(&file)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

pub(crate) const C11: &[&str] = &["gcc", "-std=c11", "-pedantic"];
pub(crate) const CPP17: &[&str] = &["g++", "-std=c++17", "-pedantic"];

const USE: &str = r#"
#include "gemm_tuned.h"
#ifdef __cplusplus
static_assert(gemm_tuned_lookup("NVIDIA H200", 4096, 0)->config.tile == 64, "at compile time");
#endif
#ifdef TILE
#error "macros that nobody asked for"
#endif
int main(void) {
  const gemm_tuned_entry *entry = gemm_tuned_lookup("NVIDIA H200", 300, 0);
  if (!entry || entry->config.tile != 32) return 1;
  entry = gemm_tuned_lookup("NVIDIA H200", 1000000, 0);
  if (!entry || entry->config.tile != 64) return 2;
  entry = gemm_tuned_lookup("NVIDIA H200", 8192, 1);
  if (!entry || entry->config.tile != 16) return 3;
  if (gemm_tuned_lookup("NVIDIA H200", 256, 2)) return 4;
  if (gemm_tuned_lookup("another", 256, 0)) return 5;
  entry = gemm_tuned_lookup("NVIDIA A100-PCIE-40GB", 256, 0);
  if (!entry || entry->config.tile != 128) return 6;
  if (gemm_tuned_lookup("NVIDIA H200", 0, 0) || gemm_tuned_lookup("NVIDIA H200", 2147483648LL, 0)) return 7;
  return 0;
}
"#;

/// One entry: its macros and its tests, no table.
const CHOSEN: &str = r#"
#include "gemm_tuned.h"
#include "gemm_tuned.h"
#ifdef GEMM_TUNED_COUNT
#error "a table next to the macros of one entry"
#endif
#ifdef __cplusplus
static_assert(TILE == EXPECTED, "the target's define");
#endif
#if TILE != EXPECTED
#error "the target's define, for the preprocessor"
#endif
int main(void) { return TILE == EXPECTED && PAD == 0 && gemm_tuned_valid(8192, CAUSAL) ? 0 : 7; }
"#;

#[tokio::test]
async fn the_header_compiles_as_c11_and_cpp17_and_answers_at_compile_and_run_time() {
    let directory = tempfile::tempdir().unwrap();
    let header = export::header("gemm", &example().await).unwrap();
    std::fs::write(directory.path().join("gemm_tuned.h"), &header).unwrap();
    let run = || {
        let status = Command::new(directory.path().join("program")).status();
        status.unwrap().code()
    };
    for (compiler, name) in [(C11, "use.c"), (CPP17, "use.cpp")] {
        compile(directory.path(), compiler, name, USE).unwrap();
        assert_eq!(run(), Some(0), "{header}");
        for (choice, expected) in [
            (
                "-DGEMM_TUNED_MACROS -DTARGET_NVIDIA_H200 -DCAUSAL=0",
                "-DEXPECTED=64",
            ),
            (
                "-DGEMM_TUNED_MACROS -DTARGET_NVIDIA_A100_PCIE_40GB=1 -DCAUSAL=0",
                "-DEXPECTED=128",
            ),
            (
                "-DGEMM_TUNED_MACROS -DTARGET_unknown -DCAUSAL=0",
                "-DEXPECTED=64",
            ),
            ("-DGEMM_TUNED_ENTRY=0 -DCAUSAL=0", "-DEXPECTED=64"),
            ("-DGEMM_TUNED_ENTRY=1 -DCAUSAL=1", "-DEXPECTED=16"),
        ] {
            let defines = choice.split(' ').chain([expected]);
            let compiler: Vec<&str> = compiler.iter().copied().chain(defines).collect();
            compile(directory.path(), &compiler, name, CHOSEN).unwrap();
            assert_eq!(run(), Some(0), "{compiler:?}\n{header}");
        }
        // Twice in one file, and alone.
        let twice =
            "#include \"gemm_tuned.h\"\n#include \"gemm_tuned.h\"\nint main(void) { return 0; }\n";
        compile(directory.path(), compiler, name, twice).unwrap();
    }
}

const LAUNCHED: &str = r#"
#include "gemm_tuned.h"
#if defined(TILE) || defined(PAD)
#error "macros that nobody asked for"
#endif
#define COUNT(instance, TILE, PAD) + 1
#define SUM(instance, TILE, PAD) + TILE * (instance + 1)
#ifdef __cplusplus
static_assert(gemm_tuned_launch_gemm(gemm_tuned_lookup("NVIDIA L4", 300, 0), 300, 0).grid[0] == 10, "");
#endif
int main(void) {
  int how = 7;
  const gemm_tuned_entry *entry = gemm_tuned_lookup("NVIDIA L4", 256, 0);
  if (!entry || entry->config.tile != 32 || entry->cc != 89) return 1;
  gemm_tuned_launch launch = gemm_tuned_launch_gemm(entry, 300, 0);
  if (!launch.runs || launch.grid[0] != 10 || launch.grid[1] != 58 || launch.grid[2] != 1) return 2;
  if (launch.block[0] != 32 || launch.shared_bytes != 4 * 32) return 3;
  if (gemm_tuned_launch_reduce(entry, 300, 0).runs) return 4;
  if (!gemm_tuned_launch_reduce(entry, 8192, 0).runs) return 5;
  if (gemm_tuned_launch_reduce(entry, 8192, 0).grid[0] != 4096) return 6;
  /* No whole number of blocks. */
  if (gemm_tuned_launch_reduce(entry, 8191, 0).runs) return 7;
  if (gemm_tuned_lookup("NVIDIA L40S", 256, 0)) return 8;
  if (gemm_tuned_find("vgpu:l4", 0, 256, 0, &how) != entry || how != 1) return 9;
  if (gemm_tuned_find("NVIDIA L4", 89, 256, 0, &how) != entry || how != 2) return 10;
  if (gemm_tuned_find("NVIDIA L40S", 89, 256, 0, &how) != entry || how != 3) return 11;
  if (gemm_tuned_find("NVIDIA H100 PCIe", 90, 256, 0, &how) || how != 0) return 12;
  if (GEMM_TUNED_COUNT != 2 || (0 GEMM_TUNED_CONFIGS(COUNT)) != 2) return 13;
  if ((0 GEMM_TUNED_CONFIGS(SUM)) != 32 + 2 * 64) return 14;
  return gemm_tuned_table[1].instance == 1 ? 0 : 15;
}
"#;

#[tokio::test]
async fn launches_instances_and_names_of_devices_are_there_and_macros_only_on_request() {
    let launch =
        |entry: &str, when: Option<&str>, grid: [&str; 3], shared: &str| LaunchDefinition {
            entry: entry.to_owned(),
            when: when.map(str::to_owned),
            grid: grid.map(str::to_owned),
            block: ["TILE", "1", "1"].map(str::to_owned),
            shared: shared.to_owned(),
            cluster: None,
        };
    let mut starts: Vec<(RunStart, &[(i64, f64)])> = vec![
        (sized(DeviceKind::Vgpu, "small", 256, 0), &[(32, 9.0)]),
        (sized(DeviceKind::Vgpu, "large", 65536, 0), &[(64, 9.0)]),
    ];
    for (start, _) in &mut starts {
        start.device.name = "vgpu:l4".to_owned();
        start.device.arch = "sm_89".to_owned();
        let processors = ("DEVICE_SM_COUNT".to_owned(), Value::Int(58));
        start.device.environment.push(processors);
        start.tasks[0].definition.launches = vec![
            launch(
                "gemm",
                None,
                ["ceil_div(N, TILE)", "DEVICE_SM_COUNT", "1"],
                "4 * TILE",
            ),
            launch("reduce", Some("N > 4096"), ["N / 2", "1", "1"], "0"),
        ];
    }
    let mut entries = entries_of(&starts).await;
    entries.sort_by(|a, b| b.best.problem.cmp(&a.best.problem));
    let directory = tempfile::tempdir().unwrap();
    let header = export::header("gemm", &entries).unwrap();
    std::fs::write(directory.path().join("gemm_tuned.h"), &header).unwrap();
    for (compiler, name) in [(C11, "launched.c"), (CPP17, "launched.cpp")] {
        if let Err(message) = compile(directory.path(), compiler, name, LAUNCHED) {
            panic!("{message}\n{header}");
        }
        let status = Command::new(directory.path().join("program")).status();
        assert_eq!(status.unwrap().code(), Some(0), "{name}\n{header}");
    }
}

#[tokio::test]
async fn every_wrong_value_fails_to_compile() {
    let directory = tempfile::tempdir().unwrap();
    let header = export::header("gemm", &example().await).unwrap();
    let main = "\nint main(void) { return 0; }\n";
    for (right, wrong) in [
        // A value that breaks a rule of the space.
        (
            "#define TILE GEMM_TUNED_OF(64,",
            "#define TILE GEMM_TUNED_OF(63,",
        ),
        // The device has less memory than the tile needs.
        ("<= 232448 ", "<= 4096 "),
    ] {
        assert!(header.contains(right), "{right}\n{header}");
        let edited = header.replace(right, wrong) + main;
        for (compiler, name) in [(C11, "wrong.c"), (CPP17, "wrong.cpp")] {
            let compiler: Vec<&str> = compiler
                .iter()
                .copied()
                .chain(["-DGEMM_TUNED_ENTRY=0"])
                .collect();
            let Err(message) = compile(directory.path(), &compiler, name, &edited) else {
                panic!("{wrong} compiled:\n{edited}");
            };
            assert!(message.contains("static assertion failed"), "{message}");
        }
    }
}

#[tokio::test]
async fn the_header_is_the_same_to_the_byte_for_the_same_rows() {
    let (one, two) = (dated(example().await), dated(example().await));
    let header = export::header("gemm", &one).unwrap();
    assert_eq!(header, export::header("gemm", &two).unwrap());
    insta::assert_snapshot!(header);
}

#[tokio::test]
async fn a_predicted_header_says_so_in_its_first_line() {
    let start = start(DeviceKind::Vgpu);
    let entries = entries_of(&[(start, &[(32, 1.0)])]).await;
    let header = export::header("gemm", &entries).unwrap();
    let first = header.lines().next().unwrap();
    assert!(first.contains("PREDICTED"), "{first}");
}

#[tokio::test]
async fn odd_names_and_values_still_compile() {
    let mut start = start(DeviceKind::Cuda);
    start.device.name = "\"*/ odd?\\ (device)".to_owned();
    let task = &mut start.tasks[0];
    task.kernel = "2d-stencil+".to_owned();
    task.sizes
        .push(("LAYOUT".to_owned(), Value::Text("row".into())));
    task.sizes.push(("scale".to_owned(), Value::Float(0.5)));
    let mut add = |name: &str, value: Value| {
        task.definition.parameters.push(ParameterDefinition {
            name: name.to_owned(),
            values: vec![value],
            default: None,
            doc: String::new(),
        });
    };
    add("VECTOR", Value::Text("float4".into()));
    add("UNROLL", Value::Bool(true));
    add("int_", Value::Int(1 << 40));
    add("RATIO", Value::Float(2.0));
    let mut entries = entries_of(&[(start.clone(), &[(32, 1.0)])]).await;
    for parameter in &start.tasks[0].definition.parameters[2..] {
        let value = (parameter.name.clone(), parameter.values[0].clone());
        entries[0].best.config.push(value);
    }
    let header = export::header("2d-stencil+", &entries).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let source = header
        + "int main(void) { return k2d_stencil_tuned_lookup(\"x\", 1, \"row\", 0.5) != 0; }\n";
    for (compiler, name) in [(C11, "odd.c"), (CPP17, "odd.cpp")] {
        if let Err(message) = compile(directory.path(), compiler, name, &source) {
            panic!("{message}\n{source}");
        }
    }
}

/// What NVRTC makes of the header and a kernel that uses it; `None` where NVRTC is absent.
pub(crate) fn nvrtc(header: &str, kernel: &str, define: &str) -> Option<CompileOutcome> {
    let settings = CompilerSettings {
        isolation: Isolation::Workers {
            program: env!("CARGO_BIN_EXE_tuner").into(),
        },
        ..CompilerSettings::default()
    };
    let compiler = Compiler::new(settings).ok()?;
    let text = format!("{header}\n{kernel}");
    let template = Template::new("kernel.cu", text.as_str(), Vec::new(), Vec::new());
    let options: Vec<String> = define.split(' ').map(str::to_owned).collect();
    let launch = PlanLaunch::new("copy", [1; 3], [1; 3], Vec::new());
    let source = render(&template, &[], &options, &[launch], "sm_90");
    Some(compiler.compile(&source).unwrap())
}

#[tokio::test]
async fn nvrtc_takes_the_header_and_refuses_a_wrong_value() {
    let header = export::header("gemm", &example().await).unwrap();
    let chosen = "static_assert(TILE == 128, \"the target's define\");\n\
        extern \"C\" __global__ void copy(float *o) {\n\
        \x20 __shared__ float t[TILE];\n\
        \x20 t[threadIdx.x % TILE] = gemm_tuned_valid(256, 0);\n\
        \x20 o[threadIdx.x] = t[threadIdx.x % TILE];\n\
        }\n";
    let table = "static_assert(gemm_tuned_lookup(\"NVIDIA H200\", 300, 0)->config.tile == 32, \"lookup\");\n\
        extern \"C\" __global__ void copy(float *o) {\n\
        \x20 constexpr int tile = gemm_tuned_table[0].config.tile;\n\
        \x20 o[threadIdx.x] = tile;\n\
        }\n";
    let define = "-DGEMM_TUNED_MACROS -DTARGET_NVIDIA_A100_PCIE_40GB";
    let Some(outcome) = nvrtc(&header, chosen, define) else {
        eprintln!("skipped: no NVRTC");
        return;
    };
    assert!(outcome.is_ok(), "{outcome:?}");
    let outcome = nvrtc(&header, table, "-DUNUSED").unwrap();
    assert!(outcome.is_ok(), "{outcome:?}");
    let wrong = header.replace(", 128)", ", 100)");
    let chosen = chosen.replace("TILE == 128", "TILE == 100");
    let failed = nvrtc(&wrong, &chosen, "-DGEMM_TUNED_ENTRY=0 -DTILE_CHECK").unwrap();
    assert!(failed.is_err(), "{failed:?}");
}

#[tokio::test]
async fn keywords_of_any_language_are_renamed_or_refused() {
    let words = "xor and_eq typeof static_assert constexpr concept co_await char8_t lambda is None \
                 linux errno final";
    for word in words.split_whitespace() {
        let mut start = start(DeviceKind::Cuda);
        start.tasks[0].kernel = word.to_owned();
        start.tasks[0].definition.parameters[1].name = word.to_ascii_uppercase();
        start.tasks[0].definition.constraints.clear();
        start.tasks[0].definition.derived.clear();
        let mut entries = entries_of(&[(start, &[(32, 1.0)])]).await;
        entries[0].best.config[1].0 = word.to_ascii_uppercase();
        entries[0].sizes[0].0 = format!("{}_", word.to_ascii_uppercase());
        let header = export::header(word, &entries).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let source = format!("#include <errno.h>\n{header}int main(void) {{ return 0; }}\n");
        for (compiler, name) in [
            (&["gcc", "-std=gnu11"][..], "word.c"),
            (&["g++", "-std=c++20"][..], "word.cpp"),
        ] {
            if let Err(message) = compile(directory.path(), compiler, name, &source) {
                panic!("{word}: {message}\n{source}");
            }
        }
        // As the macro itself, a keyword of C or C++ is refused.
        entries[0].best.config[1].0 = word.to_owned();
        let header = export::header(word, &entries);
        let allowed = ["lambda", "is", "None", "linux", "errno", "final"].contains(&word);
        assert_eq!(header.is_ok(), allowed, "{word}");
    }
}

const LIMITED: &str = r#"
#include "gemm_tuned.h"
static int runs(long long x, long long y, long long z, long long threads) {
  const gemm_tuned_launch launch = gemm_tuned_launch_gemm(&gemm_tuned_table[0], x, y, z, threads);
  return launch.runs;
}
int main(void) {
  if (!runs(2147483647, 65535, 65535, 1024)) return 1;
  if (runs(2147483648LL, 1, 1, 32)) return 2;
  if (runs(1, 65536, 1, 32)) return 3;
  if (runs(1, 1, 65536, 32)) return 4;
  if (runs(1, 1, 1, 1025)) return 5;
  if (runs(0, 1, 1, 32)) return 6;
  /* 8 bytes a thread, of 4096. */
  return runs(1, 1, 1, 513) ? 7 : 0;
}
"#;

#[tokio::test]
async fn a_launch_that_cuda_refuses_does_not_run() {
    let mut start = start(DeviceKind::Cuda);
    let sizes = ["X", "Y", "Z", "THREADS"].map(|name| (name.to_owned(), Value::Int(16)));
    start.tasks[0].sizes = sizes.to_vec();
    start.device.environment = vec![("DEVICE_SHARED_BYTES".to_owned(), Value::Int(8192))];
    start.tasks[0].definition.constraints.clear();
    start.tasks[0].definition.launches = vec![LaunchDefinition {
        entry: "gemm".to_owned(),
        when: None,
        grid: ["X", "Y", "Z"].map(str::to_owned),
        block: ["THREADS", "1", "1"].map(str::to_owned),
        shared: "8 * THREADS".to_owned(),
        cluster: None,
    }];
    let mut entries = entries_of(&[(start, &[(32, 1.0)])]).await;
    let directory = tempfile::tempdir().unwrap();
    for (most, expected) in [(8192, 7), (4096, 1)] {
        entries[0].environment[0].1 = Value::Int(most);
        let header = export::header("gemm", &entries).unwrap();
        std::fs::write(directory.path().join("gemm_tuned.h"), &header).unwrap();
        for (compiler, name) in [(C11, "limited.c"), (CPP17, "limited.cpp")] {
            if let Err(message) = compile(directory.path(), compiler, name, LIMITED) {
                panic!("{message}\n{header}");
            }
            let status = Command::new(directory.path().join("program")).status();
            assert_eq!(status.unwrap().code(), Some(expected), "{name}\n{header}");
        }
    }
}
