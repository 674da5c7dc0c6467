use super::*;
use crate::answer::{self, Code};
use crate::protocol::{Parent, Rules, Sibling, Task};
use crate::space_change;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

fn request(source: &str, space: Value, seed: u64) -> MutationRequest {
    MutationRequest {
        protocol: 1,
        id: "e-1".to_owned(),
        round: 1,
        seed,
        task: Task {
            kernel: "k".to_owned(),
            summary: String::new(),
            device: "vgpu:h100".to_owned(),
            timing: "predicted".to_owned(),
            arguments: Value::Null,
            problems: BTreeMap::new(),
            reference: Value::Null,
            tolerance: Value::Null,
        },
        parent: Parent {
            change: None,
            source: source.to_owned(),
            space,
            best: Vec::new(),
        },
        failures: Vec::new(),
        siblings: Vec::new(),
        rules: Rules {
            accept: String::new(),
            resolution: None,
            includes: Vec::new(),
            max_source_bytes: 0,
            max_answer_bytes: 0,
        },
        correction: None,
    }
}

fn shipped(kernel: &str) -> (String, Map<String, Value>) {
    let source = read(&format!("templates/{kernel}/kernel.cu"));
    let space = space_change::document(&read(&format!("search_spaces/{kernel}.yaml"))).unwrap();
    (source, space)
}

/// Returns the labels of all variants of a source.
fn labels(source: &str, space: &Value) -> Vec<String> {
    let subject = Subject {
        code: Source::parse(source).unwrap(),
        space,
    };
    let all = TRANSFORMATIONS
        .iter()
        .flat_map(|transformation| transformation(&subject));
    all.map(|variant| variant.label).collect()
}

#[test]
fn every_answer_applies_to_its_parent_and_none_comes_twice() {
    for kernel in ["softmax", "layernorm", "reduce_sum", "conv2d_f32"] {
        let (source, space) = shipped(kernel);
        let mut request = request(&source, space_change::changeable(&space), 7);
        let mut notes = BTreeSet::new();
        while let Some(answer) = answer(&request) {
            let bytes = serde_json::to_vec(&answer).unwrap();
            let read = answer::read(&bytes, "e-1").unwrap();
            let parent = Code {
                source: source.clone(),
                space: space.clone(),
            };
            let changed = answer::apply(&read, &parent, &answer::Headers::default())
                .unwrap()
                .code;
            assert_ne!(changed, parent, "{}", answer.note);
            assert!(
                notes.insert(answer.note.clone()),
                "{kernel}: {} twice",
                answer.note
            );
            request.seed += 1;
            request.siblings.push(Sibling {
                change: 1,
                outcome: "failed".to_owned(),
                note: answer.note,
                gains: BTreeMap::new(),
            });
        }
        assert!(notes.len() >= 5, "{kernel}: {notes:?}");
    }
}

#[test]
fn answers_are_those_of_the_seed() {
    let (source, space) = shipped("conv2d_f32");
    let space = space_change::changeable(&space);
    let note = |seed| answer(&request(&source, space.clone(), seed)).unwrap().note;
    assert_eq!(note(3), note(3));
    let notes: BTreeSet<String> = (0..20).map(note).collect();
    assert!(notes.len() > 5);
}

#[test]
fn the_convolution_has_variants_of_each_kind() {
    let (source, space) = shipped("conv2d_f32");
    let all = labels(&source, &space_change::changeable(&space));
    for kind in [
        "align_rows",
        "batch_loads",
        "cache_hints",
        "launch_bounds",
        "remove_barrier",
        "swap_loops",
        "unroll",
        "widen",
    ] {
        assert!(
            all.iter().any(|label| label.starts_with(kind)),
            "{kind}: {all:?}"
        );
    }
    let (source, space) = shipped("layernorm");
    let all = labels(&source, &space_change::changeable(&space));
    assert!(
        all.iter().any(|label| label.starts_with("hoist")),
        "{all:?}"
    );
}

#[test]
fn a_marked_loop_is_double_buffered() {
    let source = "__global__ void k(const float* x, float* y) {
    __shared__ float tile[128];
    float sum = 0;
    // tuner: double-buffer tile
    for (int t = 0; t < N; t += 128) {
        tile[threadIdx.x] = x[t + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 128; ++i) sum += tile[i];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
";
    let subject = Subject {
        code: Source::parse(source).unwrap(),
        space: &Value::Null,
    };
    let all = double_buffer::variants(&subject);
    assert_eq!(all.len(), 1);
    let text = &all[0].source;
    assert!(text.contains("__shared__ float tile[2 * (128)]"), "{text}");
    assert!(text.contains("sum += buffer[i]"), "{text}");
    assert!(text.contains("x[(t + 128) + threadIdx.x]"), "{text}");
    // Without the mark the source is not changed.
    let plain = source.replace("// tuner: double-buffer tile", "");
    let subject = Subject {
        code: Source::parse(&plain).unwrap(),
        space: &Value::Null,
    };
    assert!(double_buffer::variants(&subject).is_empty());
}
