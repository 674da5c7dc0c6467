use super::*;

#[test]
fn a_verdict_read_from_t4_has_the_term_it_was_written_with() {
    for verdict in Verdict::ALL {
        let term = verdict.facts().t4;
        assert_eq!(Verdict::from_t4(term).facts().t4, term, "{verdict}");
    }
}

#[test]
fn wrong_candidates_are_wrong_whenever_they_are_judged() {
    for verdict in Verdict::ALL {
        let facts = verdict.facts();
        if facts.class == VerdictClass::Wrong {
            assert_eq!(facts.validity, Validity::Lasting, "{verdict}");
            assert_eq!(facts.proof, ProofEffect::Decides, "{verdict}");
            assert!(facts.knowledge, "{verdict}");
        }
        assert_eq!(
            facts.class == VerdictClass::Passed,
            *verdict == Verdict::Ok,
            "{verdict}"
        );
    }
}
