//! Every crate that is built into the program has a licence that `deny.toml` allows.

use std::process::Command;

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
