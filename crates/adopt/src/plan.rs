//! What is decided about a kernel: its entry, parameters, sizes, launch and arguments.

use super::AdoptError;
use super::cut::{self, Definition, Tunable, looks_like_tiling, neighbours};
use super::expr::Expr;
use super::host::{Host, Launch, Scope};
use super::kernel::{self, TemplateParameter, node_of, pointer};
use super::template::Made;
use super::tree::{self, each};
use super::unit::{Around, Kind, Unit};
use std::collections::BTreeMap;
use tuner_core::plan::Role;

/// Parameters that are proposed at most.
const MAX_PARAMETERS: usize = 8;

/// A parameter of the search space.
#[derive(Debug, Clone)]
pub(crate) struct Proposed {
    pub(crate) name: String,
    pub(crate) default: i64,
    pub(crate) values: Vec<i64>,
    /// Where it comes from.
    pub(crate) doc: String,
}

/// An argument of the search space.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// As the source spells it.
    pub(crate) spelled: String,
    /// The element type, in the search space's words.
    pub(crate) ty: String,
    pub(crate) role: Role,
    /// Elements of a buffer.
    pub(crate) shape: Option<Expr>,
    /// A scalar's value.
    pub(crate) value: Option<Expr>,
    /// What of it was guessed.
    pub(crate) guessed: Option<&'static str>,
}

/// Everything that the search space says.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) kernel: String,
    /// What names the kernel; parameters in braces.
    pub(crate) entry: String,
    pub(crate) tunables: Vec<Tunable>,
    pub(crate) parameters: Vec<Proposed>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) grid: Vec<Expr>,
    pub(crate) block: Vec<Expr>,
    pub(crate) shared: Option<Expr>,
    /// What of the launch was guessed.
    pub(crate) guessed_launch: Vec<&'static str>,
    /// Functions that the entry's template arguments name.
    pub(crate) reached: Vec<String>,
    /// Sizes with the value that the file gives them.
    pub(crate) sizes: Vec<(String, Option<i64>)>,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Reads everything that does not need the compiler.
    pub(crate) fn of(unit: &Unit, item: usize) -> Self {
        let own = &unit.items[item];
        let name = own.names.last().cloned().unwrap_or_default();
        let mut host = Host::new(unit);
        let launches = host.launches(&name);
        // The one whose function says most of its extents.
        let launch = launches
            .into_iter()
            .max_by_key(|each| (usable(&host, each), std::cmp::Reverse(each.config.len())));
        let mut plan = Self {
            entry: String::new(),
            tunables: tunables(unit, item),
            kernel: name,
            parameters: Vec::new(),
            arguments: Vec::new(),
            grid: Vec::new(),
            block: Vec::new(),
            shared: None,
            guessed_launch: Vec::new(),
            reached: Vec::new(),
            sizes: Vec::new(),
            notes: Vec::new(),
        };
        for tunable in &plan.tunables {
            host.tunable.insert(tunable.name.clone(), tunable.value);
            plan.parameters.push(Proposed {
                name: tunable.name.clone(),
                default: tunable.value,
                values: neighbours(tunable.value),
                doc: format!("a constant of {}", place(unit, tunable.item)),
            });
        }
        plan.name_entry(unit, item, launch.as_ref(), &mut host);
        plan.block_of_host(unit, launch.as_ref(), &mut host);
        plan.scalars(unit, item, launch.as_ref(), &mut host);
        plan.extents(unit, item, launch.as_ref(), &mut host);
        plan.buffers(unit, item, launch.as_ref(), &mut host);
        plan.sizes.extend(
            host.invented
                .iter()
                .filter(|(name, _)| !plan.sizes.iter().any(|(known, _)| known == name))
                .cloned()
                .collect::<Vec<_>>(),
        );
        plan.only_used_sizes();
        plan
    }

    /// The entry with the parameters' default values.
    pub(crate) fn filled_entry(&self) -> String {
        self.parameters
            .iter()
            .fold(self.entry.clone(), |text, each| {
                text.replace(&format!("{{{}}}", each.name), &each.default.to_string())
            })
    }

    fn name_entry<'u>(
        &mut self,
        unit: &'u Unit,
        item: usize,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) {
        let own = &unit.items[item];
        let mut path: String = own
            .around
            .iter()
            .filter_map(|around| match around {
                Around::Namespace(name) if !name.is_empty() => Some(format!("{name}::")),
                _ => None,
            })
            .collect();
        path.push_str(&self.kernel);
        let Some((source, node)) = node_of(unit, own) else {
            return;
        };
        let parameters = kernel::template_parameters(source, node);
        if parameters.is_empty() {
            self.entry = path;
            return;
        }
        let mut arguments = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let given = launch.and_then(|launch| launch.template.get(at)).cloned();
            arguments.push(if parameter.is_type {
                self.type_argument(unit, parameter, given)
            } else {
                self.value_argument(unit, parameter, given, launch, host)
            });
        }
        self.entry = format!("{path}<{}>", arguments.join(", "));
    }

    fn type_argument(
        &mut self,
        unit: &Unit,
        parameter: &TemplateParameter,
        given: Option<String>,
    ) -> String {
        let given = given.or_else(|| parameter.default.clone());
        // A type parameter of the function that launches is not known here.
        let known = |text: &String| {
            let declared = |word: &str| {
                unit.items
                    .iter()
                    .any(|item| item.names.iter().any(|name| name == word))
            };
            let builtin = |word: &str| {
                super::host::bytes_of(word).is_some()
                    || matches!(
                        word,
                        "unsigned" | "const" | "signed" | "std" | "cuda" | "long"
                    )
                    || word.starts_with("__")
            };
            tree::words(text)
                .into_iter()
                .all(|word| builtin(word) || declared(word))
        };
        if let Some(given) = given.filter(known) {
            return given;
        }
        self.notes.push(format!(
            "`{}` of the template is taken as float; write another type in `entry` where that is wrong",
            parameter.name
        ));
        "float".to_owned()
    }

    fn value_argument<'u>(
        &mut self,
        unit: &Unit,
        parameter: &TemplateParameter,
        given: Option<String>,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) -> String {
        let text = given.or_else(|| parameter.default.clone());
        if let Some(text) = &text
            && (text == "true" || text == "false" || text.contains("::"))
        {
            return text.clone();
        }
        // A function that is a template's argument.
        if let Some(text) = &text
            && unit
                .items
                .iter()
                .any(|item| item.kind == Kind::Device && item.names.contains(text))
        {
            self.reached.push(text.clone());
            return text.clone();
        }
        let scope = launch.map(|launch| Scope {
            source: launch.source,
            function: launch.function,
        });
        let known = text
            .as_ref()
            .and_then(|text| host.of_text(scope, text))
            .and_then(|it| it.number());
        let name = &parameter.name;
        let value = known.unwrap_or_else(|| {
            let guess = if looks_like_tiling(name, 16) { 16 } else { 1 };
            self.notes.push(format!(
                "`{name}` of the template has no value in the file; {guess} was guessed, write yours in `entry`"
            ));
            guess
        });
        if !looks_like_tiling(name, value) || self.parameters.len() >= MAX_PARAMETERS {
            return value.to_string();
        }
        // The name itself would be replaced in the template's own declaration.
        let proposed = format!("TUNE_{}", name.to_uppercase());
        if let (Some(scope), Some(text)) = (scope, &text)
            && text.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit())
        {
            host.bind(scope, text, &proposed);
        }
        self.parameters.push(Proposed {
            name: proposed.clone(),
            default: value,
            values: neighbours(value),
            doc: format!("the template's {name}"),
        });
        format!("{{{proposed}}}")
    }

    /// Variables of the host that make a block's extents are parameters.
    fn block_of_host<'u>(
        &mut self,
        unit: &'u Unit,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) {
        let Some((launch, block)) =
            launch.and_then(|launch| Some((launch, *launch.config.get(1)?)))
        else {
            return;
        };
        let scope = Scope {
            source: launch.source,
            function: launch.function,
        };
        let names = host.parts(scope, block);
        let guess = if names.len() > 1 { 16 } else { 256 };
        for name in names {
            let known = host.of_text(Some(scope), &name);
            let (value, doc) = match known {
                Some(Expr::Number(value)) => {
                    (value, format!("threads of a block: the host's {name}"))
                }
                None => (
                    guess,
                    format!("guessed: threads of a block, the host's {name}"),
                ),
                Some(_) => continue,
            };
            let whole = (1..=1024).contains(&value) && value & (value - 1) == 0;
            if !whole || self.parameters.len() >= MAX_PARAMETERS {
                continue;
            }
            let upper = name.to_uppercase();
            let used = unit.items.iter().any(|item| item.words.contains(&upper));
            let proposed = if used { format!("TUNE_{upper}") } else { upper };
            if self.parameters.iter().any(|each| each.name == proposed) {
                continue;
            }
            host.bind(scope, &name, &proposed);
            let least = if value >= 32 { 32 } else { 1 };
            let values = neighbours(value)
                .into_iter()
                .filter(|value| *value >= least);
            self.parameters.push(Proposed {
                name: proposed,
                default: value,
                values: values.collect(),
                doc,
            });
        }
    }

    /// Whole numbers that are passed are sizes.
    fn scalars<'u>(
        &mut self,
        unit: &'u Unit,
        item: usize,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) {
        let Some((source, node)) = node_of(unit, &unit.items[item]) else {
            return;
        };
        let parameters = kernel::parameters(source, node);
        for (at, parameter) in parameters.iter().enumerate() {
            if pointer(&parameter.ty).0 || !is_whole(&parameter.ty) {
                continue;
            }
            let given = launch.and_then(|launch| Some((launch, *launch.arguments.get(at)?)));
            if let Some((launch, node)) = given
                && node.kind() == "identifier"
            {
                let scope = Scope {
                    source: launch.source,
                    function: launch.function,
                };
                let mut trial = host.trial();
                let meaning = trial.of_text(Some(scope), launch.source.of(node));
                // A parameter, or made of other names: its value says so.
                let made = match &meaning {
                    Some(Expr::Name(name)) => {
                        !trial.invented.iter().any(|(known, _)| known == name)
                    }
                    Some(Expr::Number(_)) | None => false,
                    Some(_) => true,
                };
                if made {
                    continue;
                }
                let value = host.express(scope, node, 0).and_then(|it| it.number());
                let name = self.size_name(&parameter.name);
                if !self.sizes.iter().any(|(known, _)| *known == name) {
                    self.sizes.push((name.clone(), value));
                }
                host.bind(scope, launch.source.of(node), &name);
            }
        }
    }

    /// A name that no parameter has and that an expression can use.
    fn size_name(&self, name: &str) -> String {
        let taken = self.parameters.iter().any(|each| each.name == name);
        let reserved = matches!(
            name,
            "min"
                | "max"
                | "abs"
                | "int"
                | "in"
                | "is"
                | "and"
                | "or"
                | "not"
                | "if"
                | "else"
                | "len"
                | "lambda"
                | "sqrt"
                | "log2"
        );
        if taken || reserved || name.is_empty() {
            format!("{name}_size")
        } else {
            name.to_owned()
        }
    }

    fn extents<'u>(
        &mut self,
        unit: &'u Unit,
        item: usize,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) {
        host.invent = true;
        if let Some(launch) = launch {
            let scope = Scope {
                source: launch.source,
                function: launch.function,
            };
            let config = |at: usize| launch.config.get(at).copied();
            self.grid = config(0)
                .and_then(|node| host.extents(scope, node, 0))
                .unwrap_or_default();
            host.invent = false;
            let block = config(1).and_then(|node| host.extents(scope, node, 0));
            let known = |all: &Vec<Expr>| {
                let mut names = Vec::new();
                all.iter().for_each(|each| each.names(&mut names));
                names.iter().all(|name| {
                    self.parameters.iter().any(|each| each.name == *name)
                        || self.sizes.iter().any(|(size, _)| size == name)
                })
            };
            self.block = block.filter(known).unwrap_or_default();
            self.shared = config(2)
                .and_then(|node| host.express(scope, node, 0))
                .filter(|it| it.number() != Some(0));
            if config(2).is_some_and(|node| launch.source.of(node) != "0")
                && self.shared.is_none()
                && launch.source.of(config(2).unwrap_or(launch.config[0])) != "0"
            {
                self.guessed_launch.push("shared");
            }
        }
        host.invent = false;
        if self.block.is_empty() {
            self.block = guessed_block(unit, item);
            self.guessed_launch.push("block");
        }
        if self.grid.is_empty() {
            self.guessed_launch.push("grid");
        }
    }

    fn buffers<'u>(
        &mut self,
        unit: &'u Unit,
        item: usize,
        launch: Option<&Launch<'u>>,
        host: &mut Host<'u>,
    ) {
        let own = &unit.items[item];
        let Some((source, node)) = node_of(unit, own) else {
            return;
        };
        let roles = kernel::roles(unit, own);
        for (at, parameter) in kernel::parameters(source, node).into_iter().enumerate() {
            let given = launch.and_then(|launch| Some((launch, *launch.arguments.get(at)?)));
            let scope = given.map(|(launch, _)| Scope {
                source: launch.source,
                function: launch.function,
            });
            let (is_pointer, _) = pointer(&parameter.ty);
            let mut argument = Argument {
                name: parameter.name.clone(),
                spelled: parameter.ty.clone(),
                ty: String::new(),
                role: Role::Scalar,
                shape: None,
                value: None,
                guessed: None,
            };
            if is_pointer {
                host.invent = true;
                let bytes = given
                    .zip(scope)
                    .and_then(|((_, node), scope)| host.allocation(scope, node, 0));
                host.invent = false;
                argument.role = roles.get(&parameter.name).copied().unwrap_or(Role::Input);
                argument.shape = bytes;
            } else {
                let name = self.size_name(&parameter.name);
                if self.sizes.iter().any(|(known, _)| *known == name) {
                    argument.value = Some(Expr::Name(name));
                } else {
                    host.invent = is_whole(&parameter.ty);
                    argument.value = given
                        .zip(scope)
                        .and_then(|((_, node), scope)| host.express(scope, node, 0));
                    host.invent = false;
                    if argument.value.is_none() && is_whole(&parameter.ty) {
                        self.sizes.push((name.clone(), None));
                        argument.value = Some(Expr::Name(name));
                    }
                }
            }
            self.arguments.push(argument);
        }
    }

    /// Sizes that nothing uses are none.
    fn only_used_sizes(&mut self) {
        let mut names = Vec::new();
        let extents = self.grid.iter().chain(&self.block).chain(&self.shared);
        extents.for_each(|each| each.names(&mut names));
        for argument in &self.arguments {
            argument
                .shape
                .iter()
                .chain(&argument.value)
                .for_each(|each| each.names(&mut names));
        }
        self.sizes.retain(|(name, _)| names.contains(name));
    }

    /// Takes in what the compiler says, and decides shapes.
    pub(crate) fn finish(
        &mut self,
        unit: &Unit,
        item: usize,
        made: &Made,
    ) -> Result<(), AdoptError> {
        let place = place(unit, item);
        for (at, argument) in self.arguments.iter_mut().enumerate() {
            let known = made.parameters.as_ref().and_then(|all| all.get(at));
            let spelled = argument.spelled.clone();
            let ty = known.map_or(spelled.as_str(), |known| known.ty.as_str());
            let named = if argument.name.is_empty() {
                format!("number {}", at + 1)
            } else {
                argument.name.clone()
            };
            let opaque = ["Texture", "texture", "Surface", "surface"];
            if opaque.iter().any(|word| spelled.contains(word)) {
                return Err(unsupported(&self.kernel, &place, &named, &spelled));
            }
            match super::yaml::element(ty) {
                Some(element) => argument.ty = element,
                None => return Err(unsupported(&self.kernel, &place, &named, ty)),
            }
            if argument.name.is_empty() {
                argument.name = format!("argument_{}", at + 1);
            }
        }
        super::sizes::shapes(self);
        Ok(())
    }
}

fn unsupported(kernel: &str, place: &str, name: &str, ty: &str) -> AdoptError {
    let (why, help) = if ty.contains("Texture") || ty.contains("texture") || ty.contains("Surface")
    {
        (
            format!("its argument `{name}` is a texture or surface ({ty})"),
            "textures cannot be run here; pass a pointer to the elements instead".to_owned(),
        )
    } else if ty.matches('*').count() > 1 {
        (
            format!("its argument `{name}` is a pointer to pointers ({ty})"),
            "pass one pointer to all elements and an offset, or fill a `__device__` variable of pointers".to_owned(),
        )
    } else {
        (
            format!("its argument `{name}` has a type that is no element type: `{ty}`"),
            format!(
                "only you know what its bytes mean: write a `__global__` function in {place}'s file that \
                 takes the fields of `{ty}` and calls this one, and adopt that"
            ),
        )
    };
    AdoptError::Unsupported {
        kernel: kernel.to_owned(),
        why,
        help,
    }
}

pub(crate) fn place(unit: &Unit, item: usize) -> String {
    let item = &unit.items[item];
    let file = &unit.files[item.file];
    format!("{}:{}", file.shown, file.line(item.at.start))
}

/// Whether a type's text is of whole numbers.
fn is_whole(ty: &str) -> bool {
    let words = tree::words(ty);
    !words.iter().any(|word| {
        matches!(
            *word,
            "float" | "double" | "half" | "__half" | "bool" | "__nv_bfloat16"
        )
    }) && words.iter().any(|word| {
        matches!(
            *word,
            "int" | "unsigned" | "size_t" | "long" | "short" | "uint" | "index_t"
        ) || (word.starts_with("int") || word.starts_with("uint")) && word.ends_with("_t")
    })
}

/// How much of a launch's configuration is understood.
fn usable<'u>(host: &Host<'u>, launch: &Launch<'u>) -> usize {
    let mut trial = host.trial();
    trial.invent = true;
    let scope = Scope {
        source: launch.source,
        function: launch.function,
    };
    let of = |at: usize, trial: &mut Host<'u>| {
        launch
            .config
            .get(at)
            .is_some_and(|node| trial.understands(scope, *node))
    };
    usize::from(of(0, &mut trial)) + usize::from(of(1, &mut trial))
}

/// Threads a block where no launch says so.
fn guessed_block(unit: &Unit, item: usize) -> Vec<Expr> {
    let text = unit.text(&unit.items[item]);
    if let Some((_, rest)) = text.split_once("__launch_bounds__(")
        && let Some(bound) = rest
            .split([',', ')'])
            .next()
            .and_then(|bound| bound.trim().parse().ok())
    {
        return vec![Expr::Number(bound)];
    }
    if text.contains("threadIdx.y") {
        return vec![Expr::Number(16), Expr::Number(16)];
    }
    vec![Expr::Number(256)]
}

/// Constants of what a kernel reaches that look like the sizes of tiles.
fn tunables(unit: &Unit, kernel: usize) -> Vec<Tunable> {
    let kept = cut::reach(unit, kernel, &std::collections::BTreeSet::new());
    let given = cut::given_names(unit, &kept);
    let mut found: Vec<Tunable> = Vec::new();
    for at in &kept {
        let item = &unit.items[*at];
        let conditional = item
            .around
            .iter()
            .any(|around| matches!(around, Around::Condition(_)));
        if conditional || found.len() >= MAX_PARAMETERS {
            continue;
        }
        let Some((source, node)) = node_of(unit, item) else {
            continue;
        };
        let mut add = |name: &str, text: &str, definition: Definition, uses: usize| {
            let value: Option<i64> = text.trim().trim_matches(['(', ')']).parse().ok();
            if let Some(value) = value.filter(|value| looks_like_tiling(name, *value))
                && given.get(name).copied().unwrap_or(0) <= uses
                && found.iter().all(|known| known.name != name)
            {
                found.push(Tunable {
                    name: name.to_owned(),
                    value,
                    item: *at,
                    definition,
                });
            }
        };
        match item.kind {
            Kind::Macro if node.kind() == "preproc_def" => {
                if let (Some(name), Some(value)) = (
                    node.child_by_field_name("name"),
                    node.child_by_field_name("value"),
                ) {
                    let text = source.of(value).split("//").next().unwrap_or_default();
                    add(source.of(name), text, Definition::Macro, 0);
                }
            }
            Kind::Declaration | Kind::Kernel => constants(source, node, item.kind, &mut add),
            _ => {}
        }
    }
    found
}

/// Constants that are declared alone, at file scope or in a kernel.
fn constants(
    source: &tree::Source,
    node: tree::Node<'_>,
    kind: Kind,
    add: &mut dyn FnMut(&str, &str, Definition, usize),
) {
    let outer = node;
    each(node, &mut |node| {
        if node.kind() != "declaration" {
            return true;
        }
        let text = source.of(node);
        let mut cursor = node.walk();
        let all: Vec<tree::Node<'_>> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        let head = tree::words(text);
        let constant = head.contains(&"const") || head.contains(&"constexpr");
        let whole = head.contains(&"int")
            || head.contains(&"unsigned")
            || head.contains(&"uint")
            || head.contains(&"size_t");
        if let [only] = all.as_slice()
            && only.kind() == "init_declarator"
            && constant
            && whole
            && let (Some(name), Some(value)) = (
                only.child_by_field_name("declarator"),
                only.child_by_field_name("value"),
            )
            && name.kind() == "identifier"
        {
            let definition = if node == outer {
                Definition::Constant
            } else {
                Definition::Local(node.byte_range())
            };
            if matches!(definition, Definition::Local(_)) == (kind == Kind::Kernel) {
                add(source.of(name), source.of(value), definition, 1);
            }
        }
        true
    });
}

/// Values of all names in the default configuration.
pub(crate) fn defaults(plan: &Plan) -> BTreeMap<String, i64> {
    let parameters = plan
        .parameters
        .iter()
        .map(|each| (each.name.clone(), each.default));
    parameters
        .chain([("DEVICE_SM_COUNT".to_owned(), 132)])
        .collect()
}
