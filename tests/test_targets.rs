//! `make test` runs the tests of the crates by a pattern of names, beside those of the program.

use std::path::{Path, PathBuf};

/// The files and folders in a folder, where there is one.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn make_test_leaves_no_test_target_of_a_crate_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let makefile = std::fs::read_to_string(root.join("Makefile")).expect("the Makefile");
    assert!(makefile.contains("--lib --bins --test '[!p]*'"));
    assert!(makefile.contains("--test program"));
    let mut crates = entries(&root.join("crates"));
    crates.extend(entries(&root.join("crates/gpu")));
    let targets: Vec<PathBuf> = crates
        .iter()
        .flat_map(|each| entries(&each.join("tests")))
        .collect();
    let is_target = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists()
    };
    let targets: Vec<&PathBuf> = targets.iter().filter(|path| is_target(path)).collect();
    assert!(targets.len() > 10, "{targets:?}");
    let out = |path: &&&PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('p'))
    };
    let out: Vec<_> = targets.iter().filter(out).collect();
    assert!(
        out.is_empty(),
        "a name that the Makefile's pattern leaves out: {out:?}"
    );
}

#[test]
fn the_libraries_of_gpus_stand_alone() {
    // The crates that execute, read and time GPU code know nothing of tuning.
    let crates = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/gpu"));
    assert!(crates.len() >= 7, "{crates:?}");
    for folder in crates {
        let name = folder.display();
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect(file);
        let manifest = read("Cargo.toml");
        // Also among its tests: none may need the rest of the project.
        assert!(!manifest.contains("tuner-"), "{name} depends on the tuner");
        assert!(
            !manifest.contains("publish = false"),
            "{name} cannot be published"
        );
        assert!(manifest.contains("readme = "), "{name} has no README");
        let readme = read("README.md");
        let example = entries(&folder.join("examples")).pop().expect("an example");
        let example = example
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let command = format!("cargo run --example {example}");
        assert!(
            readme.contains(&command),
            "{name}: the README does not name `{command}`"
        );
        assert!(
            readme.contains("```rust"),
            "{name}: the README has no example that is run"
        );
    }
}
