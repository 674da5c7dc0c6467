//! Launchers of `export`, compiled and run on the virtual device.

use super::text;
use crate::program::tuner;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tuner_core::value::Value;
use tuner_device::limits;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Nvrtc, Surroundings};
use tuner_report::export;
use tuner_report::export::Shipped;
use tuner_space::{Config, Problem};

/// Shapes for each kernel.
const SHAPES: u64 = 200;

struct Case {
    kernel: &'static str,
    /// Problems in the place of the quick space's.
    problems: &'static str,
    embed: &'static [&'static str],
    /// Sizes of a shape, by their names.
    shape: fn(&mut dyn FnMut(u64) -> i64) -> Vec<i64>,
}

const CASES: [Case; 3] = [
    Case {
        kernel: "gemm_f16",
        problems: "{ M: 256, N: 256, K: 256 }\n  thin: { M: 16, N: 128, K: 64 }",
        embed: &["--embed", "cubin:sm_80,ptx"],
        shape: |next| vec![1 + next(70), 1 + next(70), 1 + next(50)],
    },
    Case {
        kernel: "softmax",
        problems: "{ R: 64, N: 1024 }\n  wide: { R: 4, N: 4096 }",
        embed: &[],
        shape: |next| {
            vec![
                1 + next(3),
                [8, 33, 70, 128, 333, 512, 1000][next(7) as usize],
            ]
        },
    },
    Case {
        kernel: "attention_f16",
        problems: "{ B: 1, H: 4, S: 256, T: 256, D: 64, CAUSAL: 0 }\n  deep: { B: 1, H: 1, S: 64, T: 64, D: 128, CAUSAL: 0 }",
        embed: &["--embed", "ptx"],
        shape: |next| {
            let keys = [32, 64, 128, 17, 90][next(5) as usize];
            vec![1, 1 + next(2), 1 + next(40), keys, 64 * (1 + next(2)), 0]
        },
    },
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Tunes a quick space with other problems in a folder, and exports its launcher.
fn launcher(folder: &Path, case: &Case) -> PathBuf {
    let space = project(folder, case);
    tuned(folder, case, &space, "vgpu:a100")
}

/// Copies the template and the quick space of a kernel, with other problems.
fn project(folder: &Path, case: &Case) -> PathBuf {
    let kernel = case.kernel;
    let spaces = folder.join("search_spaces");
    let templates = folder.join("templates").join(kernel);
    std::fs::create_dir_all(&spaces).unwrap();
    std::fs::create_dir_all(&templates).unwrap();
    for file in std::fs::read_dir(root().join("templates").join(kernel)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), templates.join(file.file_name())).unwrap();
    }
    let shared = "templates/wgmma.cuh";
    std::fs::copy(root().join(shared), folder.join(shared)).unwrap();
    let file = root().join(format!("search_spaces/{kernel}.quick.yaml"));
    let content = std::fs::read_to_string(file).unwrap();
    let (before, rest) = content.split_once("  small: ").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    let space = spaces.join(format!("{kernel}.yaml"));
    std::fs::write(
        &space,
        format!("{before}  small: {}\n{after}", case.problems),
    )
    .unwrap();
    space
}

/// Tunes a space and exports its launcher.
fn tuned(folder: &Path, case: &Case, space: &Path, device: &str) -> PathBuf {
    let header = folder.join(format!("{}_launch.h", case.kernel));
    let output = tuner(folder)
        .args(["run", "--evals", "10", "--device", device, "--db", "t.db"])
        .arg(space)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = tuner(folder)
        .args([
            "export",
            "--launcher",
            "cpp",
            "--allow-predicted",
            "--allow-uncompared",
        ])
        .args(["--db", "t.db"])
        .args(case.embed)
        .arg("-o")
        .args([&*header, space])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    header
}

/// What the tuner does with a shape: the nearest valid entry (the number of entries for the default
/// configuration), with grid, block and shared memory; `None` where nothing is valid.
struct Tuner {
    kernel: Kernel,
    entries: Vec<Shipped>,
}

impl Tuner {
    fn line(&self, sizes: &[(String, Value)]) -> Option<String> {
        let spec = &self.kernel.spec;
        let mut best: Option<(f64, usize, Config)> = None;
        for (at, entry) in self.entries.iter().enumerate() {
            let own = &spec.problem(&entry.problem).unwrap().sizes;
            let pairs = own.iter().zip(sizes);
            let numbers = pairs
                .map(|((_, own), (_, asked))| (own.as_f64().unwrap(), asked.as_f64().unwrap()));
            let distance: f64 = numbers
                .filter(|(own, _)| *own > 0.0)
                .map(|(own, asked)| (own / asked).max(asked / own))
                .product();
            let Some(config) = self.valid(&entry.config, sizes) else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|(nearest, ..)| distance < *nearest)
            {
                best = Some((distance, at, config));
            }
        }
        let (at, config) = match best {
            Some((_, at, config)) => (at, config),
            None => {
                let config = spec.default_config();
                let values: Vec<(String, Value)> = spec
                    .parameters
                    .iter()
                    .zip(config.choices())
                    .map(|(p, choice)| (p.name.clone(), p.values[*choice as usize].clone()))
                    .collect();
                (self.entries.len(), self.valid(&values, sizes)?)
            }
        };
        let bound = self.with(sizes, |binder| binder.bind(&config).unwrap());
        let launch = &bound.launches[0];
        let mut line = format!("right {at}");
        for extent in launch
            .grid
            .iter()
            .chain(&launch.block)
            .chain([&launch.shared_bytes])
        {
            let _ = write!(line, " {extent}");
        }
        Some(line)
    }

    fn with<T>(&self, sizes: &[(String, Value)], run: impl Fn(&tuner_space::Binder) -> T) -> T {
        let mut spec = self.kernel.spec.clone();
        spec.check_problems = vec![Problem {
            name: "asked".to_owned(),
            sizes: sizes.to_vec(),
            weight: None,
        }];
        let limits = limits::by_name("a100").unwrap();
        run(&spec.binder("asked", &limits).unwrap())
    }

    fn valid(&self, values: &[(String, Value)], sizes: &[(String, Value)]) -> Option<Config> {
        let mut spec = self.kernel.spec.clone();
        spec.constraints.clear();
        let limits = limits::by_name("a100").unwrap();
        let space = spec.space(&spec.problems[0].name, &limits).unwrap();
        let config = space.config_from_values(values).unwrap();
        self.with(sizes, |binder| binder.holds(&config))
            .then_some(config)
    }
}

/// Returns nvcc: that of the environment, of `scripts/get-nvcc`, or of the path.
pub(super) fn nvcc() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let named = std::env::var_os("TUNER_NVCC").map(PathBuf::from);
    let nvcc = named.unwrap_or_else(|| data.unwrap().join("tuner/nvcc/nvidia/cu13/bin/nvcc"));
    if nvcc.is_file() {
        nvcc
    } else {
        PathBuf::from("nvcc")
    }
}

/// Compiles the program of a kernel.
fn program(folder: &Path, kernel: &str, defines: &[&str]) -> PathBuf {
    let nvcc = nvcc();
    let binary = folder.join(kernel);
    let source = root().join(format!("tests/exec/launcher/{kernel}.cu"));
    let output = Command::new(&nvcc)
        .args(["-std=c++17", "-cudart", "shared", "-arch=sm_80", "-O1"])
        .args(["-Xcompiler", "-Wall,-Wextra,-Werror", "-I"])
        .arg(folder)
        .arg("-I")
        .arg(root().join("tests/exec/launcher"))
        .args(defines)
        .arg("-L")
        .arg(nvcc.with_file_name("").join("../lib"))
        .arg("-o")
        .args([&binary, &source])
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    binary
}

/// Runs a program on a virtual device with shapes as its input.
fn run(folder: &Path, case: &Case, device: &str, program: &Path, shapes: &str) -> Vec<String> {
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let mut child = tuner(folder)
        .args(["exec", "--device", device, "--"])
        .arg(program)
        .env(
            format!("{}_NVRTC", case.kernel.to_ascii_uppercase()),
            &nvrtc.library,
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(shapes.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn launchers_do_what_the_tuner_does() {
    for case in &CASES {
        let folder = tempfile::tempdir().unwrap();
        let header = launcher(folder.path(), case);
        let text = std::fs::read_to_string(&header).unwrap();
        let path = folder
            .path()
            .join(format!("search_spaces/{}.yaml", case.kernel));
        let tuner = Tuner {
            kernel: Kernel::load_in(&path, folder.path()).unwrap(),
            entries: export::read_shipped(&text, "header").unwrap(),
        };
        let names: Vec<String> = {
            let sizes = &tuner.kernel.spec.problems[0].sizes;
            sizes.iter().map(|(name, _)| name.clone()).collect()
        };
        let mut state: u64 = 7;
        let mut next = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % most) as i64
        };
        let (mut shapes, mut expected) = (String::new(), Vec::new());
        for _ in 0..SHAPES {
            let sizes = (case.shape)(&mut next);
            let line: Vec<String> = sizes.iter().map(i64::to_string).collect();
            let _ = writeln!(shapes, "{}", line.join(" "));
            let sizes = names.iter().cloned().zip(sizes.into_iter().map(Value::Int));
            expected.push(tuner.line(&sizes.collect::<Vec<_>>()));
        }
        let all = format!("-D{}_CHECKED_ONLY=0", case.kernel.to_ascii_uppercase());
        let binary = program(folder.path(), case.kernel, &[&all]);
        let found = run(folder.path(), case, "vgpu:a100", &binary, &shapes);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((found, expected), shape) in found.iter().zip(&expected).zip(shapes.lines()) {
            match expected {
                Some(expected) => assert_eq!(found, expected, "{} {shape}", case.kernel),
                None => assert!(
                    found.starts_with("refused"),
                    "{} {shape}: {found}",
                    case.kernel
                ),
            }
        }
        let right = expected.iter().flatten().count();
        assert!(
            right * 2 > expected.len(),
            "{}: {right} launched",
            case.kernel
        );
    }
}

/// Replaces a text that occurs once in a file.
fn replace(file: &Path, from: &str, to: &str) {
    let content = std::fs::read_to_string(file).unwrap();
    assert_eq!(content.matches(from).count(), 1, "{from}");
    std::fs::write(file, content.replace(from, to)).unwrap();
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_launcher_compiles_wgmma_for_the_target_that_has_it() {
    let case = Case {
        embed: &[],
        ..CASES[0]
    };
    let folder = tempfile::tempdir().unwrap();
    let space = project(folder.path(), &case);
    let template = folder.path().join("templates/gemm_f16/kernel.cu");
    replace(&template, "#define CORE 0 ", "#define CORE 1 ");
    replace(&space, "THREADS: \"32 *", "THREADS: \"128 *");
    replace(&space, "WM: { values: [32, 64]", "WM: { values: [64]");
    tuned(folder.path(), &case, &space, "vgpu:h100");
    let binary = program(folder.path(), case.kernel, &["-DGEMM_F16_CHECKED_ONLY=0"]);
    let shapes = "100 72 40\n65 33 17\n";
    let found = run(folder.path(), &case, "vgpu:h100", &binary, shapes);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().all(|line| line.starts_with("right")),
        "{found:?}"
    );
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn shapes_that_the_gate_has_not_checked_are_refused() {
    let case = &CASES[2];
    let folder = tempfile::tempdir().unwrap();
    launcher(folder.path(), case);
    let binary = program(folder.path(), case.kernel, &[]);
    // Another depth of heads, another flag, no rows.
    let shapes = "1 1 16 64 96 0\n1 1 16 64 64 1\n1 1 0 64 64 0\n1 1 16 64 64 0\n";
    let found = run(folder.path(), case, "vgpu:a100", &binary, shapes);
    for line in &found[..3] {
        assert!(
            line.starts_with("refused 1 no configuration was tuned and checked for B 1"),
            "{found:?}"
        );
    }
    assert!(found[3].starts_with("right"), "{found:?}");
    let other = run(
        folder.path(),
        case,
        "vgpu:h100",
        &binary,
        "1 1 16 64 64 0\n",
    );
    assert!(
        other[0].starts_with("refused 209 no entry was tuned for"),
        "{other:?}"
    );
}

/// Compiles a launcher as C and C++ with all warnings, for both interfaces of CUDA.
fn compile_all(compilers: &[(&[&str], &str)]) {
    let folder = tempfile::tempdir().unwrap();
    launcher(folder.path(), &CASES[0]);
    let source = "#include \"gemm_f16_launch.h\"\nint main(void) { return 0; }\n";
    for (compiler, name) in compilers {
        for variant in ["-DRUNTIME", "-DGEMM_F16_DRIVER_API"] {
            std::fs::write(folder.path().join(name), source).unwrap();
            let output = Command::new(compiler[0])
                .args(&compiler[1..])
                .args([
                    "-Wall",
                    "-Wextra",
                    "-Wpedantic",
                    "-Werror",
                    "-fsyntax-only",
                    variant,
                ])
                .arg("-isystem")
                .arg(nvcc().with_file_name("").join("../include"))
                .arg(folder.path().join(name))
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}

#[test]
#[cfg_attr(
    not(nvcc),
    ignore = "the CUDA headers of nvcc are not installed (scripts/get-nvcc)"
)]
fn a_launcher_compiles_with_every_warning_of_gcc() {
    compile_all(&[
        (&["gcc", "-std=c11"], "use.c"),
        (
            &["g++", "-std=c++17", "-DGEMM_F16_IMPLEMENTATION"],
            "use.cpp",
        ),
    ]);
}

#[test]
#[cfg_attr(
    not(all(nvcc, clang)),
    ignore = "clang++ or the CUDA headers of nvcc are not installed"
)]
fn a_launcher_compiles_with_every_warning_of_clang() {
    compile_all(&[(
        &["clang++", "-std=c++17", "-DGEMM_F16_IMPLEMENTATION"],
        "use.cpp",
    )]);
}
