//! Times of a kernel's configurations on a grid: stored ones, and measured or predicted ones if none is
//! stored.

use super::{Args, Source};
use crate::cli::events::{stopping, watch_signals};
use crate::cli::progress::Progress;
use crate::cli::results::block_on;
use crate::cli::{CliError, daemon, usage};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tuner_core::record::{ConfigValues, TimingKind};
use tuner_core::units::Micros;
use tuner_device::DeviceSelector;
use tuner_engine::grid::{Grid, GridProblem, Shapes};
use tuner_engine::job::{self, Prepared, Request};
use tuner_engine::threads::start_runtime;
use tuner_engine::{Event, Judged, Predictor};
use tuner_kernel::catalog::{self, Kernel};
use tuner_report::portfolio::{Axis, AxisValues, Shape, Table};
use tuner_space::{Config, Space};
use tuner_store::{DeviceFilter, LeaderboardQuery, Store};

/// Configurations that may be in the portfolio, with their stored times.
pub(super) struct Candidates {
    kernel: Kernel,
    shapes: Vec<GridProblem>,
    grid: Grid,
    folder: PathBuf,
    /// Prepared device, with one task for each shape.
    prepared: Prepared,
    configs: Vec<ConfigValues>,
    /// Stored times by configuration and shape.
    times: Vec<BTreeMap<usize, f64>>,
}

impl Candidates {
    /// Searches if requested, and reads the candidates: those of the database, the default and the seeds.
    pub(super) fn read(args: &Args) -> Result<Self, CliError> {
        let [name] = args.kernel.as_slice() else {
            return Err(usage("name one kernel, or recorded files alone"));
        };
        let Some(grid) = args.grid.clone() else {
            return Err(usage(
                "--grid is needed for a kernel; type --grid 'S=128..16384:x2,D=64,128' with its sizes",
            ));
        };
        match &args.device {
            DeviceSelector::Auto | DeviceSelector::Cuda(_) | DeviceSelector::Vgpu(_) => {}
            other => {
                return Err(usage(format!(
                    "a portfolio is for one GPU, not for {other}; type --device cuda:N or vgpu:NAME, or \
                     name the recorded files instead of a kernel"
                )));
            }
        }
        let folder = std::env::current_dir()?;
        let mut kernels = catalog::resolve(std::slice::from_ref(name), &folder)?;
        let kernel = kernels.swap_remove(0);
        let grid = grid.with_base(args.problem.clone());
        let shapes = grid.problems(&kernel.spec);
        let shapes = shapes.map_err(|why| usage(format!("--grid: {why}")))?;
        // Before the database is read, so that the search's results are among the candidates.
        search(args, &request(args, &grid))?;
        // Whole runs of large shapes would take hours on a virtual GPU; the check problems are run whole.
        let unproven = Request {
            prove_budget: Some("0".parse().map_err(usage)?),
            ..request(args, &grid)
        };
        let prepared = Prepared::new(&unproven, &folder)?;
        prepared.notes.iter().for_each(|note| say!("{note}"));
        let mut candidates = Self {
            kernel,
            shapes,
            grid,
            folder,
            prepared,
            configs: Vec::new(),
            times: Vec::new(),
        };
        candidates.add_declared();
        block_on(candidates.add_stored(args))?;
        Ok(candidates)
    }

    /// Returns the kind of the device's times.
    fn timing(&self) -> TimingKind {
        match self.prepared.facts().kind {
            tuner_core::record::DeviceKind::Cuda => TimingKind::Measured,
            _ => TimingKind::Predicted,
        }
    }

    fn space(&self, shape: usize) -> Option<&Space> {
        let task = self.prepared.plan().tasks.get(shape);
        task.map(|task| &task.space)
    }

    /// Adds a configuration, and returns its index.
    fn add(&mut self, config: ConfigValues) -> usize {
        let known = self.configs.iter().position(|known| *known == config);
        known.unwrap_or_else(|| {
            self.configs.push(config);
            self.times.push(BTreeMap::new());
            self.configs.len() - 1
        })
    }

    /// Adds the default and the seeds.
    fn add_declared(&mut self) {
        let tasks = self.prepared.plan().tasks.iter();
        let starts = tasks.flat_map(|task| {
            let points = task.start.iter();
            points.map(|point| task.space.values(&point.config))
        });
        let starts: Vec<ConfigValues> = starts.collect();
        for config in starts {
            self.add(config);
        }
    }

    /// Adds the best of each stored problem on this device, and all stored times of the candidates.
    async fn add_stored(&mut self, args: &Args) -> Result<(), CliError> {
        if !args.db.is_file() {
            return Ok(());
        }
        let store = Store::open_read(&args.db).await?;
        let query = LeaderboardQuery {
            kernel: Some(self.kernel.spec.kernel.clone()),
            device: Some(DeviceFilter::Name(self.prepared.facts().name.clone())),
            timings: vec![self.timing()],
            top: Some(usize::from(args.top)),
            admitted: Some(tuner_report::admitted),
            ..LeaderboardQuery::default()
        };
        let template = self.kernel.template.hash.to_string();
        let mut boards = store.boards(&query).await?;
        let all = boards.len();
        boards.retain(|board| {
            let row = board.rows.first();
            row.is_some_and(|row| row.template_hash.as_ref() == Some(&template))
        });
        if boards.len() < all {
            say!(
                "note: left out: results of {} of {all} problems, measured before the template was edited",
                all - boards.len()
            );
        }
        for board in &boards {
            for row in &board.rows {
                self.add(row.config.clone());
            }
        }
        let entries = store.entries(&boards).await?;
        store.close().await?;
        for entry in entries {
            let same = |shape: &GridProblem| shape.problem.sizes == entry.sizes;
            let Some(shape) = self.shapes.iter().position(same) else {
                continue;
            };
            for (config, us) in &entry.times {
                if let Some(index) = self.configs.iter().position(|known| known == config)
                    && let Some(times) = self.times.get_mut(index)
                {
                    times.insert(shape, *us);
                }
            }
        }
        Ok(())
    }

    /// Returns the configurations that are valid for a shape and have no time there.
    fn missing(&self, shape: usize) -> Vec<(usize, Config)> {
        let Some(space) = self.space(shape) else {
            return Vec::new();
        };
        let all = self.configs.iter().zip(&self.times).enumerate();
        let open = all.filter(|(_, (_, times))| !times.contains_key(&shape));
        open.filter_map(|(index, (config, _))| {
            let config = space.config_from_values(config).ok()?;
            space.contains(&config).then_some((index, config))
        })
        .collect()
    }

    /// Obtains the missing times, and returns the table; on a virtual GPU configurations that fail a
    /// check are removed from it.
    pub(super) fn into_source(mut self, args: &Args) -> Result<Source, CliError> {
        let missing: usize = (0..self.shapes.len())
            .map(|at| self.missing(at).len())
            .sum();
        let stored: usize = self.times.iter().map(BTreeMap::len).sum();
        let predicted = self.timing() == TimingKind::Predicted;
        say!(
            "{} configurations on {} shapes: {stored} stored times, {missing} to {}",
            self.configs.len(),
            self.shapes.len(),
            if predicted { "predict" } else { "measure" }
        );
        if predicted {
            self.predict_missing(args)?;
        } else {
            self.measure_missing()?;
        }
        let mut table = self.table();
        if predicted {
            self.check_chosen(args, &mut table)?;
        }
        Ok(Source {
            kernel: self.kernel.spec.kernel.clone(),
            device: self.prepared.facts().name.clone(),
            table,
        })
    }

    fn predict_missing(&mut self, args: &Args) -> Result<(), CliError> {
        let device = self.prepared.facts().name.parse::<DeviceSelector>()?;
        let [name] = args.kernel.as_slice() else {
            return Ok(());
        };
        let jobs = args.jobs.map(job::Jobs::get);
        let predictors = Predictor::open_grid(name, &self.folder, &self.grid, &device, jobs)?;
        for (shape, predictor) in predictors.iter().enumerate() {
            let (indices, configs): (Vec<usize>, Vec<Config>) =
                self.missing(shape).into_iter().unzip();
            let mut times: Vec<(usize, Option<Micros>)> = Vec::new();
            let tell = |at: usize, judged: Judged| {
                times.extend(indices.get(at).map(|index| (*index, judged.predicted())));
            };
            predictor.forecast_each(&configs, tell)?;
            for (index, time) in times {
                if let (Some(time), Some(known)) = (time, self.times.get_mut(index)) {
                    known.insert(shape, time.get());
                }
            }
        }
        Ok(())
    }

    /// Judges and times the missing pairs on the GPU.
    fn measure_missing(&mut self) -> Result<(), CliError> {
        for shape in 0..self.shapes.len() {
            for (index, config) in self.missing(shape) {
                let judged = self.prepared.judge(shape, &config)?;
                let time = judged.time().filter(|_| judged.found.judgement.is_ok());
                if let (Some(time), Some(known)) = (time, self.times.get_mut(index)) {
                    known.insert(shape, time.p50.get());
                }
            }
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let shapes: Vec<Shape> = self.shapes.iter().map(|shape| self.shape(shape)).collect();
        let row = |times: &BTreeMap<usize, f64>| {
            (0..shapes.len())
                .map(|at| times.get(&at).copied())
                .collect()
        };
        let axes = self.grid.axes().iter();
        let axes = axes.map(|(name, values)| Axis {
            name: name.clone(),
            values: AxisValues::Numbers(values.clone()),
        });
        Table {
            axes: axes.collect(),
            times: self.times.iter().map(row).collect(),
            configs: self.configs.clone(),
            timing: self.timing(),
            shapes,
        }
    }

    fn shape(&self, shape: &GridProblem) -> Shape {
        let axes = self.grid.axes().iter().zip(&shape.place);
        let sizes = axes.filter_map(|((name, values), place)| {
            let value = values.get(*place)?;
            Some(format!("{name}={value}"))
        });
        Shape {
            name: sizes.collect::<Vec<_>>().join(" "),
            place: shape.place.clone(),
        }
    }

    /// Runs the gate for the configurations that would be chosen, each on the smallest shape that it serves
    /// and on all check problems, and removes those that fail.
    fn check_chosen(&self, args: &Args, table: &mut Table) -> Result<(), CliError> {
        let mut passed = BTreeSet::new();
        loop {
            // Repeated after each removal: another configuration may serve the shapes of a failed one.
            let losses = table.losses();
            let Some((chosen, _)) = args.choose_members(&losses) else {
                return Ok(());
            };
            let mut failed = false;
            for &member in &chosen.members {
                let served = (0..self.shapes.len()).filter(|shape| {
                    losses
                        .best_member(&chosen.members, *shape)
                        .map(|best| best.0)
                        == Some(member)
                });
                let work = |shape: &usize| {
                    let task = self.prepared.plan().tasks.get(*shape);
                    task.map_or(f64::INFINITY, |task| task.work)
                };
                let Some(shape) = served.min_by(|a, b| work(a).total_cmp(&work(b))) else {
                    continue;
                };
                if passed.contains(&(member, shape)) {
                    continue;
                }
                match self.fault(shape, member)? {
                    None => {
                        passed.insert((member, shape));
                    }
                    Some(fault) => {
                        say!("left out: {fault}");
                        if let Some(times) = table.times.get_mut(member) {
                            times.fill(None);
                        }
                        failed = true;
                    }
                }
            }
            if !failed {
                return Ok(());
            }
        }
    }

    /// Judges a configuration on a shape; returns the reason why it fails.
    fn fault(&self, shape: usize, member: usize) -> Result<Option<String>, CliError> {
        let (Some(space), Some(values)) = (self.space(shape), self.configs.get(member)) else {
            return Ok(None);
        };
        let config = space.config_from_values(values).map_err(usage)?;
        let judged = self.prepared.judge(shape, &config)?;
        let judgement = &judged.found.judgement;
        Ok((!judgement.is_ok()).then(|| {
            let detail = judgement.detail.lines().next().unwrap_or_default();
            let shape = self
                .shapes
                .get(shape)
                .map_or("", |shape| &shape.problem.name);
            format!(
                "a chosen configuration fails on {shape}: {}: {detail}",
                judgement.verdict
            )
        }))
    }
}

/// Builds the request of a run over the grid.
fn request(args: &Args, grid: &Grid) -> Request {
    let searched = args.evals.is_some() || args.budget.is_some();
    Request {
        kernels: args.kernel.clone(),
        device: args.device.to_string(),
        evals: if searched { args.evals } else { Some(1) },
        budget: args.budget.clone(),
        seed: args.seed,
        jobs: args.jobs,
        no_baseline: true,
        shapes: Some(Shapes::Grid(grid.clone())),
        ..Request::default()
    }
}

/// Searches on all shapes if requested, with prior knowledge from the database; the trials are stored.
fn search(args: &Args, request: &Request) -> Result<(), CliError> {
    if args.evals.is_none() && args.budget.is_none() {
        return Ok(());
    }
    if let Some(row) = block_on(daemon::owner(&args.db))? {
        refuse!(
            "the daemon at http://{} owns this database; name another file with --db, or leave --evals \
             and --budget out",
            row.address
        );
    }
    let mut prepared = Prepared::new(request, &std::env::current_dir()?)?;
    let runtime = start_runtime("tuner", 2)?;
    runtime.block_on(async {
        let shutdown = watch_signals(stopping)?;
        let store = Store::open(&args.db).await?;
        prepared.ready(&store, &shutdown).await?;
        let mut progress = Progress::new(prepared.charged());
        let mut sink = |event: &Event| progress.show(event);
        let report = prepared.execute(&store, shutdown, &mut sink).await;
        store.close().await?;
        report?;
        Ok::<_, CliError>(())
    })?;
    // Threads that still compile a dropped candidate are not joined.
    runtime.shutdown_background();
    Ok(())
}
