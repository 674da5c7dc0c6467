use super::*;

#[test]
fn children_do_not_get_the_token() {
    let command = command(&Program::default());
    let removed = command
        .get_envs()
        .any(|(name, value)| name == "TUNER_TOKEN" && value.is_none());
    assert!(removed);
}
