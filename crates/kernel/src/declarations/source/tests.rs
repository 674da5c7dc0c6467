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
    assert_eq!(file.format_position(file.tokens[4].start), "t.cu:5:5");
}

#[test]
fn a_file_that_a_line_directive_names_is_read_in_folders_of_headers_only() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("include");
    std::fs::create_dir(&folder).unwrap();
    let [inside, outside] = [folder.join("a.h"), root.path().join("secret.h")];
    std::fs::write(&inside, "int a;\n").unwrap();
    std::fs::write(&outside, "int b;\n").unwrap();
    let link = folder.join("link.h");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let read = |path: &std::path::Path| {
        File::from_disk(path.to_str().unwrap(), std::slice::from_ref(&folder)).is_some()
    };
    assert!(read(&inside));
    assert!(!read(&outside) && !read(&link) && !read(&folder.join("../secret.h")));
}
