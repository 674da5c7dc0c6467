use super::*;

fn write(strength: Strength, observes: bool) -> Access {
    Access {
        thread: 0,
        segment: 1,
        pc: 0,
        write: true,
        strength,
        sets_flag: false,
        narrow: false,
        in_flight: false,
        same_value: false,
        observes,
        commutes: 0,
    }
}

#[test]
fn a_volatile_write_that_an_update_saw_precedes_the_next_one_of_that_thread() {
    let mut history = History::default();
    let mut access = |block, strength, observes| {
        let own = |other: u32, _: &Stamp| other == block;
        history.access(&write(strength, observes), block, own)
    };
    // Block 2 frees a lock, block 1 takes it, block 3 tries, and block 1 frees it.
    assert_eq!(access(2, Strength::Volatile, false), None);
    assert_eq!(access(1, Strength::Strong, true), None);
    assert_eq!(access(3, Strength::Strong, true), None);
    assert_eq!(access(1, Strength::Volatile, false), None);
    // Block 4 has not taken it.
    assert!(access(4, Strength::Volatile, false).is_some());
}
