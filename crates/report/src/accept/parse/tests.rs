use crate::accept::{Clause, Cmp, Count, Rules};
use proptest::prelude::*;

#[test]
fn what_is_wrong_is_pointed_at_with_what_may_stand_there() {
    for (text, place, hint) in [
        ("", (1, 1), "a clause is"),
        ("≥ 10 on 2 problems", (1, 6), "write 10 %"),
        (">= 10 % on some problems", (1, 12), "write a number"),
        (">= 10 % on 2.5 problems", (1, 12), "whole number"),
        ("<= 10 % on 2 problems", (1, 1), "write >= 10 %"),
        (">= 10 % on <= 2 problems", (1, 12), "write >= 2 problems"),
        (
            "no spills no problem slower",
            (1, 11),
            "a comma stands between",
        ),
        ("p90 not worse", (1, 5), "a clause is"),
        ("SM busy >= 170 %", (1, 12), "at most 100"),
        (
            "no spills,\n  >== 3 % on all problems",
            (2, 3),
            "a clause is",
        ),
        ("3x faster", (1, 1), "a clause is"),
        (">= 10x % on 2 problems", (1, 4), "write a number"),
        ("registers 64", (1, 11), "write >="),
        (">= 3 % on a purple", (1, 13), "write second"),
        ("& no spills", (1, 1), "a clause is"),
    ] {
        let error = Rules::parse(text, "--accept").unwrap_err();
        assert_eq!(error.position().unwrap_or((1, 1)), place, "{text}: {error}");
        let words = error.to_string();
        assert!(
            words.contains(hint) && words.contains("--accept:"),
            "{text}: {words}"
        );
        assert!(text.is_empty() || words.contains('^'), "{text}: {words}");
    }
}

fn clause() -> impl Strategy<Value = Clause> {
    let percent = (0u32..2000).prop_map(|tenths| f64::from(tenths) / 10.0);
    let any_cmp = prop_oneof![
        Just(Cmp::AtLeast),
        Just(Cmp::MoreThan),
        Just(Cmp::AtMost),
        Just(Cmp::LessThan)
    ];
    let more = prop_oneof![Just(Cmp::AtLeast), Just(Cmp::MoreThan)];
    let on = prop_oneof![(1u32..9).prop_map(Count::AtLeast), Just(Count::All)];
    prop_oneof![
        (more, percent.clone(), on).prop_map(|(cmp, percent, on)| Clause::Gain {
            cmp,
            percent,
            on
        }),
        percent.clone().prop_map(Clause::P90NoWorse),
        percent.clone().prop_map(Clause::NoProblemSlower),
        Just(Clause::NoSpills),
        (any_cmp.clone(), 0u32..=100)
            .prop_map(|(cmp, percent)| Clause::SmBusy(cmp, f64::from(percent))),
        (any_cmp, 1u32..256).prop_map(|(cmp, count)| Clause::Registers(cmp, f64::from(count))),
    ]
}

proptest! {
    #[test]
    fn printed_rules_read_back_alike(clauses in proptest::collection::vec(clause(), 1..6)) {
        let rules = Rules(clauses);
        let again = Rules::parse(&rules.to_string(), "rules").unwrap();
        prop_assert_eq!(&again, &rules);
        let plain = rules.to_string().replace('≥', ">=").replace('≤', "<=");
        prop_assert_eq!(Rules::parse(&plain, "rules").unwrap(), rules);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[ -~≥≤\n%,>=<0-9a-z]{0,60}") {
        let _ = Rules::parse(&text, "rules").map_err(|error| error.to_string());
    }

    #[test]
    fn a_larger_gain_never_loses_a_promotion(
        gains in proptest::collection::vec(0.8f64..1.4, 1..6),
        more in 0usize..6,
    ) {
        use crate::accept::Figures;
        let rules = Rules::parse(">= 10 % on >= 2 problems, >= 5 % on a third, no problem slower within 5 %", "r").unwrap();
        let judge = |gains: &[f64]| {
            let problems: Vec<(String, Figures)> = gains
                .iter()
                .map(|gain| (String::new(), Figures { gain: *gain, gain_low: *gain, ..Figures::default() }))
                .collect();
            rules.judge(&problems).iter().all(|finding| finding.holds)
        };
        let before = judge(&gains);
        let mut better = gains.clone();
        let at = more % gains.len();
        better[at] *= 1.5;
        prop_assert!(!before || judge(&better));
    }
}
