use super::{blanked, radix_of};

#[test]
fn comments_and_literals_are_blanked_and_everything_keeps_its_place() {
    let text = "int a = 1'000; // N\n/* N\nN */ f(\"N \\\" N\", 'N', R\"x(N \" )\" N)x\");\n";
    for (literals, left) in [(true, 0), (false, 5)] {
        let code = blanked(text, literals);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), text.matches('\n').count());
        assert_eq!(code.matches('N').count(), left, "{code}");
        assert!(code.contains("1'000;") && code.contains(");"), "{code}");
    }
}

#[test]
fn a_line_continues_after_a_backslash_before_either_end() {
    for end in ["\n", "\r\n"] {
        let text = format!("// N \\{end}N \\\\{end}N{end}code{end}f(\"N \\{end}N\");{end}");
        let code = blanked(&text, true);
        assert!(!code.contains('N') && code.contains("code"), "{code:?}");
        assert!(code.contains(");"), "{code:?}");
    }
}

#[test]
fn literals_may_have_a_prefix() {
    for prefix in ["", "L", "u", "U", "u8"] {
        let text = format!("f({prefix}R\"x(N \" N)x\", {prefix}'\"', {prefix}\"N\"); g(1);");
        let code = blanked(&text, true);
        assert!(!code.contains('N') && code.contains("g(1);"), "{code}");
    }
    // The last letters of a longer word are not a prefix.
    let code = blanked("BARR\"(\" left; VAL'x", true);
    assert!(code.contains("left; VAL'x"), "{code}");
}

#[test]
fn whole_literals_have_the_radix_of_their_prefix() {
    for (literal, expected) in [
        ("0x1f", Some(("1f", 16))),
        ("0b101", Some(("101", 2))),
        ("010", Some(("10", 8))),
        ("089", Some(("89", 8))),
        ("00", Some(("0", 8))),
        ("0", None),
        ("10", None),
        ("0.5", None),
        ("0e1", None),
        ("01.5", None),
    ] {
        assert_eq!(radix_of(literal), expected, "{literal}");
    }
}
