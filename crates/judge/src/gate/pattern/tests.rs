use super::*;

/// Describes an output of 8 x 10 elements from the error of each element.
fn described(got: impl Fn(u64, f64) -> f64) -> String {
    let mut wrong: Option<WrongElements> = None;
    for index in 0..80 {
        let want = 1.5 + (index * 7 % 11) as f64;
        let found = got(index, want);
        if found != want {
            let one = WrongElements::new(index, found, want);
            match &mut wrong {
                Some(all) => all.join(&one),
                None => wrong = Some(one),
            }
        }
    }
    wrong.expect("something is wrong").describe(80, &[8, 10])
}

#[test]
fn the_usual_patterns_are_named() {
    let noise = |index: u64| (index * index % 7) as f64 + 0.3;
    let at = |hit: fn(u64) -> bool| {
        described(move |i, want| if hit(i) { want + noise(i) } else { want })
    };
    for (text, words) in [
        (described(|_, want| 0.5 * want), "each is 0.5000 times"),
        (
            described(|_, want| want + 1.0),
            "each is what is expected +1",
        ),
        (
            described(|_, want| 0.5 * want),
            "either side may be wrong: the kernel or its reference",
        ),
        (
            described(|i, want| want + noise(i)),
            "arguments may be in another order",
        ),
        (at(|i| i >= 73), "the last 7 of 80"),
        (at(|i| i / 10 == 3 && i % 10 != 4), "all lie in row 3"),
        (at(|i| i % 10 == 4), "all lie in column 4"),
        (at(|i| i % 17 == 3), "one element in 17, from 3 on"),
        (at(|i| (25..48).contains(&i)), "elements 25 to 47"),
        (
            at(|i| i == 12 || i == 31 || i == 33),
            "between elements 12 and 33",
        ),
    ] {
        assert!(text.contains(words), "`{text}` lacks `{words}`");
    }
    assert_eq!(at(|i| i == 5), "", "one element has no pattern");
}

#[test]
fn a_value_that_is_not_a_number_has_no_factor() {
    let text = described(|i, want| if i == 40 { f64::NAN } else { 2.0 * want });
    assert!(!text.contains("times"), "{text}");
}
