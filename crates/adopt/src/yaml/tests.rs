use super::enlarged;
use std::collections::BTreeMap;

#[test]
fn only_guessed_extents_grow() {
    let space = "arguments:\n  - { name: x, type: f32, role: input, shape: [\"N + 1\"] }    # \
                 guessed: the extent: more than enough\n  - { name: y, type: f32, role: output, \
                 shape: [\"N\"] }\n";
    let times = |name: &str| BTreeMap::from([(name.to_owned(), 4)]);
    assert_eq!(
        enlarged(space, &times("x")).unwrap().lines().nth(1),
        Some(
            "  - { name: x, type: f32, role: input, shape: [\"(N + 1) * 4\"] }    # guessed: the \
             extent: as far as the kernel goes"
        )
    );
    assert_eq!(enlarged(space, &times("y")), None);
    assert_eq!(enlarged(space, &times("z")), None);
    assert_eq!(enlarged(space, &BTreeMap::new()).unwrap(), space);
}
