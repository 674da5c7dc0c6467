//! A process between the tuner and a worker that forwards their messages, and corrupts one of them.
//!
//! A test starts itself as the proxy (`PROGRAM proxy POINT ARGUMENTS…`), and the proxy starts the same
//! program as the worker (`PROGRAM ARGUMENTS…`). So both ends run the product's own code.
#![expect(
    clippy::indexing_slicing,
    reason = "a place in a frame is taken modulo its length"
)]

use rustix::process::{Signal, getpid, kill_process};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;
use tuner_process::{Decoder, encode};

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the tuner.
    Request,
    /// To the tuner.
    Reply,
}

/// Fault applied to a message, or to the worker when the message is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is cut after this many bytes (modulo its length), and so is the connection.
    Cut(usize),
    /// A byte (modulo its length) is XORed with a mask.
    Flip(usize, u8),
    /// It is sent twice.
    Double,
    /// It is dropped.
    Drop,
    /// It is preceded by this many bytes that are not a message.
    Noise(usize),
    /// It is delayed by this many milliseconds.
    Delay(u64),
    /// The worker receives a signal before it.
    Signal(i32),
    /// The worker exits with a code before it.
    Exit(i32),
    /// This many bytes are written to standard error before it.
    Chatter(usize),
    /// The worker exits before it, and leaves a process that holds its pipes open.
    Orphan,
    /// The worker closes its output before it and continues to run.
    Mute,
    /// Reads nothing from then on.
    Deaf,
}

/// One message of a conversation, and its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Direction of the message.
    pub direction: Direction,
    /// Its number in that direction, from 0.
    pub message: u32,
    /// The fault.
    pub fault: Fault,
}

/// Signals sent from outside, and those caused by the process itself.
const SIGNALS: [Signal; 9] = [
    Signal::KILL,
    Signal::TERM,
    Signal::HUP,
    Signal::INT,
    Signal::USR1,
    Signal::XCPU,
    Signal::SEGV,
    Signal::ABORT,
    Signal::BUS,
];

impl Point {
    /// Returns every point without waiting in a conversation of this many requests and replies:
    /// each byte of the heads, and bytes spread over the rest.
    #[must_use]
    pub fn list_fast(requests: u32, replies: u32) -> Vec<Self> {
        let places = || (0..44).chain((1..12).map(|step| 44 + step * 977));
        let mut faults = vec![Fault::Double, Fault::Delay(20), Fault::Orphan];
        faults.extend(places().map(Fault::Cut));
        faults.extend(places().flat_map(|at| [0x01, 0x80].map(|mask| Fault::Flip(at, mask))));
        faults.extend([1, 4, 27, 28, 100_000].map(Fault::Noise));
        faults.extend([100, 200_000].map(Fault::Chatter));
        faults.extend(SIGNALS.map(|signal| Fault::Signal(signal.as_raw())));
        faults.extend([0, 1, 7, 76, 101].map(Fault::Exit));
        Self::combine(requests, replies, &faults)
    }

    /// Returns the points at which a deadline has to pass.
    #[must_use]
    pub fn slow(requests: u32, replies: u32) -> Vec<Self> {
        let stop = Fault::Signal(Signal::STOP.as_raw());
        let faults = [
            Fault::Drop,
            Fault::Delay(900),
            Fault::Mute,
            Fault::Deaf,
            stop,
        ];
        Self::combine(requests, replies, &faults)
    }

    fn combine(requests: u32, replies: u32, faults: &[Fault]) -> Vec<Self> {
        let messages = (0..requests).map(|message| (Direction::Request, message));
        messages
            .chain((0..replies).map(|message| (Direction::Reply, message)))
            .flat_map(|(direction, message)| {
                faults.iter().map(move |fault| Self {
                    direction,
                    message,
                    fault: *fault,
                })
            })
            .collect()
    }

    /// Reports whether only a deadline reveals the fault.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.fault, Fault::Drop | Fault::Deaf | Fault::Delay(_))
    }

    /// Reports whether the fault may be attributed to the request: it looks like a hang or a crash
    /// of the executed work. Every other fault must leave no trace in the results.
    #[must_use]
    pub fn may_be_blamed(&self) -> bool {
        match self.fault {
            Fault::Drop | Fault::Delay(_) | Fault::Deaf => true,
            Fault::Signal(signal) => [Signal::SEGV, Signal::ABORT, Signal::BUS]
                .iter()
                .any(|s| s.as_raw() == signal),
            // 76: the worker reports that it could not read its request.
            Fault::Exit(code) => code != 76,
            Fault::Orphan => true,
            _ => false,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Request => "request",
            Direction::Reply => "reply",
        };
        let (name, a, b) = match self.fault {
            Fault::Cut(at) => ("cut", at, 0),
            Fault::Flip(at, mask) => ("flip", at, mask),
            Fault::Double => ("double", 0, 0),
            Fault::Drop => ("drop", 0, 0),
            Fault::Noise(bytes) => ("noise", bytes, 0),
            Fault::Delay(ms) => ("delay", ms as usize, 0),
            Fault::Signal(signal) => ("signal", signal as usize, 0),
            Fault::Exit(code) => ("exit", code as usize, 0),
            Fault::Chatter(bytes) => ("chatter", bytes, 0),
            Fault::Orphan => ("orphan", 0, 0),
            Fault::Mute => ("mute", 0, 0),
            Fault::Deaf => ("deaf", 0, 0),
        };
        write!(f, "{direction}:{}:{name}:{a}:{b}", self.message)
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a point");
        let fields: Vec<&str> = text.split(':').collect();
        let [direction, message, name, a, b] = fields.as_slice() else {
            return Err(bad());
        };
        let number = |text: &str| text.parse::<usize>().map_err(|_| bad());
        let (message, a, b) = (number(message)?, number(a)?, number(b)?);
        let fault = match *name {
            "cut" => Fault::Cut(a),
            "flip" => Fault::Flip(a, b as u8),
            "double" => Fault::Double,
            "drop" => Fault::Drop,
            "noise" => Fault::Noise(a),
            "delay" => Fault::Delay(a as u64),
            "signal" => Fault::Signal(a as i32),
            "exit" => Fault::Exit(a as i32),
            "chatter" => Fault::Chatter(a),
            "orphan" => Fault::Orphan,
            "mute" => Fault::Mute,
            "deaf" => Fault::Deaf,
            _ => return Err(bad()),
        };
        Ok(Self {
            direction: if *direction == "request" {
                Direction::Request
            } else {
                Direction::Reply
            },
            message: message as u32,
            fault,
        })
    }
}

/// Runs the proxy: the worker's program is this one with `arguments`. Exits like the worker.
///
/// # Errors
/// The worker cannot be started.
pub fn run(point: Point, arguments: &[String]) -> io::Result<i32> {
    let mut worker = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(input), Some(output)) = (worker.stdin.take(), worker.stdout.take()) else {
        return Err(io::Error::other("the worker has no pipes"));
    };
    let id = worker.id();
    let at =
        move |direction| (point.direction == direction).then_some((point.message, point.fault));
    let requests = at(Direction::Request);
    std::thread::spawn(move || pass(&mut io::stdin(), Some(input), requests, id));
    pass(
        &mut { output },
        Some(io::stdout()),
        at(Direction::Reply),
        id,
    );
    end_like(&mut worker)
}

/// Forwards messages until their end, and applies the fault to its message.
fn pass<W: Write>(
    from: &mut impl Read,
    mut to: Option<W>,
    point: Option<(u32, Fault)>,
    worker: u32,
) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    let mut count = 0;
    loop {
        while let Ok(Some(parts)) = decoder.take() {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let frame = encode(count, &slices).unwrap_or_default();
            let fault = point.filter(|(message, _)| *message == count);
            count += 1;
            let sent = match fault {
                None => to.as_mut().map_or(Ok(()), |pipe| send(pipe, &frame)),
                Some((_, fault)) => harm(&mut to, frame, fault, worker),
            };
            if sent.is_err() {
                return;
            }
        }
        match from.read(&mut buffer) {
            Ok(bytes @ 1..) => decoder.push(buffer.get(..bytes).unwrap_or_default()),
            _ => return,
        }
    }
}

fn send(pipe: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    pipe.write_all(bytes)?;
    pipe.flush()
}

fn harm<W: Write>(
    to: &mut Option<W>,
    mut frame: Vec<u8>,
    fault: Fault,
    worker: u32,
) -> io::Result<()> {
    let Some(pipe) = to else { return Ok(()) };
    let length = frame.len();
    match fault {
        Fault::Cut(at) => {
            send(pipe, &frame[..at % length])?;
            end_of_connection(to, worker);
        }
        Fault::Flip(at, mask) => frame[at % length] ^= mask,
        Fault::Double => send(pipe, &frame)?,
        Fault::Drop => return Ok(()),
        Fault::Noise(bytes) => send(pipe, &vec![b'n'; bytes])?,
        Fault::Delay(ms) => std::thread::sleep(Duration::from_millis(ms)),
        Fault::Signal(signal) => {
            if signal == Signal::STOP.as_raw() {
                // A worker that is stopped while its proxy runs goes unnoticed.
                let _ = kill_process(getpid(), Signal::STOP);
            } else {
                kill(worker);
                end_by(signal);
            }
        }
        Fault::Exit(code) => {
            kill(worker);
            exit(code);
        }
        Fault::Chatter(bytes) => send(&mut io::stderr(), &vec![b'e'; bytes])?,
        Fault::Orphan => {
            let _ = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn();
            kill(worker);
            exit(0);
        }
        Fault::Mute => {
            let null = std::fs::File::open("/dev/null")?;
            rustix::stdio::dup2_stdout(null)?;
            std::thread::sleep(Duration::from_secs(60));
        }
        Fault::Deaf => std::thread::sleep(Duration::from_secs(60)),
    }
    match to {
        Some(pipe) => send(pipe, &frame),
        None => Ok(()),
    }
}

/// Closes the pipe. If the tuner reads it, the proxy exits.
fn end_of_connection<W>(to: &mut Option<W>, worker: u32) {
    *to = None;
    if std::any::type_name::<W>().contains("Stdout") {
        kill(worker);
        end_by(Signal::KILL.as_raw());
    }
}

fn kill(id: u32) {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let _ = id.map(|id| kill_process(id, Signal::KILL));
}

fn end_like(worker: &mut Child) -> io::Result<i32> {
    let status: ExitStatus = worker.wait()?;
    match status.signal() {
        Some(signal) => end_by(signal),
        None => Ok(status.code().unwrap_or(1)),
    }
}

/// Ends this process by a signal.
fn end_by(signal: i32) -> ! {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
    // The signal arrives shortly, unless the test runner makes its children ignore it (`nohup`, `&`
    // in a script). One that cannot be ignored then replaces it, because an exit code would be
    // another fault.
    std::thread::sleep(Duration::from_secs(1));
    let _ = kill_process(getpid(), Signal::KILL);
    exit(99)
}

#[expect(
    clippy::disallowed_methods,
    reason = "other threads wait for pipes for ever"
)]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
