use super::Expr;

fn name(text: &str) -> Expr {
    Expr::Name(text.to_owned())
}

#[test]
fn a_division_that_rounds_up_is_recognised() {
    let n = || name("N");
    let sum = |a, b| Expr::binary("+", a, b);
    let less = |a, b| Expr::binary("-", a, b);
    let by = |a, b| Expr::binary("//", a, b).to_string();
    let b = || name("B");
    assert_eq!(
        by(less(sum(n(), b()), Expr::Number(1)), b()),
        "ceil_div(N, B)"
    );
    assert_eq!(
        by(sum(n(), less(b(), Expr::Number(1))), b()),
        "ceil_div(N, B)"
    );
    assert_eq!(
        by(sum(n(), Expr::Number(255)), Expr::Number(256)),
        "ceil_div(N, 256)"
    );
    assert_eq!(
        by(sum(n(), Expr::Number(254)), Expr::Number(256)),
        "(N + 254) // 256"
    );
    assert_eq!(by(n(), b()), "N // B");
}
