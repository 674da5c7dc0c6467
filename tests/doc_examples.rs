//! Examples in the documentation of an item run only in the crates that compile them: looking for some
//! costs a second a crate, and most have none.

use std::path::Path;

/// Lines of `text` at which a fence opens that `rustdoc` would compile.
fn examples(text: &str) -> Vec<usize> {
    let mut open = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let comment = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let Some(language) = comment.and_then(|words| words.trim().strip_prefix("```")) else {
            continue;
        };
        open = !open;
        let code = ["", "rust", "no_run", "should_panic", "compile_fail"];
        if open && code.contains(&language.split(',').next().unwrap_or_default()) {
            found.push(number + 1);
        }
    }
    found
}

fn sources(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn an_example_stands_only_where_it_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["crates", "crates/gpu"].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).expect("the crates");
        entries.map(|entry| entry.expect("a crate").path())
    });
    let crates = crates.filter(|folder| folder.join("Cargo.toml").exists());
    let (mut lost, mut compiled) = (Vec::new(), 0);
    for folder in crates.chain([root.to_owned()]) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let found = examples(&std::fs::read_to_string(&file).expect("a source file"));
            if manifest.contains("doctest = false") {
                let places = found
                    .iter()
                    .map(|line| format!("{}:{line}", file.display()));
                lost.extend(places);
            } else {
                compiled += found.len();
            }
        }
    }
    assert!(
        lost.is_empty(),
        "remove `doctest = false` from the manifest: {lost:#?}"
    );
    assert!(compiled >= 4, "{compiled}");
}
