use super::*;
use crate::hazard::clock::Clock;
use crate::hazard::shadow::Strength;
use proptest::prelude::*;

const THREADS: usize = 64;
const WORDS: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    Wide {
        group: usize,
        access: Access,
    },
    Word {
        word: usize,
        access: Access,
    },
    Bytes {
        word: usize,
        mask: u32,
        access: Access,
    },
    Landed {
        word: usize,
        thread: usize,
    },
    Release {
        thread: usize,
        variable: usize,
    },
    Acquire {
        thread: usize,
        variable: usize,
    },
    BlockBarrier,
    WarpBarrier {
        warp: usize,
    },
}

fn thread() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![0, 1, 31, 32, 33, 63])
}

fn plain() -> impl Strategy<Value = Access> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (thread(), 0u32..20, flags).prop_map(|(thread, pc, (write, flies, same))| Access {
        thread,
        segment: 0,
        pc,
        write,
        strength: Strength::Plain,
        sets_flag: false,
        narrow: false,
        in_flight: write && flies,
        same_value: write && same,
        observes: false,
        commutes: 0,
    })
}

fn any_access() -> impl Strategy<Value = Access> {
    (plain(), 0u8..6).prop_map(|(a, kind)| Access {
        strength: match kind {
            0 => Strength::Strong,
            1 => Strength::Volatile,
            _ => Strength::Plain,
        },
        sets_flag: kind == 1 && a.write && a.pc % 2 == 0,
        observes: kind == 0 && a.write && a.pc % 2 == 0,
        in_flight: a.in_flight && kind > 1,
        ..a
    })
}

fn step() -> impl Strategy<Value = Step> {
    let wide = (0..WORDS / WIDE_WORDS, plain())
        .prop_map(|(group, access)| Step::Wide { group, access })
        .boxed();
    let order = prop_oneof![
        (thread(), 0usize..2).prop_map(|(thread, variable)| Step::Release { thread, variable }),
        (thread(), 0usize..2).prop_map(|(thread, variable)| Step::Acquire { thread, variable }),
        Just(Step::BlockBarrier),
        (0usize..2).prop_map(|warp| Step::WarpBarrier { warp }),
    ];
    prop_oneof![
        8 => wide,
        1 => (0..WORDS, any_access()).prop_map(|(word, access)| Step::Word { word, access }),
        1 => (0..WORDS, 1u32..15, plain())
            .prop_map(|(word, mask, access)| Step::Bytes { word, mask, access }),
        1 => (0..WORDS, thread()).prop_map(|(word, thread)| Step::Landed { word, thread }),
        4 => order,
    ]
}

/// Accesses one word after the other, as if no access were wide.
fn by_words(
    shadow: &mut BlockShadow,
    first: usize,
    a: &Access,
    clocks: &Clocks,
) -> [Option<Conflict>; WIDE_WORDS] {
    let mut number = 0;
    [(); WIDE_WORDS].map(|()| {
        number += 1;
        shadow.access(first + number - 1, 15, a, clocks)
    })
}

fn ordered(clocks: &mut Clocks, variables: &mut [Option<Clock>; 2], step: &Step) {
    match *step {
        Step::Release { thread, variable } => {
            clocks.release_to(thread, &mut variables[variable]);
        }
        Step::Acquire { thread, variable } => {
            if let Some(clock) = &variables[variable] {
                clocks.acquire(thread, clock);
            }
        }
        Step::BlockBarrier => clocks.full_barrier(),
        Step::WarpBarrier { warp } => {
            let lanes: Vec<usize> = (warp * 32..warp * 32 + 32).collect();
            clocks.full_warp(warp, &lanes);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn wide_accesses_find_what_accesses_to_each_word_find(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut clocks = Clocks::new(THREADS, true, 1);
        let mut variables: [Option<Clock>; 2] = [None, None];
        let (mut wide, mut narrow) = (BlockShadow::default(), BlockShadow::default());
        wide.renew(WORDS);
        narrow.renew(WORDS);
        for step in &steps {
            ordered(&mut clocks, &mut variables, step);
            let now = |a: &Access| Access { segment: clocks.segment[a.thread], ..*a };
            match step {
                Step::Wide { group, access } => {
                    let (first, a) = (group * WIDE_WORDS, now(access));
                    let wanted = by_words(&mut narrow, first, &a, &clocks);
                    let found = match wide.access_wide(first, &a, &clocks) {
                        Ok(found) => [found; WIDE_WORDS],
                        Err(()) => by_words(&mut wide, first, &a, &clocks),
                    };
                    prop_assert_eq!(found, wanted);
                }
                Step::Word { word, access } => {
                    let a = now(access);
                    let wanted = narrow.access(*word, 15, &a, &clocks);
                    prop_assert_eq!(wide.access(*word, 15, &a, &clocks), wanted);
                }
                Step::Bytes { word, mask, access } => {
                    let a = now(access);
                    let wanted = narrow.access(*word, *mask, &a, &clocks);
                    prop_assert_eq!(wide.access(*word, *mask, &a, &clocks), wanted);
                }
                Step::Landed { word, thread } => {
                    let segment = clocks.segment[*thread];
                    wide.complete_copy(*word, *thread, segment);
                    narrow.complete_copy(*word, *thread, segment);
                }
                _ => {}
            }
            for word in 0..WORDS {
                prop_assert_eq!(wide.last_writes(word), narrow.last_writes(word));
            }
        }
    }
}
