use super::*;

#[test]
fn budgets_are_read_as_people_write_them() {
    for (text, seconds) in [
        ("90s", 90.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("1d", 86_400.0),
        ("1m 30s", 90.0),
    ] {
        let parsed = parse_budget(text).map(|budget| budget.as_secs_f64());
        assert_eq!(parsed, Ok(seconds), "{text}");
    }
}

#[test]
fn a_budget_without_a_unit_or_a_time_is_refused_with_examples() {
    for text in ["", "90", "h", "10x", "-5m", "0s", "1e3s", "5m-", "nan s"] {
        let error = parse_budget(text).unwrap_err().to_string();
        assert!(error.contains("90s, 10m, 2h or 1h30m"), "{text}: {error}");
    }
}

#[test]
fn durations_print_short() {
    for (milliseconds, text) in [
        (400, "0.4s"),
        (90_000, "1m30s"),
        (600_000, "10m"),
        (5_400_000, "1h30m"),
        (7_200_000, "2h"),
    ] {
        assert_eq!(format_duration(Duration::from_millis(milliseconds)), text);
    }
}
