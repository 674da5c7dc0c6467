use super::{ask, member, signature, unchanged};
use crate::compile::ProbedKernel;
use tuner_core::value::Value;

fn kernel(name: &str) -> ProbedKernel {
    ProbedKernel {
        name: name.to_owned(),
        place: None,
    }
}

#[test]
fn an_answer_is_read_from_the_mangled_name() {
    let answer = [
        kernel("k"),
        kernel(
            "_ZN18tuner_declarations15tuner_signatureILi0EPFvPK6__halfPA3_f1EP1FP1VPvS9_PVKyENS_11tuner_sizesIJLy8ELy16ELy17ELy5ELy16ELy0ELy16ELy32EEEEEEvv",
        ),
        kernel("_ZN18tuner_declarations15tuner_signatureILi1EPFvvENS_11tuner_sizesIJEEEEEvv"),
        kernel("_ZN18tuner_declarations11tuner_macroILi0ELb1EEEvv"),
        kernel("_ZN18tuner_declarations11tuner_macroILi1ELb0EEEvv"),
    ];
    let found = signature(&answer, 0).unwrap();
    let types: Vec<&str> = found.iter().map(|each| &*each.ty).collect();
    assert_eq!(
        types,
        [
            "__half const*",
            "float (*) [3]",
            "E",
            "F*",
            "V*",
            "void*",
            "V",
            "unsigned long long const volatile*"
        ]
    );
    let sizes: Vec<(u64, bool)> = found
        .iter()
        .map(|each| (each.bytes, each.is_enum))
        .collect();
    assert_eq!(sizes[..4], [(2, false), (4, false), (4, true), (1, true)]);
    assert_eq!(sizes[4..], [(4, false), (0, false), (4, false), (8, false)]);
    assert_eq!(signature(&answer, 1), Some(Vec::new()));
    assert_eq!(signature(&answer, 2), None);
    let same: Vec<_> = (0..3).map(|index| unchanged(&answer, index)).collect();
    assert_eq!(same, [Some(true), Some(false), None]);
}

#[test]
fn macros_are_asked_with_the_text_that_the_tuner_gave_them() {
    let text = ask(&["a::k".to_owned()], &[("FAST", &Value::Bool(true))], &[]);
    assert!(text.contains("decltype(&a::k)"), "{text}");
    assert!(
        text.contains("TUNER_MEANING(FAST), TUNER_MEANING(1)"),
        "{text}"
    );
}

#[test]
fn a_member_may_have_any_size() {
    let answer = [
        kernel("_ZN18tuner_declarations12tuner_memberILi0ELy4ELy1048576EEEvv"),
        kernel(
            "_ZN18tuner_declarations12tuner_memberILi1ELy18446744073709551615ELy18446744073709551615EEEvv",
        ),
        kernel("_ZN18tuner_declarations12tuner_memberILi2ELy17592186044416ELy5368709120EEEvv"),
    ];
    let found: Vec<_> = (0..4).map(|index| member(&answer, index)).collect();
    assert_eq!(
        found,
        [
            Some(Some((4, 1 << 20))),
            Some(None),
            Some(Some((1 << 44, 5 << 30))),
            None
        ]
    );
}
