//! Wrong and right kernels on a problem of which only some blocks run.

use super::sampled::verified;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanGate, PlanLaunch, PlanReference, Role};
use tuner_core::record::Verdict;
use tuner_judge::gate::verify::{Demands, Evidence};

/// Work for every element, so that a few thousand elements are too many.
const MIX: &str = "
__device__ unsigned done, next;
__device__ unsigned mix(unsigned v) {
#pragma unroll 1
    for (int r = 0; r < 200; ++r) v = (v ^ (v >> 15)) * 2246822519u + r;
    return v;
}
";

fn code(source: &str, entry: &str) -> Code {
    let compiler = crate::device_gate::compiler();
    let source = format!("{MIX}{source}");
    let code = tuner_device::gpu::helpers::compile(&compiler, "k.cu", &source, entry, "sm_80");
    code.expect("it compiles")
}

/// A kernel with its reference. Each block has 32 threads; all arguments are passed.
struct Case {
    arguments: Vec<PlanArgument>,
    kernel: String,
    grid: [u32; 3],
    reference: &'static str,
    reference_grid: [u32; 3],
}

impl Case {
    fn judge(&self) -> Result<Evidence, Judgement> {
        self.judge_with(PlanGate {
            deterministic: true,
            ..PlanGate::default()
        })
    }

    /// Judges it as a problem that is too large to run whole.
    fn judge_with(&self, gate: PlanGate) -> Result<Evidence, Judgement> {
        let found = self.judge_by_cost(gate);
        if let Ok(evidence) = &found {
            assert!(evidence.sampled, "it ran whole: {evidence:?}");
        }
        found
    }

    /// Judges it whole or by a sample, as its cost demands.
    fn judge_by_cost(&self, gate: PlanGate) -> Result<Evidence, Judgement> {
        self.judge_within(
            gate,
            &Demands {
                whole_limit: 2_000_000,
                uncomparable_limit: 2_000_000,
                sample_limit: 1_000_000,
                ..Demands::default()
            },
        )
    }

    fn judge_within(&self, gate: PlanGate, demands: &Demands) -> Result<Evidence, Judgement> {
        let all: Vec<usize> = (0..self.arguments.len()).collect();
        let launch = |entry: &str, grid| PlanLaunch::new(entry, grid, [32, 1, 1], all.clone());
        let kernel = format!("extern \"C\" __global__ void k{}", self.kernel);
        let reference = format!("extern \"C\" __global__ void ref{}", self.reference);
        let plan = Plan {
            problem: "timed".to_owned(),
            tile_sizes: vec![1250],
            gate,
            ..Plan::new(
                self.arguments.clone(),
                vec![launch("k", self.grid)],
                code(&kernel, "k"),
                PlanReference::Kernel {
                    code: code(&reference, "ref"),
                    launch: launch("ref", self.reference_grid),
                    oracle: None,
                },
            )
        };
        verified(&plan, demands).0
    }

    fn is_right(&self) {
        match self.judge() {
            Ok(evidence) => assert!(evidence.max_error.is_some(), "{:?}", evidence.note),
            Err(refused) => panic!("{refused}"),
        }
    }

    fn is(&self, verdict: Verdict, words: &str) {
        match self.judge() {
            Err(refused) => {
                assert_eq!(refused.verdict, verdict, "{refused}");
                assert!(refused.detail.contains(words), "{}", refused.detail);
            }
            Ok(evidence) => panic!("it passed: {evidence:?}"),
        }
    }
}

fn numbers(name: &str, role: Role, shape: &[u64]) -> PlanArgument {
    PlanArgument {
        fill: Fill::Uniform { min: 1.0, max: 1e6 },
        ..PlanArgument::new(name, Element::U32, role, shape)
    }
}

fn zeros(name: &str, shape: &[u64]) -> PlanArgument {
    PlanArgument {
        fill: Fill::Zeros,
        ..PlanArgument::new(name, Element::I32, Role::Inout, shape)
    }
}

/// In place; one element more than the blocks of a multiple of 32 hold.
fn in_place(kernel: &str, blocks: u32) -> Case {
    Case {
        arguments: vec![numbers("x", Role::Inout, &[40_001])],
        kernel: kernel.to_owned(),
        grid: [blocks, 1, 1],
        reference: "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
                    if (i < 40001) x[i] = mix(x[i]); }",
        reference_grid: [1251, 1, 1],
    }
}

#[test]
fn elements_that_are_left_as_they_were_are_compared() {
    let whole = "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
                 if (i < 40001) x[i] = mix(x[i]); }";
    in_place(whole, 1251).is_right();
    // A grid of an old limit, every other block, every 32nd block, and vectors without a tail.
    in_place(whole, 1100).is(Verdict::Incorrect, "`x`");
    let odd = "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; if (blockIdx.x & 1) return; \
               if (i < 40001) x[i] = mix(x[i]); }";
    in_place(odd, 1251).is(Verdict::Incorrect, "`x`");
    let some = "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
                if (blockIdx.x % 32 == 7) return; if (i < 40001) x[i] = mix(x[i]); }";
    in_place(some, 1251).is(Verdict::Incorrect, "`x`");
    let no_tail = "(unsigned* x) { int i = (blockIdx.x * 32 + threadIdx.x) * 4; \
                   if (i + 3 < 40001) for (int q = 0; q < 4; ++q) x[i + q] = mix(x[i + q]); }";
    in_place(no_tail, 313).is(Verdict::Incorrect, "`x`");
}

#[test]
fn elements_that_the_reference_leaves_as_they_were_may_be_left() {
    let case = |kernel: &str| Case {
        arguments: vec![numbers("x", Role::Inout, &[40_001])],
        kernel: kernel.to_owned(),
        grid: [1251, 1, 1],
        reference: "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
                    if (i < 40001 && i / 64 % 2 == 0) x[i] = mix(x[i]); }",
        reference_grid: [1251, 1, 1],
    };
    case(
        "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
         if (i < 40001 && i / 64 % 2 == 0) x[i] = mix(x[i]); }",
    )
    .is_right();
    case(
        "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
         if (i < 40001) x[i] = mix(x[i]); }",
    )
    .is(Verdict::Incorrect, "`x`");
}

#[test]
fn variables_that_the_kernel_restores_are_no_state() {
    let case = |kernel: &str| Case {
        arguments: vec![
            numbers("x", Role::Input, &[40_001]),
            numbers("y", Role::Output, &[40_001]),
        ],
        kernel: kernel.to_owned(),
        grid: [1251, 1, 1],
        reference: "(const unsigned* x, unsigned* y) { \
                    int i = blockIdx.x * 32 + threadIdx.x; if (i < 40001) y[i] = mix(x[i]); }",
        reference_grid: [1251, 1, 1],
    };
    // The block that shows the cost counts itself before the blocks of the sample do.
    let counted = case(
        "(const unsigned* x, unsigned* y) { int i = blockIdx.x * 32 + threadIdx.x; \
         if (i < 40001) y[i] = mix(x[i]); \
         if (threadIdx.x == 0 && atomicAdd(&done, 1u) == gridDim.x - 1) done = 0; }",
    );
    let found = counted.judge();
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn a_block_that_takes_all_work_from_a_queue_does_not_stand_for_the_others() {
    // One block alone takes two thirds of the limit, 40 such blocks would exceed it.
    let queue = Case {
        arguments: vec![
            numbers("x", Role::Input, &[1001]),
            numbers("y", Role::Output, &[1001]),
        ],
        kernel: "(const unsigned* x, unsigned* y) { \
                 for (;;) { \
                     unsigned tile = threadIdx.x == 0 ? atomicAdd(&next, 1u) : 0; \
                     tile = __shfl_sync(~0u, tile, 0); \
                     if (tile >= 32) break; \
                     int i = tile * 32 + threadIdx.x; if (i < 1001) y[i] = mix(x[i]); \
                 } \
                 if (threadIdx.x == 0 && atomicAdd(&done, 1u) == gridDim.x - 1) next = done = 0; }"
            .to_owned(),
        grid: [40, 1, 1],
        reference: "(const unsigned* x, unsigned* y) { \
                    int i = blockIdx.x * 32 + threadIdx.x; if (i < 1001) y[i] = mix(x[i]); }",
        reference_grid: [32, 1, 1],
    };
    let found = queue.judge_by_cost(PlanGate::default());
    assert!(
        found.as_ref().is_ok_and(|evidence| !evidence.sampled),
        "{found:?}"
    );
}

/// A prefix sum over 300 tiles that looks back over at most so many of them.
fn look_back(most: u32) -> Case {
    Case {
        arguments: vec![
            PlanArgument {
                fill: Fill::Uniform { min: 0.0, max: 7.0 },
                ..numbers("x", Role::Input, &[9600])
            },
            PlanArgument {
                fill: Fill::Zeros,
                ..PlanArgument::new("state", Element::U64, Role::Inout, &[300])
            },
            numbers("y", Role::Output, &[9600]),
        ],
        kernel: format!(
            "(const unsigned* x, unsigned long long* state, unsigned* y) {{ \
             int tile = blockIdx.x, l = threadIdx.x; unsigned v = x[tile * 32 + l]; \
             for (int d = 1; d < 32; d *= 2) {{ \
                 unsigned o = __shfl_up_sync(~0u, v, d); if (l >= d) v += o; }} \
             unsigned before = 0; \
             if (l == 31) {{ \
                 atomicExch(&state[tile], (1ull << 32) | v); \
                 for (int p = tile - 1, n = 0; p >= 0 && n < {most}; --p, ++n) {{ \
                     unsigned long long s; \
                     do {{ s = atomicAdd(&state[p], 0ull); }} while (!(s >> 32)); \
                     before += (unsigned)s; if ((s >> 32) == 2) break; \
                 }} \
                 atomicExch(&state[tile], (2ull << 32) | (before + v)); \
             }} \
             y[tile * 32 + l] = v + __shfl_sync(~0u, before, 31); }}"
        ),
        grid: [300, 1, 1],
        reference: "(const unsigned* x, unsigned long long* state, unsigned* y) { \
                    unsigned sum = 0; \
                    for (int i = 0; i < 9600 && threadIdx.x == 0; ++i) { \
                        y[i] = sum += x[i]; \
                        if (i % 32 == 31) state[i / 32] = (2ull << 32) | sum; } }",
        reference_grid: [1, 1, 1],
    }
}

#[test]
fn a_look_back_that_stops_too_early_is_seen_among_many_blocks() {
    let judge = |most| {
        let exact = PlanGate {
            deterministic: true,
            ..PlanGate::default()
        };
        look_back(most).judge_within(exact, &Demands::default())
    };
    for most in [8, 64] {
        let found = judge(most);
        let refused = found.as_ref().err().map(|refused| refused.verdict);
        assert_eq!(
            refused,
            Some(Verdict::Nondeterministic),
            "{most}: {found:?}"
        );
    }
    let found = judge(300);
    assert!(
        found.as_ref().is_ok_and(|evidence| !evidence.sampled),
        "{found:?}"
    );
}

/// Sums of three neighbours, added by the reference.
fn scattered(kernel: &str) -> Case {
    Case {
        arguments: vec![numbers("x", Role::Input, &[40_001]), zeros("y", &[40_003])],
        kernel: kernel.to_owned(),
        grid: [1251, 1, 1],
        reference: "(const unsigned* x, int* y) { int i = blockIdx.x * 32 + threadIdx.x; \
                    if (i < 40001) for (int k = 0; k < 3; ++k) \
                        atomicAdd(&y[i + k], mix(x[i] + k) & 255); }",
        reference_grid: [1251, 1, 1],
    }
}

#[test]
fn a_reference_that_adds_atomically_is_compared_where_all_its_writers_ran() {
    let gathered = |first: u32| {
        format!(
            "(const unsigned* x, int* y) {{ int o = blockIdx.x * 32 + threadIdx.x, s = 0; \
             if (o >= 40003) return; \
             for (int k = {first}; k < 3; ++k) {{ int i = o - k; \
                 if (i >= 0 && i < 40001) s += mix(x[i] + k) & 255; }} \
             y[o] += s; }}"
        )
    };
    scattered(&gathered(0)).is_right();
    scattered(&gathered(1)).is(Verdict::Incorrect, "`y`");
}

#[test]
fn partial_sums_that_only_some_blocks_add_atomically_are_not_compared() {
    // Segments of 32, then one of 20 and one of 44, which two blocks share.
    let case = |kernel: &str| Case {
        arguments: vec![numbers("x", Role::Input, &[40_064]), zeros("y", &[1252])],
        kernel: kernel.to_owned(),
        grid: [1252, 1, 1],
        reference: "(const unsigned* x, int* y) { int s = blockIdx.x, v = 0; \
                    int a = s < 1251 ? s * 32 : 40020; \
                    int n = s < 1250 ? 32 : s == 1250 ? 20 : 44; \
                    for (int i = threadIdx.x; i < n; i += 32) v += mix(x[a + i]) & 255; \
                    v = __reduce_add_sync(~0u, v); if (threadIdx.x == 0) y[s] = v; }",
        reference_grid: [1252, 1, 1],
    };
    let sums = |weight: &str| {
        format!(
            "(const unsigned* x, int* y) {{ int i = blockIdx.x * 32 + threadIdx.x; \
             int v = (mix(x[i]) & 255) {weight}; \
             if (blockIdx.x < 1250) {{ v = __reduce_add_sync(~0u, v); \
                 if (threadIdx.x == 0) y[blockIdx.x] = v; }} \
             else atomicAdd(&y[i < 40020 ? 1250 : 1251], v); }}"
        )
    };
    case(&sums("")).is_right();
    case(&sums("+ (blockIdx.x == 1251)")).is(Verdict::Incorrect, "`y`");
}

#[test]
fn the_last_row_and_the_last_column_are_compared() {
    let case = |kernel: &str| Case {
        arguments: vec![
            numbers("x", Role::Input, &[253, 131]),
            numbers("y", Role::Output, &[253, 131]),
        ],
        kernel: kernel.to_owned(),
        grid: [5, 253, 1],
        reference: "(const unsigned* x, unsigned* y) { \
                    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y; \
                    if (c < 131) y[r * 131 + c] = mix(x[r * 131 + c]); }",
        reference_grid: [5, 253, 1],
    };
    let kernel = |wrong: &str| {
        format!(
            "(const unsigned* x, unsigned* y) {{ \
             int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y; \
             if (c < 131) y[r * 131 + c] = mix(x[r * 131 + c]) + ({wrong}); }}"
        )
    };
    case(&kernel("0")).is_right();
    for wrong in [
        "c == 130 && r < 252",
        "r == 252 && c < 130",
        "c == 0 && r > 0 && r < 252",
        "r == 0 && c > 0 && c < 130",
    ] {
        case(&kernel(wrong)).is(Verdict::Incorrect, "`y`");
    }
}

#[test]
fn two_blocks_that_store_to_one_element_race() {
    let case = |kernel: &str| Case {
        arguments: vec![
            numbers("x", Role::Input, &[40_001]),
            numbers("y", Role::Output, &[40_001]),
        ],
        kernel: kernel.to_owned(),
        grid: [1252, 1, 1],
        reference: "(const unsigned* x, unsigned* y) { \
                    int i = blockIdx.x * 32 + threadIdx.x; if (i < 40001) y[i] = mix(x[i]); }",
        reference_grid: [1251, 1, 1],
    };
    let twice = "(const unsigned* x, unsigned* y) { int b = blockIdx.x == 1251 ? 777 : blockIdx.x; \
                 int i = b * 32 + threadIdx.x; \
                 if (i < 40001) y[i] = mix(x[i]) + (b != blockIdx.x); }";
    case(twice).is(
        Verdict::Race,
        "blocks 777 and 1251 both store to element 24864 of `y`",
    );
    let same = twice.replace("(b != blockIdx.x)", "0");
    case(&same).is(Verdict::Race, "blocks 777 and 1251");
    let allowed = case(&same).judge_with(PlanGate {
        deterministic: true,
        same_value_writes: true,
        ..PlanGate::default()
    });
    assert!(allowed.is_ok(), "{allowed:?}");
}

#[test]
fn blocks_that_read_in_place_what_others_store_race() {
    let stencil = "(unsigned* x) { int i = blockIdx.x * 32 + threadIdx.x; \
                   unsigned n = i < 40000 ? x[i + 1] : 0; __syncthreads(); \
                   if (i < 40001) x[i] = mix(x[i]) + (n >> 31); }";
    in_place(stencil, 1251).is(Verdict::Race, "blocks of one launch read what its block");
}

/// The place of the maximum of each of 40 rows of 3001 elements, of which `columns` are looked at.
fn places_of_maxima(columns: u32) -> Case {
    Case {
        arguments: vec![
            numbers("x", Role::Input, &[40, 3001]),
            PlanArgument::new("y", Element::I32, Role::Output, &[40]),
        ],
        kernel: format!(
            "(const unsigned* x, int* y) {{ int at = 0; unsigned best = 0; \
             for (int c = 0; c < {columns}; ++c) {{ \
                 unsigned v = x[blockIdx.x * 3001 + c]; if (v > best) {{ best = v; at = c; }} }} \
             if (threadIdx.x == 0) y[blockIdx.x] = at; }}"
        ),
        grid: [40, 1, 1],
        reference: "(const unsigned* x, int* y) { int r = blockIdx.x * 32 + threadIdx.x, at = 0; \
                    for (int c = 0; r < 40 && c < 3001; ++c) \
                        if (x[r * 3001 + c] > x[r * 3001 + at]) at = c; \
                    if (r < 40) y[r] = at; }",
        reference_grid: [2, 1, 1],
    }
}

#[test]
fn extremes_in_elements_that_nothing_reads_show_a_tail_that_is_left_out() {
    let judge = |columns, demands: &Demands| {
        let exact = PlanGate {
            deterministic: true,
            ..PlanGate::default()
        };
        places_of_maxima(columns).judge_within(exact, demands)
    };
    let proof = Demands::proof(&[7], 1 << 30);
    for columns in [2999, 3000] {
        let refused = judge(columns, &proof).expect_err("a tail is left out");
        assert_eq!(refused.verdict, Verdict::Incorrect, "{refused}");
        let why = "elements that the kernel does not read";
        assert!(refused.detail.contains(why), "{}", refused.detail);
    }
    assert!(judge(3001, &proof).is_ok_and(|evidence| !evidence.sampled));
}

#[test]
fn an_input_of_which_the_reference_too_reads_a_part_only_may_have_extremes_anywhere() {
    let case = Case {
        arguments: vec![
            numbers("x", Role::Input, &[4, 1000]),
            PlanArgument::new("y", Element::U32, Role::Output, &[1000]),
        ],
        kernel: "(const unsigned* x, unsigned* y) { int i = blockIdx.x * 32 + threadIdx.x; \
                 if (i < 1000) y[i] = mix(x[i * 4]); }"
            .to_owned(),
        grid: [32, 1, 1],
        reference: "(const unsigned* x, unsigned* y) { \
                    for (int i = threadIdx.x; i < 1000; i += 32) y[i] = mix(x[i * 4]); }",
        reference_grid: [1, 1, 1],
    };
    let found = case.judge_within(PlanGate::default(), &Demands::proof(&[7], 1 << 30));
    assert!(found.is_ok_and(|evidence| !evidence.sampled));
}
