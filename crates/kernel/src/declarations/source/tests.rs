use super::File;

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
