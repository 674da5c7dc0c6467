use super::*;

#[test]
fn the_usage_of_a_gpu_adds_up() {
    let seconds = Duration::from_secs;
    let spent = Spent {
        gate: seconds(10),
        timing: seconds(60),
        copies: seconds(5),
        load: seconds(1),
        total: seconds(80),
    };
    let line = usage_line(&spent, 500, seconds(100));
    for part in [
        "busy 70 % of 100.0 s (timing 60 %, gate 10 %)",
        "waiting for compiled candidates 20 %",
        "host 4 %, copies 5 %, loading code 1 %",
        "18000 candidates an hour",
    ] {
        assert!(line.contains(part), "{line}");
    }
}
