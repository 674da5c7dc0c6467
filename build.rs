//! Sets cfgs for the tests that need a `nats-server`, a browser, node, nvcc, NumPy, PyTorch or Python's CUDA packages: they
//! are reported as ignored where these are missing.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=PATH");
    let on_path = |names: &[&str]| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|at| names.iter().any(|name| at.join(name).is_file()))
    };
    let local = Path::new(".nats/nats-server");
    println!("cargo::rustc-check-cfg=cfg(nats_server)");
    // A missing file here would trigger a rebuild each time; the script that installs it changes
    // its own time stamp.
    println!("cargo::rerun-if-changed=scripts/get-nats");
    println!("cargo::rerun-if-env-changed=TUNER_NATS_SERVER");
    let named = std::env::var_os("TUNER_NATS_SERVER").map(std::path::PathBuf::from);
    if named.is_some_and(|path| path.is_file()) || local.is_file() {
        println!("cargo::rustc-cfg=nats_server");
    }
    // Python packages that use the driver interface.
    println!("cargo::rustc-check-cfg=cfg(cuda_python)");
    println!("cargo::rerun-if-changed=scripts/get-cuda-python");
    println!("cargo::rerun-if-env-changed=TUNER_CUDA_PYTHON");
    let named = std::env::var_os("TUNER_CUDA_PYTHON").map(std::path::PathBuf::from);
    let fetched = Path::new(".cuda-python/bin/python");
    if named.is_some_and(|path| path.is_file()) || fetched.is_file() {
        println!("cargo::rustc-cfg=cuda_python");
    }
    // NumPy, pytest and mypy, for the tests of python/.
    println!("cargo::rustc-check-cfg=cfg(python_tests)");
    println!("cargo::rerun-if-changed=scripts/get-python");
    if Path::new(".python-tests/bin/pytest").is_file() {
        println!("cargo::rustc-cfg=python_tests");
    }
    // PyTorch, for the packages of `tuner export --torch`.
    println!("cargo::rustc-check-cfg=cfg(torch)");
    println!("cargo::rerun-if-changed=scripts/get-torch");
    println!("cargo::rerun-if-env-changed=TUNER_TORCH_PYTHON");
    let named = std::env::var_os("TUNER_TORCH_PYTHON").map(std::path::PathBuf::from);
    if named.is_some_and(|path| path.is_file()) || Path::new(".torch/bin/pytest").is_file() {
        println!("cargo::rustc-cfg=torch");
    }
    // NVIDIA's compiler, for tests of `tuner exec`.
    println!("cargo::rustc-check-cfg=cfg(nvcc)");
    println!("cargo::rerun-if-changed=scripts/get-nvcc");
    println!("cargo::rerun-if-env-changed=TUNER_NVCC");
    let data = std::env::var_os("XDG_DATA_HOME").map(std::path::PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let fetched = data
        .or(home)
        .map(|data| data.join("tuner/nvcc/nvidia/cu13/bin/nvcc"));
    let named = std::env::var_os("TUNER_NVCC").map(std::path::PathBuf::from);
    let found = named.or(fetched).is_some_and(|path| path.is_file());
    if found || on_path(&["nvcc"]) {
        println!("cargo::rustc-cfg=nvcc");
    }
    // Browser and its WebDriver.
    println!("cargo::rustc-check-cfg=cfg(browser)");
    if on_path(&["chromium", "chromium-browser", "google-chrome"]) && on_path(&["chromedriver"]) {
        println!("cargo::rustc-cfg=browser");
    }
    println!("cargo::rustc-check-cfg=cfg(cmake)");
    if on_path(&["cmake"]) {
        println!("cargo::rustc-cfg=cmake");
    }
    println!("cargo::rustc-check-cfg=cfg(clang)");
    if on_path(&["clang++"]) {
        println!("cargo::rustc-cfg=clang");
    }
    println!("cargo::rustc-check-cfg=cfg(node)");
    if on_path(&["node"]) {
        println!("cargo::rustc-cfg=node");
    }
}
