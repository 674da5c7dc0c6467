use super::Encoder;
use surrogate::squared_distance;
use tuner_core::value::Value;
use tuner_space::{Config, Environment, Parameter, Space};

fn encoder(count: i64, apart: bool) -> Encoder {
    let values: Vec<Value> = (0..count).map(|at| Value::Int(16 << at)).collect();
    let parameter = Parameter::new("p", values);
    let space = Space::build("test", vec![parameter], &[], &Environment::default()).unwrap();
    Encoder::new(&space, true, apart)
}

#[test]
fn the_values_of_a_short_list_are_equally_far_apart_beside_their_line() {
    let encoder = encoder(4, true);
    assert_eq!(encoder.smooth(), [0]);
    assert_eq!(encoder.dimension_of(), [0, 1, 1, 1, 1]);
    let one_hot = |choice| encoder.encode(&Config::new(vec![choice]))[1..].to_vec();
    for (a, b) in [(0, 1), (0, 3), (2, 3)] {
        let distance = squared_distance(&one_hot(a), &one_hot(b));
        assert!((distance - 1.0).abs() < 1e-12, "{a} {b}: {distance}");
    }
}

#[test]
fn two_values_and_long_lists_lie_on_their_line_alone() {
    for (count, apart) in [(2, true), (9, true), (4, false)] {
        let encoder = encoder(count, apart);
        assert_eq!(encoder.dimension_of(), [0], "{count} {apart}");
    }
}
