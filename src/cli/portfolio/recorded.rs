//! Recorded files as shapes: their devices and sizes.

use super::{Args, Source};
use crate::cli::{CliError, usage};
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::record::{ConfigValues, TimingKind};
use tuner_core::value::Value;
use tuner_device::DeviceSelector;
use tuner_device::replay::Recording;
use tuner_report::portfolio::{Axis, AxisValues, MAX_SHAPES, Shape, Table};

/// Reports whether the arguments are recorded files and not a kernel.
pub(super) fn is_recorded(names: &[String]) -> bool {
    let recorded = |name: &String| name.ends_with(".json") || name.ends_with(".json.gz");
    names.iter().any(recorded)
}

/// Reads the files; they must have the same parameters.
pub(super) fn read(args: &Args) -> Result<Source, CliError> {
    let unused = [
        ("--grid", args.grid.is_some()),
        ("--problem", args.problem.is_some()),
        ("--evals", args.evals.is_some()),
        ("--budget", args.budget.is_some()),
        ("--device", args.device != DeviceSelector::Auto),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{option} is for kernels: recorded files are the shapes themselves; leave it out"
        )));
    }
    if args.kernel.len() > MAX_SHAPES {
        return Err(usage(format!("at most {MAX_SHAPES} files are compared")));
    }
    let files = args.kernel.iter();
    let recordings: Vec<Recording> = files
        .map(|file| Recording::load(file.as_ref()))
        .collect::<Result<_, _>>()?;
    let timing = one_timing(&recordings)?;
    let names = shared_parameters(&recordings)?;
    let mut configs: BTreeMap<Vec<String>, (ConfigValues, Vec<Option<f64>>)> = BTreeMap::new();
    for (shape, recording) in recordings.iter().enumerate() {
        for config in recording.configs() {
            let values = recording.space.values(config);
            let values: ConfigValues = names.iter().filter_map(|n| named(&values, n)).collect();
            let key = values.iter().map(|(_, value)| spelled(value)).collect();
            let entry = configs.entry(key);
            let (_, times) = entry.or_insert_with(|| (values, vec![None; recordings.len()]));
            let time = recording.lookup(config).time();
            if let Some(slot) = times.get_mut(shape) {
                *slot = time.map(|time| time.get());
            }
        }
    }
    // A configuration that failed everywhere is not a candidate.
    configs.retain(|_, (_, times)| times.iter().any(Option::is_some));
    let (configs, times) = configs.into_values().unzip();
    let (axes, shapes) = axes(&recordings)?;
    let distinct = |text: fn(&Recording) -> &str| {
        let all: BTreeSet<&str> = recordings.iter().map(text).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    Ok(Source {
        kernel: distinct(|recording| &recording.kernel),
        device: distinct(|recording| &recording.device),
        table: Table {
            axes,
            shapes,
            configs,
            times,
            timing,
        },
    })
}

/// Returns the kind of the times: predicted and recorded ones are not compared.
fn one_timing(recordings: &[Recording]) -> Result<TimingKind, CliError> {
    let first = recordings
        .first()
        .ok_or_else(|| usage("no recorded file is named"))?;
    match recordings.iter().find(|other| other.timing != first.timing) {
        Some(other) => Err(usage(format!(
            "{} has {} times and {} has {} ones: they are not compared",
            first.path.display(),
            first.timing,
            other.path.display(),
            other.timing
        ))),
        None => Ok(first.timing),
    }
}

/// Returns the parameters that all files have; others must have one value.
fn shared_parameters(recordings: &[Recording]) -> Result<Vec<String>, CliError> {
    let of = |recording: &Recording| -> Vec<String> {
        let parameters = recording.space.parameters().iter();
        parameters.map(|parameter| parameter.name.clone()).collect()
    };
    let mut shared = recordings.first().map(of).unwrap_or_default();
    for recording in recordings {
        let own = of(recording);
        shared.retain(|name| own.contains(name));
    }
    for recording in recordings {
        let parameters = recording.space.parameters().iter();
        let mut further = parameters.filter(|one| !shared.contains(&one.name));
        if let Some(one) = further.find(|one| one.values.len() > 1) {
            return Err(usage(format!(
                "{}: `{}` has {} values here, and another file lacks it: the files are of different \
                 spaces",
                recording.path.display(),
                one.name,
                one.values.len()
            )));
        }
    }
    match shared.is_empty() {
        true => Err(usage("the files share no parameter")),
        false => Ok(shared),
    }
}

fn named(values: &ConfigValues, name: &str) -> Option<(String, Value)> {
    values.iter().find(|(known, _)| known == name).cloned()
}

/// Spells a value so that 1, 1.0 and True are the same, as in Python.
fn spelled(value: &Value) -> String {
    let number = value.as_f64();
    number.map_or_else(|| value.to_string(), |number| number.to_string())
}

/// Builds the axes in which the files differ: whole sizes, and the device.
fn axes(recordings: &[Recording]) -> Result<(Vec<Axis>, Vec<Shape>), CliError> {
    let mut numbers: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (name, value) in recordings.iter().flat_map(|recording| &recording.sizes) {
        numbers.entry(name).or_default().extend(value.as_i64());
    }
    numbers.retain(|name, values| {
        let has = |recording: &Recording| size(recording, name).is_some();
        values.len() > 1 && recordings.iter().all(has)
    });
    let mut devices: Vec<String> = Vec::new();
    let mut problems: Vec<String> = Vec::new();
    for recording in recordings {
        if !devices.contains(&recording.device) {
            devices.push(recording.device.clone());
        }
        if !problems.contains(&recording.problem) {
            problems.push(recording.problem.clone());
        }
    }
    let mut axes: Vec<Axis> = numbers
        .iter()
        .map(|(name, values)| Axis {
            name: (*name).to_owned(),
            values: AxisValues::Numbers(values.iter().copied().collect()),
        })
        .collect();
    let by_name = |name: &str, values: &Vec<String>| Axis {
        name: name.to_owned(),
        values: AxisValues::Names(values.clone()),
    };
    if numbers.is_empty() && problems.len() > 1 {
        axes.push(by_name("problem", &problems));
    }
    if devices.len() > 1 || axes.is_empty() {
        axes.push(by_name("device", &devices));
    }
    let place = |recording: &Recording, axis: &Axis| match &axis.values {
        AxisValues::Numbers(values) => {
            let own = size(recording, &axis.name)?;
            values.iter().position(|value| *value == own)
        }
        AxisValues::Names(values) => {
            let problem = axis.name == "problem";
            let own = if problem {
                &recording.problem
            } else {
                &recording.device
            };
            values.iter().position(|value| value == own)
        }
    };
    let mut shapes: Vec<Shape> = Vec::with_capacity(recordings.len());
    for recording in recordings {
        let place: Vec<usize> = axes
            .iter()
            .filter_map(|axis| place(recording, axis))
            .collect();
        let shape = Shape {
            name: format!("{} on {}", recording.problem, recording.device),
            place,
        };
        if shapes.iter().any(|known| known.place == shape.place) {
            return Err(usage(format!(
                "{}: another file has the same sizes and device: {}",
                recording.path.display(),
                shape.name
            )));
        }
        shapes.push(shape);
    }
    Ok((axes, shapes))
}

fn size(recording: &Recording, name: &str) -> Option<i64> {
    let (_, value) = recording.sizes.iter().find(|(known, _)| known == name)?;
    value.as_i64()
}
