use super::*;

#[test]
fn what_nothing_else_explains_is_the_hosts() {
    let ms = Duration::from_millis;
    let mut spent = Spent {
        gate: ms(10),
        timing: ms(60),
        copies: ms(5),
        load: ms(1),
        total: ms(80),
    };
    assert_eq!((spent.busy(), spent.host()), (ms(70), ms(4)));
    spent.add(&spent.clone());
    assert_eq!(spent.total, ms(160));
}
