//! Tensor maps as arguments (docs/arguments.md): passed to kernels on the virtual GPU and by a driver, and
//! every limit and mistake with its message.

mod exports;

use crate::program::{ended, replace, root, toolkit, tuner, with_gpu};
use std::path::Path;
use std::process::Command;
use tuner_kernel::compile::{Nvrtc, Surroundings};

/// A kernel whose tiles come in and go out by tensor maps, with a search space.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in ["kernel.cu", "reference.cu", "space.yaml"] {
        let from = root().join("tests/tensor_maps").join(file);
        std::fs::copy(from, folder.path().join(file)).expect("the file is copied");
    }
    folder
}

/// A kernel that copies columns of pixels, with a search space, a program and a probe of its exports.
fn columns() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (from, to) = (root().join("tests/tensor_maps"), folder.path());
    std::fs::create_dir(to.join("columns")).expect("the folder is made");
    for (file, place) in [
        ("columns/kernel.cu", "columns/kernel.cu"),
        ("columns/reference.cu", "columns/reference.cu"),
        ("columns/space.yaml", "space.yaml"),
        ("columns/main.cu", "main.cu"),
        ("columns/probe.py", "probe.py"),
        ("stub.py", "stub.py"),
    ] {
        std::fs::copy(from.join(file), to.join(place)).expect("the file is copied");
    }
    folder
}

fn check(mut tuner: Command, device: &str, config: &str) -> serde_json::Value {
    tuner.args([
        "check",
        "space.yaml",
        "--format",
        "json",
        "--device",
        device,
    ]);
    tuner.args(["--config", config]);
    ended(&mut tuner).json()
}

fn on_virtual_gpu(folder: &Path, config: &str) -> serde_json::Value {
    check(tuner(folder), "vgpu:h100", config)[0].clone()
}

#[test]
fn a_kernel_with_tensor_maps_is_checked_timed_and_ranked() {
    let folder = example();
    // The tensor ends within the last boxes of both dimensions.
    for config in ["ROWS=64", "ROWS=8,COLUMNS=64"] {
        let row = on_virtual_gpu(folder.path(), config);
        assert_eq!(
            (&row["verdict"], &row["compared"]),
            (&"ok".into(), &"whole".into()),
            "{row}"
        );
    }
    // The machine code takes each map from its place among the parameters.
    let run = "run space.yaml --device vgpu:h100 --db t.db --evals 2 --seed 1";
    let ended = ended(tuner(folder.path()).args(run.split(' ')));
    ended.says(0, &[]);
    for said in ["us predicted", "compared whole", "verdicts ok 2"] {
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
}

/// The stand-in is no Hopper: its kernel only looks at the map, whose 65th byte is a `T` there.
#[test]
fn a_driver_encodes_the_tensor_maps() {
    let folder = example();
    let kernel = "#include <cuda.h>
        extern \"C\" __global__ void twice(const float* x, const __grid_constant__ CUtensorMap y_map, float* y, int R, int C) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            const float factor = ((const char*)&y_map)[64] == 'T' ? 2.0f : 0.0f;
            if (i < R * C) y[i] = factor * x[i];
        }";
    std::fs::write(folder.path().join("kernel.cu"), kernel).expect("the kernel is written");
    let space = folder.path().join("space.yaml");
    replace(&space, "compile: { arch_features: a }\n", "");
    replace(&space, "[x_map, y_map]", "[x, y_map, y, R, C]");
    replace(
        &space,
        "\"ceil_div(C, COLUMNS)\", \"ceil_div(R, ROWS)\"",
        "\"ceil_div(R * C, 128)\"",
    );
    let rows = check(with_gpu(folder.path()), "cuda:0", "ROWS=64");
    assert_eq!(rows[0]["verdict"], "ok", "{rows}");
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_launcher_encodes_the_tensor_maps_of_its_buffers() {
    let folder = example();
    let at = folder.path();
    let main = root().join("tests/tensor_maps/main.cu");
    std::fs::copy(main, at.join("main.cu")).expect("the program is copied");
    for command in [
        "run space.yaml --device vgpu:h100 --db t.db --evals 2 --seed 1",
        "export space.yaml --db t.db --allow-predicted --launcher cpp -o twice_launch.h",
    ] {
        ended(tuner(at).args(command.split(' '))).says(0, &[]);
    }
    let mut nvcc = Command::new(toolkit().join("bin/nvcc"));
    nvcc.args("-std=c++17 -cudart shared -arch=sm_90 -Xcompiler -Wall,-Wextra,-Werror main.cu -o main -ldl -L".split(' '));
    ended(nvcc.arg(toolkit().join("lib")).current_dir(at)).says(0, &[]);
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).expect("NVRTC is here");
    let mut exec = tuner(at);
    exec.args(["exec", "--device", "vgpu:h100", "--", "./main"])
        .env("TWICE_NVRTC", &nvrtc.library);
    let ended = ended(&mut exec);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "right, 3600 elements", "{}", ended.stdout);
    assert!(
        lines[1].contains("the driver refuses the tensor map x_map")
            || lines[1].contains("no configuration was tuned and checked for"),
        "{}",
        lines[1]
    );
}

#[test]
fn a_map_that_the_driver_would_refuse_names_its_limit() {
    let folder = example();
    let space = folder.path().join("space.yaml");
    let row = on_virtual_gpu(folder.path(), "ROWS=512");
    assert_eq!(row["verdict"], "launch_failed");
    let detail = row["detail"].as_str().expect("a detail");
    assert!(detail.contains("the tensor map `x_map` on problem `ragged`: the box has 512 elements in dimension 1; 1 to 256 are possible"), "{detail}");
    for (from, to, said) in [
        (
            "strides: [C]",
            "strides: [\"C + 1\"]",
            "space.yaml:16:26: error: the tensor map `y_map` on problem `ragged`: the stride of dimension 1 is 148 bytes; it must be a multiple of 16",
        ),
        (
            "swizzle: 0",
            "swizzle: 64",
            "the innermost dimension of the box has 128 bytes; a swizzle of 64 bytes allows 64",
        ),
        (
            "swizzle: 0",
            "swizzle: 48",
            "space.yaml:16:134: error: `swizzle` of `y_map` is 48 on problem `ragged`, but must be 0, 32, 64 or 128",
        ),
        (
            "swizzle: 0",
            "swizzle: 0, swizzle_atom: 32",
            "`swizzle_atom` of `y_map` is 32 on problem `ragged`, but must be 16, unless the swizzle is that of 128 bytes",
        ),
        (
            "steps: [1, 1]",
            "steps: [1, 9]",
            "an element stride of 9; 1 to 8 are possible",
        ),
        (
            "interleave: 0",
            "interleave: 16",
            "a tensor of 2 dimensions; 3 to 5 are possible",
        ),
        (
            "nan_fill: 0",
            "nan_fill: 2",
            "`nan_fill` of `y_map` is 2 on problem `ragged`, but must be 0 or 1",
        ),
    ] {
        replace(&space, from, to);
        // The default configuration breaks it too.
        let check = "check space.yaml --device vgpu:h100 --config ROWS=64";
        let ended = ended(tuner(folder.path()).args(check.split(' ')));
        let told = ended.code != 0 && ended.stderr.contains(said);
        assert!(told, "{to}: {}", ended.stderr);
        replace(&space, to, from);
    }
}

#[test]
fn a_mistake_in_a_tensor_map_is_reported_with_its_place() {
    for (from, to, said) in [
        ("of: x, ", "", "the tensor map `x_map` describes no buffer"),
        (
            "of: x,",
            "of: z,",
            "`x_map` points to `z`, which is not a buffer declared before it",
        ),
        (
            "of: x, box: [ROWS, COLUMNS]",
            "of: x",
            "the tensor map `x_map` has no box",
        ),
        (
            "of: x, box: [ROWS, COLUMNS]",
            "of: x, box: [COLUMNS]",
            "the tensor of `x_map` has 2 dimensions, of 1 to 5",
        ),
        (
            "strides: [C]",
            "strides: [C, 1]",
            "the tensor of `y_map` has 2 dimensions, of 1 to 5",
        ),
        (
            "of: x,",
            "of: x, shape: [],",
            "the tensor of `x_map` has 0 dimensions, of 1 to 5",
        ),
        (
            "of: x,",
            "of: x, element: f16,",
            "`f16` is not a type of 4 bytes",
        ),
        (
            "tensor_map, role: scalar, of: x",
            "tensor_map, role: input, of: x",
            "the tensor map `x_map` is passed by value",
        ),
        (
            "of: x,",
            "of: x, value: 1,",
            "the tensor map `x_map` has a value or a fill",
        ),
        (
            "role: input, shape",
            "role: input, box: [1], shape",
            "`box` belongs to a tensor map, which `x` is not",
        ),
        (
            "role: input, shape",
            "role: input, swizzle: 0, shape",
            "`swizzle` belongs to a tensor map, which `x` is not",
        ),
        (
            "args: [x_map, y_map]",
            "args: [x, y_map]",
            "`x` is a buffer of `f32`, but parameter 1",
        ),
    ] {
        let folder = example();
        let space = folder.path().join("space.yaml");
        replace(&space, from, to);
        let ended =
            ended(tuner(folder.path()).args("check space.yaml --device vgpu:h100".split(' ')));
        assert!(ended.stderr.contains("space.yaml:"), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{to}: {}", ended.stderr);
    }
}

#[test]
fn the_limits_of_an_im2col_map_are_told() {
    let folder = columns();
    let space = folder.path().join("space.yaml");
    let row = on_virtual_gpu(folder.path(), "PIXELS=2048");
    assert_eq!(row["verdict"], "launch_failed");
    let detail = row["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("the box has 2048 elements in dimension 1; 1 to 1024 are possible"),
        "{detail}"
    );
    for (from, to, said) in [
        (
            "lower: [-1, -1]",
            "lower: [-129, -1]",
            "a corner at -129; -128 to 127 are possible with 2 spatial dimensions",
        ),
        (
            "upper: [-1, -1]",
            "upper: [-1, -9]",
            "no pixel lies between the corners -1 and -9 of a dimension of 7",
        ),
        (
            "lower: [-1, -1]",
            "lower: [-1, 0.5]",
            "`lower` of `x_map` is 0.5 on problem `odd`, but must be a whole number",
        ),
        (
            "lower: [-1, -1]",
            "lower: [-1]",
            "the tensor of `x_map` has 4 dimensions, of 3 to 5",
        ),
        (
            "lower: [-1, -1], upper:",
            "upper :",
            "and in `lower` and `upper` one coordinate for each dimension",
        ),
        (
            "box: [PIXELS, 8]",
            "box: [PIXELS, 8, 1, 1]",
            "an im2col map has `box: [PIXELS, CHANNELS]`",
        ),
        (
            "type: f32, role: input",
            "type: f32, lower: [1], role: input",
            "`lower` belongs to a tensor map, which `x` is not",
        ),
    ] {
        replace(&space, from, to);
        let check = "check space.yaml --device vgpu:h100 --config PIXELS=32";
        let ended = ended(tuner(folder.path()).args(check.split(' ')));
        assert!(
            ended.code != 0 && ended.stderr.contains(said),
            "{to}: {}",
            ended.stderr
        );
        replace(&space, to, from);
    }
}
