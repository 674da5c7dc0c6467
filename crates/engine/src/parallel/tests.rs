use super::*;

#[test]
fn results_are_told_in_order_and_the_first_error_by_order_ends_it() {
    let items: Vec<usize> = (0..200).collect();
    let mut told = Vec::new();
    let work = |item: &usize, (): &mut ()| match item {
        150 | 170 => Err(*item),
        _ => Ok(2 * item),
    };
    let end = in_order_each(&items, 4, || (), work, |at, value| told.push((at, value)));
    assert_eq!(end, Err(150));
    let expected: Vec<_> = (0..150).map(|at| (at, 2 * at)).collect();
    assert_eq!(told, expected);
    let halves = in_order(&items, 3, || (), |item, (): &mut ()| Ok::<_, ()>(item / 2));
    assert_eq!(halves.map(|all| all.len()), Ok(200));
}
