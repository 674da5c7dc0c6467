use super::*;

#[test]
fn texts_and_lists_that_are_too_long_overflow() {
    let text = |bytes: usize| Val::Text("a".repeat(bytes).into());
    let whole = apply(Op::Add, &[&text(MAX_TEXT_BYTES - 1), &text(1)]);
    assert!(matches!(whole, Val::Text(_)), "{whole:?}");
    let list = Val::List(vec![Val::Bool(true); MAX_TEXT_BYTES].into());
    for (one, other) in [(text(MAX_TEXT_BYTES), text(1)), (list.clone(), list)] {
        let long = apply(Op::Add, &[&one, &other]);
        assert!(matches!(long, Val::Fault(Fault::Overflow)), "{long:?}");
    }
}
