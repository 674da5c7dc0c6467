use super::blanked;

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
