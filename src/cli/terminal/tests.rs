use super::*;
use tuner_core::activity::Activity;

#[test]
fn the_locale_says_which_characters_there_are() {
    let with = |set: &[(&str, &str)]| {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name);
        unicode(|name| find(name).map(|(_, value)| (*value).to_owned()))
    };
    assert!(with(&[]));
    assert!(with(&[("LANG", "de_DE.UTF-8")]));
    assert!(with(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
    assert!(!with(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
    assert!(!with(&[("LANG", "POSIX")]));
}

#[test]
fn messages_and_verdicts_are_coloured_where_they_stand() {
    let red = |text: &str| in_style(RED, text);
    let text = "a.yaml:1:2: error: no\n 1 | x\n   | ^^\n  help: say error: no\n";
    let expected = format!(
        "a.yaml:1:2: {} no\n 1 | x\n   | {}\n  help: say {} no\n",
        red("error:"),
        red("^^"),
        red("error:")
    );
    let expected = expected.replace(
        &format!("help: say {}", red("error:")),
        &format!("{} say error:", in_style(CYAN, "help:")),
    );
    assert_eq!(message(text), expected);
    assert_eq!(
        painted(" k  p  race  12\n\"ok\" \n  best     1 us\n"),
        format!(
            " k  p  {}  12\n\"ok\" \n  best     {}\n",
            red("race"),
            in_style(GREEN, "1 us")
        )
    );
}

#[test]
fn of_each_kind_of_work_the_oldest_is_named() {
    let one = |verb, object: &str| Activity {
        owner: None,
        verb,
        object: object.to_owned(),
        since: Instant::now() - Duration::from_millis(3500),
    };
    let all = [
        one("compiling", "a"),
        one("compiling", "b"),
        one("judging", "c"),
    ];
    assert_eq!(doing(&all), "compiling 2: a (3 s), judging c (3 s)");
}

#[test]
fn a_running_task_has_a_line_with_its_own_activities() {
    let task = |name: &str| TaskStatus {
        name: name.to_owned(),
        text: "3 trials".to_owned(),
    };
    let now = [
        ("compiling", "scale large: VEC=2"),
        ("judging", "scale: X=1"),
    ]
    .map(|(verb, object)| Activity {
        owner: None,
        verb,
        object: object.to_owned(),
        since: Instant::now(),
    });
    let tasks = [task("scale small"), task("scale large"), task("scale")];
    assert_eq!(
        running(&tasks, &now, 5),
        [
            "scale large  3 trials | compiling VEC=2",
            "scale  3 trials | judging X=1"
        ]
    );
    assert_eq!(running(&tasks, &now, 1).len(), 1);
    assert_eq!(running(&tasks, &[], 5), ["scale small  3 trials"]);
}

#[test]
fn a_line_is_cut_to_any_width() {
    let text = "é".repeat(50);
    assert_eq!(cut(&text, 50), text);
    assert_eq!(cut(&text, 20).chars().count(), 20);
    assert_eq!(cut(&text, 0), "...");
}

#[test]
fn a_run_has_an_object_a_line_from_the_set_up_on() {
    let mut display = Display {
        bar: None,
        began: Instant::now(),
        told: Instant::now(),
        status: Status::default(),
    };
    let object = |display: &Display| -> serde_json::Value {
        serde_json::from_str(&display.line(true)).unwrap()
    };
    assert!(object(&display)["progress"]["elapsed_s"].is_number());
    display.status = Status {
        done: "0 done".to_owned(),
        budget: Some(WallBudget {
            began: Instant::now(),
            length: Duration::from_millis(40_500),
        }),
        json: serde_json::json!({ "progress": { "evals": 0 } }),
        ..Status::default()
    };
    assert!(object(&display)["progress"]["left_s"].is_number());
    let line = display.line(false);
    assert!(line.starts_with("0s 0 done, 40s left"), "{line}");
}

#[test]
fn messages_do_not_delay_the_lines_of_progress() {
    let began = Instant::now();
    *display() = Some(Display {
        bar: None,
        began,
        told: began,
        status: Status::default(),
    });
    tell("note: a trial was stopped\n");
    let mut shown = display().take().unwrap();
    assert_eq!(shown.due_line(began), None);
    assert!(shown.due_line(began + LINE_INTERVAL).is_some());
    let soon = began + LINE_INTERVAL + FRAME_INTERVAL;
    assert_eq!(shown.due_line(soon), None);
}
