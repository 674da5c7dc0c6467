//! Says to the tests whether a `nats-server`, a browser and nvcc are here, so that those that need one are
//! reported as ignored where there is none.

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
    println!("cargo::rustc-check-cfg=cfg(nvcc)");
    println!("cargo::rerun-if-env-changed=TUNER_NVCC");
    let data = std::env::var_os("XDG_DATA_HOME").map(std::path::PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let fetched = data
        .or_else(home)
        .map(|data| data.join("tuner/nvcc/nvidia/cu13/bin/nvcc"));
    let named = std::env::var_os("TUNER_NVCC").map(std::path::PathBuf::from);
    let found = named.or(fetched).is_some_and(|path| path.is_file());
    if found || on_path(&["nvcc"]) {
        println!("cargo::rustc-cfg=nvcc");
    }
}
