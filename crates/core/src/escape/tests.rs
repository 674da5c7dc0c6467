use super::*;

#[test]
fn nothing_from_outside_commands_the_place_where_it_is_shown() {
    let evil = "a\u{1b}[31m\r\u{202e}b\nc\td";
    assert_eq!(lines(evil), "a\u{fffd}[31m\u{fffd}\u{fffd}b\nc\td");
    assert_eq!(line(evil), "a\u{fffd}[31m\u{fffd}\u{fffd}b c d");
    let script = "<script a='b' c=\"d\">&\u{0}";
    assert_eq!(
        markup(script),
        "&lt;script a=&#39;b&#39; c=&quot;d&quot;&gt;&amp;\u{fffd}"
    );
    assert_eq!(
        markdown("[x](y) `z` <b>\n# h"),
        "\\[x\\](y) \\`z\\` &lt;b&gt; # h"
    );
}

#[test]
fn a_formula_is_text_and_a_number_is_not() {
    for (cell, shown) in [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3+cmd|x", "'-2+3+cmd|x"),
        ("-2+3", "'-2+3"),
        (" =1", "' =1"),
        ("-1.5 .. +2", "-1.5 .. +2"),
        ("\t=1", "' =1"),
        ("-1.5e-3", "-1.5e-3"),
        ("+1.2 %", "+1.2 %"),
        ("-", "-"),
        ("BM=64", "BM=64"),
    ] {
        assert_eq!(csv(cell), shown);
    }
}

#[test]
fn hidden_characters_of_a_json_document_keep_their_value() {
    let text = "\u{0}\u{1b}\u{7f}\u{85}\u{9b}\u{202e}\u{2028}\u{feff}\u{e0041}é\n\"";
    let document = serde_json::to_string_pretty(&[text]).expect("JSON");
    let escaped = json(&document);
    assert!(
        escaped.chars().all(|c| c == '\n' || !is_hidden(c)),
        "{escaped:?}"
    );
    let read: Vec<String> = serde_json::from_str(&escaped).expect("JSON");
    assert_eq!(read, [text]);
    assert_eq!(yaml("a\"\\\n\u{9b}"), "\"a\\\"\\\\\\n\\U0000009b\"");
}

#[test]
fn a_shell_word_with_control_characters_prints_none() {
    assert_eq!(shell("a b"), "'a b'");
    assert_eq!(shell("it's\n\u{1b}"), "$'it\\'s\\U0000000a\\U0000001b'");
}

#[test]
fn strings_and_comments_of_c_stay_closed() {
    let literal = CLiteral::new("a\"b\\c?é\n").to_string();
    assert_eq!(literal, "\"a\\\"b\\\\c\\?\\303\\251\\012\"");
    let comment = CComment::new("x */ y /* z\n\u{202e}\u{1b}/*/").to_string();
    assert_eq!(comment, "x * / y / * z ??/ * /");
}

#[test]
fn a_macro_body_is_one_line_that_leaves_nothing_open() {
    for good in [
        "float4",
        "",
        "std::plus<float>()",
        "\"a//b(\"",
        "'\\''",
        "a / b",
        "é",
    ] {
        let body = CMacroBody::new(good).map(|body| body.to_string());
        assert_eq!(body.as_deref(), Ok(good));
    }
    for (bad, why) in [
        ("a\nb", MacroBodyError::Hidden),
        ("a\rb", MacroBodyError::Hidden),
        ("a\u{202e}b", MacroBodyError::Hidden),
        ("a\u{2028}b", MacroBodyError::Hidden),
        ("a\\", MacroBodyError::Continued),
        ("a\\ ", MacroBodyError::Continued),
        ("a??/", MacroBodyError::Continued),
        ("a // b", MacroBodyError::Comment),
        ("a /* b", MacroBodyError::Comment),
        ("\"a", MacroBodyError::Open),
        ("(a", MacroBodyError::Open),
        ("a)(", MacroBodyError::Open),
    ] {
        assert_eq!(CMacroBody::new(bad), Err(why), "{bad:?}");
    }
}
