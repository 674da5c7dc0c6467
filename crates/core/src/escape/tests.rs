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
        ("\t=1", " =1"),
        ("-1.5e-3", "-1.5e-3"),
        ("+1.2 %", "+1.2 %"),
        ("-", "-"),
        ("BM=64", "BM=64"),
    ] {
        assert_eq!(csv(cell), shown);
    }
}
