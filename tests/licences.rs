//! Every crate that is built into the program has a licence that `deny.toml` allows.

use std::path::Path;
use std::process::{Command, Output};

/// Whether an SPDX expression can be satisfied with allowed licences. `/` is the old way to write
/// `OR`; `AND` binds tighter.
fn allowed(expression: &str, allow: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut tokens = spaced.split_whitespace().peekable();
    let satisfied = any_of(&mut tokens, allow);
    satisfied && tokens.peek().is_none()
}

type Tokens<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(tokens: &mut Tokens<'_>, allow: &[String]) -> bool {
    let mut satisfied = all_of(tokens, allow);
    while tokens.next_if_eq(&"OR").is_some() {
        satisfied |= all_of(tokens, allow);
    }
    satisfied
}

fn all_of(tokens: &mut Tokens<'_>, allow: &[String]) -> bool {
    let mut satisfied = single(tokens, allow);
    while tokens.next_if_eq(&"AND").is_some() {
        satisfied &= single(tokens, allow);
    }
    satisfied
}

fn single(tokens: &mut Tokens<'_>, allow: &[String]) -> bool {
    let Some(first) = tokens.next() else {
        return false;
    };
    if first == "(" {
        let satisfied = any_of(tokens, allow);
        return tokens.next() == Some(")") && satisfied;
    }
    let mut licence = first.to_owned();
    if tokens.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", tokens.next().unwrap_or_default());
    }
    allow.contains(&licence)
}

/// The `allow` list: every quoted string between its brackets.
fn allow_list() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");
    let text = std::fs::read_to_string(path).expect("deny.toml is there");
    let (_, rest) = text
        .split_once("allow = [")
        .expect("deny.toml has a list of licences");
    let (list, _) = rest.split_once(']').expect("the list ends");
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            &target,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allow = allow_list();
    let refused: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none stated");
            let named = format!("{} {}: {licence}", package["name"], package["version"]);
            (!allowed(licence, &allow)).then_some(named)
        })
        .collect();
    assert!(
        refused.is_empty(),
        "licences that deny.toml does not allow:\n{}",
        refused.join("\n")
    );
}

/// Runs `scripts/supply-chain`; `None` where Python is missing or too old for it.
fn supply_chain(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("python3");
    command.arg("scripts/supply-chain").args(arguments);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.ok()?;
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(output)
}

#[test]
fn the_locked_crates_keep_the_rules() {
    let Some(output) = supply_chain(&["check"]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_crate_that_breaks_a_rule_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = dir.path().join("metadata.json");
    let lock = dir.path().join("Cargo.lock");
    let package = |name: &str, licence: &str| serde_json::json!({ "name": name, "version": "1.0.0", "license": licence, "id": name });
    let packages = [
        package("fine", "MIT OR GPL-3.0"),
        package("copyleft", "AGPL-3.0-only"),
        package("both", "MIT AND GPL-2.0"),
        package("silent", ""),
    ];
    let text = serde_json::json!({ "packages": packages }).to_string();
    std::fs::write(&metadata, text).unwrap();
    let crates_io = "registry+https://github.com/rust-lang/crates.io-index";
    let locked = |name: &str, source: &str, checksum: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\nsource = \"{source}\"\n{checksum}\n"
        )
    };
    let sum = "checksum = \"00\"";
    let text = [
        locked("fine", crates_io, sum),
        locked("sqlx-mysql", crates_io, sum),
        locked("forked", "git+https://example.org/forked#0123", sum),
        locked("unsummed", crates_io, ""),
    ];
    std::fs::write(&lock, text.concat()).unwrap();
    let files = [&metadata, &lock].map(|path| path.to_str().unwrap());
    let arguments = ["check", "--metadata", files[0], "--lock", files[1]];
    let Some(output) = supply_chain(&arguments) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let named: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("error: ")?.split(' ').next())
        .collect();
    let expected = [
        "copyleft",
        "both",
        "silent",
        "sqlx-mysql",
        "forked",
        "unsummed",
    ];
    assert_eq!(named, expected, "{said}");
}

/// Crates with their version, what their advisory says, its versions, and whether they are refused.
const ADVISORIES: [(&str, &str, &str, &str, bool); 14] = [
    ("old", "1.4.9", "", "patched = [\">= 1.5.0\"]", true),
    ("pre", "1.5.0-rc.1", "", "patched = [\">= 1.5.0\"]", true),
    ("worse", "1.0.0", "", "patched = []", true),
    (
        "between",
        "1.3.0",
        "",
        "patched = [\"^1.2.1, < 1.3\", \">= 2\"]",
        true,
    ),
    (
        "unsound",
        "0.2.9",
        "informational = \"unsound\"",
        "patched = [\"^0.3\"]",
        true,
    ),
    (
        "left",
        "1.0.0",
        "informational = \"unmaintained\"",
        "patched = []",
        true,
    ),
    ("patched", "1.5.0", "", "patched = [\">= 1.5.0\"]", false),
    (
        "backported",
        "1.2.7",
        "",
        "patched = [\"~1.2.4\", \">= 2\"]",
        false,
    ),
    ("caret", "0.3.4", "", "patched = [\"^0.3.2\"]", false),
    ("exact", "0.3.4", "", "patched = [\"=0.3.4\"]", false),
    (
        "early",
        "0.1.0",
        "",
        "patched = []\nunaffected = [\"< 0.2.0\"]",
        false,
    ),
    (
        "withdrawn",
        "1.0.0",
        "withdrawn = \"2026-01-03\"",
        "patched = []",
        false,
    ),
    (
        "told",
        "1.0.0",
        "informational = \"notice\"",
        "patched = []",
        false,
    ),
    (
        "far",
        "1.0.0",
        "informational = \"unmaintained\"",
        "patched = []",
        false,
    ),
];

/// Writes an advisory on a crate.
fn add_advisory(database: &Path, name: &str, more: &str, versions: &str) {
    let folder = database.join("crates").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "```toml\n[advisory]\nid = \"RUSTSEC-2026-0001\"\npackage = \"{name}\"\ndate = \"2026-01-02\"\n\
         {more}\n[versions]\n{versions}\n```\n\n# It is broken\n"
    );
    std::fs::write(folder.join("RUSTSEC-2026-0001.md"), text).unwrap();
}

#[test]
fn a_crate_with_an_advisory_is_named_and_a_missing_database_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut lock = String::from(
        "[[package]]\nname = \"own\"\nversion = \"1.0.0\"\ndependencies = [\"left\", \"old 1.4.9\"]\n",
    );
    for (name, version, more, versions, _) in ADVISORIES {
        lock += &format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nchecksum = \"00\"\n\
             source = \"registry+https://github.com/rust-lang/crates.io-index\"\n"
        );
        add_advisory(&dir.path().join("db"), name, more, versions);
    }
    std::fs::write(path("Cargo.lock"), lock).unwrap();
    std::fs::write(path("metadata.json"), r#"{"packages": []}"#).unwrap();
    let files = ["metadata.json", "Cargo.lock", "db", "none"].map(path);
    let [metadata, lock, database, none] = files.each_ref().map(String::as_str);
    let check = [
        "check",
        "--metadata",
        metadata,
        "--lock",
        lock,
        "--advisories",
    ];
    let Some(output) = supply_chain(&[&check[..], &[database]].concat()) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let named: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("error: ")?.split(' ').next())
        .collect();
    let expected = ADVISORIES.iter().filter(|(.., refused)| *refused);
    assert_eq!(
        named,
        expected.map(|(name, ..)| *name).collect::<Vec<_>>(),
        "{said}"
    );
    let output = supply_chain(&[&check[..], &[none]].concat()).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("advisories were NOT checked"),
        "{said}"
    );
}

#[test]
fn the_bill_of_materials_names_what_the_program_contains() {
    let Some(output) = supply_chain(&["sbom"]) else {
        return;
    };
    let bill: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.6");
    let program = &bill["metadata"]["component"];
    assert_eq!(
        (&program["name"], &program["type"]),
        (&"tuner".into(), &"application".into())
    );
    let mut refs: Vec<&str> = vec![program["bom-ref"].as_str().unwrap()];
    for component in bill["components"].as_array().unwrap() {
        refs.push(component["bom-ref"].as_str().unwrap());
        let name = component["name"].as_str().unwrap();
        let is_stated = component["licenses"][0]["expression"].is_string();
        assert!(is_stated, "{name} has no licence");
        let is_ours = component["hashes"].is_null();
        assert!(!is_ours || root_has_crate(name), "{name} has no checksum");
    }
    let count = refs.len();
    refs.sort_unstable();
    refs.dedup();
    assert_eq!(refs.len(), count);
    assert!(count > 200, "{count}");
    for node in bill["dependencies"].as_array().unwrap() {
        for used in node["dependsOn"].as_array().unwrap() {
            let used = used.as_str().unwrap();
            assert!(refs.binary_search(&used).is_ok(), "{used}");
        }
    }
    // What tests need alone is not in the program.
    assert!(
        refs.iter()
            .any(|one| one.starts_with("pkg:cargo/sqlx-core@"))
    );
    assert!(!refs.iter().any(|one| one.starts_with("pkg:cargo/insta@")));
}

/// Reports whether a crate is of this workspace.
fn root_has_crate(name: &str) -> bool {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["crates", "crates/gpu"].map(|folder| root.join(folder));
    let line = format!("name = \"{name}\"");
    let members = crates
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    members.into_iter().any(|member| {
        let manifest = member.unwrap().path().join("Cargo.toml");
        std::fs::read_to_string(manifest).is_ok_and(|text| text.contains(&line))
    })
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    let allow = [
        "MIT".to_owned(),
        "Apache-2.0 WITH LLVM-exception".to_owned(),
    ];
    for (expression, expected) in [
        ("MIT", true),
        ("MIT OR AGPL-3.0", true),
        ("MIT/GPL-2.0", true),
        ("MIT AND GPL-2.0", false),
        ("GPL-3.0 OR MIT AND GPL-2.0", false),
        ("(GPL-3.0 OR MIT) AND MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("none stated", false),
        ("", false),
    ] {
        assert_eq!(allowed(expression, &allow), expected, "{expression}");
    }
}
