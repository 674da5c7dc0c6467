use super::{Objective, Objectives, ObjectivesError, front};

#[test]
fn time_and_one_other_are_read_and_all_else_is_refused() {
    let read = |text: &str| text.parse::<Objectives>();
    for text in ["time,registers", "registers, time"] {
        assert_eq!(read(text).map(|both| both.other), Ok(Objective::Registers));
    }
    assert_eq!(
        read("time,code_size").unwrap().to_string(),
        "time,code_size"
    );
    assert_eq!(
        read("time,energy").map(|both| both.other),
        Ok(Objective::Energy)
    );
    for text in [
        "",
        "time",
        "time,time",
        "p90,registers",
        "time,p90,registers",
        "time,x",
    ] {
        assert_eq!(read(text), Err(ObjectivesError(text.to_owned())));
    }
}

#[test]
fn the_front_holds_what_nothing_beats() {
    let points = [
        [3.0, 1.0],
        [1.0, 5.0],
        [2.0, 5.0],
        [2.0, 2.0],
        [1.0, 5.0],
        [4.0, 1.0],
    ];
    assert_eq!(front(&points), [1, 3, 0]);
    assert!(front(&[]).is_empty());
}
