//! A program that was installed works from any folder: it finds NVRTC where `make nvrtc` puts it, and
//! needs nothing of the project.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A home with the program in its `bin`, and NVRTC in its data folder where `nvrtc` says so.
fn home(nvrtc: bool) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    crate::rig::executable::copied(Path::new(env!("CARGO_BIN_EXE_tuner")), &bin.join("tuner"));
    if nvrtc {
        let data = home.path().join(".local/share/tuner");
        std::fs::create_dir_all(&data).unwrap();
        std::os::unix::fs::symlink(library_folder(), data.join("cuda")).unwrap();
    }
    home
}

/// The folder of the NVRTC that the tests use.
fn library_folder() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        return own.canonicalize().unwrap();
    }
    let found =
        tuner_kernel::compile::Nvrtc::find(&tuner_kernel::compile::Surroundings::from_env());
    found.unwrap().library.parent().unwrap().to_owned()
}

fn tuner(home: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new(home.join("bin/tuner"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", path.as_str()), ("HOME", home.to_str().unwrap())])
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    format!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_new_kernel_checks_ok_with_an_installed_program_in_any_folder() {
    let home = home(true);
    let elsewhere = tempfile::tempdir().unwrap();
    for (arguments, code, says) in [
        (&["new", "saxpy"][..], 0, "tuner check saxpy"),
        (&["check", "saxpy"], 0, "25 ok"),
        (&["new", "saxpy"], 2, "is there already"),
        (&["new", "3d"], 2, "such as `k3d`"),
    ] {
        let output = tuner(home.path(), elsewhere.path(), arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    // Results and kernels are those of the project around, from any folder of it.
    let inside = elsewhere.path().join("templates/saxpy");
    let run = ["run", "saxpy", "--evals", "1", "--device", "vgpu:l4"];
    let output = tuner(home.path(), &inside, &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let space = elsewhere.path().join("search_spaces/saxpy.yaml");
    let space = space.to_str().unwrap();
    for (folder, arguments, code, says) in [
        (&inside, &["leaderboard", "saxpy"][..], 0, "THREADS=256"),
        (&inside, &["export", space], 3, "--allow-predicted"),
        (&inside, &["profile", space], 0, "achieved occupancy"),
        (
            &inside,
            &["report", space, "-o", "report"],
            0,
            "report.html",
        ),
        (
            &inside,
            &["record", "saxpy"],
            3,
            "tuner run saxpy --device cuda",
        ),
        (&inside, &["leaderboard", "sapxy"], 2, "it has `saxpy`"),
    ] {
        let output = tuner(home.path(), folder, arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn without_nvrtc_the_message_says_what_to_type_in_any_folder() {
    let home = home(false);
    let elsewhere = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(home.path().join("bin/tuner"))
        .args(["doctor", "--format", "csv"])
        .current_dir(elsewhere.path())
        .env_clear()
        .envs([("PATH", path.as_str()), ("TUNER_NVRTC", "/nonexistent")])
        .env("HOME", home.path())
        .output()
        .unwrap();
    let said = text(&output);
    let folder = home.path().join(".local/share/tuner/cuda");
    let wanted = format!("pip install --target '{}'", folder.display());
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn the_search_spaces_beside_an_installed_program_are_known_where_no_project_is() {
    let home = home(true);
    let elsewhere = tempfile::tempdir().unwrap();
    let space = ["space", "saxpy", "--format", "csv"];
    let output = tuner(home.path(), elsewhere.path(), &space);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let share = home.path().join("share/tuner");
    std::fs::create_dir_all(&share).unwrap();
    let output = tuner(home.path(), &share, &["new", "saxpy"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = tuner(home.path(), elsewhere.path(), &space);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    // They stay known where there is a project, whose kernels come first.
    let output = tuner(home.path(), elsewhere.path(), &["new", "own"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = tuner(home.path(), elsewhere.path(), &["check", "saxpy"]);
    assert!(text(&output).contains("25 ok"), "{}", text(&output));
    let output = tuner(home.path(), elsewhere.path(), &["space", "saxpi"]);
    let said = text(&output);
    assert!(said.contains("did you mean `saxpy`?"), "{said}");
    assert!(said.contains("the known kernels are own, saxpy"), "{said}");
    let checked = ["check", "--config", "default", "--format", "csv"];
    let output = tuner(home.path(), elsewhere.path(), &checked);
    let said = text(&output);
    assert!(said.contains("own,"), "{said}");
    assert!(
        !said.contains("saxpy"),
        "without a name, kernels of the project: {said}"
    );
}

#[test]
fn a_kernel_of_the_project_takes_precedence_over_an_installed_one() {
    let home = home(false);
    let elsewhere = tempfile::tempdir().unwrap();
    let share = home.path().join("share/tuner");
    for root in [&share, elsewhere.path()] {
        std::fs::create_dir_all(root).unwrap();
        let output = tuner(home.path(), root, &["new", "saxpy"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    let spaces = share.join("search_spaces");
    std::fs::copy(spaces.join("saxpy.yaml"), spaces.join("saxpy.quick.yaml")).unwrap();
    let own = elsewhere.path().join("search_spaces/saxpy.yaml");
    let edited = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, edited.replacen("[64, 128, ", "[128, ", 1)).unwrap();
    let size = ["space", "saxpy", "--format", "csv"];
    let said = text(&tuner(home.path(), elsewhere.path(), &size));
    assert!(said.contains("saxpy,20,20,"), "{said}");
    // A variant of the installed kernel is not one of the project's kernel.
    let variant = ["space", "saxpy.quick", "--format", "csv"];
    let output = tuner(home.path(), elsewhere.path(), &variant);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    // The project's kernel is meant by its `kernel` key, too.
    std::fs::rename(&own, own.with_file_name("mine.yaml")).unwrap();
    let said = text(&tuner(home.path(), elsewhere.path(), &size));
    assert!(said.contains("saxpy,20,20,"), "{said}");
}
