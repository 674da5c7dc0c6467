//! Arguments and variables with the values of the captured launches.

mod variables;

use super::problems::{Problem, Problems};
use super::values::{Layout, layout};
use super::{CapturedData, DataFile, refuse};
use crate::AdoptError;
use crate::expr::Expr;
use crate::plan::{Argument, Plan, VariableContent};
use capture::{Buffer, Launch, Pointer};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tuner_core::plan::Role;

/// Position of an address in a launch.
#[derive(Debug, Clone)]
enum Place {
    /// In a parameter: its number, and the offset in it.
    Parameter(usize, u64),
    /// The variable of that name.
    Variable(String),
}

/// A part of a buffer in one problem.
struct Window<'c> {
    buffer: &'c Buffer,
    index: usize,
    bytes: Range<u64>,
}

/// Describes all arguments and variables.
pub(super) fn describe(
    plan: &mut Plan,
    problems: &Problems<'_>,
    data: &mut CapturedData,
) -> Result<(), AdoptError> {
    let mut work = Work {
        kernel: plan.kernel.clone(),
        problems,
        data,
        names: BTreeMap::new(),
        notes: BTreeSet::new(),
        extents: BTreeMap::new(),
    };
    let places = places(plan);
    let mut kept: Vec<Argument> = Vec::new();
    let mut passed: Vec<(usize, String)> = Vec::new();
    for mut argument in std::mem::take(&mut plan.arguments) {
        if argument.role == Role::Scalar {
            kept.push(argument);
            continue;
        }
        let place = match (argument.parameter, places.get(&argument.name)) {
            (Some(at), _) => Place::Parameter(at, 0),
            (None, Some(place)) => place.clone(),
            (None, None) => continue,
        };
        let known = work.buffer(&mut argument, &place)?;
        if let Some(at) = argument.parameter {
            passed.push((at, known.clone().unwrap_or_else(|| argument.name.clone())));
        }
        if known.is_none() {
            kept.push(argument);
        }
    }
    // After the buffers, because addresses in a struct are written as the names of buffers.
    for argument in kept.iter_mut().filter(|it| it.role == Role::Scalar) {
        work.scalar(argument)?;
        passed.extend(argument.parameter.map(|at| (at, argument.name.clone())));
    }
    passed.sort();
    plan.arguments = kept;
    work.variables(plan)?;
    let distinct: BTreeSet<&String> = passed.iter().map(|(_, name)| name).collect();
    if distinct.len() < passed.len() {
        work.data.passed = Some(passed.into_iter().map(|(_, name)| name).collect());
    }
    let Work { notes, extents, .. } = work;
    plan.notes.extend(notes);
    // Sizes of buffers without an expression.
    for (name, values) in extents {
        data.extents.insert(name, values);
    }
    Ok(())
}

/// Returns the positions of the addresses of buffers, by the argument's name.
fn places(plan: &Plan) -> BTreeMap<String, Place> {
    let mut found = BTreeMap::new();
    for argument in &plan.arguments {
        if let (Some(at), Some(layout)) = (argument.parameter, layout(&argument.ty)) {
            for part in layout.parts.iter().filter(|part| part.is_pointer()) {
                let name = format!("{}_{}", argument.name, part.name);
                found.insert(name, Place::Parameter(at, part.offset));
            }
        }
    }
    for variable in &plan.variables {
        if let VariableContent::Pointer(to) = &variable.held {
            found.insert(to.clone(), Place::Variable(variable.name.clone()));
        }
    }
    found
}

struct Work<'w, 'c> {
    kernel: String,
    problems: &'w Problems<'c>,
    data: &'w mut CapturedData,
    /// Arguments by buffer and offset in the first problem.
    names: BTreeMap<(usize, u64), String>,
    notes: BTreeSet<String>,
    /// Values of sizes that are specific to a buffer, by problem.
    extents: BTreeMap<String, Vec<i64>>,
}

impl<'c> Work<'_, 'c> {
    /// Describes a buffer; returns the argument for the same memory, if there is one.
    fn buffer(
        &mut self,
        argument: &mut Argument,
        place: &Place,
    ) -> Result<Option<String>, AdoptError> {
        let problems = self.problems;
        let windows: Vec<Window<'c>> = problems
            .all
            .iter()
            .map(|problem| self.window(problem, argument, place))
            .collect::<Result<_, _>>()?;
        let Some(first) = windows.first() else {
            return Ok(None);
        };
        let key = (first.index, first.bytes.start);
        if let Some(known) = self.names.get(&key) {
            return Ok(Some(known.clone()));
        }
        self.names.insert(key, argument.name.clone());
        let element = u64::try_from(argument.bytes).unwrap_or(1).max(1);
        let count = |window: &Window<'_>| (window.bytes.end - window.bytes.start) / element;
        let used = decide_role(argument, &windows, element);
        argument.guessed = None;
        argument.zeroed = false;
        let counts: Vec<i64> = windows
            .iter()
            .map(|it| count(it).try_into().unwrap_or(0))
            .collect();
        if counts.contains(&0) {
            let why = format!("`{}` points to less than one element", argument.name);
            let help = "a search space cannot pass that; adopt a function without this parameter";
            return Err(self.refuse(why, help));
        }
        let name = format!("{}_elements", argument.name);
        argument.shape = Some(problems.extent(&counts).unwrap_or_else(|| {
            self.extents.insert(name.clone(), counts.clone());
            Expr::Name(name)
        }));
        if argument.role.is_filled() {
            let fill = match used {
                true => format!("{{ file: {} }}", self.quoted(&argument.name, "bin")),
                false => "zeros".to_owned(),
            };
            self.data.fills.insert(argument.name.clone(), fill);
        }
        if argument.role.is_compared() {
            let path = self.path(&argument.name, "expected.bin");
            self.data.values.push((argument.name.clone(), path));
        }
        for (problem, window) in problems.all.iter().zip(&windows) {
            // The next address may cut off the last element, and a fill must consist of whole elements.
            let part = window.bytes.start..window.bytes.start + count(window) * element;
            if used && argument.role.is_filled() {
                let hash = window.buffer.before.as_deref();
                self.store(problem, &argument.name, "bin", hash, &part)?;
            }
            if argument.role.is_compared() {
                let buffer = window.buffer;
                // A capture has contents after the launch only if the launch wrote; otherwise they are
                // unchanged.
                let hash = buffer.after.as_deref().or(buffer.before.as_deref());
                self.store(problem, &argument.name, "expected.bin", hash, &part)?;
            }
        }
        Ok(None)
    }

    /// Returns the part of a buffer from an address to the next address into it.
    fn window(
        &mut self,
        problem: &Problem<'c>,
        argument: &Argument,
        place: &Place,
    ) -> Result<Window<'c>, AdoptError> {
        let launch = problem.launch;
        let pointer = match place {
            Place::Parameter(at, offset) => launch.parameters.get(*at).and_then(|parameter| {
                let mut pointers = parameter.pointers.iter();
                pointers.find(|it| u64::from(it.at) == *offset)
            }),
            Place::Variable(name) => variable(launch, name).and_then(|it| it.pointers.first()),
        };
        let found = pointer.and_then(|it| Some((it, launch.buffers.get(it.buffer)?)));
        let Some((pointer, buffer)) = found else {
            let why = format!(
                "`{}` is a null pointer, or points to no memory of the device, in the captured launch {}",
                argument.name, launch.number
            );
            let help = "a search space cannot pass that; write a `__global__` function without this \
                        parameter that calls this one, and adopt that";
            return Err(self.refuse(why, help));
        };
        let others = all_pointers(launch).filter(|it| it.buffer == pointer.buffer);
        let offsets: BTreeSet<u64> = others.map(|it| it.offset).collect();
        let next = offsets.range(pointer.offset + 1..).next().copied();
        let end = next.unwrap_or(buffer.bytes);
        if offsets.len() > 1 {
            self.notes.insert(format!(
                "several parameters point into {}; each is described as far as the next one",
                buffer.name
            ));
        }
        let touched = [&buffer.read, &buffer.written];
        let before = |first: &u64| {
            let mut starts = touched.iter().filter(|it| !it.is_empty());
            starts.any(|it| it.bounds[0] < *first)
        };
        if offsets.first().is_some_and(before) {
            let why = format!(
                "it accesses bytes before the address that it is passed in `{}`",
                argument.name
            );
            let help = "a search space passes the beginning of a buffer; write a `__global__` function that \
                        takes the beginning and an offset, and adopt that";
            return Err(self.refuse(why, help));
        }
        Ok(Window {
            buffer,
            index: pointer.buffer,
            bytes: pointer.offset..end,
        })
    }

    /// Sets a scalar to its size or its value.
    fn scalar(&mut self, argument: &mut Argument) -> Result<(), AdoptError> {
        let Some(at) = argument.parameter else {
            return Ok(());
        };
        argument.guessed = None;
        let problems = self.problems;
        if let Some(name) = problems.scalars.get(&at) {
            let sizes: Vec<Option<i64>> = problems
                .all
                .iter()
                .map(|problem| problem.names.get(name).copied())
                .collect();
            let differs = sizes.windows(2).any(|pair| pair.first() != pair.last());
            let positive = sizes.iter().all(|size| size.is_some_and(|size| size > 0));
            if positive || differs {
                (argument.value, argument.composed) = (Some(Expr::Name(name.clone())), None);
                return Ok(());
            }
        }
        let Some(layout) = layout(&argument.ty) else {
            return Ok(());
        };
        let mut texts = Vec::new();
        for problem in &problems.all {
            texts.push(self.value(problem.launch, argument, at, &layout)?);
        }
        let Some(first) = texts
            .first()
            .filter(|it| texts.iter().all(|text| text == *it))
        else {
            let why = format!(
                "`{}` differs between the captured launches: {}",
                argument.name,
                texts.join(", ")
            );
            return Err(self.refuse(why, "give one capture alone, or the same values in all"));
        };
        (argument.value, argument.composed) = (None, Some(first.clone()));
        Ok(())
    }

    fn value(
        &self,
        launch: &Launch,
        argument: &Argument,
        at: usize,
        layout: &Layout,
    ) -> Result<String, AdoptError> {
        let parameter = launch.parameters.get(at);
        let bytes = parameter.map(capture::Parameter::bytes).unwrap_or_default();
        let pointed = |offset: u64| {
            let mut pointers = parameter?.pointers.iter();
            let pointer = pointers.find(|it| u64::from(it.at) == offset)?;
            self.names.get(&(pointer.buffer, pointer.offset)).cloned()
        };
        let text = (layout.bytes == bytes.len() as u64).then(|| layout.text(&bytes, pointed));
        text.flatten().ok_or_else(|| {
            let why = format!(
                "the value of `{}` ({} bytes) cannot be written as `{}`",
                argument.name,
                bytes.len(),
                argument.ty
            );
            self.refuse(
                why,
                "write a `__global__` function that takes its fields and calls this one, and adopt that",
            )
        })
    }

    fn contents(&self, problem: &Problem<'_>, hash: Option<&str>) -> Result<Vec<u8>, AdoptError> {
        let hash = hash.unwrap_or_default();
        problem
            .capture
            .contents(hash)
            .map_err(|error| AdoptError::Captured {
                text: error.to_string(),
            })
    }

    /// Adds a part of a buffer's contents as a file.
    fn store(
        &mut self,
        problem: &Problem<'_>,
        name: &str,
        extension: &str,
        hash: Option<&str>,
        part: &Range<u64>,
    ) -> Result<(), AdoptError> {
        let all = self.contents(problem, hash)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let part = all.get(place(part.start)..place(part.end));
        let path = self.path(name, extension);
        self.data.files.push(DataFile {
            path: path.replace("{problem}", &problem.name),
            bytes: part.unwrap_or_default().to_vec(),
        });
        Ok(())
    }

    fn path(&self, name: &str, extension: &str) -> String {
        format!("{}.data/{{problem}}/{name}.{extension}", self.kernel)
    }

    fn quoted(&self, name: &str, extension: &str) -> String {
        tuner_core::escape::yaml(&self.path(name, extension))
    }

    fn refuse(&self, why: String, help: &str) -> AdoptError {
        refuse(&self.kernel, why, help.to_owned())
    }
}

/// Determines the role of a buffer from the launches' reads and writes; returns whether its contents
/// matter. One that they did not access, but may write, must stay unchanged.
fn decide_role(argument: &mut Argument, windows: &[Window<'_>], element: u64) -> bool {
    let (mut written, mut covered, mut read) = (false, true, false);
    for window in windows {
        let reads = window.buffer.read.within(&window.bytes);
        let writes = window.buffer.written.within(&window.bytes);
        let whole = (window.bytes.end - window.bytes.start) / element * element;
        read |= !reads.is_empty();
        written |= !writes.is_empty();
        covered &= writes.covers(whole) && !writes.cut;
    }
    let spared = !written && !read && !crate::kernel::pointer(&argument.spelled).1;
    argument.role = match (written, covered && !read) {
        (true, true) => Role::Output,
        (true, false) => Role::Inout,
        (false, _) if spared => Role::Inout,
        (false, _) => Role::Input,
    };
    read || written || spared
}

/// Compares a variable's name in the source with that of the module: either may lack namespaces.
fn same_variable(one: &str, other: &str) -> bool {
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    one == other || last(one) == last(other)
}

fn variable<'c>(launch: &'c Launch, name: &str) -> Option<&'c Buffer> {
    let mut all = launch.buffers.iter();
    all.find(|buffer| {
        let own = buffer.variable.as_deref();
        own.is_some_and(|own| same_variable(own, name))
    })
}

fn all_pointers(launch: &Launch) -> impl Iterator<Item = &Pointer> {
    let parameters = launch.parameters.iter().flat_map(|it| &it.pointers);
    parameters.chain(launch.buffers.iter().flat_map(|it| &it.pointers))
}
