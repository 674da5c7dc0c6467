use super::*;
use tuner_core::value::Value;
use tuner_search::Knowledge;
use tuner_space::{Environment, Parameter, Space};

fn task() -> Task {
    let values: Vec<Value> = (1..=4).map(Value::Int).collect();
    Task {
        key: TaskKey {
            kernel: "k".to_owned(),
            problem: "p".to_owned(),
            device: "vgpu:h100".to_owned(),
        },
        space: Space::build(
            "toy",
            vec![Parameter::new("A", values)],
            &[],
            &Environment::default(),
        )
        .unwrap(),
        start: Vec::new(),
        knowledge: Knowledge::default(),
        weight: 1.0,
        work: 0.0,
    }
}

fn config(a: i64) -> ConfigValues {
    vec![("A".to_owned(), Value::Int(a))]
}

/// Returns a trial that passed, with the same predicted time as every other.
fn trial(a: i64, origin: &str) -> TrialEvent {
    TrialEvent {
        task: 0,
        kernel: "k".to_owned(),
        problem: "p".to_owned(),
        sequence: 0,
        config: config(a),
        verdict: Verdict::Ok,
        detail: String::new(),
        time_us: Some(10.0),
        timing: Some(TimingKind::Predicted),
        compared: Some(Compared::Sampled),
        best_us: None,
        new_best: false,
        origin: origin.to_owned(),
        evals: 0,
        clock_s: 0.0,
        resumed: false,
        reused: false,
        known: false,
        free: false,
        ci95_us: None,
        left: None,
        doubts: Vec::new(),
    }
}

#[test]
fn a_refuted_trial_withdraws_the_time_of_the_default_only_if_it_is_the_default() {
    let mut ledger = Ledger::new(&[task()]);
    ledger.enter(&mut trial(1, "default"));
    ledger.enter(&mut trial(2, "random"));
    let refuted = Judgement::new(Verdict::Incorrect, "wrong");
    ledger.take_proof(0, &config(2), &refuted);
    assert_eq!(ledger.tasks[0].default_us, Some(10.0));
    ledger.take_proof(0, &config(1), &refuted);
    assert_eq!(ledger.tasks[0].default_us, None);
    assert_eq!(ledger.tasks[0].best, None);
}
