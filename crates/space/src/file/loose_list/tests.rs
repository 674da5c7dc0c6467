use super::*;

/// Returns the advice for the scalar that begins after `values: ` and ends where YAML ends it.
fn advice(line: &str) -> String {
    let start = line.find(": ").unwrap() + 2;
    let rest = &line[start..];
    let quoted = rest.starts_with('"');
    let end = match quoted {
        true => rest[1..].find('"').unwrap() + 2,
        false if line.contains('{') => rest.find([',', '}']).unwrap_or(rest.len()),
        false => rest.len(),
    };
    let text = rest[..end].trim_end();
    let value = text.trim_matches('"');
    let text = value.parse::<f64>().is_err().then_some(value);
    bracketed(text, start..start + rest[..end].trim_end().len(), line)
}

#[test]
fn the_list_has_all_values_that_were_written() {
    for (line, list) in [
        ("values: 64", "[64]"),
        ("values: 64,128,256", "[64, 128, 256]"),
        ("values: 64 128; 256", "[64, 128, 256]"),
        ("{ values: 64, 128, 256, default: 128 }", "[64, 128, 256]"),
        ("{ values: 64 128 256, default: 128 }", "[64, 128, 256]"),
        ("values: (64, 128, 256)", "[64, 128, 256]"),
        ("{ values: (64, 128, 256), default: 128 }", "[64, 128, 256]"),
        ("values: fast slow", "[fast, slow]"),
        ("{ values: fast, slow }", "[fast, slow]"),
        ("values: \"fast slow\"", "[fast, slow]"),
        ("values: -1.5", "[-1.5]"),
    ] {
        assert_eq!(advice(line), list, "{line}");
    }
}

#[test]
fn expressions_stay_whole_and_are_quoted_where_yaml_would_split_them() {
    for (line, list) in [
        ("shape: M * N", "[M * N]"),
        ("shape: M N", "[M, N]"),
        (
            "grid: \"ceil_div(SIZE, THREADS * N)\"",
            "[\"ceil_div(SIZE, THREADS * N)\"]",
        ),
        (
            "{ grid: \"ceil_div(N, 2)\", block: [64] }",
            "[\"ceil_div(N, 2)\"]",
        ),
        (
            "{ grid: ceil_div(N, 2), block: [64] }",
            "[\"ceil_div(N, 2)\"]",
        ),
        ("grid: ceil_div(N, 2), M", "[\"ceil_div(N, 2)\", M]"),
        ("grid: (M + 1) * (N + 1)", "[(M + 1) * (N + 1)]"),
        ("grid: \"x[0]\"", "[\"x[0]\"]"),
    ] {
        assert_eq!(advice(line), list, "{line}");
    }
}
