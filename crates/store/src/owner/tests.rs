#[test]
fn this_process_is_alive_and_its_namesake_of_another_time_is_not() {
    let me = super::current();
    assert!(super::is_alive(&me));
    assert!(!super::is_alive(&format!("{me}0")));
    assert!(!super::is_alive("nonsense"));
}
