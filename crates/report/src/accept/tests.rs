use super::*;

const LONG: &str =
    "≥ 10 % on ≥ 2 problems, ≥ 5 % on a third, p90 no worse, no spills, SM busy ≥ 70 %";

fn figures(gain: f64) -> Figures {
    Figures {
        gain,
        gain_low: gain,
        p90_ratio: Some(1.0),
        spill_bytes: Some(0),
        registers: Some(64),
        sm_busy: Some(75.0),
    }
}

fn accepted(rules: &str, gains: &[f64], change: impl Fn(&mut Figures)) -> bool {
    let problems: Vec<(String, Figures)> = gains
        .iter()
        .enumerate()
        .map(|(at, gain)| {
            let mut figures = figures(*gain);
            change(&mut figures);
            (format!("p{at}"), figures)
        })
        .collect();
    let rules = Rules::parse(rules, "rules").unwrap();
    rules.judge(&problems).iter().all(|finding| finding.holds)
}

#[test]
fn the_long_rule_asks_for_two_a_third_and_every_other_clause() {
    let same = |_: &mut Figures| {};
    assert!(accepted(LONG, &[1.10, 1.2, 1.05, 0.99], same));
    assert!(!accepted(LONG, &[1.10, 1.2, 1.04], same));
    assert!(!accepted(LONG, &[1.10, 1.06, 1.05], same));
    assert!(!accepted(LONG, &[1.10, 1.2], same));
    let good = [1.2, 1.2, 1.2];
    assert!(!accepted(LONG, &good, |f| f.p90_ratio = Some(1.01)));
    assert!(!accepted(LONG, &good, |f| f.spill_bytes = Some(8)));
    assert!(!accepted(LONG, &good, |f| f.sm_busy = Some(69.0)));
    assert!(!accepted(LONG, &good, |f| f.sm_busy = None));
    // A gain whose interval contains 1 does not count.
    assert!(!accepted(LONG, &good, |f| f.gain_low = 0.99));
}

#[test]
fn the_short_rule_and_its_plain_spelling_are_the_same() {
    for text in [
        "≥ 3 % on ≥ 2 problems",
        ">= 3% on >= 2 problems",
        ">=3 % ON 2 problems",
    ] {
        let rules = Rules::parse(text, "rules").unwrap();
        assert_eq!(rules.to_string(), "≥ 3 % on ≥ 2 problems", "{text}");
    }
    let same = |_: &mut Figures| {};
    assert!(accepted(">= 3% on >= 2 problems", &[1.03, 1.04, 0.5], same));
    assert!(!accepted(">= 3% on >= 2 problems", &[1.03, 1.02], same));
    assert!(!accepted(
        ">= 3% on all problems, no problem slower",
        &[1.03, 0.5],
        same
    ));
}

#[test]
fn nothing_measured_promotes_nothing() {
    for rules in [LONG, "no spills", ">= 0 % on all problems"] {
        assert!(!accepted(rules, &[], |_| {}));
    }
}
