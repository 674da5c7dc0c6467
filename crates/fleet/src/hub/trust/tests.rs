use super::{Examined, Inability, SET_ASIDE_MAX, SetAside, examine, unable_verdict};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_core::units::{ContentHash, Micros};
use tuner_engine::Judged;
use tuner_engine::fleet::{Answer, Finalists, Step, WorkOrder};
use tuner_judge::judgement::TimedJudgement;

fn order(step: Step) -> WorkOrder {
    WorkOrder {
        id: ContentHash::from_parts([b"order".as_slice()]),
        candidate: ContentHash::from_parts([b"candidate".as_slice()]),
        task: 0,
        choices: vec![1],
        step,
    }
}

fn found(judgement: Judgement, time_us: Option<f64>) -> TimedJudgement {
    TimedJudgement {
        measured: time_us.and_then(|us| Measured::recorded(vec![Micros::new(us).unwrap()])),
        ..judgement.into()
    }
}

fn judged(candidate: &str, found: TimedJudgement) -> Answer {
    Answer::Judged(Box::new(Judged {
        candidate: ContentHash::from_parts([candidate.as_bytes()]),
        found,
        compilation: None,
        charged_us: 0,
        put_off: false,
        whole_tried: false,
    }))
}

#[test]
fn answers_that_contradict_themselves_or_their_order_are_false() {
    let wrong = || Judgement::new(Verdict::Incorrect, "wrong");
    let right = || found(Judgement::ok(None), Some(12.5));
    let asked = order(Step::Recorded);
    let examine_all = |answer: &Answer| examine(&asked, answer);
    assert_eq!(
        examine_all(&judged("candidate", right())),
        Examined::Believed
    );
    assert_eq!(
        examine_all(&judged("candidate", found(wrong(), None))),
        Examined::Believed
    );
    let object = Answer::FalseObject("it is none".to_owned());
    let times = Answer::Final {
        worker: "w".to_owned(),
        times: vec![right()],
    };
    for lie in [
        judged("candidate", found(wrong(), Some(12.5))),
        judged("candidate", found(Judgement::ok(None), Some(1e-300))),
        judged("another", right()),
        Answer::NotJudged("so says a worker".to_owned()),
        object,
        times.clone(),
    ] {
        assert!(matches!(examine_all(&lie), Examined::False(_)), "{lie:?}");
    }
    let blames = examine_all(&Answer::Unusable("no oracle".to_owned()));
    assert_eq!(blames, Examined::BlamesFiles("no oracle".to_owned()));
    // As many times as were asked for.
    let finals = |count: usize| {
        order(Step::Final(Box::new(Finalists {
            configs: vec![vec![1]; count],
            seed: 1,
            not: Vec::new(),
        })))
    };
    assert_eq!(examine(&finals(1), &times), Examined::Believed);
    assert!(matches!(examine(&finals(2), &times), Examined::False(_)));
    let judged = judged("candidate", right());
    assert!(matches!(examine(&finals(1), &judged), Examined::False(_)));
}

fn inability(worker: &str) -> Inability {
    Inability {
        worker: worker.to_owned(),
        why: "no".to_owned(),
        blames_files: true,
    }
}

#[test]
fn one_worker_alone_decides_nothing_while_others_are_present() {
    let tries = vec![inability("a"); 11];
    assert_eq!(unable_verdict(&tries, 1), None);
    assert!(unable_verdict(&tries, 0).is_some());
    assert_eq!(unable_verdict(&tries[..2], 0), None);
    assert!(unable_verdict(&["a", "b", "c"].map(inability), 5).is_some());
    let many = vec![inability("a"); 12];
    assert!(unable_verdict(&many, 1).unwrap().contains("a: no; a: no"));
}

#[test]
fn names_that_are_invented_take_bounded_memory() {
    let mut set_aside = SetAside::default();
    let long = "x".repeat(10_000);
    let text = set_aside.add(&long, "it lies").unwrap();
    assert!(text.len() < 400, "{text}");
    assert_eq!(set_aside.add(&long, "it lies"), None);
    for number in 0..2 * SET_ASIDE_MAX {
        set_aside.add(&number.to_string(), "it lies");
    }
    assert_eq!(set_aside.messages().count(), SET_ASIDE_MAX);
}
