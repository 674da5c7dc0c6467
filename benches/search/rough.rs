//! Made-up spaces of 10^5 to 10^6 configurations, rough as kernels are: what a search does where it
//! can neither see everything nor trust that near configurations take equally long.
//!
//! Three families, each with constants drawn from a seed. `gemm`: the parameters and rules of
//! CLBlast's matrix product, timed by a formula of occupancy, bank conflicts, vector widths, spills
//! and waves of blocks. `terms`: effects of single parameters and of pairs, with cliffs. `boxes`:
//! random boxes of the space, each of which makes what lies in it faster or slower. All of them
//! have luck of code generation on top: a factor that depends on some parameters only, and one of
//! the whole configuration.

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Normal};
use std::error::Error;
use tuner_core::value::Value;
use tuner_space::{Config, Constraint, Environment, Expr, Parameter, Space};

/// Microseconds by the values of the parameters and the configuration; none where it fails.
type Time = dyn Fn(&[f64], &Config) -> Option<f64> + Send + Sync;

/// A space with the time of every configuration, in microseconds; none where it fails.
pub(crate) struct Rough {
    pub(crate) name: String,
    pub(crate) space: Space,
    time: Box<Time>,
    /// The least time of all.
    pub(crate) best: f64,
}

impl Rough {
    fn new(
        name: String,
        space: Space,
        time: impl Fn(&[f64], &Config) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        let mut made = Self {
            name,
            space,
            time: Box::new(time),
            best: 0.0,
        };
        let all = (0..made.space.count()).filter_map(|index| made.space.config_at(index));
        made.best = all
            .filter_map(|config| made.time(&config))
            .fold(f64::INFINITY, f64::min);
        made
    }

    /// Microseconds; none where it fails.
    pub(crate) fn time(&self, config: &Config) -> Option<f64> {
        let parameters = self.space.parameters().iter();
        let values: Vec<f64> = parameters
            .zip(config.choices())
            .map(|(parameter, choice)| parameter.values[*choice as usize].as_f64().unwrap_or(0.0))
            .collect();
        (self.time)(&values, config)
    }
}

/// All of them.
///
/// # Errors
/// A rule that is none: a mistake here.
pub(crate) fn all() -> Result<Vec<Rough>, Box<dyn Error>> {
    let mut spaces = Vec::new();
    for seed in 1..=3 {
        spaces.push(gemm(seed)?);
    }
    for seed in 1..=3 {
        spaces.push(terms(seed)?);
    }
    for seed in 1..=2 {
        spaces.push(boxes(seed)?);
    }
    Ok(spaces)
}

fn built(
    name: &str,
    parameters: &[(&str, Vec<i64>)],
    rules: &[&str],
) -> Result<Space, Box<dyn Error>> {
    let parameters = parameters.iter().map(|(name, values)| {
        let values: Vec<Value> = values.iter().copied().map(Value::Int).collect();
        Parameter::new((*name).to_owned(), values)
    });
    let rules = rules
        .iter()
        .map(|rule| {
            let rule = Expr::parse(rule)?;
            Ok(Constraint { rule, why: None })
        })
        .collect::<Result<Vec<_>, tuner_space::ExprError>>()?;
    Ok(Space::build(
        name,
        parameters.collect(),
        &rules,
        &Environment::default(),
    )?)
}

/// A normal number that is always the same for the same words: luck.
fn luck(seed: u64, words: &[f64]) -> f64 {
    let mix = |state: u64, word: &f64| {
        let mixed = (state ^ word.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    let seed = words
        .iter()
        .fold(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9), mix);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Normal::new(0.0, 1.0).map_or(0.0, |normal| normal.sample(&mut rng))
}

/// What a made-up GPU can do.
struct Device {
    /// Multiprocessors.
    processors: f64,
    /// Shared memory of one, bytes.
    shared: f64,
    /// Fused multiply-adds of one in a cycle.
    fma: f64,
    /// Words that shared memory delivers in a cycle.
    words: f64,
    /// Operations in flight that hide the latency.
    needed: f64,
    /// How much dearer a load is that goes past shared memory.
    uncached: f64,
    /// Bytes of device memory in a cycle, of all.
    bytes: f64,
    /// Deviation of the logarithm of the time by luck of code generation.
    luck: f64,
}

impl Device {
    fn drawn(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut of = |values: &[f64]| *values.choose(&mut rng).unwrap_or(&1.0);
        Self {
            processors: of(&[13.0, 30.0, 58.0, 84.0]),
            shared: of(&[49152.0, 65536.0, 98304.0]),
            fma: of(&[64.0, 128.0, 192.0]),
            words: of(&[32.0, 64.0]),
            needed: of(&[160.0, 320.0, 640.0]),
            uncached: of(&[1.5, 3.0, 6.0]),
            bytes: of(&[300.0, 500.0, 900.0]),
            luck: of(&[0.04, 0.08]),
        }
    }
}

/// CLBlast's matrix product, 2048 in each direction: 241,600 configurations.
fn gemm(seed: u64) -> Result<Rough, Box<dyn Error>> {
    let widths = vec![1, 2, 4, 8];
    let (tiles, edges, switch) = (vec![16, 32, 64, 128], vec![8, 16, 32], vec![0, 1]);
    let parameters = [
        ("MWG", tiles.clone()),
        ("NWG", tiles),
        ("KWG", vec![16, 32]),
        ("MDIMC", edges.clone()),
        ("NDIMC", edges.clone()),
        ("MDIMA", edges.clone()),
        ("NDIMB", edges),
        ("KWI", vec![2, 8]),
        ("VWM", widths.clone()),
        ("VWN", widths),
        ("STRM", switch.clone()),
        ("STRN", switch.clone()),
        ("SA", switch.clone()),
        ("SB", switch),
    ];
    let rules = [
        "KWG % KWI == 0",
        "MWG % (MDIMC * VWM) == 0",
        "NWG % (NDIMC * VWN) == 0",
        "MWG % (MDIMA * VWM) == 0",
        "NWG % (NDIMB * VWN) == 0",
        "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
        "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
    ];
    let device = Device::drawn(seed);
    let name = format!("gemm {seed}");
    let space = built(&name, &parameters, &rules)?;
    Ok(Rough::new(name, space, move |values, _| {
        product(&device, seed, values)
    }))
}

/// The time of a matrix product of 2048 in each direction, microseconds at a gigahertz.
fn product(device: &Device, seed: u64, values: &[f64]) -> Option<f64> {
    let &[
        mwg,
        nwg,
        kwg,
        mdimc,
        ndimc,
        mdima,
        ndimb,
        kwi,
        vwm,
        vwn,
        strm,
        strn,
        sa,
        sb,
    ] = values
    else {
        return None;
    };
    const EDGE: f64 = 2048.0;
    let threads = mdimc * ndimc;
    let (tm, tn) = (mwg / mdimc, nwg / ndimc);
    let staged = (sa * mwg + sb * nwg) * kwg;
    let registers = tm * tn + tm + tn + 20.0 + 2.0 * kwi + staged / threads;
    let spilled = (registers - 255.0).max(0.0);
    let held = (registers.min(255.0) / 8.0).ceil() * 8.0;
    let blocks = (2048.0 / threads)
        .min(65536.0 / (threads * held))
        .min(if staged > 0.0 {
            device.shared / (4.0 * staged)
        } else {
            16.0
        })
        .min(16.0)
        .floor();
    if blocks < 1.0 {
        return None;
    }
    let in_flight = blocks * threads / 32.0 * (tm * tn).min(16.0) * (1.0 + 0.1 * kwi.log2());
    let hidden = (in_flight / device.needed).min(1.0).powf(0.7);
    // Cycles of one multiprocessor for one step in k of all its blocks' threads.
    let lanes = blocks * threads;
    let fma = lanes * tm * tn / device.fma;
    let conflicts = |stride: f64, width: f64, tile: f64| match stride > 0.5 {
        true => 1.0 + (width / 4.0).floor(),
        false => (tile / width).clamp(1.0, 8.0).sqrt(),
    };
    let load = |shared: f64, tile: f64, width: f64, stride: f64| {
        let each = tile / width.min(4.0).sqrt();
        match shared > 0.5 {
            true => each * conflicts(stride, width, tile),
            false => each * device.uncached * if stride > 0.5 { 1.0 } else { 1.3 },
        }
    };
    let loads = load(sa, tm, vwm, strm) + load(sb, tn, vwn, strn);
    let shared = lanes * loads / device.words / 4.0;
    let steps = lanes * (4.0 / kwi + (sa.max(sb) * 40.0 / kwg) / blocks.sqrt()) / device.fma;
    let whole = |edge: f64, width: f64| (edge * width * 4.0 / 128.0).min(1.0).powf(0.5);
    let bytes = 4.0 * blocks * (mwg / whole(mdima, vwm) + nwg / whole(ndimb, vwn));
    let memory = bytes / (device.bytes / device.processors);
    let cycles = [fma / hidden, shared, memory]
        .map(|part| part.powi(3))
        .iter()
        .sum::<f64>()
        .cbrt()
        + steps
        + lanes * spilled * 0.2 / device.fma;
    let grid = (EDGE / mwg) * (EDGE / nwg);
    let waves = (grid / (device.processors * blocks)).ceil();
    let code = luck(seed, &[tm, tn, vwm, vwn, kwi, sa, sb, strm, strn]);
    let rest = luck(seed + 100, values);
    Some(waves * EDGE * cycles / 1e3 * (device.luck * code + 0.02 * rest).exp())
}

/// Parameters without meaning, of about so many configurations.
fn parameters(rng: &mut ChaCha8Rng) -> Vec<(String, Vec<i64>)> {
    let mut all = Vec::new();
    let mut count = 1.0;
    while count < 600_000.0 {
        let size = *[2, 2, 3, 4, 4, 5, 6, 8].choose(rng).unwrap_or(&2);
        let values = match rng.random_bool(0.6) {
            true => (0..size).map(|at| 1 << at).collect(),
            false => (1..=size).map(|at| at * 16).collect(),
        };
        all.push((format!("p{}", all.len()), values));
        count *= size as f64;
    }
    all
}

fn unruled(name: &str, parameters: &[(String, Vec<i64>)]) -> Result<Space, Box<dyn Error>> {
    let parameters: Vec<(&str, Vec<i64>)> = parameters
        .iter()
        .map(|(name, values)| (name.as_str(), values.clone()))
        .collect::<Vec<_>>();
    built(name, &parameters, &[])
}

/// Where a choice lies between the first value of its parameter and the last.
fn part(config: &Config, sizes: &[usize], at: usize) -> f64 {
    f64::from(config.choices()[at]) / (sizes[at] - 1) as f64
}

/// Effects of single parameters, of pairs that should fit each other, and cliffs.
fn terms(seed: u64) -> Result<Rough, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
    let name = format!("terms {seed}");
    let parameters = parameters(&mut rng);
    let space = unruled(&name, &parameters)?;
    let sizes: Vec<usize> = parameters.iter().map(|(_, values)| values.len()).collect();
    let count = sizes.len();
    let single: Vec<(f64, f64)> = sizes
        .iter()
        .map(|_| (rng.random::<f64>(), rng.random::<f64>().powi(2) * 0.8))
        .collect();
    let pairs: Vec<(usize, usize, f64, f64)> = (0..count)
        .map(|_| {
            (
                rng.random_range(0..count),
                rng.random_range(0..count),
                rng.random_range(-0.5..0.5),
                rng.random::<f64>() * 0.6,
            )
        })
        .collect();
    let cliffs: Vec<([usize; 3], f64, f64)> = (0..count / 2)
        .map(|_| {
            let of = [(); 3].map(|()| rng.random_range(0..count));
            (of, rng.random_range(1.0..2.5), rng.random_range(0.1..0.7))
        })
        .collect();
    Ok(Rough::new(name, space, move |_, config| {
        let part = |at: usize| part(config, &sizes, at);
        let mut log = 0.0;
        for (at, (best, weight)) in single.iter().enumerate() {
            log += weight * (part(at) - best).abs();
        }
        for (one, other, shift, weight) in &pairs {
            log += weight * (part(*one) - part(*other) - shift).powi(2);
        }
        for (of, level, height) in &cliffs {
            if of.iter().map(|at| part(*at)).sum::<f64>() > *level {
                log += height;
            }
        }
        let choices: Vec<f64> = config
            .choices()
            .iter()
            .map(|choice| f64::from(*choice))
            .collect();
        let code = luck(seed, &choices[..choices.len() / 2]);
        log += 0.05 * code + 0.02 * luck(seed + 100, &choices);
        Some(100.0 * f64::exp(log))
    }))
}

/// A parameter, and its first and last choice in a box.
type Side = (usize, u32, u32);

/// Boxes over two or three parameters, each with a factor of its own.
fn boxes(seed: u64) -> Result<Rough, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2000 + seed);
    let name = format!("boxes {seed}");
    let parameters = parameters(&mut rng);
    let space = unruled(&name, &parameters)?;
    let sizes: Vec<usize> = parameters.iter().map(|(_, values)| values.len()).collect();
    let boxes: Vec<(Vec<Side>, f64)> = (0..80)
        .map(|_| {
            let sides = (0..rng.random_range(1..=3)).map(|_| {
                let at = rng.random_range(0..sizes.len());
                let low = rng.random_range(0..sizes[at] as u32);
                (at, low, rng.random_range(low..sizes[at] as u32))
            });
            let sides = sides.collect();
            (sides, rng.random_range(-0.2..0.35))
        })
        .collect();
    Ok(Rough::new(name, space, move |_, config| {
        let inside =
            |(at, low, high): &(usize, u32, u32)| (*low..=*high).contains(&config.choices()[*at]);
        let hit = boxes.iter().filter(|(sides, _)| sides.iter().all(inside));
        let log: f64 = hit.map(|(_, height)| height).sum();
        let choices: Vec<f64> = config
            .choices()
            .iter()
            .map(|choice| f64::from(*choice))
            .collect();
        Some(100.0 * (log + 0.03 * luck(seed, &choices)).exp())
    }))
}
