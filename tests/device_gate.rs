//! The gate on the device, by kernels of the tuner's own, on the stand-in for the driver: what it finds
//! is what the host's comparison finds, bit for bit.

use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_core::units::ContentHash;
use tuner_device::gpu::context::Gpu;
use tuner_device::gpu::helpers::Helpers;
use tuner_device::gpu::nvml::Monitor;
use tuner_device::gpu::session::GpuSession;
use tuner_judge::gate::compare;
use tuner_judge::gate::expected_output::{Rule, expected_output};
use tuner_judge::gate::level::Level;
use tuner_judge::gate::oracle::{Expected, Oracle};
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, verify};
use tuner_judge::session::Session;
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation};
use tuner_testkit::fake::VirtualDriver;

const ARCH: &str = "sm_89";

pub(crate) fn compiler() -> Compiler {
    Compiler::new(CompilerSettings {
        isolation: Isolation::InProcess,
        cache: None,
        ..CompilerSettings::default()
    })
    .expect("NVRTC is here: make nvrtc")
}

/// PTX in the place of machine code, which is what the stand-in loads.
fn as_image(code: Code) -> Code {
    Code {
        cubin: code.ptx.as_bytes().into(),
        ..code
    }
}

fn session() -> GpuSession {
    let arch = vgpu::Arch::by_name("l4").expect("a table");
    let gpu = Gpu::open(Box::new(VirtualDriver::with_arch(arch)), 0).expect("the stand-in opens");
    let helpers = Helpers::compile(&compiler(), ARCH).expect("they compile");
    GpuSession::new(gpu, Helpers::new(as_image(helpers)), Monitor::default())
}

/// Expectations by a formula, with values that are not finite among them.
struct Made {
    tile: u64,
}

impl Oracle for Made {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        let expected = |index: u64| Expected {
            value: match index % 97 {
                13 => f64::NAN,
                14 => f64::INFINITY,
                _ => ((index * 37 % 1009) as f64 / 63.0 - 8.0) * 1.000_000_1,
            },
            tolerance: if index % 101 == 5 {
                0.0
            } else {
                1e-3 + (index % 7) as f64 * 1e-4
            },
            rms: 4e-4 + (index % 5) as f64 * 1e-5,
        };
        (start..start + count).map(expected).collect()
    }

    fn tile(&self, _output: usize) -> u64 {
        self.tile
    }
}

/// What a kernel may have left: near the expectation, exactly there, or `far` away from it.
fn found(oracle: &Made, element: Element, count: u64, far: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, want) in (0u64..).zip(oracle.span(0, 0, count)) {
        let error = match index % 11 {
            0 => 0.0,
            near => (near as f64 - 5.0) * 1.3e-4,
        };
        let error = if index % 401 == 7 { far } else { error };
        element.encode(want.value + error, &mut bytes);
    }
    bytes
}

#[test]
fn the_devices_comparison_is_the_hosts_bit_for_bit() {
    let mut session = session();
    let count = 3000u64;
    for element in [Element::F16, Element::Bf16, Element::F32, Element::F64] {
        for (tile, far) in [
            (64, 0.0),
            (100, 1.0),
            (256, f64::NAN),
            (1000, f64::INFINITY),
        ] {
            let oracle = Made { tile };
            let bytes = found(&oracle, element, count, far);
            session.reset();
            let slot = session.alloc("y", bytes.len() as u64).unwrap();
            session.upload(slot, &bytes).unwrap();
            let kept = session.keep(slot).expect("it stays on the device");
            let range = 70..count;
            let ranges = std::slice::from_ref(&range);
            let flat = Rule::Elements(Some((1e-3, 1e-4)));
            for (name, rule) in [("tiles", Rule::Tiles), ("flat", flat)] {
                let host = compare::with_oracle(&oracle, 0, element, &bytes, ranges, rule);
                let expected = expected_output(&oracle, 0, element, ranges, rule);
                let key =
                    ContentHash::from_parts([format!("{name} {element:?} {tile}").as_bytes()]);
                let tally = session.tally(kept, element, &key, &mut || expected.clone());
                let tally = tally.unwrap().expect("the device compares it");
                let place = format!("{name} {element:?} tile {tile} far {far}");
                assert_eq!(
                    tally.max_error.to_bits(),
                    host.max_error.to_bits(),
                    "{place}"
                );
                assert_eq!(tally.wrong, host.wrong, "{place}");
                let first = host.first_wrong.map(|(index, ..)| index);
                assert_eq!(tally.first_wrong, first, "{place}");
            }
            session.release_all();
        }
    }
}

#[test]
fn poison_and_differences_are_found_where_they_are() {
    let mut session = session();
    let poison = Element::F32.poison();
    for (start, length, first) in [
        (0, 8, Some(0)),
        (37, 9, Some(37)),
        (92, 8, Some(92)),
        (5, 7, None),
    ] {
        let mut bytes = vec![0u8; 4 * 100 + 2];
        for index in start..start + length {
            bytes[4 * index..4 * index + 4].copy_from_slice(poison);
        }
        session.reset();
        let slots = [0; 2].map(|_| session.alloc("y", bytes.len() as u64).unwrap());
        session.upload(slots[0], &bytes).unwrap();
        let mut other = bytes.clone();
        *other.last_mut().unwrap() ^= 1;
        session.upload(slots[1], &other).unwrap();
        let input: Arc<[u8]> = bytes.clone().into();
        assert!(session.is_unchanged(slots[0], &input).unwrap());
        assert!(!session.is_unchanged(slots[1], &input).unwrap());
        let [one, two] = slots.map(|slot| session.keep(slot).unwrap());
        assert_eq!(session.first_run(one, poison, 8).unwrap(), first);
        assert!(session.equal(one, one).unwrap() && !session.equal(one, two).unwrap());
        // RetainedBuffer contents outlive the buffers of the run.
        session.reset();
        assert_eq!(session.fetch(one).unwrap(), bytes);
        session.release_all();
        assert!(session.fetch(one).is_err());
    }
}

/// `y = softmax(x)` along rows, with an error by its number.
const SOFTMAX: &str = r#"
extern "C" __global__ void rows(float* x, float* y, int columns, int defect) {
    const int row = blockIdx.x;
    if (threadIdx.x != 0) return;
    float top = -1e30f, sum = 0;
    for (int i = 0; i < columns; i++) top = fmaxf(top, x[row * columns + i]);
    for (int i = 0; i < columns; i++) sum += expf(x[row * columns + i] - top);
    for (int i = 0; i < columns; i++) {
        if (defect == 1 && row == 3) continue;
        float value = expf(x[row * columns + i] - top) / sum;
        if (defect == 2 && i == 5) value *= 1.001f;
        y[row * columns + i] = value;
    }
    if (defect == 3) x[0] = 1.0f;
    if (defect == 4 && row == 0) y[-1] = 0.0f;
}
"#;

fn plan(compiler: &Compiler, defect: f64) -> Plan {
    let code = tuner_device::gpu::helpers::compile(compiler, "rows.cu", SOFTMAX, "rows", ARCH);
    let argument = |name: &str, element, role, shape: &[u64], value| PlanArgument {
        value,
        ..PlanArgument::new(name, element, role, shape)
    };
    let shape = [16, 128];
    Plan {
        problem: "small".to_owned(),
        sizes: vec![("R".to_owned(), 16.0), ("N".to_owned(), 128.0)],
        ..Plan::new(
            vec![
                argument("x", Element::F32, Role::Input, &shape, 0.0),
                argument("y", Element::F32, Role::Output, &shape, 0.0),
                argument("columns", Element::I32, Role::Scalar, &[], 128.0),
                argument("defect", Element::I32, Role::Scalar, &[], defect),
            ],
            vec![PlanLaunch::new(
                "rows",
                [16, 1, 1],
                [32, 1, 1],
                vec![0, 1, 2, 3],
            )],
            as_image(code.expect("it compiles")),
            PlanReference::Oracle("softmax".to_owned()),
        )
    }
}

#[test]
fn the_gate_finds_on_the_device_what_it_finds_on_the_host() {
    let compiler = compiler();
    let mut device = session();
    let mut host = session().comparing_on_host();
    let demands = Demands::for_level(Level::Timing, &[7], 0);
    for defect in 0..5 {
        let plan = plan(&compiler, f64::from(defect));
        let judge = |session: &mut GpuSession| -> Result<_, Judgement> {
            let mut references = References::default();
            let found = verify(session, &plan, &demands, &mut references);
            found.expect("a good oracle").map(|(_, evidence)| {
                (
                    evidence.max_error.map(f64::to_bits),
                    evidence.compared.clone(),
                )
            })
        };
        let (one, two) = (judge(&mut device), judge(&mut host));
        assert_eq!(one.is_ok(), defect == 0, "{defect}: {one:?}");
        let addressless = |mut found: Result<_, Judgement>| {
            if let Err(judgement) = &mut found {
                judgement.hazards.iter_mut().for_each(|h| h.address = None);
            }
            found
        };
        assert_eq!(addressless(one), addressless(two), "{defect}");
    }
}

/// `y = 2 * y`, with an error by its number, and its reference.
const IN_PLACE: &str = r#"
extern "C" __global__ void rows(float* y, int defect) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (defect == 1 && i == 300) return;
    float factor = defect == 2 && i == 77 ? 2.1f : 2.0f;
    y[i] = factor * y[i];
}
extern "C" __global__ void plain(float* y, int defect) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = y[i] + y[i];
}
"#;

/// The kernel on a buffer that it changes in place, judged by a reference or by nothing.
fn in_place(compiler: &Compiler, defect: f64, judged: bool) -> Plan {
    let code = tuner_device::gpu::helpers::compile(compiler, "rows.cu", IN_PLACE, "rows", ARCH);
    let code = as_image(code.expect("it compiles"));
    let mut plan = plan(compiler, defect);
    plan.arguments.drain(1..3);
    plan.arguments[0].role = Role::Inout;
    plan.launches[0].arguments = vec![0, 1];
    plan.launches[0].block = [128, 1, 1];
    plan.reference = PlanReference::None;
    if judged {
        plan.reference = PlanReference::Kernel {
            code: code.clone(),
            launch: PlanLaunch {
                entry: "plain".to_owned(),
                ..plan.launches[0].clone()
            },
            oracle: None,
        };
    }
    plan.code = code;
    plan
}

#[test]
fn what_a_kernel_changes_in_place_stays_on_the_device_and_begins_anew() {
    let compiler = compiler();
    let demands = Demands::for_level(Level::Timing, &[7], 0);
    for mut session in [session(), session().comparing_on_host()] {
        // Inputs stay on the device from one candidate to the next.
        let mut references = References::default();
        for (defect, judged, right) in [
            (0, true, true),
            (1, true, false),
            (2, true, false),
            (0, true, true),
            (2, false, true),
        ] {
            let plan = in_place(&compiler, f64::from(defect), judged);
            let found = verify(&mut session, &plan, &demands, &mut references);
            let found = found.expect("the reference is right");
            assert_eq!(found.is_ok(), right, "{defect} {judged}: {found:?}");
            let compared = found.map_or(judged, |(_, evidence)| !evidence.compared.is_empty());
            assert_eq!(compared, judged);
        }
    }
}
