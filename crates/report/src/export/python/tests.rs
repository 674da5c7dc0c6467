use super::*;

#[test]
fn values_are_written_as_python_writes_them() {
    for (value, expected) in [
        (Value::Bool(true), "True"),
        (Value::Int(-3), "-3"),
        (Value::Float(0.5), "0.5"),
        (Value::Float(2.0), "2.0"),
        (Value::Float(1e15), "1000000000000000.0"),
        (Value::Float(1e16), "1e+16"),
        (Value::Float(1.5e-7), "1.5e-07"),
        (Value::Float(0.0001), "0.0001"),
        (Value::Float(0.00001), "1e-05"),
        (Value::Text("float4".into()), "float4"),
    ] {
        assert_eq!(text(&value), expected);
    }
}
