//! Macros, scratch memory and checked shapes of one configuration, as C over the sizes.

use super::super::cexpr::{MAX_EXACT, Target, Writer, operands_first};
use super::super::plan::{LaunchCode, Plan};
use super::super::rules::{Context, Part};
use super::LauncherSource;
use super::maps::{expressions, initializer};
use std::collections::BTreeSet;
use tuner_core::element::Element;
use tuner_core::entry::Entry;
use tuner_core::plan::Role;
use tuner_core::record::{ConfigValues, value_of};
use tuner_core::value::Value;
use tuner_space::{Argument, Expr, Op, Resolved, Sizes, Term, TermId, Val};

/// Largest number of elements of a buffer: kernels index with 32 bits.
const MAX_ELEMENTS: i64 = i32::MAX as i64;

/// A macro that depends on the sizes.
pub(super) struct Dynamic {
    pub(super) name: String,
    /// Its value, in C.
    pub(super) value: String,
    /// Its value for the configuration's own sizes.
    own: String,
}

/// Code of a configuration besides its rules and launches.
#[derive(Default)]
pub(super) struct LauncherCode {
    /// Macros that are independent of the sizes, with their values.
    pub(super) fixed: Vec<(String, String)>,
    pub(super) dynamic: Vec<Dynamic>,
    /// The condition that all macros can be computed for the sizes.
    pub(super) defined: String,
    /// The additional condition that the gate has covered shapes of this class.
    pub(super) covered: String,
    /// Bytes of each scratch argument, in C.
    pub(super) scratch: Vec<String>,
    /// The tensor maps, in C; without values for one that no launch uses.
    pub(super) maps: Vec<String>,
    /// Helper functions that the texts call.
    pub(super) helpers: BTreeSet<&'static str>,
}

impl LauncherCode {
    /// Returns all macros for the configuration's own sizes.
    pub(super) fn own_macros(&self) -> Vec<(String, String)> {
        let dynamic = self.dynamic.iter();
        let dynamic = dynamic.map(|each| (each.name.clone(), each.own.clone()));
        self.fixed.iter().cloned().chain(dynamic).collect()
    }
}

/// Writes the code of a configuration with these launches.
pub(super) fn launcher_code(
    plan: &Plan<'_>,
    source: &LauncherSource<'_>,
    entry: &Entry,
    made: &[LaunchCode],
) -> LauncherCode {
    let product = plan.bounded.then_some(MAX_EXACT);
    let context = Context::new(plan, entry, product);
    let macros = macro_names(source, entry);
    let shapes = source
        .spec
        .arguments
        .iter()
        .flat_map(|argument| &argument.shape);
    let maps = source.spec.arguments.iter();
    let maps = maps.filter_map(|argument| argument.tensor_map());
    let maps = maps.flat_map(|(map, _)| expressions(map));
    let shapes: Vec<&str> = shapes.chain(maps).map(Expr::text).collect();
    let launches = entry.definition.launches.iter().flat_map(|launch| {
        let extents = launch.grid.iter().chain(&launch.block);
        let extents = extents.chain(launch.cluster.iter().flatten());
        extents.chain([&launch.shared]).chain(&launch.when)
    });
    let classes: Vec<&str> = macros.iter().chain(launches).map(String::as_str).collect();
    let rules = entry.definition.constraints.iter();
    let rules: Vec<&str> = rules.map(|rule| rule.rule.as_str()).collect();
    let names = context.meanings([classes.clone(), shapes, rules.clone()].concat());
    let mut assembly = Assembly {
        source,
        entry,
        context,
        names,
        tied: BTreeSet::new(),
        helpers: BTreeSet::new(),
        code: LauncherCode::default(),
    };
    assembly.macros(&macros);
    let limits = assembly.shapes();
    assembly.maps(made);
    let mut defined = limits;
    if !assembly.tied.is_empty() {
        let tied: Vec<usize> = assembly.tied.iter().copied().collect();
        defined.insert(0, assembly.context.own(&tied));
    }
    let class = match assembly.classes(&classes, &rules) {
        Some(class) => class,
        None => {
            let all: Vec<usize> = (0..assembly.context.free.len()).collect();
            Some(assembly.context.own(&all))
        }
    };
    let mut code = assembly.code;
    code.helpers.append(&mut assembly.helpers);
    code.covered = joined(class.into_iter().chain(defined.iter().cloned()).collect());
    code.defined = joined(defined);
    code
}

fn joined(conditions: Vec<String>) -> String {
    match conditions.as_slice() {
        [] => "1".to_owned(),
        all => all.join(" && "),
    }
}

/// Returns the macros that the template or an entry (`scale<BLOCK>`) mentions, in the order of the
/// search space.
fn macro_names(source: &LauncherSource<'_>, entry: &Entry) -> Vec<String> {
    let spec = source.spec;
    let parameters = spec
        .parameters
        .iter()
        .map(|parameter| parameter.name.clone());
    let derived = spec.derived.iter().map(|(name, _)| name.clone());
    let sizes = entry.sizes.iter().map(|(name, _)| name.clone());
    let sizes = sizes.filter(|name| spec.sizes.is_macro(name));
    let all = parameters.chain(derived).chain(sizes);
    let named = |name: &str| {
        let mut entries = spec.launches.iter();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        entries.any(|launch| launch.entry.split(|c| !is_word(c)).any(|word| word == name))
    };
    all.filter(|name| (source.mentions)(name) || named(name))
        .collect()
}

/// Formats the definition of a macro.
pub(super) fn define(name: &str, value: &str) -> String {
    format!("#define {name} {}\n", value.replace('\n', " \\\n"))
}

/// Formats the value of a macro like the tuner; `None` for a value that cannot be a macro.
fn macro_value(value: &Val) -> Option<String> {
    match value {
        Val::Bool(value) => Some(u8::from(*value).to_string()),
        Val::Float(value) => Some(Value::Float(*value).to_string()),
        Val::Text(text) => Some(text.to_string()),
        Val::Int(value) => Some(value.to_string()),
        _ => None,
    }
}

/// State while the code of a configuration is written.
struct Assembly<'a> {
    source: &'a LauncherSource<'a>,
    entry: &'a Entry,
    context: Context<'a>,
    names: Result<Resolved, String>,
    /// Sizes that must equal the configuration's own.
    tied: BTreeSet<usize>,
    helpers: BTreeSet<&'static str>,
    code: LauncherCode,
}

impl Assembly<'_> {
    fn tie_all(&mut self) {
        self.tied.extend(0..self.context.free.len());
    }

    /// Writes the macros: constants, and values of the sizes.
    fn macros(&mut self, macros: &[String]) {
        for name in macros {
            let value = match value_of(&self.entry.best.config, name) {
                Some(value) => Val::from(value),
                None => match self.context.part(&mut self.names, name, false) {
                    Part::Constant(value) => value,
                    Part::Own { used, value, .. } => {
                        self.tied.extend(used);
                        value
                    }
                    Part::Written(root) => {
                        let own = self.own_value(root);
                        if let (Some(value), Some(own)) = (self.whole(root), macro_value(&own)) {
                            let name = name.clone();
                            self.code.dynamic.push(Dynamic { name, value, own });
                            continue;
                        }
                        // C would print a fraction differently, so it is only known for the own sizes.
                        self.tie_all();
                        own
                    }
                },
            };
            let value = macro_value(&value);
            self.code
                .fixed
                .extend(value.map(|value| (name.clone(), value)));
        }
    }

    fn own_value(&mut self, root: TermId) -> Val {
        let Ok(names) = &mut self.names else {
            return Val::Bool(false);
        };
        let mut values = self
            .context
            .values(&mut names.terms, &[root], |size| Val::from(&size.own));
        values.pop().unwrap_or(Val::Bool(false))
    }

    /// Writes a whole number in C, if it is one.
    fn whole(&mut self, root: TermId) -> Option<String> {
        let names = self.names.as_ref().ok()?;
        let variables = self.context.variables();
        let target = Target::Function(self.context.lower);
        let mut writer = Writer::new(&names.terms, &variables, self.context.product, target);
        let text = writer.whole_number(root).ok()?;
        self.helpers.extend(writer.helpers);
        Some(text)
    }

    /// Writes the bytes of scratch arguments, and the bounds of all buffers' elements.
    fn shapes(&mut self) -> Vec<String> {
        let mut limits: Vec<String> = Vec::new();
        for argument in &self.source.spec.arguments {
            if argument.role == Role::Scalar {
                limits.extend(self.type_limit(argument));
                continue;
            }
            let mut factors: Vec<String> = Vec::new();
            let mut constant: i64 = 1;
            for extent in &argument.shape {
                match self.context.part(&mut self.names, extent.text(), false) {
                    Part::Constant(value) => {
                        let whole = value.int().and_then(|whole| i64::try_from(whole).ok());
                        constant = constant.saturating_mul(whole.unwrap_or(i64::MAX));
                    }
                    Part::Own { used, value, .. } => {
                        self.tied.extend(used);
                        let whole = value.int().and_then(|whole| i64::try_from(whole).ok());
                        constant = constant.saturating_mul(whole.unwrap_or(i64::MAX));
                    }
                    Part::Written(root) => match self.whole(root) {
                        Some(text) => factors.push(format!("({text})")),
                        None => self.tie_all(),
                    },
                }
            }
            let bytes = (argument.ty.size() as i64).saturating_mul(i64::from(argument.lanes));
            if argument.role == Role::Scratch {
                let all = [constant.saturating_mul(bytes).to_string()];
                let all = all.into_iter().chain(factors.iter().cloned());
                let text = all.map(|factor| format!("(size_t){factor}"));
                self.code.scratch.push(text.collect::<Vec<_>>().join(" * "));
            }
            if !factors.is_empty() {
                let factors = factors.iter().map(|factor| format!("(double){factor}"));
                let product = factors.collect::<Vec<_>>().join(" * ");
                let limit = format!("{product} <= {:?}", (MAX_ELEMENTS / constant.max(1)) as f64);
                if !limits.contains(&limit) {
                    limits.push(limit);
                }
            }
        }
        limits
    }

    /// Writes the bound of a size whose argument type cannot represent all sizes.
    fn type_limit(&self, argument: &Argument) -> Option<String> {
        let most = match argument.ty {
            Element::Bool => 1,
            Element::I8 => i64::from(i8::MAX),
            Element::U8 => i64::from(u8::MAX),
            Element::I16 => i64::from(i16::MAX),
            Element::U16 => i64::from(u16::MAX),
            // Above, `float` does not represent every whole number.
            Element::F32 => 1 << f32::MANTISSA_DIGITS,
            _ => return None,
        };
        let mut free = self.context.free.iter();
        let size = free.find(|free| free.name == argument.name)?;
        Some(format!("{} <= {most}", size.variable.name))
    }

    /// Writes the tensor maps. One that no launch uses may have values that cannot be encoded.
    fn maps(&mut self, made: &[LaunchCode]) {
        let launches = self.source.spec.launches.iter().zip(made);
        let taken: BTreeSet<usize> = launches
            .filter(|(_, code)| code.happens)
            .flat_map(|(launch, _)| launch.args.iter().copied())
            .collect();
        for (at, argument) in self.source.spec.arguments.iter().enumerate() {
            let Some((map, _)) = argument.tensor_map() else {
                continue;
            };
            if !taken.contains(&at) {
                self.code.maps.push("{}".to_owned());
                continue;
            }
            let texts = expressions(map).into_iter().map(|expr| self.number(expr));
            let texts = texts.collect();
            self.code.maps.push(initializer(map, texts));
        }
    }

    /// Writes a whole number: a constant, or an expression over the sizes.
    fn number(&mut self, expr: &Expr) -> String {
        let value = match self.context.part(&mut self.names, expr.text(), false) {
            Part::Constant(value) => value,
            Part::Own { used, value, .. } => {
                self.tied.extend(used);
                value
            }
            Part::Written(root) => match self.whole(root) {
                Some(text) => return text,
                None => {
                    self.tie_all();
                    self.own_value(root)
                }
            },
        };
        macro_value(&value).unwrap_or_else(|| "0".to_owned())
    }

    /// Writes the condition that the gate has checked a shape of the same class. Such a shape has the same
    /// branches in the search space's expressions, and the same macros if the sizes are arguments. `None`
    /// if C cannot express the branches.
    fn classes(&mut self, texts: &[&str], rules: &[&str]) -> Option<Option<String>> {
        let fixed = self.fixed();
        let mut lowered = |text: &&str| {
            let names = self.names.as_mut().ok()?;
            let expr = Expr::parse(text).ok()?;
            names.terms.lower(&expr, &names.scope).ok()
        };
        let roots: Option<Vec<TermId>> = texts.iter().map(&mut lowered).collect();
        let rules: Option<Vec<TermId>> = rules.iter().map(&mut lowered).collect();
        let (roots, rules) = (roots?, rules?);
        let names = self.names.as_mut().ok()?;
        let mut branches: Vec<TermId> = Vec::new();
        for id in operands_first(&names.terms, &roots) {
            if let Term::Op(Op::If, args) = names.terms.term(id)
                && let Some(condition) = args.first()
                && names.terms.constant(*condition).is_none()
                && !branches.contains(condition)
            {
                branches.push(*condition);
            }
        }
        let variables = self.context.variables();
        let target = Target::Function(self.context.lower);
        let mut writer = Writer::new(&names.terms, &variables, self.context.product, target);
        let conditions: Result<Vec<String>, String> =
            branches.iter().map(|id| writer.condition(*id)).collect();
        let conditions = conditions.ok()?;
        self.helpers.extend(writer.helpers);
        let mut classes: BTreeSet<String> = BTreeSet::new();
        for sizes in checked_sizes(self.source, self.entry) {
            let own = *sizes == self.entry.sizes;
            let size = |free: &super::super::rules::Free| {
                value_of(sizes, &free.name).map_or(Val::Unset, Val::from)
            };
            let holds = self.context.values(&mut names.terms, &rules, size);
            if !own && !holds.iter().all(|value| value.truth() == Some(true)) {
                continue;
            }
            let taken = self.context.values(&mut names.terms, &branches, size);
            let parts = conditions.iter().zip(taken).map(|(condition, taken)| {
                let taken = taken.truth() == Some(true);
                if taken {
                    condition.clone()
                } else {
                    format!("!({condition})")
                }
            });
            let fixed = fixed.iter().filter_map(|at| {
                let free = self.context.free.get(*at)?;
                let value = value_of(sizes, &free.name)?;
                Some(format!("{} == {value}", free.variable.name))
            });
            classes.insert(parts.chain(fixed).collect::<Vec<_>>().join(" && "));
        }
        if fixed.is_empty() && classes.len() == 1 << conditions.len().min(16) {
            // All branches were taken.
            return Some(None);
        }
        let all: Vec<String> = classes.into_iter().collect();
        Some(match all.as_slice() {
            [one] if one.is_empty() => None,
            [one] => Some(one.clone()),
            all => {
                let all = all.iter().map(|class| format!("({class})"));
                Some(format!("({})", all.collect::<Vec<_>>().join(" || ")))
            }
        })
    }

    /// Returns the free sizes that are macros while others are arguments: one compilation serves problems
    /// with equal macros, so a different value is different code.
    fn fixed(&self) -> Vec<usize> {
        let Sizes::Arguments(_) = &self.source.spec.sizes else {
            return Vec::new();
        };
        let free = self.context.free.iter().enumerate();
        let fixed = free.filter(|(_, free)| self.source.spec.sizes.is_macro(&free.name));
        fixed.map(|(at, _)| at).collect()
    }
}

/// Returns the sizes that the gate has checked: the entry's own, and those of check problems with equal
/// flags.
fn checked_sizes<'s>(source: &'s LauncherSource<'_>, entry: &'s Entry) -> Vec<&'s ConfigValues> {
    let exact = |sizes: &ConfigValues| {
        entry.sizes.iter().all(|(name, own)| {
            let flag = super::super::values::is_flag(Some(own));
            !flag || value_of(sizes, name) == Some(own)
        })
    };
    let checks = source
        .spec
        .check_problems
        .iter()
        .map(|problem| &problem.sizes);
    let checks = checks.filter(|sizes| exact(sizes));
    std::iter::once(&entry.sizes).chain(checks).collect()
}
