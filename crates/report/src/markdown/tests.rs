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
