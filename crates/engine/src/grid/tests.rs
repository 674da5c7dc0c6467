use super::Grid;

fn axes(text: &str) -> Vec<(String, Vec<i64>)> {
    let grid: Grid = text.parse().unwrap();
    grid.axes().to_vec()
}

#[test]
fn a_grid_has_lists_ranges_and_equal_sizes() {
    assert_eq!(
        axes("S=128..1024:x2,D=64,128,T=S"),
        [
            ("S".to_owned(), vec![128, 256, 512, 1024]),
            ("D".to_owned(), vec![64, 128])
        ]
    );
    assert_eq!(
        axes("K = 1..7:+3, 100, 4"),
        [("K".to_owned(), vec![1, 4, 7, 100])]
    );
}

#[test]
fn a_wrong_grid_is_explained() {
    let refused = |text: &str| text.parse::<Grid>().unwrap_err();
    for (text, why) in [
        ("", "has no name"),
        ("64", "has no name"),
        ("=64", "a size has no name"),
        ("S=", "not a whole number"),
        ("S=1.5", "not a whole number"),
        ("S=1..8", "no step; type 1..8:x2"),
        ("S=8..1:x2", "type 1..8:x2"),
        ("S=1..8:x1", "not a step"),
        ("S=1..8:+0", "not a step"),
        ("S=0..8:x2", "not a step"),
        ("S=1..8:2", "not a step"),
        ("S=-1", "not from 0"),
        ("S=4294967296", "not from 0 to 2147483647"),
        ("S=99999999999999999999", "not a whole number"),
        ("S=1,S=2", "named twice"),
        ("T=S", "no size has values"),
        ("D=64,T=S", "add S=VALUES"),
        ("S=1..1000:+1", "at most 128 shapes"),
        ("S=1..100:+1,D=1,2", "at most 128 shapes"),
    ] {
        let said = refused(text);
        assert!(said.contains(why), "{text}: {said}");
    }
}
