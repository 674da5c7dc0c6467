use super::*;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;

fn found(judgement: Judgement, time_us: f64) -> TimedJudgement {
    TimedJudgement {
        measured: Measured::recorded(vec![Micros::new(time_us).unwrap()]),
        ..judgement.into()
    }
}

fn judged(found: TimedJudgement) -> Answer {
    Answer::Judged(Box::new(Judged {
        candidate: ContentHash::from_parts([]),
        found,
        compilation: None,
        charged_us: 0,
        put_off: false,
        whole_tried: false,
    }))
}

#[test]
fn an_answer_that_contradicts_itself_is_told() {
    let wrong = || Judgement::new(Verdict::Incorrect, "wrong");
    assert!(judged(found(Judgement::ok(None), 12.5)).is_consistent());
    assert!(judged(wrong().into()).is_consistent());
    assert!(!judged(found(wrong(), 12.5)).is_consistent());
    for time_us in [1e-300, 1e-5, 1e11, 1e300] {
        let found = found(Judgement::ok(None), time_us);
        assert!(!judged(found.clone()).is_consistent(), "{time_us}");
        let worker = "w".to_owned();
        let times = vec![found];
        assert!(
            !Answer::Final { worker, times }.is_consistent(),
            "{time_us}"
        );
    }
}
