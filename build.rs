//! Reports to the tests whether a `nats-server`, a browser and Python's CUDA packages are here, so that
//! those that need one are reported as ignored where there is none.

use std::path::Path;

fn main() {
    let local = Path::new(".nats/nats-server");
    println!("cargo::rustc-check-cfg=cfg(nats_server)");
    // A file that is missing would have everything built again each time; the script that brings it
    // says so by its own time.
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
    // The browser, with the program that drives it.
    println!("cargo::rustc-check-cfg=cfg(browser)");
    println!("cargo::rerun-if-env-changed=PATH");
    let on_path = |names: &[&str]| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|at| names.iter().any(|name| at.join(name).is_file()))
    };
    if on_path(&["chromium", "chromium-browser", "google-chrome"]) && on_path(&["chromedriver"]) {
        println!("cargo::rustc-cfg=browser");
    }
}
