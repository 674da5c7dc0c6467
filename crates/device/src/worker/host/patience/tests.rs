use super::Patience;
use std::time::Duration;

const STEP: Duration = Duration::from_secs(100);

fn had(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn a_worker_that_had_little_of_a_processor_is_waited_for() {
    let mut patience = Patience::new(had(7));
    assert!(
        patience.grants_extension(had(27), STEP),
        "a fifth of its time"
    );
    assert!(patience.grants_extension(had(47), STEP));
    assert!(
        !patience.grants_extension(had(107), STEP),
        "all of its time"
    );
}

#[test]
fn a_worker_that_used_its_time_or_does_nothing_is_not() {
    assert!(!Patience::new(had(0)).grants_extension(had(99), STEP));
    assert!(!Patience::new(had(5)).grants_extension(had(5), STEP));
    assert!(!Patience::new(None).grants_extension(had(1), STEP));
    assert!(!Patience::new(had(1)).grants_extension(None, STEP));
}

#[test]
fn patience_has_an_end() {
    let mut patience = Patience::new(had(0));
    let rounds = (1..100).take_while(|round| patience.grants_extension(had(2 * round), STEP));
    assert_eq!(rounds.count(), 9);
}
