use super::*;

#[test]
fn every_oracle_has_cases_and_no_case_twice() {
    for name in super::super::oracle::names() {
        let cases = Case::list(name);
        assert!(!cases.is_empty(), "{name}");
        let distinct: std::collections::BTreeSet<_> = cases.iter().collect();
        assert_eq!(distinct.len(), cases.len(), "{name}");
    }
}

#[test]
fn representable_numbers_survive_both_types() {
    for types in [
        [Element::F16, Element::F16],
        [Element::Bf16, Element::F32],
        [Element::F8e4m3, Element::F16],
    ] {
        for index in 0..5000 {
            let value = representable(index, types);
            for element in types {
                assert_eq!(element.round(value), value, "{element:?}");
            }
        }
    }
}
