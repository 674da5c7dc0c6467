use super::{Finding, compare, literal, words_in_conditions};
use crate::compile::{MacroDefault, Template};
use tuner_core::value::Value;
use tuner_space::Parameter;

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
        (Value::Int(64), "0100"),
        (Value::Int(5), "0b101"),
        (Value::Int(1), "true"),
        (Value::Bool(false), "0"),
        (Value::Float(0.5), "0.5f"),
        (Value::Float(2.0), "2"),
        (Value::Float(0.5), "00.5"),
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

#[test]
fn words_that_a_condition_takes_as_zero_are_told() {
    let told = |text: &str, values: &[&str]| {
        let values: Vec<Value> = values
            .iter()
            .map(|value| Value::Text((*value).into()))
            .collect();
        let template = Template::new("k.cu", text, Vec::new(), Vec::new());
        words_in_conditions(&template, &[Parameter::new("USE", values)])
    };
    let line = told("// USE\n#if USE\n#endif\n", &["on", "off"]);
    assert!(
        line[0].starts_with("k.cu:2: the values on, off of USE"),
        "{line:?}"
    );
    assert_eq!(
        told("#if A\n#elif USE == on\n#endif\n", &["on", "off"]).len(),
        1
    );
    for (text, values) in [
        ("#define on 1\n#if USE\n#endif\n", ["on", "off"]),
        ("#if USE\n#endif\n", ["1", "2"]),
        ("#if defined(USE)\n#endif\n", ["on", "off"]),
        ("#if USED\n#endif\nUSE x;\n", ["float", "double"]),
        ("#if USE\n#endif\n", ["true", "false"]),
    ] {
        assert!(told(text, &values).is_empty(), "{text}");
    }
}
