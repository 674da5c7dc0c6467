//! The JSON Schema that editors complete search spaces with is the one of the Rust types, and
//! every shipped search space is read.

use std::path::{Path, PathBuf};
use tuner_space::{KernelSpec, json_schema};

const SCHEMA: &str = "search_spaces/schema.json";

/// Set to write the schema instead of comparing it.
const UPDATE: &str = "TUNER_UPDATE_SCHEMA";

fn shipped() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("search_spaces").unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    files
}

#[test]
fn the_schema_is_that_of_the_types() {
    let mut expected = serde_json::to_string_pretty(&json_schema()).unwrap();
    expected.push('\n');
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(SCHEMA, &expected).unwrap();
    }
    let written = std::fs::read_to_string(SCHEMA).unwrap_or_default();
    assert!(
        written == expected,
        "{SCHEMA} is not up to date: run `{UPDATE}=1 cargo test --test program space_schema::`"
    );
}

#[test]
fn the_reference_page_is_that_of_the_types() {
    const PAGE: &str = "docs/reference.md";
    let expected = tuner_space::reference();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == expected,
        "{PAGE} is not up to date: run `{UPDATE}=1 cargo test --test program space_schema::`"
    );
}

#[test]
fn the_schema_knows_the_keys_of_the_format() {
    let schema = json_schema();
    let keys = |names: &serde_json::Value| -> Vec<String> {
        let names = names.as_array().unwrap();
        names
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    let mut required = keys(&schema["required"]);
    required.sort();
    assert_eq!(
        required,
        [
            "arguments",
            "kernel",
            "launches",
            "problems",
            "reference",
            "source",
            "version"
        ]
    );
    assert_eq!(schema["additionalProperties"], false);
    for key in [
        "sizes",
        "parameters",
        "derived",
        "constraints",
        "gate",
        "metric",
        "seeds",
        "compile",
        "baseline",
    ] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

#[test]
fn every_shipped_search_space_is_read_and_names_the_schema() {
    let files = shipped();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("# yaml-language-server: $schema=schema.json\n"),
            "{}: begin with the line that names the schema",
            file.display()
        );
        if let Err(error) = KernelSpec::parse(&text, Path::new(&file)) {
            panic!("{error}");
        }
    }
}
