use super::{
    Surroundings, builtins_of, environment_of, linker_path, project_folder, site_packages,
};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn touch(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
}

#[test]
fn places_are_searched_in_the_documented_order() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for file in [
        "toolkit/lib64/libnvrtc.so.12",
        "linker/libnvrtc.so.12",
        "local/cuda-12.4/lib64/libnvrtc.so.12",
        "local/cuda-13.0/lib64/libnvrtc.so.13",
        "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "site/nvidia/cu13/lib/libnvrtc.so.13",
        "site/nvidia/cu13/lib/libnvrtc.alt.so.13",
        "project/.cuda/nvidia/cu13/lib/libnvrtc.so.13",
        "home/.local/share/tuner/cuda/nvidia/cu13/lib/libnvrtc.so.13",
    ] {
        touch(&at(file));
    }
    let surroundings = Surroundings {
        toolkits: vec![at("toolkit")],
        linker_path: vec![at("linker")],
        local: at("local"),
        site_packages: vec![at("site")],
        project: Some(at("project/.cuda")),
        user: Some(at("home/.local/share/tuner/cuda")),
        ..Surroundings::default()
    };
    let found: Vec<String> = surroundings
        .candidates()
        .iter()
        .map(|candidate| {
            candidate
                .library
                .strip_prefix(dir.path())
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r"
        toolkit/lib64/libnvrtc.so.12
        linker/libnvrtc.so.12
        local/cuda-13.0/lib64/libnvrtc.so.13
        local/cuda-12.4/lib64/libnvrtc.so.12
        site/nvidia/cu13/lib/libnvrtc.so.13
        site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
        project/.cuda/nvidia/cu13/lib/libnvrtc.so.13
        home/.local/share/tuner/cuda/nvidia/cu13/lib/libnvrtc.so.13
        ");
}

#[test]
fn an_explicit_place_is_the_only_one() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("a/libnvrtc.so.12");
    touch(&library);
    touch(&dir.path().join("linker/libnvrtc.so.13"));
    for explicit in [
        library.clone(),
        dir.path().join("a"),
        dir.path().join("absent"),
    ] {
        let expected = usize::from(explicit.exists());
        let surroundings = Surroundings {
            explicit: Some(explicit),
            linker_path: vec![dir.path().join("linker")],
            ..Surroundings::default()
        };
        assert_eq!(surroundings.candidates().len(), expected);
    }
}

#[test]
fn the_newest_library_of_a_folder_and_its_own_builtins_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "libnvrtc.so",
        "libnvrtc.so.12",
        "libnvrtc.so.13",
        "libnvrtc.so.13.0.88",
        "libnvrtc-builtins.so.12.9",
        "libnvrtc-builtins.so.13.0",
    ] {
        touch(&dir.path().join(name));
    }
    let surroundings = Surroundings {
        linker_path: vec![dir.path().to_owned()],
        ..Surroundings::default()
    };
    let found = surroundings.candidates();
    assert_eq!(found[0].library, dir.path().join("libnvrtc.so.13.0.88"));
    let builtins = |name: &str| builtins_of(&dir.path().join(name)).unwrap();
    assert!(builtins("libnvrtc.so.13").ends_with("libnvrtc-builtins.so.13.0"));
    assert!(builtins("libnvrtc.so.12").ends_with("libnvrtc-builtins.so.12.9"));
}

#[test]
fn headers_are_found_beside_both_generations_of_wheels() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    touch(&at("new/nvidia/cu13/include/cuda_fp16.h"));
    touch(&at("old/nvidia/cuda_runtime/include/cuda_fp16.h"));
    let headers = |library: &str| Surroundings::default().headers_for(&at(library));
    assert_eq!(
        headers("new/nvidia/cu13/lib/libnvrtc.so.13"),
        Some(at("new/nvidia/cu13/include"))
    );
    assert_eq!(
        headers("old/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
        Some(at("old/nvidia/cuda_runtime/include"))
    );
    assert_eq!(headers("none/lib/libnvrtc.so.12"), None);
}

#[test]
fn a_project_lends_its_library_to_executables_below_it_alone() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join(".cuda/nvidia/cu13/lib/libnvrtc.so.13");
    touch(&library);
    let executable = dir.path().join("target/debug/tuner");
    let found = project_folder(&executable).unwrap();
    assert_eq!(found, dir.path().join(".cuda"));
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(project_folder(&elsewhere.path().join("bin/tuner")), None);
    let surroundings = Surroundings {
        project: Some(found),
        ..Surroundings::default()
    };
    assert_eq!(surroundings.candidates()[0].library, library);
    // A user who can write the library or a parent folder controls the executed code.
    for path in [
        &library,
        library.parent().unwrap(),
        &dir.path().join(".cuda"),
    ] {
        let mode = path.metadata().unwrap().permissions();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(surroundings.candidates().is_empty(), "{}", path.display());
        std::fs::set_permissions(path, mode).unwrap();
    }
    assert_eq!(surroundings.candidates().len(), 1);
}

#[test]
fn relative_folders_of_the_linker_are_not_searched() {
    let here = std::env::current_dir().unwrap();
    let path = linker_path(Some(":.:src:/usr/lib".into()));
    let real = |folder: &std::path::PathBuf| folder.canonicalize().unwrap();
    assert!(
        !path
            .iter()
            .map(real)
            .any(|folder| folder.starts_with(&here))
    );
}

#[test]
fn the_environment_of_an_installed_program_is_searched_unless_others_can_write_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("venv");
    touch(&root.join("lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13"));
    touch(&root.join("bin/tuner"));
    let program = root.join("bin/tuner");
    assert_eq!(environment_of(&program), Some(root.clone()));
    assert_eq!(environment_of(&root.join("target/tuner")), None);
    // The folder of `pip install --target`.
    let target = dir.path().join("packages");
    touch(&target.join("nvidia/cu13/lib/libnvrtc.so.13"));
    touch(&target.join("bin/tuner"));
    assert_eq!(
        environment_of(&target.join("bin/tuner")),
        Some(target.clone())
    );
    assert_eq!(site_packages([target.clone()]), [target]);
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(root.join("lib"), open).unwrap();
    assert_eq!(environment_of(&program), None);
}
