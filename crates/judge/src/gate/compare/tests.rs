use super::*;
use crate::gate::oracle::Expected;
use proptest::prelude::*;

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Compares complete outputs under a flat tolerance.
fn flat(element: Element, got: &[u8], want: &[u8], atol: f64, rtol: f64) -> Comparison {
    let count = (want.len() / element.size()) as u64;
    with_reference(element, got, want, 0..count, |_, value| {
        [value, atol + rtol * value.abs()]
    })
}

#[test]
fn a_nan_in_place_of_a_number_is_wrong_however_loose_the_tolerance() {
    let (got, want) = (bytes(&[1.0, f32::NAN]), bytes(&[1.0, 2.0]));
    let result = flat(Element::F32, &got, &want, 1e9, 1.0);
    assert_eq!((result.wrong, result.passed()), (1, false));
    assert!(
        result.describe("c", &[1, 2]).contains("c[0][1] = NaN"),
        "{}",
        result.describe("c", &[1, 2])
    );
}

#[test]
fn equal_infinities_agree_and_opposite_ones_do_not() {
    let inf = f32::INFINITY;
    assert!(flat(Element::F32, &bytes(&[inf]), &bytes(&[inf]), 0.0, 0.0).passed());
    assert!(!flat(Element::F32, &bytes(&[inf]), &bytes(&[-inf]), 1.0, 1.0).passed());
}

#[test]
fn whole_numbers_that_float64_cannot_tell_apart_differ() {
    for (one, two) in [
        (1i64 << 53, (1 << 53) + 1),
        (i64::MAX, i64::MAX - 1),
        (i64::MIN, i64::MIN + 1),
    ] {
        let (got, want) = (one.to_le_bytes(), two.to_le_bytes());
        let result = flat(Element::I64, &got, &want, 0.0, 0.0);
        assert_eq!((result.wrong, result.max_error), (1, 2.0));
        let text = result.describe("c", &[1]);
        assert!(
            text.contains(&format!("c[0] = {one}, expected {two} exactly")),
            "{text}"
        );
        assert!(flat(Element::I64, &got, &got, 0.0, 0.0).passed());
        assert!(flat(Element::I64, &got, &want, 1.0, 0.0).passed());
    }
    let far = flat(
        Element::I64,
        &i64::MIN.to_le_bytes(),
        &i64::MAX.to_le_bytes(),
        1e18,
        0.0,
    );
    assert!(!far.passed(), "the difference does not overflow");
}

/// Compares 100 elements against an oracle.
fn against(oracle: &dyn Oracle, element: Element, got: &[u8], rule: Rule) -> Comparison {
    with_oracle(
        oracle,
        0,
        element,
        got,
        std::slice::from_ref(&(0..100)),
        rule,
    )
}

/// An oracle of one integer element with a tolerance of ten.
struct Ten;

impl Oracle for Ten {
    fn span(&self, _output: usize, _start: u64, count: u64) -> Vec<Expected> {
        let want = Expected {
            value: 1e6,
            tolerance: 10.0,
            rms: 10.0,
        };
        (0..count).map(|_| want).collect()
    }

    fn tile(&self, _output: usize) -> u64 {
        100
    }
}

#[test]
fn an_oracle_allows_whole_numbers_nothing() {
    let of = |value: i32| value.to_le_bytes().repeat(100);
    for (value, right) in [(1_000_000, true), (1_000_001, false), (999_999, false)] {
        let passes = |rule| against(&Ten, Element::I32, &of(value), rule).passed();
        for rule in [Rule::Tiles, Rule::Elements(None), Rule::Exact] {
            assert_eq!(passes(rule), right, "{value} {rule:?}");
        }
        assert!(passes(Rule::Elements(Some((1.0, 0.0)))));
    }
    let near = bytes(&[1_000_001.0; 100]);
    assert!(against(&Ten, Element::F32, &near, Rule::Tiles).passed());
}

/// One tile of 100 float32 elements: the first is `first`, the others are 1e-6.
struct Peaked {
    first: f64,
}

impl Oracle for Peaked {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        let value = |i| if i == 0 { self.first } else { 1e-6 };
        (start..start + count)
            .map(|i| Expected {
                value: value(i),
                tolerance: 0.01 * value(i),
                rms: 0.003 * value(i),
            })
            .collect()
    }

    fn tile(&self, _output: usize) -> u64 {
        100
    }
}

#[test]
fn a_tile_that_one_element_dominates_is_judged_by_its_elements_alone() {
    let check = |first: f64| {
        let values: Vec<f32> = (0..100)
            .map(|i| (if i == 0 { first } else { 1e-6 } * 1.008) as f32)
            .collect();
        let oracle = Peaked { first };
        against(&oracle, Element::F32, &bytes(&values), Rule::Tiles).passed()
    };
    assert!(check(1.0), "0.8 of its tolerance");
    assert!(!check(1e-6), "every element is off by 0.8 of its tolerance");
}

proptest! {
    #[test]
    fn a_single_corrupted_element_is_always_found(
        values in proptest::collection::vec(-1e3f32..1e3, 1..50),
        at in any::<prop::sample::Index>(),
    ) {
        let mut other = values.clone();
        let i = at.index(values.len());
        other[i] += other[i].abs() * 0.01 + 0.01;
        let result = flat(Element::F32, &bytes(&other), &bytes(&values), 1e-3, 1e-3);
        prop_assert_eq!(result.first_wrong.map(|w| w.0), Some(i as u64));
        prop_assert!(flat(Element::F32, &bytes(&values), &bytes(&values), 0.0, 0.0).passed());
    }
}

#[test]
fn few_elements_just_beyond_their_tolerance_are_accepted_and_counted() {
    // One element in ten thousand, 1.5 and 2.5 times its tolerance.
    let compared = |wrong: &[usize], factor: f32| {
        let want = vec![1.0_f32; 10_000];
        let mut got = want.clone();
        for at in wrong {
            got[*at] += 0.001 * factor;
        }
        let mut result = flat(Element::F32, &bytes(&got), &bytes(&want), 0.001, 0.0);
        assert!(!result.passed());
        result.accept_rare();
        result
    };
    let accepted = compared(&[77], 1.5);
    assert!(accepted.passed() && accepted.rare == 1, "{accepted:?}");
    assert!(accepted.rare_error > 1.4, "{accepted:?}");
    assert!(!compared(&[77], 2.5).passed(), "too far");
    assert!(!compared(&[77, 78], 1.5).passed(), "too many");
}

#[test]
fn equality_is_of_bytes_inside_the_ranges() {
    let equal = |got: &[f32], want: &[f32], ranges: &[Range<u64>]| {
        are_equal(Element::F32, &bytes(got), &bytes(want), ranges)
    };
    let all = |end: u64| std::iter::once(0..end).collect::<Vec<_>>();
    assert!(equal(&[1.0, f32::NAN], &[1.0, f32::NAN], &all(2)));
    assert!(!equal(&[1.0, 0.0], &[1.0, -0.0], &all(2)));
    assert!(equal(&[1.0, 2.0, 3.0], &[1.0, 5.0, 3.0], &[0..1, 2..3]));
    assert!(!equal(&[1.0, 2.0, 4.0], &[1.0, 5.0, 3.0], &[0..1, 2..3]));
    // Elements that are missing on both sides are not compared.
    assert!(!equal(&[1.0], &[1.0], &all(2)));
}
