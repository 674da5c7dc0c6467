//! The plan of a kernel: entry, parameters, sizes, launch and arguments.

mod arguments;
mod deduced;
mod entry;
mod launch;
mod overload;
mod stated;
mod tunables;
mod variables;

use super::cut::{Definition, Tunable, neighbours};
use super::expr::Expr;
use super::host::{Branch, Host, Launch, Scope};
use super::kernel::{self, Parameter};
use super::template::compiled::CompiledTemplate;
use super::tree::{Node, Source};
use super::types::{self, TypeDescription};
use super::unit::{Item, Kind, Unit, node_of};
use super::{AdoptError, Settings};
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::plan::Role;

pub(crate) use arguments::is_whole;
pub(crate) use overload::{launched, with_signature};
pub use stated::StatedLaunch;
pub(crate) use variables::{Variable, VariableContent};

/// Maximum number of proposed parameters.
const MAX_PARAMETERS: usize = 8;

/// A parameter of the search space.
#[derive(Debug, Clone)]
pub(crate) struct ProposedParameter {
    pub(crate) name: String,
    pub(crate) default: i64,
    pub(crate) values: Vec<i64>,
    /// Origin, as a comment.
    pub(crate) doc: String,
    /// A host variable without a known value: an extent of the data and of the launch.
    pub(crate) of_data: bool,
}

/// An argument of the search space.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// Index of the kernel parameter; `None` if only another argument points to it.
    pub(crate) parameter: Option<usize>,
    /// Type in the source's spelling.
    pub(crate) spelled: String,
    /// Element type in the search space's spelling.
    pub(crate) ty: String,
    /// Bytes of an element.
    pub(crate) bytes: i64,
    pub(crate) role: Role,
    /// Elements of a buffer.
    pub(crate) shape: Option<Expr>,
    /// A scalar's value.
    pub(crate) value: Option<Expr>,
    /// Elements of a buffer per index.
    pub(crate) multiplier: i64,
    /// Value of a vector or struct, in the search space's spelling.
    pub(crate) composed: Option<String>,
    /// The guessed part.
    pub(crate) guessed: Option<&'static str>,
    /// The host clears it before the launch.
    pub(crate) zeroed: bool,
}

impl Argument {
    fn new(name: &str, spelled: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            parameter: None,
            spelled: spelled.to_owned(),
            ty: String::new(),
            bytes: 4,
            role,
            shape: None,
            value: None,
            multiplier: 1,
            composed: None,
            guessed: None,
            zeroed: false,
        }
    }
}

/// A kernel and its launch in the unit.
struct KernelContext<'u> {
    unit: &'u Unit,
    own: &'u Item,
    source: &'u Source,
    node: Node<'u>,
    parameters: Vec<Parameter>,
    launch: Option<Launch<'u>>,
    /// The branch that contains the launch, and the parameter of its variable.
    branch: Option<(Branch, String)>,
}

impl<'u> KernelContext<'u> {
    fn scope(&self) -> Option<Scope<'u>> {
        self.launch.as_ref().map(|launch| launch.scope)
    }

    /// Returns a part of the launch's configuration.
    fn config(&self, at: usize) -> Option<Node<'u>> {
        self.launch.as_ref()?.config.get(at).copied()
    }

    /// Returns an argument of the launch.
    fn given(&self, at: usize) -> Option<Node<'u>> {
        self.launch.as_ref()?.arguments.get(at).copied()
    }
}

/// A template argument that the host computes from the block's extents.
#[derive(Debug)]
pub(crate) struct ComputedArgument {
    /// Name in the template.
    name: String,
    /// Text in the launch.
    text: String,
    /// Argument for the file's block.
    value: String,
    /// An expression is not sufficient, for example because of a cast to another type.
    as_written: bool,
}

/// Contents of the search space.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) kernel: String,
    /// Entry; parameters in braces.
    pub(crate) entry: String,
    /// Template parameters with guessed values.
    pub(crate) guessed_entry: Vec<String>,
    /// Template parameters with guessed types.
    pub(crate) guessed_types: Vec<String>,
    /// Template arguments that the host computes from the block's extents.
    pub(crate) computed: Vec<ComputedArgument>,
    /// The block's extents are fixed, since template arguments that do not vary depend on them.
    pub(crate) keeps_block: bool,
    /// Extents of the data that are template arguments.
    pub(crate) dimensions: Vec<i64>,
    pub(crate) tunables: Vec<Tunable>,
    pub(crate) parameters: Vec<ProposedParameter>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) grid: Vec<Expr>,
    pub(crate) block: Vec<Expr>,
    pub(crate) shared: Option<Expr>,
    pub(crate) cooperative: bool,
    /// Blocks of a cluster, of captured launches.
    pub(crate) cluster: Option<[u32; 3]>,
    /// Number of grid dimensions that the kernel uses.
    pub(crate) block_axes: usize,
    /// Guessed parts of the launch.
    pub(crate) guessed_launch: Vec<&'static str>,
    /// Arguments whose elements decide addresses.
    pub(crate) indices: BTreeSet<String>,
    /// Another file that has the launch.
    pub(crate) launch_of: Option<String>,
    /// Functions named by the entry's template arguments.
    pub(crate) reached: Vec<String>,
    /// Sizes with their values in the file.
    pub(crate) sizes: Vec<(String, Option<i64>)>,
    pub(crate) notes: Vec<String>,
}

/// A launch of the file, with facts of captured launches.
#[derive(Debug, Default)]
pub(crate) struct LaunchSelection {
    /// Index of the launch in the unit; `None` selects by the known extents.
    pub(crate) number: Option<usize>,
    /// Variables that the kernel is known to use.
    pub(crate) used: BTreeSet<String>,
}

impl Plan {
    /// Marks a part of the launch as guessed.
    pub(crate) fn guess(&mut self, part: &'static str) {
        if !self.guessed_launch.contains(&part) {
            self.guessed_launch.push(part);
        }
    }

    /// Builds the parts that need no compiler; `None` if the item is not a function.
    pub(crate) fn read(unit: &Unit, item: usize, settings: &Settings<'_>) -> Option<Self> {
        Self::read_launch(unit, item, settings, &LaunchSelection::default())
    }

    /// Builds the same parts from a selected launch.
    pub(crate) fn read_launch(
        unit: &Unit,
        item: usize,
        settings: &Settings<'_>,
        selection: &LaunchSelection,
    ) -> Option<Self> {
        let own = unit.items.get(item)?;
        let name = own.names.last().cloned().unwrap_or_default();
        let (source, node) = node_of(unit, own)?;
        let mut host = Host::new(unit);
        let mut launches = host.launches(&name).into_iter();
        let launch = match selection.number {
            Some(number) => launches.nth(number),
            // The launch whose function determines most extents.
            None => launches.max_by_key(|each| {
                (
                    launch::usable(&host, each),
                    std::cmp::Reverse(each.config.len()),
                    // In a switch over sizes, a medium one.
                    each.branch().map_or(0, |it| -(it.value - 256).abs()),
                )
            }),
        };
        let known = KernelContext {
            unit,
            own,
            source,
            node,
            parameters: kernel::parameters(source, node),
            branch: launch.as_ref().and_then(launch::branch),
            launch,
        };
        let mut plan = Self {
            tunables: tunables::tunables(unit, item),
            indices: kernel::indices(unit, own),
            kernel: name,
            ..Self::default()
        };
        for tunable in &plan.tunables {
            host.tunable.insert(tunable.name.clone(), tunable.value);
            plan.parameters.push(ProposedParameter {
                name: tunable.name.clone(),
                default: tunable.value,
                values: neighbours(tunable.value),
                doc: format!("a constant of {}", format_position(unit, tunable.item)),
                of_data: false,
            });
        }
        plan.define(unit, settings.define, &mut host);
        plan.branch_of_host(&known, &mut host);
        match settings.entry {
            Some(entry) => plan.entry = entry.to_owned(),
            None => plan.name_entry(&known, &mut host),
        }
        // The first meaning of a host name stays: the block's extents become parameters before the
        // rest becomes sizes.
        plan.block_of_host(&known, &mut host);
        plan.compute_arguments(&known, &mut host);
        plan.scalars(&known, &mut host);
        plan.extents(&known, item, &mut host);
        plan.take(&known, &mut host);
        plan.hold(&known, item, &selection.used, &mut host);
        let invented = host.invented.iter();
        let new = invented.filter(|(name, _)| !plan.sizes.iter().any(|(known, _)| known == name));
        let new: Vec<_> = new.cloned().collect();
        plan.sizes.extend(new);
        plan.only_used_sizes();
        Some(plan)
    }

    /// Makes parameters from the user's macros.
    fn define(&mut self, unit: &Unit, given: &[(String, Vec<i64>)], host: &mut Host<'_>) {
        for (name, values) in given {
            let Some(default) = values.first().copied() else {
                continue;
            };
            let macros = unit.items.iter().enumerate();
            let mut macros = macros.filter(|(_, item)| item.kind == Kind::Macro);
            let own = macros.find(|(_, item)| item.names.first() == Some(name));
            if let Some((item, _)) = own
                && self.tunables.iter().all(|tunable| tunable.name != *name)
            {
                self.tunables.push(Tunable {
                    name: name.clone(),
                    value: default,
                    item,
                    definition: Definition::Macro,
                });
            }
            host.tunable.insert(name.clone(), default);
            self.parameters.retain(|known| known.name != *name);
            self.parameters.push(ProposedParameter {
                name: name.clone(),
                default,
                values: values.clone(),
                doc: "given by --define".to_owned(),
                of_data: false,
            });
        }
    }

    /// Returns the entry with the parameters' default values.
    pub(crate) fn filled_entry(&self) -> String {
        self.parameters
            .iter()
            .fold(self.entry.clone(), |text, each| {
                text.replace(&format!("{{{}}}", each.name), &each.default.to_string())
            })
    }

    /// Removes unused sizes.
    pub(crate) fn only_used_sizes(&mut self) {
        let mut names = Vec::new();
        let extents = self.grid.iter().chain(&self.block).chain(&self.shared);
        extents.for_each(|each| each.names(&mut names));
        for argument in &self.arguments {
            let of_it = argument.shape.iter().chain(&argument.value);
            of_it.for_each(|each| each.names(&mut names));
        }
        for variable in &self.variables {
            match &variable.held {
                VariableContent::Array(extents) => {
                    extents.iter().for_each(|each| each.names(&mut names))
                }
                VariableContent::Value(value) => {
                    names.extend(super::tree::words(value).into_iter().map(str::to_owned));
                }
                VariableContent::Pointer(_) => {}
            }
        }
        self.sizes.retain(|(name, _)| names.contains(name));
    }

    /// Adds the compiler's types and decides shapes.
    pub(crate) fn finish(
        &mut self,
        unit: &Unit,
        item: usize,
        made: &CompiledTemplate,
    ) -> Result<(), AdoptError> {
        let place = format_position(unit, item);
        let mut pointed = Vec::new();
        let kernel = self.kernel.clone();
        for (at, argument) in self.arguments.iter_mut().enumerate() {
            // A buffer of a pointer field was described with the struct.
            if argument.parameter.is_none() {
                continue;
            }
            let all = made.parameters.as_ref();
            let known = all
                .zip(argument.parameter)
                .and_then(|(all, at)| all.get(at));
            // The compiler reports a texture handle as a number.
            let known = known.filter(|_| !types::is_opaque(&argument.spelled));
            let ty = known.map_or_else(|| argument.spelled.clone(), |known| known.ty.clone());
            if argument.name.is_empty() {
                argument.name = format!("argument_{}", at + 1);
            }
            let is_enum = known.is_some_and(|known| known.is_enum);
            let bytes = known.map_or(0, |known| i64::try_from(known.bytes).unwrap_or(4));
            let described = types::describe(unit, &ty, argument.role, is_enum)
                .and_then(|described| described.of_size(bytes, argument.role))
                .map_err(|why| unsupported(&kernel, &place, &argument.name, &why))?;
            argument.bytes = match bytes {
                0 => described.bytes,
                bytes => bytes,
            };
            pointed.extend(compose(argument, &described, &mut self.sizes));
            argument.ty = described.yaml;
        }
        // A search space can only point to buffers that are declared before.
        pointed.append(&mut self.arguments);
        self.arguments = pointed;
        super::sizes::shapes(self, unit);
        Ok(())
    }
}

/// Builds the value of a vector or struct argument and the buffers that it points to.
fn compose(
    argument: &mut Argument,
    described: &TypeDescription,
    sizes: &mut Vec<(String, Option<i64>)>,
) -> Vec<Argument> {
    let Some(value) = described
        .value
        .as_ref()
        .filter(|_| argument.role == Role::Scalar)
    else {
        return Vec::new();
    };
    argument.composed = Some(value.replace(types::OWN, &argument.name));
    argument.guessed = Some("the value");
    argument.value = None;
    for field in &described.whole {
        let name = format!("{}_{field}", argument.name);
        if !sizes.iter().any(|(known, _)| *known == name) {
            sizes.push((name, None));
        }
    }
    let buffers = described
        .pointers
        .iter()
        .map(|(field, ty, bytes)| Argument {
            ty: ty.clone(),
            bytes: *bytes,
            ..Argument::new(&format!("{}_{field}", argument.name), ty, Role::Inout)
        });
    buffers.collect()
}

fn unsupported(kernel: &str, place: &str, name: &str, why: &types::Refusal) -> AdoptError {
    AdoptError::Unsupported {
        kernel: kernel.to_owned(),
        why: format!("its argument `{name}` {}", why.why),
        help: why.help.replace("PLACE", place),
    }
}

pub(crate) fn format_position(unit: &Unit, item: usize) -> String {
    let item = unit.item(item);
    let file = unit.file(item.file);
    format!("{}:{}", file.shown, file.line(item.at.start))
}

/// Returns the values of all names in the default configuration.
pub(crate) fn defaults(plan: &Plan) -> BTreeMap<String, i64> {
    let parameters = plan
        .parameters
        .iter()
        .map(|each| (each.name.clone(), each.default));
    let device = [
        // Extents may contain these names, so they need a value here: an H100's.
        ("DEVICE_SM_COUNT", 132),
        ("DEVICE_MAX_THREADS", 1024),
        ("DEVICE_SHARED_BYTES", 232_448),
    ];
    parameters
        .chain(device.map(|(name, value)| (name.to_owned(), value)))
        .collect()
}
