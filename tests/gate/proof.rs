//! Proofs: a problem that is sampled otherwise is run whole once, as far as the budget allows.

use super::sampled::{THREE, TWO, plan, verified};
use tuner_core::record::Verdict;
use tuner_judge::gate::verify::Demands;

const ELEMENTS: u64 = 1 << 16;

/// What a candidate of 100 rounds executes on all elements, lane instructions, at most.
const WHOLE: u64 = 30_000_000;

#[test]
fn a_proof_runs_the_problem_whole_and_compares_every_output() {
    let plan = plan(ELEMENTS, [100, 100], TWO);
    let sampled = Demands {
        whole_limit: 1_000_000,
        sample_limit: 100_000,
        ..Demands::default()
    };
    let evidence = verified(&plan, &sampled).0.unwrap();
    assert!(evidence.sampled);
    let (found, work) = verified(&plan, &Demands::proof(&[1], WHOLE));
    let evidence = found.unwrap();
    assert!(!evidence.sampled);
    assert!(evidence.compared.contains(&0));
    assert!(work > WHOLE / 2, "{work}");
}

#[test]
fn a_problem_beyond_the_budget_stays_sampled() {
    let plan = plan(ELEMENTS, [100, 100], TWO);
    let (found, work) = verified(&plan, &Demands::proof(&[1], 1_000_000));
    let evidence = found.unwrap();
    assert!(evidence.sampled);
    assert!(work < 20_000_000, "{work}");
}

#[test]
fn a_reference_beyond_the_budget_runs_as_far_as_it_goes() {
    // The reference takes ten times as long: a share of its blocks is compared.
    for (factor, right) in [(TWO, true), (THREE, false)] {
        let plan = plan(ELEMENTS, [100, 1000], factor);
        let (found, work) = verified(&plan, &Demands::proof(&[1], WHOLE));
        match found {
            Ok(evidence) => {
                assert!(right && !evidence.sampled && evidence.compared.contains(&0));
            }
            Err(wrong) => assert!(!right && wrong.verdict == Verdict::Incorrect, "{wrong}"),
        }
        assert!(work < 3 * WHOLE, "{work}");
    }
}
