use super::*;
use tokio::sync::broadcast::error::TryRecvError;
use tuner_core::record::Verdict;

fn run() -> LiveRun {
    let view = serde_json::json!({
        "id": "r", "state": "running", "message": "", "request": null, "device": "d",
        "device_kind": null, "strategy": null, "seed": null, "evals_limit": null,
        "budget_s": null, "evals": 0, "clock_s": 0.0, "elapsed_s": null, "rate": null,
        "notes": [], "submitted_at": null, "started_at": null, "ended_at": null,
        "tasks": [{ "kernel": "k", "problem": "p", "valid": null, "evals": 0, "best_us": null,
                    "best_config": null, "default_us": null, "verdicts": {}, "curve": [] }],
    });
    LiveRun::new(serde_json::from_value(view).unwrap(), 0.0)
}

fn trial(number: u64, us: Option<f64>) -> Event {
    Event::Trial(TrialEvent {
        task: 0,
        kernel: "k".to_owned(),
        problem: "p".to_owned(),
        sequence: number,
        config: Vec::new(),
        verdict: us.map_or(Verdict::Crashed, |_| Verdict::Ok),
        detail: String::new(),
        time_us: us,
        timing: None,
        compared: None,
        best_us: us,
        new_best: us.is_some(),
        origin: "default".to_owned(),
        evals: number + 1,
        clock_s: 0.0,
        resumed: false,
        reused: false,
        known: false,
        free: false,
        ci95_us: None,
        left: None,
        doubts: Vec::new(),
    })
}

#[test]
fn who_falls_behind_the_backlog_is_told_how_far_and_catches_up_by_a_snapshot() {
    let run = run();
    let (_, _, mut slow) = run.listen();
    let all = MAX_LAG_EVENTS as u64 + 500;
    for number in 0..all {
        run.take(&trial(number, None));
    }
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(500)));
    let (view, _, mut again) = run.listen();
    assert_eq!(view.evals, all);
    assert_eq!(again.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn the_first_that_listens_hears_everything_even_after_the_end() {
    let live = Live::default();
    let run = Arc::new(run());
    live.add(&run);
    for number in 0..3 {
        run.take(&trial(number, None));
    }
    live.remove("r");
    assert!(live.get("r").is_none());
    let over = live.unheard("r").unwrap();
    let (view, _, mut events) = over.listen();
    assert_eq!((view.evals, events.len()), (0, 3));
    assert!(events.try_recv().unwrap().contains("\"trial\""));
    // Returned once; a second listener receives only new events.
    assert!(live.unheard("r").is_none());
    let (view, _, events) = over.listen();
    assert_eq!((view.evals, events.len()), (3, 0));
}

#[test]
fn who_listens_first_and_too_late_for_all_events_gets_the_run_as_it_is() {
    let run = run();
    for number in 0..MAX_LAG_EVENTS as u64 + 1 {
        run.take(&trial(number, None));
    }
    let (view, _, events) = run.listen();
    assert_eq!((view.evals, events.len()), (MAX_LAG_EVENTS as u64 + 1, 0));
}

#[test]
fn a_runs_state_is_counts_and_the_falls_of_its_best_time() {
    let run = run();
    for (number, us) in [(0, Some(9.0)), (1, None), (2, Some(7.5))] {
        run.take(&trial(number, us));
    }
    let view = run.view();
    let task = &view.tasks[0];
    let curve: Vec<(u64, f64)> = task.curve.iter().map(|p| (p.evals, p.us)).collect();
    assert_eq!(curve, [(1, 9.0), (3, 7.5)]);
    assert_eq!((task.evals, task.best_us), (3, Some(7.5)));
    assert_eq!(task.verdicts[&Verdict::Crashed], 1);
}

#[test]
fn runs_of_one_kernel_on_two_devices_list_their_own_activities() {
    let (first, second, recorded) = (run(), run(), run());
    let owner = Owner::unique();
    first.own(Some(owner));
    second.own(Some(Owner::unique()));
    let _doing = activity::begin_for(Some(owner), "judging", "k p: VEC=2");
    let _outside = activity::begin("judging", "k p: VEC=4");
    let candidates = |run: &LiveRun| {
        let all = run.view().activities.into_iter();
        all.map(|one| one.candidate).collect::<Vec<_>>()
    };
    assert_eq!(candidates(&first), ["k p: VEC=2"]);
    assert!(candidates(&second).is_empty());
    assert!(candidates(&recorded).is_empty());
}
