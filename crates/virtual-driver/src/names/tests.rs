use super::{MESSAGE_CHARACTERS, full_name, plain_name, shortened};

#[test]
fn a_name_of_c_is_not_that_of_a_type() {
    for name in ["f", "i", "x", "PKc", "st", "saxpy"] {
        assert_eq!(
            (plain_name(name).as_str(), full_name(name).as_str()),
            (name, name)
        );
    }
    assert_eq!(full_name("_Z1fPf"), "f(float*)");
}

#[test]
fn a_short_name_is_unchanged() {
    for name in ["saxpy", "void scan<int, 128>(int*)", "operator<<", ""] {
        assert_eq!(shortened(name), name);
    }
}

#[test]
fn a_long_name_loses_its_innermost_arguments_first() {
    let long = "x".repeat(60);
    let name = format!("ns::sort<ns::policy<int, {long}>, ns::less<int>>::run(ns::view<{long}>)");
    assert_eq!(
        shortened(&name),
        "ns::sort<ns::policy<…>, ns::less<…>>::run(ns::view<…>)"
    );
    let wide = vec!["less<int>"; 30].join(", ");
    assert_eq!(shortened(&format!("sort<{wide}>::f()")), "sort<…>::f()");
}

#[test]
fn a_long_name_without_arguments_is_cut() {
    let shown = shortened(&"y".repeat(300));
    assert_eq!(shown.chars().count(), MESSAGE_CHARACTERS + 1);
    assert!(shown.ends_with('…'));
}
