use super::*;
use tuner_core::record::TaskKey;
use tuner_core::value::Value;
use tuner_search::{Experience, Knowledge};
use tuner_space::{Environment, Parameter, Space};

/// A task that knows so many sources with long names.
fn task(kernel: &str, sources: usize) -> Task {
    let parameter = Parameter::new("a".to_owned(), vec![Value::Int(1), Value::Int(2)]);
    let space = Space::build("toy", vec![parameter], &[], &Environment::default()).unwrap();
    let rows = |time: f64| {
        (1..=2).map(move |value| {
            let config = vec![("a".to_owned(), Value::Int(value))];
            (config, tuner_core::units::Micros::new(time * value as f64))
        })
    };
    let experiences: Vec<Experience> = (0..sources)
        .map(|number| Experience {
            name: format!("square{number} on NVIDIA A100-PCIE-40GB"),
            rows: rows(1.0).collect(),
        })
        .collect();
    Task {
        key: TaskKey {
            kernel: kernel.to_owned(),
            problem: "large".to_owned(),
            device: "vgpu:l4".to_owned(),
        },
        knowledge: Knowledge::new(&space, &experiences),
        space,
        start: Vec::new(),
        weight: 1.0,
        work: 0.0,
    }
}

#[test]
fn a_note_fits_a_line_however_much_is_known() {
    let one = [task("gemm_f32", 6)];
    let names = one[0].knowledge.names().count();
    assert!(names > 2, "{names}");
    let worth = vec![vec![0.5; names]];
    let night: Vec<Task> = (0..77)
        .map(|number| task(&format!("k{number}"), 3))
        .collect();
    let worths: Vec<Vec<f64>> = night.iter().map(|_| vec![0.8, 0.1, 0.2]).collect();
    let notes = [
        describe_known(&one).unwrap(),
        describe_worth(&one, &worth, None).unwrap(),
        describe_known(&night).unwrap(),
        describe_worth(&night, &worths, Some(1234)).unwrap(),
    ];
    for note in &notes {
        assert!(
            note.chars().count() <= 100 || note.contains("square0"),
            "{note}"
        );
    }
    assert!(
        notes[0].contains("square0 on NVIDIA A100-PCIE-40GB; "),
        "{}",
        notes[0]
    );
    assert!(
        notes[0].contains(" more (--no-knowledge: nothing)"),
        "{}",
        notes[0]
    );
    assert_eq!(
        notes[2],
        "the search knows related results for 77 of 77 tasks (--no-knowledge: nothing)"
    );
    assert_eq!(
        notes[3],
        "what was known ordered the results of 77 of 77 tasks well, of 0 roughly; 1234 trials saved"
    );
}

#[test]
fn nothing_is_told_of_tasks_without_knowledge() {
    let mut tasks = vec![task("a", 0), task("b", 0)];
    assert_eq!(describe_known(&tasks), None);
    assert_eq!(describe_worth(&tasks, &[vec![], vec![]], None), None);
    tasks.push(task("c", 2));
    let note = describe_known(&tasks).unwrap();
    assert!(note.contains("for 1 of 3 tasks"), "{note}");
}
