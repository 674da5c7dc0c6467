use super::guarded;

#[test]
fn a_guard_is_recognised_in_both_forms() {
    for guard in [
        "#ifndef A_H",
        "# ifndef A_H",
        "#if !defined(A_H)",
        "#if ! defined A_H",
    ] {
        assert_eq!(guarded(guard), Some("A_H"), "{guard}");
    }
    for other in [
        "#ifdef A_H",
        "#if A_H",
        "#if !defined(A) && B",
        "#if defined(A_H)",
    ] {
        assert_eq!(guarded(other), None, "{other}");
    }
}
