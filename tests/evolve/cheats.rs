//! Answers that look faster than they are: each is refused with its reason.

use super::{FAST, HELPER, KERNEL, SPACE, changes, evolve, project, python, with_source};

/// An answer with this source and change of the space, as Python.
fn with_space(folder: &std::path::Path, source: &str, space: &str) -> String {
    crate::program::write(folder, "answer.cu", source);
    let body = format!(
        "print(json.dumps({{'id': request['id'], 'source': open('answer.cu').read(), 'space': {space}}}))"
    );
    python(folder, "with_space.py", &body)
}

#[test]
fn a_kernel_that_knows_the_data_of_the_prediction_is_not_predicted_better() {
    let folder = project();
    let folder = folder.path();
    // More than 1 MiB, of which the prediction leaves floats zero.
    crate::program::write(folder, "space.yaml", &SPACE.replace("4096", "300000"));
    let loops = "for (int pass = 0; pass < 400; ++pass)";
    let source = KERNEL.replace(loops, &format!("if (v != 0.0f) {loops}"));
    let mutator = with_source(folder, &format!("{HELPER}{source}"));
    evolve(folder, &mutator, &["--rounds", "1"]).says(0, &["within resolution"]);
    let change = &changes(folder)[0];
    assert_eq!(change["outcome"], "within_resolution");
    let detail = change["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("prediction not reliable: main: ") && detail.contains("`x`"),
        "{detail}"
    );
}

#[test]
fn a_constraint_does_not_keep_sizes_from_the_checks() {
    let folder = project();
    let folder = folder.path();
    let known = FAST.replace("2.5f", "(N == 4096 ? 2.5f : 1.0f)");
    let excluding = "{'add_constraints': [{'rule': 'N >= 4096', 'why': 'large'}]}";
    let mutator = with_space(folder, &known, excluding);
    evolve(folder, &mutator, &["--rounds", "1"]).says(
        3,
        &[
            "malformed",
            "no valid configuration for sizes that the parent's allows",
        ],
    );
    let nowhere = "{'add_constraints': [{'rule': 'BLOCK < 1', 'why': 'none'}]}";
    let mutator = with_space(folder, &known, nowhere);
    evolve(folder, &mutator, &["--rounds", "1"]).says(
        3,
        &["malformed", "no valid configuration for the problem `main`"],
    );
}

#[test]
fn a_value_is_not_limited_to_the_timed_sizes() {
    let folder = project();
    let folder = folder.path();
    let known = FAST.replace("2.5f", "(N == 4096 ? 2.5f : 1.0f)");
    let source = format!("#if HARD\n{known}#else\n{HELPER}{KERNEL}#endif\n");
    let space = "{'parameters': {'HARD': {'values': [0, 1], 'default': 0}}, 'seeds': [{'HARD': 1}],
        'add_constraints': [{'rule': 'HARD == 0 or N >= 4096', 'why': 'large'}]}";
    let mutator = with_space(folder, &source, &space.replace('\n', " "));
    evolve(folder, &mutator, &["--rounds", "1"]).says(
        3,
        &[
            "failed (not_judged)",
            "not valid for any of the sizes drawn",
        ],
    );
}

#[test]
fn edited_references_and_headers_change_nothing() {
    let folder = project();
    let folder = folder.path();
    let reference = std::fs::read_to_string(folder.join("reference.cu")).unwrap();
    let reference = format!(
        "#include \"scale.cuh\"\n{}",
        reference.replace("2.5f", "FACTOR")
    );
    crate::program::write(folder, "reference.cu", &reference);
    crate::program::write(folder, "scale.cuh", "#define FACTOR 2.5f\n");
    crate::program::write(folder, "zero.cu", &FAST.replace("2.5f * x[i]", "0.0f"));
    for (edited, edit) in [
        (
            "scale.cuh",
            "open('scale.cuh', 'w').write('#define FACTOR 0.0f\\n')",
        ),
        (
            "reference.cu",
            "t = open('reference.cu').read(); open('reference.cu', 'w').write(t.replace('FACTOR * x[i]', '0.0f'))",
        ),
    ] {
        let body = format!(
            "if request['round'] == 1: {edit}\nprint(json.dumps({{'id': request['id'], 'source': open('zero.cu').read()}}))"
        );
        let mutator = python(folder, "edits.py", &body);
        let ended = evolve(folder, &mutator, &["--rounds", "2"]);
        let changed = format!("refused: {edited} changed on disk");
        ended.says_of(&edited, 3, &[&changed, "round 2/2", "failed (incorrect)"]);
        crate::program::write(folder, "reference.cu", &reference);
        crate::program::write(folder, "scale.cuh", "#define FACTOR 2.5f\n");
    }
}

#[test]
fn a_mutator_learns_no_seed_and_cannot_compute_the_next() {
    let folder = project();
    let folder = folder.path();
    let seeds = |factor: &str| -> Vec<String> {
        crate::program::write(folder, "answer.cu", &FAST.replace("2.5f", factor));
        let body = "open('log', 'a').write(json.dumps(request['failures']))\n\
                    print(json.dumps({'id': request['id'], 'source': open('answer.cu').read()}))";
        let mutator = python(folder, "log.py", body);
        evolve(folder, &mutator, &["--rounds", "2"]).says(3, &["failed (incorrect)"]);
        let details = changes(folder).into_iter();
        let details = details.map(|change| change["detail"].as_str().unwrap().to_owned());
        let seed = |text: String| {
            let (_, rest) = text.split_once("seed ")?;
            Some(rest.chars().take_while(char::is_ascii_digit).collect())
        };
        details.filter_map(seed).collect()
    };
    let (first, second) = (seeds("2.6f"), seeds("2.7f"));
    assert!(!first.is_empty() && !second.is_empty());
    assert!(
        first.iter().all(|seed| !second.contains(seed)),
        "{first:?} {second:?}"
    );
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(log.contains("incorrect"), "{log}");
    for seed in first.iter().chain(&second) {
        assert!(!log.contains(seed.as_str()), "{log}");
    }
    for name in ["ragged", "short", "drawn"] {
        assert!(!log.contains(name), "{log}");
    }
}
