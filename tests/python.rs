//! The package of python/: its tests, its types, and its wheel in a fresh environment.

use crate::program::{ended, folder, root};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

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

/// Both tests of wheels stage the folders of search spaces in python/.
static STAGE: Mutex<()> = Mutex::new(());

/// In the place of cargo while maturin makes a wheel: the program of this test is built already, and to build it for
/// the wheel, with other features of the dependencies, takes minutes.
const STAND_IN: &str = r#"#!/bin/sh
case " $* " in *" rustc "*) ;; *) exec 'CARGO' "$@" ;; esac
id=$('CARGO' pkgid --offline --manifest-path 'ROOT/Cargo.toml') || exit
printf '{"reason":"compiler-artifact","package_id":"%s","manifest_path":"ROOT/Cargo.toml","target":{"kind":["bin"],"crate_types":["bin"],"name":"tuner","src_path":"ROOT/src/main.rs","edition":"2024"},"profile":{"opt_level":"0","debug_assertions":true,"overflow_checks":true,"test":false},"features":[],"filenames":["PROGRAM"],"executable":"PROGRAM","fresh":true}\n{"reason":"build-finished","success":true}\n' "$id"
"#;

#[test]
#[cfg_attr(not(python_tests), ignore = "no maturin is here: scripts/get-python")]
fn a_wheel_of_the_program_installs_it_with_its_search_spaces() {
    let _staged = STAGE.lock();
    let built = folder(&[]);
    // maturin moves the program away and back, which other tests use meanwhile.
    let program = built.path().join("tuner");
    crate::rig::executable::copied(Path::new(env!("CARGO_BIN_EXE_tuner")), &program);
    let text = STAND_IN
        .replace("CARGO", env!("CARGO"))
        .replace("PROGRAM", &program.display().to_string())
        .replace("ROOT", &root().display().to_string());
    crate::rig::executable::script(&built.path().join("cargo"), &text);
    let path = std::env::var("PATH").unwrap();
    let mut build = Command::new(root().join("scripts/build-wheel"));
    build.args(["--profile", "dev", "--auditwheel", "skip"]);
    build.env("PATH", format!("{}:{path}", built.path().display()));
    build.env("CARGO", built.path().join("cargo"));
    let out = built.path().join("wheels");
    succeeds(build.env("OUT", &out).current_dir(root()));
    let wheel = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap();
    installed_works(built.path(), &wheel.path().display().to_string());
}

/// Builds with the profile of this test; the dependencies are compiled with other features than for the
/// tests, which takes minutes.
#[test]
#[ignore = "builds the program once more: make nightly"]
fn the_wheel_installs_the_program_and_its_search_spaces() {
    let _staged = STAGE.lock();
    let built = folder(&[]);
    let out = built.path().join("wheels").display().to_string();
    let mut build = Command::new(root().join("scripts/build-wheel"));
    build.args(["--profile", "dev", "--auditwheel", "skip"]);
    succeeds(build.env("OUT", &out).current_dir(root()));
    let wheel = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap();
    // With its dependencies, and without Rust, this repository and the user's NVRTC.
    succeeds(Command::new(root().join("scripts/check-wheel")).arg(wheel.path()));
    let from_folder = folder(&[]);
    let package = root().join("python").display().to_string();
    installed_works(from_folder.path(), &package);
}

/// Installs into a fresh environment without dependencies and checks a shipped kernel from another folder.
fn installed_works(at: &Path, what: &str) {
    let venv = at.join("venv");
    // It need not have a pip of its own.
    succeeds(
        Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(&venv),
    );
    let bin = |name: &str| venv.join("bin").join(name);
    let mut install = Command::new(root().join(PYTHON));
    install.args(["-m", "pip", "--python"]).arg(bin("python"));
    install.args(["install", "-q", "--no-deps"]);
    install.env("MATURIN_PEP517_ARGS", "--profile dev --auditwheel skip");
    succeeds(install.arg(what));
    let elsewhere = at.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let script = "import tuner; print(tuner.check('conv2d_f32', configs=[{}], problem='even')[0]['verdict'])";
    let ended = run_in(&elsewhere, Command::new(bin("python")).args(["-c", script]));
    assert_eq!(ended.trim(), "ok");
    let script =
        "from importlib import metadata; print([file.name for file in metadata.files('tuner')])";
    let files = run_in(&elsewhere, Command::new(bin("python")).args(["-c", script]));
    assert!(files.contains("'LICENSE'"), "{files}");
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
