use super::{File, blanked};

#[test]
fn comments_and_literals_are_blanked_and_everything_keeps_its_place() {
    let text = "int a = 1'000; // N\n/* N\nN */ f(\"N \\\" N\", 'N', R\"x(N \" )\" N)x\");\n";
    let code = blanked(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.matches('\n').count(), text.matches('\n').count());
    assert!(!code.contains('N'), "{code}");
    assert!(code.contains("1'000;") && code.contains(");"), "{code}");
}

#[test]
fn directives_go_over_continued_lines_and_are_no_code() {
    let file = File::new("t.cu", None, "int x;\n #  define A \\\n  B\n#\nint y;\n");
    let words: Vec<&str> = file.directives.iter().map(|each| &*each.word).collect();
    assert_eq!(words, ["define", ""]);
    let tokens: Vec<&str> = file.directives[0]
        .tokens
        .iter()
        .map(|at| file.word(at))
        .collect();
    assert_eq!(tokens, ["A", "B"]);
    let code: Vec<&str> = file.tokens.iter().map(|at| file.word(at)).collect();
    assert_eq!(code, ["int", "x", ";", "int", "y", ";"]);
    assert_eq!(file.place(file.tokens[4].start), "t.cu:5:5");
}
