use super::*;

/// A run of 40 s that began 30 s ago.
fn status() -> Status {
    let began = Instant::now() - Duration::from_secs(30);
    Status {
        done: "0 done".to_owned(),
        budget: Some(WallBudget {
            began,
            length: Duration::from_millis(40_500),
        }),
        json: serde_json::json!({ "progress": { "elapsed_s": null, "evals": 0, "left_s": null,
            "completed": null } }),
        began: Some(began),
        ..Status::default()
    }
}

#[test]
fn the_clock_goes_on_before_the_first_trial() {
    let status = status();
    assert_eq!(status.line().unwrap(), "0 done, 10s left");
    let completed = status.completed().unwrap();
    assert!((0.73..0.76).contains(&completed), "{completed}");
    let json = status.json().unwrap();
    let figures = json["progress"].as_object().unwrap();
    assert!(figures["elapsed_s"].as_f64().unwrap() >= 30.0);
    assert!(figures["left_s"].as_f64().unwrap() <= 10.5);
    assert_eq!(
        figures["completed"].as_f64().unwrap().to_string()[..3],
        *"0.7"
    );
    let keys: Vec<&String> = figures.keys().collect();
    assert_eq!(keys, ["elapsed_s", "evals", "left_s", "completed"]);
}

#[test]
fn the_nearer_limit_counts() {
    let near = Status {
        done: "3/4".to_owned(),
        details: vec!["best 1 us".to_owned()],
        part: Some(0.75),
        ends: Some(Instant::now() + Duration::from_millis(4_900)),
        ..status()
    };
    assert_eq!(near.line().unwrap(), "3/4, 4s left | best 1 us");
    assert!(near.completed().unwrap() >= 0.75);
    // After its end nothing is left.
    let late = Status {
        budget: Some(WallBudget {
            length: Duration::from_secs(20),
            ..status().budget.unwrap()
        }),
        ..status()
    };
    assert_eq!(late.line().unwrap(), "0 done, 0s left");
    assert_eq!(late.completed(), Some(1.0));
    assert_eq!(Status::default().line(), None);
    assert_eq!(Status::default().json(), None);
}
