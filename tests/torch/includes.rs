//! Include files of exported source: each export that holds the source compiles without the template's folder.

use crate::program::{Ended, ended, folder, root, tuner, write};
use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tuner_kernel::compile::{Nvrtc, Surroundings};
use tuner_report::export::launched_source;

/// Compiles the first variant as a launch does, but for the GPU, and prints its entries' symbols.
const COMPILE: &str = r#"
import importlib.util, json, sys, types
class Stub(types.ModuleType):
    def __getattr__(self, name):
        return name
sys.modules["torch"] = Stub("torch")
spec = importlib.util.spec_from_file_location("runtime", sys.argv[1] + "/_runtime.py")
runtime = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runtime)
kernel = runtime.Kernel(json.load(open(sys.argv[1] + "/kernel.json")))
variant = kernel.variants[0]
source = kernel.rendered(kernel.names(variant, variant.sizes), variant)
entries = [one["entry"] for one in kernel.launches]
own = runtime.compile_options(kernel, variant.config)
cubin, symbols = runtime.compiled_for("sm_80", lambda target: runtime.compile_cubin(kernel, source, target, entries, own))
assert cubin[:4] == b"\x7fELF"
print(json.dumps(symbols))
"#;

const SPACE: &str = r#"version: 1
kernel: scale
summary: y = 2.5 x
source: ../templates/scale/kernel.cu
problems:
  main: { N: 4096 }
parameters:
  BLOCK: { values: [64, 128], default: 64 }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { uniform: { min: 0, max: 1 } } }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: "scale<BLOCK>", grid: ["ceil_div(N, BLOCK)"], block: [BLOCK] }
reference: { source: ../templates/scale/reference.cu, entry: reference, grid: ["ceil_div(N, 256)"], block: [256] }
"#;

/// Files of one template: nested, relative and macro includes, two files of one base name, a header of the
/// host compiler and one of CUDA.
const FILES: [(&str, &str); 8] = [
    (
        "scale/kernel.cu",
        "#include <cuda_fp16.h>\n#include <cstdint>\n\
         #include \"warp/part.cuh\"\n#include \"block/part.cuh\"\n\
         #define STORE \"store.inc\"\n\
         template <int THREADS> __global__ void scale(const float* x, float* y) {\n\
         \x20   const uint32_t i = blockIdx.x * THREADS + threadIdx.x;\n\
         \x20   if (i >= N) return;\n\
         #include STORE\n}\n",
    ),
    ("scale/store.inc", "y[i] = warp_part(block_part(x[i]));\n"),
    (
        "scale/warp/part.cuh",
        "#pragma once\n// Escapes stay: \\012 \\\\012 \\n\n#include \"../factor.cuh\"\n#include \"deep/half.cuh\"\n\
         __device__ float warp_part(float x) { return deep_half(x) * FACTOR; }\n",
    ),
    (
        "scale/warp/deep/half.cuh",
        "#pragma once\n#include \"../../../shared/types.cuh\"\n\
         __device__ real deep_half(real x) { return 0.5f * x; }\n",
    ),
    (
        "scale/block/part.cuh",
        "#pragma once\n__device__ float block_part(float x) { return x + __half2float(__float2half(0.f)); }\n",
    ),
    ("scale/factor.cuh", "#pragma once\n#define FACTOR 5.0f\n"),
    ("shared/types.cuh", "#pragma once\ntypedef float real;\n"),
    (
        "scale/reference.cu",
        "extern \"C\" __global__ void reference(const float* x, float* y) {\n\
         \x20   int i = blockIdx.x * 256 + threadIdx.x;\n    if (i < N) y[i] = 2.5f * x[i];\n}\n",
    ),
];

/// Makes the project with this space and tunes it a little.
fn tuned(space: &str) -> TempDir {
    let at = folder(&[("search_spaces/scale.yaml", space)]);
    for (name, text) in FILES {
        write(at.path(), &format!("templates/{name}"), text);
    }
    let line = "run scale --evals 2 --device vgpu:a100 --db t.db";
    ended(tuner(at.path()).args(line.split(' '))).says(0, &[]);
    at
}

fn export(at: &Path, form: &str) -> Ended {
    let line = format!("export scale --allow-predicted --allow-uncompared --db t.db {form}");
    ended(tuner(at).args(line.split(' ')))
}

/// Compiles a package in another folder as its runtime does.
fn compile(package: &Path) -> Ended {
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let elsewhere = folder(&[("compile.py", COMPILE)]);
    let mut python = Command::new("python3");
    python
        .arg("compile.py")
        .arg(package)
        .current_dir(elsewhere.path())
        .env("PYTHONPATH", root().join("tests/data/nvrtc_by_ctypes"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NVRTC_LIBRARY", &nvrtc.library)
        .env("CUDA_HOME", nvrtc.include.as_ref().unwrap().join(".."));
    if let Some(builtins) = &nvrtc.builtins {
        python.env("NVRTC_BUILTINS", builtins);
    }
    ended(&mut python)
}

#[test]
fn exported_source_compiles_without_the_folder_of_the_template() {
    let at = tuned(SPACE);
    export(at.path(), "--torch -o package").says(0, &[]);
    export(at.path(), "--launcher cpp -o launch.h").says(0, &[]);
    std::fs::remove_dir_all(at.path().join("templates")).unwrap();

    let package = at.path().join("package/scale_torch");
    let compiled = compile(&package);
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    assert!(
        compiled.stdout.contains("scale<BLOCK>"),
        "{}",
        compiled.stdout
    );

    let launcher = std::fs::read_to_string(at.path().join("launch.h")).unwrap();
    let launcher = launched_source(&launcher).unwrap().unwrap();
    let data = std::fs::read_to_string(package.join("kernel.json")).unwrap();
    assert_eq!(launched_source(&data).unwrap(), Some(launcher.clone()));
    let names: Vec<&str> = launcher.headers.iter().map(|(name, _)| &**name).collect();
    // CUDA's own headers belong to the compiler.
    assert!(
        names.contains(&"stdint.h") && !names.contains(&"cuda_fp16.h"),
        "{names:?}"
    );
}

/// Chooses machine code of the package: a line of an architecture and `N` in, the file out.
const CHOOSE: &str = r#"
import importlib.util, json, pathlib, sys, types
class Stub(types.ModuleType):
    def __getattr__(self, name):
        return name
sys.modules["torch"] = Stub("torch")
package = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("runtime", package / "_runtime.py")
runtime = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runtime)
kernel = runtime.Kernel(json.loads((package / "kernel.json").read_text()))
variant = kernel.variants[0]
for arch, n in [("75", 4096), ("80", 4096), ("86", 4096), ("89", 4096), ("90", 4096), ("100", 4096), ("80", 8192)]:
    image = kernel.image(variant, kernel.names(variant, {"N": n}), arch)
    if image is not None:
        assert (package / image["file"]).read_bytes()[:4] == b"\x7fELF"
        assert b"scale" in image["symbols"]["scale<BLOCK>"].encode()
    print(arch, n, image and image["file"])
"#;

#[test]
fn machine_code_of_a_package_is_for_its_sizes_and_architectures() {
    let at = tuned(SPACE);
    export(
        at.path(),
        "--torch --embed cubin:sm_80,sm_86,sm_90a -o package",
    )
    .says(0, &[]);
    let elsewhere = folder(&[("choose.py", CHOOSE)]);
    let mut python = Command::new("python3");
    python
        .arg("choose.py")
        .arg(at.path().join("package/scale_torch"));
    let chosen = ended(python.current_dir(elsewhere.path()));
    assert_eq!(chosen.code, 0, "{}", chosen.stderr);
    // Other sizes are other macros, and code for 9.0a runs there only.
    assert_eq!(
        chosen.stdout,
        "75 4096 None\n80 4096 0_sm_80.cubin\n86 4096 0_sm_86.cubin\n89 4096 0_sm_86.cubin\n\
         90 4096 0_sm_90a.cubin\n100 4096 None\n80 8192 None\n"
    );
    for (form, why) in [
        ("--torch --embed ptx -o package", "machine code only"),
        (
            "--torch --embed cubin:sm_10 -o package",
            "has no target sm_10",
        ),
        ("--embed cubin:sm_80", "needs --launcher cpp or --torch"),
    ] {
        export(at.path(), form).says(2, &[why]);
    }
}

#[test]
fn a_missing_include_file_is_an_error_that_quotes_the_compiler() {
    let at = tuned(SPACE);
    export(at.path(), "--torch -o package").says(0, &[]);
    let package = at.path().join("package/scale_torch");
    let file = package.join("kernel.json");
    let data = std::fs::read_to_string(&file).unwrap();
    let mut data: Json = serde_json::from_str(&data).unwrap();
    let headers = data["torch"]["source"]["headers"].as_array_mut().unwrap();
    headers.retain(|header| header[0] != "../factor.cuh");
    std::fs::write(&file, data.to_string()).unwrap();
    let compiled = compile(&package);
    assert_eq!(compiled.code, 1, "{}", compiled.stdout);
    let why = "cannot open source file \"../factor.cuh\"";
    assert!(compiled.stderr.contains(why), "{}", compiled.stderr);
}

/// The project with two of its headers in a folder of `compile: include`, tuned a little.
fn tuned_with_folder(kernel: impl Fn(&str) -> String) -> TempDir {
    let space = SPACE.replace(
        "problems:\n",
        "compile: { include: [../headers] }\nproblems:\n",
    );
    let at = folder(&[("search_spaces/scale.yaml", &space)]);
    for (name, text) in FILES {
        let text = text.replace("#include \"block/part.cuh\"", "#include <block/part.cuh>");
        let (name, text) = match name {
            "scale/block/part.cuh" | "scale/store.inc" => {
                (name.replace("scale/", "headers/"), text)
            }
            "scale/kernel.cu" => (format!("templates/{name}"), kernel(&text)),
            name => (format!("templates/{name}"), text),
        };
        write(at.path(), &name, &text);
    }
    let line = "run scale --evals 2 --device vgpu:a100 --db t.db";
    ended(tuner(at.path()).args(line.split(' '))).says(0, &[]);
    at
}

#[test]
fn source_with_folders_of_headers_compiles_without_them() {
    let at = tuned_with_folder(str::to_owned);
    export(at.path(), "--torch -o package").says(0, &[]);
    export(at.path(), "--launcher cpp --embed cubin:sm_80 -o launch.h").says(0, &[]);
    for folder in ["templates", "headers"] {
        std::fs::remove_dir_all(at.path().join(folder)).unwrap();
    }
    let package = at.path().join("package/scale_torch");
    let compiled = compile(&package);
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    let launcher = std::fs::read_to_string(at.path().join("launch.h")).unwrap();
    let launcher = launched_source(&launcher).unwrap().unwrap();
    let names: Vec<&str> = launcher.headers.iter().map(|(name, _)| &**name).collect();
    assert!(names.contains(&"block/part.cuh"), "{names:?}");
}

#[test]
fn source_that_names_a_file_of_a_folder_by_an_undefined_macro_is_refused() {
    let at = tuned_with_folder(|text| {
        text.replace(
            "#include <cuda_fp16.h>\n",
            "#include <cuda_fp16.h>\n#if 0\n#include ELSEWHERE\n#endif\n",
        )
    });
    for (form, option) in [
        ("--torch -o package", "--torch: "),
        ("--launcher cpp -o launch.h", "--launcher: "),
    ] {
        export(at.path(), form).says(2, &[option, "`#include ELSEWHERE`"]);
    }
    // The header holds no source.
    export(at.path(), "-o tuned.h").says(0, &[]);
}
