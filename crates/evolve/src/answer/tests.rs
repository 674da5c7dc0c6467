use super::*;
use crate::patch::between;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const ID: &str = "run-3";

fn parent() -> Code {
    Code {
        source: "#include <cuda_fp16.h>\n__global__ void k(float* y) { y[0] = 1; }\n".to_owned(),
        space: Map::new(),
    }
}

fn outcome(bytes: &[u8]) -> Result<Code, AnswerError> {
    Ok(apply(&read(bytes, ID)?, &parent(), &Headers::default())?.code)
}

fn value(answer: &Value) -> Result<Code, AnswerError> {
    outcome(answer.to_string().as_bytes())
}

#[test]
fn a_source_blocks_and_a_diff_make_the_same_code() {
    let new = parent().source.replace("= 1", "= 2");
    let diff = between(&parent().source, &new);
    let whole = value(&json!({"id": ID, "source": new})).unwrap();
    assert_eq!(whole.source, new);
    let by_diff = value(&json!({"id": ID, "diff": diff, "note": "x"})).unwrap();
    assert_eq!(by_diff.source, new);
    let line = "__global__ void k(float* y) { y[0] = 1; }";
    let blocks = edits::block(line, &line.replace("= 1", "= 2"));
    assert_eq!(
        value(&json!({"id": ID, "blocks": blocks})).unwrap().source,
        new
    );
}

#[test]
fn each_defect_is_named() {
    let cases = [
        (json!({"id": "run-2", "source": "x"}), "for request `run-2`"),
        (json!({"id": ID}), "exactly one"),
        (json!({"id": ID, "source": "x", "diff": "y"}), "2 are given"),
        (json!({"id": ID, "sauce": "x"}), "unknown field `sauce`"),
        (json!({"id": ID, "source": " "}), "is empty"),
        (json!({"id": ID, "source": "a\0b"}), "null byte"),
        (
            json!({"id": ID, "source": "x".repeat(MAX_SOURCE_BYTES + 1)}),
            "1 MiB",
        ),
        (
            json!({"id": ID, "source": "#include <cub/cub.cuh>"}),
            "`cub/cub.cuh`",
        ),
        (
            json!({"id": ID, "space": {"problems": {}}}),
            "unknown field `problems`",
        ),
        (json!([1]), "not of the protocol"),
        (json!([ID, "x"]), "the answer is not a JSON object"),
        (
            json!({"id": ID, "space": []}),
            "`space` is not a JSON object",
        ),
        (
            json!({"id": ID, "source": "x", "usage": [1, 2.0]}),
            "`usage` is not a JSON object",
        ),
        (
            json!({"id": ID, "space": {"add_constraints": [["A", "b"]]}}),
            "`add_constraints` is not a JSON object",
        ),
        (
            json!({"id": ID, "source": "x", "usage": {"cost": -1e9}}),
            "cost outside of 0",
        ),
        (
            json!({"id": ID, "source": "x", "usage": {"cost": 1e308}}),
            "cost outside of 0",
        ),
        (
            json!({"id": ID, "source": "x", "usage": {"tokens": u64::MAX}}),
            "tokens",
        ),
        (
            json!({"id": ID, "space": {"parameters": {"P": {"values": ["__has_include"]}}}}),
            "a value of the parameter `P`",
        ),
        (
            json!({"id": ID, "space": {"parameters": {"P": {"values": ["x".repeat(MAX_SOURCE_BYTES)]}}}}),
            "the changed search space has more than",
        ),
        (
            json!({"id": ID, "space": {"launches": vec![json!({"entry": "k"}); 65]}}),
            "more than 64 launches",
        ),
    ];
    for (answer, text) in cases {
        let error = value(&answer).unwrap_err().to_string();
        assert!(error.contains(text), "{answer}: {error}");
    }
    assert_eq!(outcome(b"  "), Err(AnswerError::Empty));
    assert_eq!(
        outcome(&vec![b' '; MAX_ANSWER_BYTES + 1]),
        Err(AnswerError::TooLarge)
    );
}

#[test]
fn only_a_refused_header_is_not_malformed() {
    let refused = value(&json!({"id": ID, "source": "#include <x.h>"})).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Refused);
    assert_eq!(AnswerError::Empty.outcome(), Outcome::Malformed);
}

/// Damages a correct answer: bytes flipped, cut, doubled, nested, or replaced by noise.
fn damaged(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let line = "__global__ void k(float* y) { y[0] = 1; }";
    let blocks = edits::block(line, line);
    let diff = between(&parent().source, "other\n");
    let right = json!({"id": ID, "blocks": blocks, "space": {"parameters": {"A": {"values": [1]}}}, "note": diff});
    let mut bytes = right.to_string().into_bytes();
    match rng.random_range(0..6) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            for _ in 0..rng.random_range(1..20) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
        }
        2 => bytes.extend(bytes.clone()),
        3 => {
            bytes = vec![b'['; rng.random_range(1..100_000)];
        }
        4 => {
            bytes = vec![0; rng.random_range(0..5000)];
            rng.fill_bytes(&mut bytes);
        }
        _ => {
            let lines: Vec<&str> = diff.lines().collect();
            let mut hunks = String::new();
            for _ in 0..rng.random_range(0..40) {
                hunks.push_str(lines[rng.random_range(0..lines.len())]);
                hunks.push('\n');
            }
            bytes = json!({"id": ID, "diff": hunks}).to_string().into_bytes();
        }
    }
    bytes
}

#[test]
fn two_hundred_malformed_answers_are_survived() {
    let mut rng = ChaCha8Rng::seed_from_u64(44);
    let refused = (0..200).filter(|_| outcome(&damaged(&mut rng)).is_err());
    // Some damage leaves a valid answer: a changed letter of a note.
    assert!(refused.count() > 150);
}
