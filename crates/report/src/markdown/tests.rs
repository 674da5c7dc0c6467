use super::*;

#[test]
fn values_cannot_become_markup() {
    let text = write(&[
        Block::text("a <script>alert(1)</script> *b* [c](javascript:d)"),
        Block::table(&["x|y"], 9, vec![vec!["`a|b`".to_owned()]]),
        Block::Code("sh", "```\nend".to_owned()),
    ]);
    assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"));
    assert!(text.contains("\\*b\\*") && text.contains("\\[c\\]"));
    assert!(text.contains("| x\\|y |") && text.contains("`a\\|b`"));
    assert!(text.contains("````sh\n```\nend\n````"));
}

#[test]
fn a_line_of_text_begins_no_block_and_code_stays_on_its_line() {
    let text = write(&[
        Block::text("# no heading"),
        Block::text("1. no list"),
        Block::List(vec!["- no list in a list".to_owned()]),
        Block::text("``` no fence"),
        Block::text("`a\nb\u{1b}`"),
        Block::Code("sh", "a\u{1b}b\u{202e}".to_owned()),
    ]);
    for line in ["\\# no heading", "1\\. no list", "- \\- no list in a list"] {
        assert!(text.lines().any(|one| one == line), "{text}");
    }
    assert!(
        !text.contains("``` no") && text.contains("`a b\u{fffd}`"),
        "{text}"
    );
    assert!(text.contains("```sh\na\u{fffd}b\u{fffd}\n```"), "{text}");
}
