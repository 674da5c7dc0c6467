use super::*;
use tuner_core::record::Hazard;

fn proof(verdict: Verdict, compared: Option<Compared>) -> Judgement {
    Judgement {
        compared,
        ..Judgement::new(verdict, "why")
    }
}

fn sampled() -> Judged {
    let passed = Judgement {
        compared: Some(Compared::Sampled),
        ..Judgement::ok(Some(0.5))
    };
    Judged::without_device(ContentHash::from_parts([b"candidate".as_slice()]), passed)
}

#[test]
fn a_proof_of_the_whole_problem_changes_the_state() {
    let whole = Judgement {
        max_error: Some(0.75),
        ..proof(Verdict::Ok, Some(Compared::Whole))
    };
    let judgement = sampled().proven_whole(whole).found.judgement;
    assert_eq!(judgement.compared, Some(Compared::Whole));
    assert_eq!(judgement.max_error, Some(0.75));
}

#[test]
fn what_a_proof_finds_wrong_is_the_verdict() {
    for verdict in [Verdict::Incorrect, Verdict::Race, Verdict::OutOfBounds] {
        let judged = sampled().proven_whole(proof(verdict, None));
        assert_eq!(judged.verdict(), verdict);
        assert_eq!(judged.time(), None);
    }
}

#[test]
fn a_proof_that_could_not_be_made_leaves_the_verdict_and_says_why() {
    for not_made in [
        proof(Verdict::Ok, Some(Compared::Sampled)),
        proof(Verdict::Timeout, None),
        proof(Verdict::Crashed, None),
        proof(Verdict::OutOfMemory, None),
        proof(Verdict::Unchecked, None),
        proof(Verdict::NotJudged, None),
    ] {
        let judged = sampled().proven_whole(not_made);
        let judgement = &judged.found.judgement;
        assert_eq!(judgement.verdict, Verdict::Ok);
        assert_eq!(judgement.compared, Some(Compared::Sampled));
        assert_eq!(judgement.detail, "not proven: why");
        assert!(!judged.lacks_proof(), "it would be tried without end");
    }
}

#[test]
fn a_proof_beyond_its_budget_says_so() {
    let unproven = Judgement {
        compared: Some(Compared::Sampled),
        ..Judgement::new(Verdict::Ok, "")
    };
    let ProofOutcome::NotMade(why) = ProofOutcome::from_judgement(&unproven) else {
        panic!("nothing was proven");
    };
    assert!(why.contains("takes more than the budget"), "{why}");
}

#[test]
fn a_hang_or_a_trap_of_the_kernel_is_its_fault() {
    for verdict in [Verdict::Timeout, Verdict::Crashed] {
        let hazard = Hazard {
            kind: verdict,
            detail: String::new(),
            file: None,
            line: None,
            block: None,
            thread: None,
            address: None,
        };
        let found = Judgement {
            hazards: vec![hazard],
            ..proof(verdict, None)
        };
        assert_eq!(sampled().proven_whole(found).verdict(), verdict);
    }
}
