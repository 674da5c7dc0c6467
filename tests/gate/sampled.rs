//! Problems that are too large for the virtual GPU to run whole: work is counted, never timed.

use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_core::record::Verdict;
use tuner_device::vgpu::{Limits, VirtualGpu};
use tuner_device::worker::child::judge;
use tuner_device::worker::protocol::Job;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, Evidence, verify};
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::session::{Order, Run, RunReport, Session, Slot, TraceRequest, TraceResult};

/// `y[i] = factor * x[i]` after so many rounds of a loop, factors as PTX writes them.
fn code(entry: &str, loops: u32, factor: &str) -> Code {
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry {entry}(.param .u64 px, .param .u64 py)\n{{\n\
         .reg .pred %p<2>;\n.reg .f32 %f<3>;\n.reg .b32 %r<6>;\n.reg .b64 %d<6>;\n\
         ld.param.u64 %d0, [px];\nld.param.u64 %d1, [py];\n\
         cvta.to.global.u64 %d0, %d0;\ncvta.to.global.u64 %d1, %d1;\n\
         mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\n\
         mad.lo.s32 %r3, %r0, %r1, %r2;\nmov.u32 %r4, 0;\n\
         AGAIN:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p1, %r4, {loops};\n@%p1 bra AGAIN;\n\
         mul.wide.u32 %d2, %r3, 4;\nadd.u64 %d3, %d0, %d2;\nadd.u64 %d4, %d1, %d2;\n\
         ld.global.f32 %f0, [%d3];\nmul.f32 %f1, %f0, {factor};\n\
         st.global.f32 [%d4], %f1;\nret;\n}}\n"
    );
    Code {
        ptx: ptx.into(),
        registers: 16,
        ..Code::default()
    }
}

pub(super) const TWO: &str = "0f40000000";
pub(super) const THREE: &str = "0f40400000";

fn launch(entry: &str, elements: u64, block: u32) -> PlanLaunch {
    let blocks = (elements / u64::from(block)) as u32;
    PlanLaunch::new(entry, [blocks, 1, 1], [block, 1, 1], vec![0, 1])
}

/// A candidate of those loops, beside a reference of those loops.
pub(super) fn plan(elements: u64, [mine, reference]: [u32; 2], factor: &str) -> Plan {
    let argument = |name: &str, role| PlanArgument {
        fill: Fill::Uniform { min: 0.5, max: 1.0 },
        ..PlanArgument::new(name, Element::F32, role, &[elements])
    };
    Plan {
        problem: format!("of{elements}"),
        flops: Some(1e15),
        ..Plan::new(
            vec![argument("x", Role::Input), argument("y", Role::Output)],
            vec![launch("candidate", elements, 32)],
            code("candidate", mine, factor),
            PlanReference::Kernel {
                code: code("plain", reference, TWO),
                launch: launch("plain", elements, 64),
                oracle: None,
            },
        )
    }
}

/// A virtual GPU that counts what it executes.
struct Counting {
    gpu: VirtualGpu,
    lane_instructions: u64,
    /// Factor of the counts of runs in another order, where warps poll more often.
    other_orders: u64,
}

impl Session for Counting {
    fn reset(&mut self) {
        self.gpu.reset();
    }
    fn alloc(&mut self, name: &str, bytes: u64) -> Result<Slot, Judgement> {
        self.gpu.alloc(name, bytes)
    }
    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement> {
        self.gpu.upload(slot, bytes)
    }
    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement> {
        self.gpu.poison(slot, pattern)
    }
    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement> {
        self.gpu.download(slot)
    }
    fn unwritten(&self, slot: Slot) -> Option<Vec<Range<u64>>> {
        self.gpu.unwritten(slot)
    }
    fn unread(&self, slot: Slot) -> Option<Vec<Range<u64>>> {
        self.gpu.unread(slot)
    }
    fn can_sample(&self) -> bool {
        self.gpu.can_sample()
    }
    fn trace(
        &mut self,
        run: &Run<'_>,
        request: TraceRequest<'_>,
    ) -> Result<TraceResult, Judgement> {
        let traced = self.gpu.trace(run, request)?;
        if let TraceResult::Done(trace) = &traced {
            self.lane_instructions += trace.lane_instructions;
        }
        Ok(traced)
    }
    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement> {
        let mut report = self.gpu.run(run)?;
        if matches!(run.order, Order::Other { .. }) {
            report.work.lane_instructions *= self.other_orders;
        }
        self.lane_instructions += report.work.lane_instructions;
        Ok(report)
    }
}

/// With limits of a block, in warp instructions, low enough to be reached at once.
fn gpu(block: u64) -> VirtualGpu {
    let arch = vgpu::Arch::by_name("a100").expect("an a100");
    let limits = Limits {
        instructions_per_block: block,
        ..Limits::default()
    };
    VirtualGpu::new(arch, limits)
}

pub(super) fn verified(plan: &Plan, demands: &Demands) -> (Result<Evidence, Judgement>, u64) {
    let mut session = Counting {
        gpu: gpu(1 << 22),
        lane_instructions: 0,
        other_orders: 1,
    };
    let found = verify(&mut session, plan, demands, &mut References::default());
    let found = found.expect("there is no oracle to be wrong");
    (
        found.map(|(_, evidence)| evidence),
        session.lane_instructions,
    )
}

#[test]
fn a_reference_runs_only_the_blocks_that_write_what_is_compared() {
    // Whole, the reference would execute 3 000 million lane instructions, the candidate 300 million.
    let demands = Demands {
        whole_limit: 20_000_000,
        sample_limit: 1_000_000,
        ..Demands::default()
    };
    let (found, work) = verified(&plan(1 << 20, [100, 1000], TWO), &demands);
    let evidence = found.expect("it is right");
    assert!(evidence.sampled && evidence.max_error.is_some());
    assert_eq!((evidence.budget_exhausted, evidence.note), (None, None));
    assert!(work < 20_000_000, "{work}");
    let (found, work) = verified(&plan(1 << 20, [100, 1000], THREE), &demands);
    let rejection = found.expect_err("it is wrong");
    assert_eq!(rejection.verdict, Verdict::Incorrect);
    assert!(work < 20_000_000, "{work}");
}

#[test]
fn a_problem_that_is_run_whole_once_is_run_whole_in_every_order() {
    let demands = Demands {
        whole_limit: 4_000_000,
        ..Demands::default()
    };
    let mut session = Counting {
        gpu: gpu(1 << 22),
        lane_instructions: 0,
        other_orders: 4,
    };
    let plan = plan(1 << 16, [10, 10], TWO);
    let found = verify(&mut session, &plan, &demands, &mut References::default());
    let found = found.expect("there is no oracle to be wrong");
    let (_, evidence) = found.expect("both orders have the same result");
    assert!(!evidence.sampled);
}

#[test]
fn a_reference_that_cannot_be_afforded_is_said_to_be_missing() {
    let demands = Demands {
        whole_limit: 20_000_000,
        sample_limit: 1_000_000,
        block_limit: 10_000,
        reference_block_limit: 10_000,
        ..Demands::default()
    };
    let (found, work) = verified(&plan(1 << 20, [100, 1_000_000], TWO), &demands);
    let evidence = found.expect("nothing says that it is wrong");
    assert_eq!(evidence.max_error, None);
    let note = evidence.note.expect("a note");
    assert!(note.contains("were not compared"), "{note}");
    assert!(work < 20_000_000, "{work}");
}

#[test]
fn one_block_with_the_work_of_a_large_problem_is_left_where_the_budget_ends() {
    let demands = Demands {
        block_limit: 10_000,
        ..Demands::default()
    };
    let mut slow = plan(1 << 17, [1_000_000, 1], TWO);
    let (found, work) = verified(&slow, &demands);
    let exhausted = found.expect("the part that ran is clean").budget_exhausted;
    assert!(
        exhausted
            .expect("a reason")
            .contains("10000 warp instructions")
    );
    assert!(work < 20_000_000, "{work}");
    // Where the whole problem asks for next to nothing, so much of one block is a hang.
    slow.flops = Some(1.0);
    let patient = Demands {
        block_limit: 2_500_000,
        ..Demands::default()
    };
    let (found, _) = verified(&slow, &patient);
    assert_eq!(found.expect_err("it hangs").verdict, Verdict::Timeout);
}

fn judged(checks: Vec<Plan>, timed: Plan, block: u64) -> TimedJudgement {
    let job = Job {
        checks,
        timed: Some(timed),
        seeds: vec![1],
        ..Job::default()
    };
    let mut references = References::default();
    judge(&mut gpu(block), &mut references, &job, &mut |_| Ok(())).expect("a judgement")
}

/// The candidate as the compiler makes it: a time needs machine code.
fn compiled(mut plan: Plan, loops: u32) -> Plan {
    let source = format!(
        "extern \"C\" __global__ void candidate(const float* x, float* y) {{\n\
         #pragma unroll 1\n\
           for (int k = 0; k < {loops}; ++k) asm volatile(\"\");\n\
           int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
           y[i] = 2.0f * x[i];\n\
         }}\n"
    );
    let compiler = crate::device_gate::compiler();
    let code =
        tuner_device::gpu::helpers::compile(&compiler, "loops.cu", &source, "candidate", "sm_80");
    plan.code = code.expect("it compiles");
    plan
}

#[test]
fn check_problems_that_ran_whole_vouch_for_what_the_virtual_gpu_cannot_finish() {
    // Above the default budget of a sample, so that it is that which is met.
    let limit = Limits::default().instructions_per_block;
    let slow = || compiled(plan(1 << 17, [0, 1], TWO), 6_000_000);
    let small = plan(1 << 10, [1, 1], TWO);
    let vouched = judged(vec![small.clone()], slow(), limit);
    assert!(vouched.measured.is_some(), "{}", vouched.judgement);
    let vouched = vouched.judgement;
    assert!(vouched.is_ok(), "{vouched}");
    for words in ["did not end within", "check problems, which ran whole"] {
        assert!(vouched.detail.contains(words), "{}", vouched.detail);
    }
    let alone = judged(Vec::new(), slow(), limit);
    assert_eq!(alone.judgement.verdict, Verdict::Timeout);
    // A check problem that does not end is a hang, whatever the timed one does.
    let hangs = plan(1 << 10, [1 << 31, 1], TWO);
    let hung = judged(vec![hangs], small, 1 << 20);
    assert_eq!(hung.judgement.verdict, Verdict::Timeout);
}
