use super::text::samples_from_text;
use super::*;
use proptest::prelude::*;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;

proptest! {
    #[test]
    fn samples_read_back_to_the_same_bits(samples: Vec<f64>) {
        let samples: Vec<f64> = samples.into_iter().filter(|s| s.is_finite()).collect();
        let again = samples_from_text(&samples_text(&samples));
        prop_assert_eq!(
            samples.iter().map(|s| s.to_bits()).collect::<Vec<_>>(),
            again.iter().map(|s| s.to_bits()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_configuration_reads_back_in_its_order_with_its_types() {
    let config: ConfigValues = vec![
        ("Z".to_owned(), Value::Int(1)),
        ("A".to_owned(), Value::Float(1.0)),
        ("M".to_owned(), Value::Bool(true)),
        ("T".to_owned(), Value::Text("float4 \"x\"".into())),
    ];
    let text = config_text(&config);
    assert_eq!(text, r#"{"Z":1,"A":1.0,"M":true,"T":"float4 \"x\""}"#);
    assert_eq!(config_from_text(&text).unwrap(), config);
}
