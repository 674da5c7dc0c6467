use super::*;

fn gain(percent: f64, problems: impl Into<Option<u32>>) -> Clause {
    Clause::Gain(Gain {
        percent,
        problems: problems.into(),
    })
}

fn long() -> Rules {
    Rules(vec![
        gain(10.0, 2),
        gain(5.0, 3),
        Clause::P90NoWorse(0.0),
        Clause::NoSpills,
        Clause::SmBusy(70.0),
    ])
}

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

fn accepted(rules: &Rules, gains: &[f64], change: impl Fn(&mut Figures)) -> bool {
    let problems: Vec<(String, Figures)> = gains
        .iter()
        .enumerate()
        .map(|(at, gain)| {
            let mut figures = figures(*gain);
            change(&mut figures);
            (format!("p{at}"), figures)
        })
        .collect();
    rules.judge(&problems).iter().all(|finding| finding.holds)
}

#[test]
fn every_rule_must_hold() {
    let same = |_: &mut Figures| {};
    let long = long();
    assert_eq!(
        long.to_string(),
        "≥ 10 % on ≥ 2 problems, ≥ 5 % on ≥ 3 problems, p90 no worse, no spills, SM busy ≥ 70 %"
    );
    assert!(accepted(&long, &[1.10, 1.2, 1.05, 0.99], same));
    assert!(!accepted(&long, &[1.10, 1.2, 1.04], same));
    assert!(!accepted(&long, &[1.10, 1.06, 1.05], same));
    assert!(!accepted(&long, &[1.10, 1.2], same));
    let good = [1.2, 1.2, 1.2];
    assert!(!accepted(&long, &good, |f| f.p90_ratio = Some(1.01)));
    assert!(!accepted(&long, &good, |f| f.spill_bytes = Some(8)));
    assert!(!accepted(&long, &good, |f| f.sm_busy = Some(69.0)));
    assert!(!accepted(&long, &good, |f| f.sm_busy = None));
    // A gain whose interval contains 1 does not count.
    assert!(!accepted(&long, &good, |f| f.gain_low = 0.99));
}

#[test]
fn a_gain_holds_on_a_number_of_problems_or_on_all() {
    let same = |_: &mut Figures| {};
    let two = Rules(vec![gain(3.0, 2)]);
    assert!(accepted(&two, &[1.03, 1.04, 0.5], same));
    assert!(!accepted(&two, &[1.03, 1.02], same));
    let all = Rules(vec![gain(3.0, None)]);
    assert!(!accepted(&all, &[1.03, 0.5], same));
    assert!(accepted(&all, &[1.03, 1.03], same));
    let slower = Rules(vec![Clause::NoProblemSlower(1.0)]);
    assert!(accepted(&slower, &[0.995, 1.0], same));
    assert!(!accepted(&slower, &[0.98, 1.0], same));
    let registers = Rules(vec![Clause::Registers(64)]);
    assert!(accepted(&registers, &[1.0], same));
    assert!(!accepted(&registers, &[1.0], |f| f.registers = Some(65)));
}

#[test]
fn nothing_measured_promotes_nothing() {
    for clause in [gain(0.0, None), Clause::NoSpills] {
        assert!(!accepted(&Rules(vec![clause]), &[], |_| {}));
    }
}
