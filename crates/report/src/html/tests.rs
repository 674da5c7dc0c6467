use super::*;

#[test]
fn values_cannot_become_markup_and_nothing_comes_from_elsewhere() {
    let evil = "<img src=x onerror=alert(1)>\" onload=\"x";
    let html = write(
        evil,
        &[
            Block::Heading(2, evil.to_owned()),
            Block::text(format!("`{evil}`")),
            Block::table(&[evil], 0, vec![vec![evil.to_owned()]]),
            Block::Code("diff", format!("+{evil}")),
        ],
    );
    assert!(!html.contains("<img"), "{html}");
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("<script"));
}
