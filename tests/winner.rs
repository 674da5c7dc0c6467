//! The page `docs/how-to/use-the-winner.md`: each of its programs is compiled, and run where it can be.

use crate::program::{ended, root, toolkit, tuner};
use std::path::Path;
use std::process::Command;
use tuner_kernel::compile::{Nvrtc, Surroundings};

/// Returns the code of a section.
fn code(section: &str) -> String {
    let page = root().join("docs/how-to/use-the-winner.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap();
    let (_, rest) = rest.split_once("\n```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Tunes softmax a little and exports it in the three forms of the page.
fn exported() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let space = root().join("search_spaces/softmax.quick.yaml");
    let run = "run --evals 4 --device vgpu:a100 --db t.db";
    ended(tuner(at).args(run.split(' ')).arg(&space)).says(0, &[]);
    for form in [
        "--launcher cpp -o softmax_launch.h",
        "--torch -o softmax_pytorch",
        "--launcher cpp -o softmax_launch/",
        "--to json -o softmax.json",
    ] {
        let export = format!("export --allow-predicted --allow-uncompared --db t.db {form}");
        ended(tuner(at).args(export.split(' ')).arg(&space)).says(0, &[]);
    }
    folder
}

#[test]
fn every_example_has_at_most_ten_lines_of_code() {
    for section in ["nvcc", "CMake", "Driver API", "PyTorch", "CuPy"] {
        let lines = code(section)
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count();
        assert!(lines <= 10, "{section}: {lines}");
    }
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let ended = ended(command);
    assert_eq!(
        ended.code, 0,
        "{command:?}\n{}\n{}",
        ended.stdout, ended.stderr
    );
    ended.stdout + &ended.stderr
}

/// Runs a program on the virtual device; it must launch softmax.
fn launches(at: &Path, program: &str) {
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let mut exec = tuner(at);
    exec.args(["exec", "--device", "vgpu:a100", "--", program]);
    let said = succeeds(exec.env("SOFTMAX_NVRTC", &nvrtc.library));
    assert!(said.contains("softmax"), "{said}");
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn the_program_for_nvcc_launches_the_kernel() {
    let folder = exported();
    let at = folder.path();
    std::fs::write(at.join("main.cu"), code("nvcc")).unwrap();
    let mut nvcc = Command::new(toolkit().join("bin/nvcc"));
    nvcc.args("-std=c++17 -cudart shared -arch=sm_80 main.cu -o main".split(' '));
    nvcc.arg("-L").arg(toolkit().join("lib")).arg("-ldl");
    succeeds(nvcc.current_dir(at));
    launches(at, "./main");
}

/// nvcc, other than NVRTC, does not replace macros in a `#pragma unroll`.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn the_templates_compile_with_nvcc() {
    let folder = tempfile::tempdir().unwrap();
    for (kernel, core) in [
        ("attention_f16", 2),
        ("attention_f16", 3),
        ("attention_f8", 0),
        ("conv2d_f32", 0),
        ("gemm_f16", 0),
        ("gemm_f16", 1),
        ("gemm_f16", 3),
        ("gemm_f32", 0),
        ("layernorm", 0),
        ("reduce_sum", 0),
        ("softmax", 0),
    ] {
        let mut nvcc = Command::new(toolkit().join("bin/nvcc"));
        nvcc.args("-std=c++17 -cubin -o kernel.cubin".split(' '));
        nvcc.arg(match (kernel, core) {
            ("gemm_f16", 3) => "-arch=sm_100a",
            _ => "-arch=sm_90a",
        });
        nvcc.arg(format!("-DCORE={core}"));
        nvcc.arg(root().join(format!("templates/{kernel}/kernel.cu")));
        succeeds(nvcc.current_dir(folder.path()));
    }
}

#[test]
#[cfg_attr(
    not(nvcc),
    ignore = "the CUDA headers of nvcc are not installed (scripts/get-nvcc)"
)]
fn the_program_for_the_driver_launches_the_kernel() {
    let folder = exported();
    let at = folder.path();
    std::fs::write(at.join("main.cpp"), code("Driver API")).unwrap();
    let mut compile = Command::new("g++");
    compile.args("-std=c++17 -c main.cpp -o main.o -isystem".split(' '));
    succeeds(compile.arg(toolkit().join("include")).current_dir(at));
    // The linker needs the names of the driver, which is not here.
    let needed = succeeds(Command::new("nm").args(["-u", "main.o"]).current_dir(at));
    let names = needed
        .split_whitespace()
        .filter(|name| name.starts_with("cu"));
    let stub: String = names
        .map(|name| format!("int {name}(void) {{ return 999; }}\n"))
        .collect();
    std::fs::write(at.join("stub.c"), stub).unwrap();
    let library = "-shared -fPIC -Wl,-soname,libcuda.so.1 stub.c -o libcuda.so";
    succeeds(Command::new("gcc").args(library.split(' ')).current_dir(at));
    let link = "main.o -o main -L. -lcuda -ldl";
    succeeds(Command::new("g++").args(link.split(' ')).current_dir(at));
    launches(at, "./main");
}

#[test]
#[cfg_attr(
    not(all(nvcc, cmake)),
    ignore = "cmake or the CUDA headers of nvcc are not installed"
)]
fn the_target_for_cmake_builds() {
    let folder = exported();
    let at = folder.path();
    std::fs::write(at.join("main.cpp"), code("Driver API")).unwrap();
    std::fs::write(at.join("CMakeLists.txt"), code("CMake")).unwrap();
    // The program must find the header in the exported folder.
    std::fs::remove_file(at.join("softmax_launch.h")).unwrap();
    let mut configure = Command::new("cmake");
    configure
        .args(["-S", ".", "-B", "build"])
        .env("CMAKE_PREFIX_PATH", toolkit());
    succeeds(configure.current_dir(at));
    succeeds(
        Command::new("cmake")
            .args(["--build", "build"])
            .current_dir(at),
    );
}

#[test]
#[cfg_attr(not(torch), ignore = "PyTorch is not installed (scripts/get-torch)")]
fn the_program_for_pytorch_computes_a_softmax() {
    let folder = exported();
    let at = folder.path();
    let mut python = Command::new(crate::torch::python());
    python.arg("-c").arg(code("PyTorch"));
    succeeds(
        python
            .env("PYTHONPATH", at.join("softmax_pytorch"))
            .current_dir(at),
    );
}

/// CuPy as the program uses it: keeps what is compiled and launched.
const CUPY: &str = r#"
import json
float16 = "float16"
class Array:
    def __init__(self, shape, dtype): self.shape, self.dtype = shape, dtype
zeros = empty = Array
class RawModule:
    def __init__(self, code, options): self.code, self.options = code, options
    def get_function(self, name):
        def launch(grid, block, args):
            launched = {"name": name, "grid": grid, "block": block, "args": len(args), "options": self.options}
            json.dump(launched, open("launched.json", "w"))
            open("kernel.cu", "w").write(self.code)
        return launch
"#;

#[test]
fn the_program_for_cupy_compiles_and_launches_the_kernel() {
    use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation, Template, render};
    let folder = exported();
    let at = folder.path();
    std::fs::write(at.join("cupy.py"), CUPY).unwrap();
    let templates = at.join("templates/softmax");
    std::fs::create_dir_all(&templates).unwrap();
    std::fs::copy(
        root().join("templates/softmax/kernel.cu"),
        templates.join("kernel.cu"),
    )
    .unwrap();
    succeeds(
        Command::new("python3")
            .arg("-c")
            .arg(code("CuPy"))
            .current_dir(at),
    );
    let launched = std::fs::read_to_string(at.join("launched.json")).unwrap();
    let launched: serde_json::Value = serde_json::from_str(&launched).unwrap();
    assert_eq!(
        (&launched["name"], &launched["args"]),
        (&"softmax".into(), &2.into())
    );
    let best = std::fs::read_to_string(at.join("softmax.json")).unwrap();
    let best: serde_json::Value = serde_json::from_str(&best).unwrap();
    let config = &best["entries"][0]["config"];
    assert_eq!(launched["block"][0], config["THREADS"]);
    let rows = config["ROWS"].as_u64().unwrap();
    assert_eq!(launched["grid"][0], 64_u64.div_ceil(rows));
    // NVRTC takes the source with these options.
    let text = std::fs::read_to_string(at.join("kernel.cu")).unwrap();
    let template = Template::new("kernel.cu", &text, Vec::new(), Vec::new());
    let options = launched["options"].as_array().unwrap().iter();
    let options = options.map(|option| option.as_str().unwrap().to_owned());
    let options: Vec<String> = options.filter(|option| option.starts_with("-D")).collect();
    let mut settings = CompilerSettings::with_jobs(1);
    settings.isolation = Isolation::InProcess;
    let compiler = Compiler::new(settings).unwrap();
    let source = render(&template, &[], &options, &[], "sm_80");
    let compiled = compiler.compile(&source).unwrap();
    assert!(compiled.is_ok(), "{:?}", compiled.err());
}
