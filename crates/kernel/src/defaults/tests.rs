use super::{Finding, compare, literal};
use crate::compile::MacroDefault;
use tuner_core::value::Value;

fn check(value: Value, text: &str) -> Option<Finding> {
    compare(
        "P",
        &value,
        &MacroDefault {
            name: "P".into(),
            value: text.into(),
            line: 3,
        },
    )
}

#[test]
fn equal_defaults_may_be_spelled_in_several_ways() {
    for (value, text) in [
        (Value::Int(64), "64"),
        (Value::Int(64), "(64)"),
        (Value::Int(64), "0x40u"),
        (Value::Int(1), "true"),
        (Value::Bool(false), "0"),
        (Value::Float(0.5), "0.5f"),
        (Value::Float(2.0), "2"),
        (Value::Text("unsigned int".into()), "unsigned  int"),
    ] {
        assert_eq!(check(value.clone(), text), None, "{value} {text}");
    }
}

#[test]
fn other_defaults_are_told_and_expressions_are_left_alone() {
    assert!(matches!(
        check(Value::Int(64), "32"),
        Some(Finding::DefaultsDiffer { line: 3, .. })
    ));
    assert!(matches!(
        check(Value::Text("float".into()), "double"),
        Some(Finding::DefaultsDiffer { .. })
    ));
    assert!(matches!(
        check(Value::Int(64), "(WARPS * 32)"),
        Some(Finding::NotComparable { .. })
    ));
    assert_eq!(literal("WARPS"), None);
}
