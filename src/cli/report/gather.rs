//! Input of a report, from the database and the kernels' files.

use super::Args;
use crate::cli::CliError;
use crate::cli::profile::virtual_gpu::predictor;
use crate::cli::stale::Present;
use serde_json::{Map, Value as Json};
use tuner_core::record::{ConfigValues, DeviceKind, TimingKind, value_of};
use tuner_core::units::Micros;
use tuner_device::limits;
use tuner_engine::Judged;
use tuner_engine::ablation::single_changes;
use tuner_engine::job::JobError;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::render_bound;
use tuner_report::low_parallelism::TimedProblem;
use tuner_report::{Change, KernelFacts, Peer, Subject, WinnerProfile};
use tuner_space::{Binder, DeviceLimits};
use tuner_store::{Board, ProfileSource, Store};
use vgpu::arch::by_device_name;

/// Builds one subject for each board, with warnings that consider the kernel's other problems.
pub(super) async fn subjects(
    store: &Store,
    mut boards: Vec<Board>,
    args: &Args,
) -> Result<Vec<Subject>, CliError> {
    let mut present = Present::default();
    present.mark(&mut boards);
    let mut subjects = Vec::with_capacity(boards.len());
    for board in boards {
        let kernel = present.kernel(&board);
        subjects.push(subject(store, board, kernel, args).await?);
    }
    let warnings: Vec<Vec<String>> = subjects
        .iter()
        .map(|one| low_parallelism(one, &subjects))
        .collect();
    for (subject, warnings) in subjects.iter_mut().zip(warnings) {
        subject.warnings = warnings;
    }
    Ok(subjects)
}

async fn subject(
    store: &Store,
    board: Board,
    kernel: Option<&Kernel>,
    args: &Args,
) -> Result<Subject, CliError> {
    let best = board
        .rows
        .first()
        .map(|row| row.config.clone())
        .unwrap_or_default();
    let stale = board.rows.first().and_then(|row| row.stale) == Some(true);
    let mut subject = Subject {
        kernel: kernel.and_then(|kernel| facts(kernel, &board, &best, stale)),
        profile: None,
        predicted_changes: Vec::new(),
        warnings: Vec::new(),
        baseline: None,
        candidates: store.candidates(&board).await?,
        runs: store.time_lines(&board).await?,
        board,
    };
    let timing = subject.board.timing;
    // A peer's time is measured: its ratio to a prediction would be meaningless.
    if timing == TimingKind::Measured {
        subject.baseline = peer(store, &subject.board).await?;
    }
    subject.profile = stored_profile(store, &subject, &best).await?;
    let wanted = args.ablate || (!args.no_profile && subject.profile.is_none());
    let replay = subject.board.device_kind == DeviceKind::Replay;
    // After an edit of the template, the counters would be those of other code.
    if let Some(kernel) = kernel.filter(|_| !stale && wanted && !replay)
        && let Err(error) = predict(&mut subject, kernel, &best, args)
    {
        let key = &subject.board.key;
        say!(
            "note: {} {}: nothing predicted: {error}",
            key.kernel,
            key.problem
        );
    }
    Ok(subject)
}

/// Returns the peer for comparison, if one has a result.
async fn peer(store: &Store, board: &Board) -> Result<Option<Peer>, CliError> {
    let record = store.baseline(board).await?;
    Ok(record.zip(board.rows.first()).and_then(|(record, best)| {
        let p50_us = record.p50_us()?;
        let alone = p50_us / best.time_us_p50;
        Some(Peer {
            p50_us,
            p90_us: record.p90_us()?,
            name: record.name.unwrap_or_else(|| "baseline".to_owned()),
            ratio: [best.speedup_vs_baseline.unwrap_or(alone); 3],
        })
    }))
}

/// Returns the winner's stored profile: a profiler's if available, else the counters of its judgement.
async fn stored_profile(
    store: &Store,
    subject: &Subject,
    best: &ConfigValues,
) -> Result<Option<WinnerProfile>, CliError> {
    let mut profiles = store.profiles(&subject.board, best).await?;
    profiles.sort_by_key(|profile| profile.source != ProfileSource::Ncu);
    if let Some(profile) = profiles.into_iter().next() {
        let measured = profile.source == ProfileSource::Ncu;
        let label = if measured { "measured" } else { "predicted" };
        return Ok(Some(WinnerProfile {
            source: format!("{} ({label})", profile.tool),
            measured,
            metrics: profile.metrics,
        }));
    }
    let own = subject
        .candidates
        .iter()
        .find(|judged| judged.trial.config == *best);
    let counters = own.and_then(|judged| judged.trial.counters.as_ref()?.as_object().cloned());
    Ok(counters.map(|metrics| WinnerProfile {
        source: "the virtual GPU's counters (predicted)".to_owned(),
        measured: false,
        metrics,
    }))
}

/// Returns the limits of a board's device: those of the virtual GPU of that name or model.
fn device_limits(board: &Board) -> Option<DeviceLimits> {
    let number = |name: &str| {
        let found = value_of(&board.environment, name)?;
        u32::try_from(found.as_i64()?).ok()
    };
    let stored = || {
        Some(DeviceLimits {
            sm_count: number("DEVICE_SM_COUNT")?,
            shared_bytes: number("DEVICE_SHARED_BYTES")?,
            cc: number("DEVICE_CC")?,
            max_threads: number("DEVICE_MAX_THREADS")?,
        })
    };
    stored().or_else(|| limits::by_name(by_device_name(&board.key.device)?.name))
}

fn facts(kernel: &Kernel, board: &Board, best: &ConfigValues, stale: bool) -> Option<KernelFacts> {
    let spec = &kernel.spec;
    let limits = device_limits(board)?;
    // The problem's sizes may have changed since; figures computed from them would be wrong.
    let same = spec
        .problem(&board.key.problem)
        .is_some_and(|problem| problem.sizes == board.sizes);
    if !same {
        return None;
    }
    let space = spec.space(&board.key.problem, &limits).ok()?;
    let binder = spec.binder(&board.key.problem, &limits).ok()?;
    let bound = space
        .config_from_values(best)
        .ok()
        .and_then(|config| binder.bind(&config).ok());
    let text = &kernel.template.text;
    Some(KernelFacts {
        path: catalog::shown(&kernel.path),
        summary: spec.summary.clone(),
        flops: bound.as_ref().and_then(|bound| bound.flops),
        bytes: bound.as_ref().and_then(|bound| bound.bytes),
        tensor: ["mma.sync", "wmma", "wgmma"]
            .iter()
            .any(|word| text.contains(word)),
        sources: if stale {
            Err("the template was edited since".to_owned())
        } else {
            sources(kernel, board, best, &space, &binder)
        },
    })
}

/// Renders the sources of the default and of the winner.
fn sources(
    kernel: &Kernel,
    board: &Board,
    best: &ConfigValues,
    space: &tuner_space::Space,
    binder: &Binder,
) -> Result<[String; 2], String> {
    let default = space.values(&space.default_config());
    let render = |values: &ConfigValues| -> anyhow::Result<String> {
        let bound = binder.bind(&space.config_from_values(values)?)?;
        Ok(render_bound(&kernel.template, &bound, &board.arch).text)
    };
    let both = render(&default).and_then(|default| Ok([default, render(best)?]));
    both.map_err(|error| error.to_string())
}

/// Predicts the winner, and its neighbours if requested, on the virtual GPU of the board's device or its
/// model. A prediction that is impossible becomes a note: a report does not require a compiler.
fn predict(
    subject: &mut Subject,
    kernel: &Kernel,
    best: &ConfigValues,
    args: &Args,
) -> Result<(), JobError> {
    let board = &subject.board;
    let Some((_, predictor)) = predictor(kernel, board)? else {
        return Ok(());
    };
    let Ok(config) = predictor.space.config_from_values(best) else {
        return Ok(());
    };
    let changes = if args.ablate {
        single_changes(&predictor.space, &config)
    } else {
        Vec::new()
    };
    let mut configs = vec![config];
    configs.extend(changes.iter().map(|change| change.config.clone()));
    let judged = predictor.predict(&configs)?;
    let time = |judged: &Judged| judged.predicted().map(Micros::get);
    let base = judged.first().and_then(time);
    if subject.profile.is_none() {
        subject.profile = judged.first().and_then(|judged| profile_of(judged, board));
    }
    for (change, judged) in changes.iter().zip(judged.iter().skip(1)) {
        let p50_us = time(judged);
        subject.predicted_changes.push(Change {
            parameter: change.what.clone(),
            from: change.from.clone(),
            to: change.to.clone(),
            verdict: judged.verdict(),
            p50_us,
            cost: p50_us.zip(base).map(|(time, base)| time / base),
            predicted: true,
        });
    }
    Ok(())
}

fn profile_of(judged: &Judged, board: &Board) -> Option<WinnerProfile> {
    let metrics: Map<String, Json> = serde_json::to_value(judged.found.explanation.as_ref()?)
        .ok()?
        .as_object()?
        .clone();
    let whose = if board.device_kind == DeviceKind::Vgpu {
        ""
    } else {
        " in place of the real one"
    };
    Some(WinnerProfile {
        source: format!("the virtual GPU's counters{whose} (predicted)"),
        measured: false,
        metrics,
    })
}

/// Returns warnings about low parallelism of a subject's winner.
fn low_parallelism(subject: &Subject, all: &[Subject]) -> Vec<String> {
    let Some(arch) = by_device_name(&subject.board.key.device) else {
        return Vec::new();
    };
    let Some(own) = result(subject) else {
        return Vec::new();
    };
    let others: Vec<TimedProblem> = all
        .iter()
        .filter(|other| {
            other.board.key.kernel == subject.board.key.kernel
                && other.board.key.device == subject.board.key.device
                && other.board.timing == subject.board.timing
                && other.board.key.problem != subject.board.key.problem
        })
        .filter_map(result)
        .collect();
    own.warnings(&others, arch)
}

fn result(subject: &Subject) -> Option<TimedProblem> {
    let kernel = subject.kernel.as_ref()?;
    let blocks = subject
        .profile
        .as_ref()
        .and_then(|profile| profile.metrics.get("blocks")?.as_f64());
    Some(TimedProblem {
        problem: subject.board.key.problem.clone(),
        time_us: subject.board.rows.first()?.time_us_p50,
        label: subject.board.timing.name(),
        blocks: blocks.map(|blocks| blocks as u64),
        tensor: kernel.tensor,
        flops: kernel.flops,
        bytes: kernel.bytes,
    })
}
