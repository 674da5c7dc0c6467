use super::{MacroDefault, Template, included_names};

fn template(text: &str) -> Template {
    Template::new("t/kernel.cu", text, Vec::new(), Vec::new())
}

#[test]
fn defaults_are_read_with_their_line_and_without_comments() {
    let text = "// header\n#ifndef BLOCK_M\n#define BLOCK_M 64  // rows\n#endif\n\n# ifndef PAD\n\
                /* floats */\n# define PAD (4)\n#endif\n#ifndef A\n#define A_2 1\n#endif\n";
    let expected =
        [("BLOCK_M", "64", 3), ("PAD", "(4)", 8)].map(|(name, value, line)| MacroDefault {
            name: name.into(),
            value: value.into(),
            line,
        });
    assert_eq!(template(text).defaults(), expected);
}

#[test]
fn a_mention_in_a_comment_or_inside_a_longer_word_is_none() {
    let text = "// TILE\nint x = TILE_M; /* TILE */ const char* s = \"// no\"; int y = WIDTH;";
    assert!(!template(text).mentions("TILE"));
    assert!(template(text).mentions("TILE_M"));
    assert!(template(text).mentions("WIDTH"));
}

#[test]
fn included_names_are_found_and_commented_ones_are_not() {
    let text = "#include \"a.cuh\"\n// #include \"b.cuh\"\n#  include <cuda_fp16.h>\n";
    assert_eq!(
        included_names(text),
        [
            ("a.cuh".to_owned(), true),
            ("cuda_fp16.h".to_owned(), false)
        ]
    );
}

#[test]
fn the_hash_follows_the_text() {
    assert_eq!(template("a").hash, template("a").hash);
    assert_ne!(template("a").hash, template("b").hash);
}
