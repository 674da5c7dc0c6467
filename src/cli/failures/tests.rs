use super::*;

fn trial(verdict: Verdict, detail: &str) -> TrialEvent {
    TrialEvent {
        task: 0,
        kernel: "k".to_owned(),
        problem: "p".to_owned(),
        sequence: 0,
        config: vec![("A".to_owned(), tuner_core::value::Value::Int(1))],
        verdict,
        detail: detail.to_owned(),
        time_us: None,
        timing: None,
        compared: None,
        best_us: None,
        new_best: false,
        origin: "default".to_owned(),
        evals: 1,
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
fn errors_that_differ_in_numbers_only_are_one_with_a_count() {
    let mut failures = Failures::default();
    for (verdict, detail) in [
        (Verdict::Incorrect, "element 12 of `y` is 1.5"),
        (Verdict::Ok, ""),
        (Verdict::Incorrect, "element 7 of `y` is 30.25"),
        (Verdict::Race, "two writes"),
    ] {
        failures.take(&trial(verdict, detail));
    }
    assert_eq!(
        failures.describe("k", "p"),
        "  first error: incorrect: element 12 of `y` is 1.5 (2 times)\n  another: race: two writes\n"
    );
    assert_eq!(failures.config("k", "p").unwrap(), " --config A=1");
    assert_eq!(failures.describe("k", "other"), "");
}

#[test]
fn a_kind_of_failure_of_several_tasks_is_named_once() {
    let mut failures = Failures::default();
    for problem in ["p", "q", "q"] {
        let mut trial = trial(Verdict::Incorrect, "element 12 of `y` is 1.5");
        trial.problem = problem.to_owned();
        failures.take(&trial);
    }
    failures.take(&trial(Verdict::Race, ""));
    assert_eq!(
        failures.kinds(),
        "3 times incorrect: element 12 of `y` is 1.5\n  in k p and 1 other task\n1 time race\n  in k p\n"
    );
}

#[test]
fn a_long_failure_is_wrapped_and_keeps_its_paths_whole() {
    let path = format!("templates/{}/kernel.cu:433", "x".repeat(110));
    let detail = format!("{path}: threads wait in a loop for a value that no thread will write");
    let mut failures = Failures::default();
    let repeated = "a word ".repeat(30);
    failures.take(&trial(Verdict::Deadlock, &detail));
    failures.take(&trial(Verdict::Race, repeated.trim_end()));
    let text = failures.kinds();
    assert!(text.contains(&path), "{text}");
    let long = text
        .lines()
        .filter(|line| line.chars().count() > LINE_WIDTH);
    assert_eq!(long.count(), 1, "{text}");
    assert!(text.contains("1 time race: a word"), "{text}");
}

#[test]
fn many_kinds_of_one_task_leave_room_for_those_of_others() {
    let mut failures = Failures::default();
    for number in 0..=MAX_KINDS {
        let detail = "x".repeat(number);
        failures.take(&trial(Verdict::CompileFailed, &detail));
    }
    assert_eq!(failures.0.len(), MAX_KINDS);
    let mut other = trial(Verdict::Race, "two writes");
    other.problem = "q".to_owned();
    failures.take(&other);
    assert_eq!(
        failures.describe("k", "q"),
        "  first error: race: two writes\n"
    );
}
