//! Speed of a launch through the server of `tuner exec`, compared with the same launch as `tuner check` runs it.
#![expect(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should end"
)]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use cuda_shim::protocol::{
    Fields, FrameHeader, FunctionInfo, Message, NO_POOL, Op, kind, write_frame,
};
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module, launch};
use virtual_driver::{Options, Prediction, Server};

const PTX: &str = include_str!("../../gpu/vgpu/benches/gemm.ptx");
/// Rows of the matrices.
const SIZE: u32 = 512;
const BLOCKS: u32 = SIZE / 128;
const THREADS: u32 = 256;
const RUNS: usize = 7;

/// A program of the server.
struct Client(UnixStream);

impl Client {
    fn call(&mut self, op: Op, head: &Message, bulk: &[u8]) -> Vec<u8> {
        write_frame(&mut self.0, op as u32, head.bytes(), bulk).expect("a request");
        let header = FrameHeader::read(&mut self.0)
            .expect("a reply")
            .expect("a reply");
        assert_eq!(header.number, 0, "{op:?}");
        let mut head = vec![0; header.head_bytes as usize];
        self.0.read_exact(&mut head).expect("a reply");
        let mut bulk = vec![0; header.bulk_bytes as usize];
        self.0.read_exact(&mut bulk).expect("a reply");
        head
    }

    fn number(&mut self, op: Op, head: &Message, bulk: &[u8]) -> u64 {
        let reply = self.call(op, head, bulk);
        Fields::new(&reply).u64().expect("a number")
    }
}

fn matrix() -> Vec<u8> {
    let values = (0..SIZE * SIZE).map(|i| (i % 97) as f32 / 97.0);
    values.flat_map(f32::to_le_bytes).collect()
}

/// Returns a function that runs the launch through the server.
fn through_server(server: &Server) -> impl FnMut() {
    let mut client = Client(UnixStream::connect(server.path()).expect("the server"));
    client.call(Op::Hello, Message::new().put_u32(1).put_str("bench"), &[]);
    let module = client.number(Op::LoadModule, &Message::new(), PTX.as_bytes());
    let reply = client.call(
        Op::GetFunction,
        Message::new().put_u64(module).put_str("gemm"),
        &[],
    );
    let function = FunctionInfo::take(&mut Fields::new(&reply)).expect("a kernel");
    let mut parameters = Vec::new();
    for place in 0..3 {
        let mut head = Message::new();
        let bytes = u64::from(SIZE * SIZE * 4);
        head.put_u64(bytes).put_u32(kind::DEVICE).put_u64(NO_POOL);
        let address = client.number(Op::Allocate, &head, &[]);
        if place < 2 {
            let mut head = Message::new();
            head.put_u64(0).put_u64(address);
            cuda_shim::protocol::Shape::linear(bytes).put(&mut head);
            client.call(Op::WriteMemory, &head, &matrix());
        }
        parameters.extend(address.to_le_bytes());
    }
    parameters.extend(SIZE.to_le_bytes());
    let mut head = Message::new();
    head.put_u64(0).put_u64(function.id);
    for extent in [BLOCKS, BLOCKS, 1, THREADS, 1, 1, 0, 0, 1, 1, 1] {
        head.put_u32(extent);
    }
    move || {
        client.call(Op::Launch, &head, &parameters);
    }
}

/// Returns a function that runs the launch directly.
fn directly(arch: &'static Arch) -> impl FnMut() {
    let module = Module::load(PTX).expect("the kernel loads");
    let mut memory = GlobalMemory::new(arch.memory_bytes);
    let bytes = u64::from(SIZE * SIZE * 4);
    let mut args: Vec<Arg> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let buffer = memory.alloc(bytes, name).expect("memory");
            if *name != "c" {
                memory.write(buffer, 0, &matrix());
            }
            Arg::Buffer(buffer)
        })
        .collect();
    args.push(Arg::Bytes(SIZE.to_le_bytes().to_vec()));
    let mut wanted = Launch::new("gemm", [BLOCKS, BLOCKS, 1], [THREADS, 1, 1], args);
    wanted.threads = 1;
    move || {
        let report = launch(&module, &mut memory, arch, &wanted).expect("the launch is legal");
        assert_eq!(report.hazards, []);
    }
}

fn seconds(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn main() {
    let arch = Arch::by_name("a100").expect("a GPU");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Options {
        arch,
        hazards: true,
        kernels: Vec::new(),
        lane_budget: None,
        threads: 1,
        folder: folder.path().to_owned(),
        progress: None,
        prediction: Prediction::Bound,
        capture: None,
    })
    .expect("the server");
    let (mut server_run, mut direct_run) = (through_server(&server), directly(arch));
    // Both in turn, and the best of each: other load on the machine affects both equally.
    let (mut through, mut direct) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        through = through.min(seconds(&mut server_run));
        direct = direct.min(seconds(&mut direct_run));
    }
    println!(
        "f32 GEMM of {SIZE}, one thread, with hazard checks: {through:.3} s by the server, \
         {direct:.3} s directly: {:.3} times as long",
        through / direct
    );
}
