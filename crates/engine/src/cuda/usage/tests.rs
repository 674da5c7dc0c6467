use super::*;

#[test]
fn the_usage_of_a_gpu_adds_up() {
    let seconds = Duration::from_secs;
    let spent = Spent {
        gate: seconds(10),
        timing: seconds(50),
        copies: seconds(5),
        load: seconds(1),
        total: seconds(70),
    };
    let usage = Usage {
        spent,
        deferred: seconds(10),
        candidates: 500,
        ..Usage::default()
    };
    let line = usage.line(seconds(100));
    for part in [
        "busy 70 % of 100.0 s (timing 50 %, gate 10 %, checks on other problems 10 %)",
        "waiting for compiled candidates 20 %",
        "host 4 %, copies 5 %, loading code 1 %",
        "18000 candidates an hour",
    ] {
        assert!(line.contains(part), "{line}");
    }
}
