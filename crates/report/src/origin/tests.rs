use super::*;

#[test]
fn a_change_is_shown_with_its_surroundings() {
    let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
    let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
    let expected = "--- x\n+++ y\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n";
    assert_eq!(unified("x", "y", old, new), expected);
    assert_eq!(unified("x", "y", old, old), "");
}
