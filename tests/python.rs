//! The package of python/: its tests, its types, and its wheel in a fresh environment.

use crate::program::{ended, folder, root};
use std::path::Path;
use std::process::Command;

const PYTHON: &str = ".python-tests/bin/python";

/// A command in a folder of the project with the program that the package starts.
fn python(arguments: &[&str], at: &str) -> Command {
    let mut command = Command::new(root().join(PYTHON));
    command
        .args(arguments)
        .current_dir(root().join(at))
        .env("TUNER", crate::rig::program())
        // Its files in the working tree would be those of another Python.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
#[cfg_attr(not(python_tests), ignore = "no NumPy is here: scripts/get-python")]
fn the_tests_of_the_package_pass() {
    let cache = tempfile::tempdir().unwrap();
    let words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"];
    let said = succeeds(python(&words, "python").env("XDG_CACHE_HOME", cache.path()));
    assert!(said.contains(" passed"), "{said}");
}

#[test]
#[cfg_attr(not(python_tests), ignore = "no mypy is here: scripts/get-python")]
fn the_types_of_the_package_are_right() {
    let cache = tempfile::tempdir().unwrap();
    let place = cache.path().display().to_string();
    succeeds(&mut python(
        &["-m", "mypy", "--cache-dir", &place],
        "python",
    ));
}

#[test]
#[cfg_attr(not(python_tests), ignore = "no NumPy is here: scripts/get-python")]
fn the_reference_of_the_package_is_up_to_date() {
    succeeds(&mut python(&["scripts/python-reference", "--check"], "."));
}

/// Builds with the profile of this test; the dependencies are compiled with other features than for the
/// tests, which takes minutes.
#[test]
#[ignore = "builds the program once more: make nightly"]
fn the_wheel_installs_the_program_and_its_search_spaces() {
    let built = folder(&[]);
    let out = built.path().join("wheels").display().to_string();
    let mut build = Command::new(root().join("scripts/build-wheel"));
    build.args(["--profile", "dev", "--auditwheel", "skip"]);
    succeeds(build.env("OUT", &out).current_dir(root()));
    let wheel = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap();
    // With its dependencies, and without Rust, this repository and the user's NVRTC.
    succeeds(Command::new(root().join("scripts/check-wheel")).arg(wheel.path()));
    // One after the other: both stage the folders in python/.
    let from_folder = folder(&[]);
    let package = root().join("python").display().to_string();
    installed_works(from_folder.path(), &package);
}

/// Installs into a fresh environment without dependencies and checks a shipped kernel from another folder.
fn installed_works(at: &Path, what: &str) {
    let venv = at.join("venv");
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let bin = |name: &str| venv.join("bin").join(name);
    let mut install = Command::new(bin("python"));
    install.args(["-m", "pip", "install", "-q", "--no-deps"]);
    install.env("MATURIN_PEP517_ARGS", "--profile dev --auditwheel skip");
    succeeds(install.arg(what));
    let elsewhere = at.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let script = "import tuner; print(tuner.check('conv2d_f32', configs=[{}], problem='even')[0]['verdict'])";
    let ended = run_in(&elsewhere, Command::new(bin("python")).args(["-c", script]));
    assert_eq!(ended.trim(), "ok");
    let version = run_in(&elsewhere, Command::new(bin("tuner")).arg("--version"));
    assert!(version.starts_with("tuner "), "{version}");
    assert!(venv.join("share/tuner/templates/_skeleton").is_dir());
}

fn run_in(at: &Path, command: &mut Command) -> String {
    succeeds(
        command
            .current_dir(at)
            .env_remove("TUNER")
            .env_remove("PYTHONPATH"),
    )
}
