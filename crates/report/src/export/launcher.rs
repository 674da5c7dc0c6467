//! C++ launcher: the header with the kernel's source or machine code, choice by device and sizes, and the
//! launches.

mod code;

use super::cexpr::MAX_EXACT;
use super::header::{Column, Plan, most_trusted};
use super::names::{identifier, members};
use super::rules::{Condition, Context, EntryCode};
use super::{ExportError, lookup};
use code::{Dynamic, LauncherCode, define, launcher_code};
use std::fmt::Write as _;
use tuner_core::element::Element;
use tuner_core::entry::Entry;
use tuner_core::escape::{CComment, CLiteral};
use tuner_core::plan::Role;
use tuner_core::value::Value;
use tuner_space::{Argument, KernelSpec};

/// The part that is the same for all kernels; `K_` and `K_UPPER_` are replaced by the kernel's prefix.
const RUNTIME: &str = include_str!("launcher.hpp");
/// Largest string literal of C++ (ISO C++ recommends 65,536 characters).
const MAX_LITERAL: usize = 16_000;

/// The kernel as the launcher holds it.
pub struct LauncherSource<'a> {
    /// The search space.
    pub spec: &'a KernelSpec,
    /// The template's path in diagnostics.
    pub name: &'a str,
    /// The template's text.
    pub text: &'a str,
    /// Included files: the name in the directive and the text.
    pub headers: Vec<(String, String)>,
    /// Reports whether the template mentions a macro.
    pub mentions: &'a dyn Fn(&str) -> bool,
    /// Launch shapes of checked classes only, unless the macro of that name says otherwise.
    pub checked_only: bool,
}

/// Code of an entry, compiled ahead for the entry's own sizes.
pub struct LauncherImage {
    /// Number of the entry.
    pub entry: usize,
    /// Target, such as `sm_90a`.
    pub arch: String,
    /// PTX text rather than machine code.
    pub is_ptx: bool,
    /// The code.
    pub bytes: Vec<u8>,
    /// Name of each launch's kernel in the code.
    pub symbols: Vec<String>,
}

/// Reason why a kernel has no launcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// No header.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The space has something that a launcher cannot pass.
    #[error("a launcher cannot pass {0}: export the header alone (without --launcher)")]
    Unsupported(String),
}

/// Returns the entries that a launcher holds, in its order.
#[must_use]
pub fn launcher_entries(entries: &[Entry]) -> Vec<Entry> {
    most_trusted(entries)
}

/// A launcher before its code is compiled ahead.
pub struct Launcher<'a> {
    plan: Plan<'a>,
    source: &'a LauncherSource<'a>,
    /// The default configuration.
    fallback: Entry,
    fallback_code: EntryCode,
    /// The code of each entry and of the default configuration.
    codes: Vec<LauncherCode>,
    arguments: Vec<Parameter<'a>>,
    /// Prefix of the launcher's names, `gemm_f16`.
    prefix: String,
    upper: String,
}

impl<'a> Launcher<'a> {
    /// Creates a launcher for entries of [`launcher_entries`].
    ///
    /// # Errors
    /// Nothing to export, a name that is invalid in C, or a kernel that a launcher cannot call.
    pub fn new(
        kernel: &'a str,
        entries: &'a [Entry],
        source: &'a LauncherSource<'a>,
    ) -> Result<Self, LauncherError> {
        check(source.spec)?;
        let mut plan = Plan::new(kernel, entries)?;
        for entry in entries {
            if entry.definition.launches.len() != source.spec.launches.len() {
                let what = "launches that differ from the search space's; tune again".to_owned();
                return Err(LauncherError::Unsupported(what));
            }
        }
        let fallback = default_entry(entries, source.spec).ok_or(ExportError::Empty)?;
        let product = plan.bounded.then_some(MAX_EXACT);
        let fallback_code = Context::new(&plan, &fallback, product).fold();
        let configurations = entries.iter().chain([&fallback]);
        let codes: Vec<LauncherCode> = configurations
            .map(|entry| launcher_code(&plan, source, entry))
            .collect();
        let prefix = identifier(kernel).to_ascii_lowercase();
        let upper = prefix.to_ascii_uppercase();
        for (code, launcher) in plan.codes.iter_mut().zip(&codes) {
            code.helpers.extend(&launcher.helpers);
            code.conditions.push(Condition {
                text: format!("(!{upper}_CHECKED_ONLY || ({}))", launcher.covered),
                source: CComment::new("the gate has checked shapes of this class"),
            });
        }
        let mut fallback_code = fallback_code;
        if let Some(code) = plan.codes.first_mut() {
            code.helpers.append(&mut fallback_code.helpers);
            code.helpers.extend(
                codes
                    .last()
                    .map(|code| code.helpers.clone())
                    .into_iter()
                    .flatten(),
            );
        }
        if let Some(code) = codes.last() {
            // Macros that C cannot compute exist for the own sizes only.
            fallback_code.conditions.push(Condition {
                text: code.defined.clone(),
                source: CComment::new("the macros are known"),
            });
        }
        Ok(Self {
            arguments: arguments(&plan, source.spec),
            plan,
            source,
            fallback,
            fallback_code,
            codes,
            prefix,
            upper,
        })
    }

    /// Returns the macros of an entry for its own sizes, with their values.
    #[must_use]
    pub fn own_macros(&self, entry: usize) -> Vec<(String, String)> {
        let code = self.codes.get(entry);
        code.map(LauncherCode::own_macros).unwrap_or_default()
    }

    /// Returns NVRTC's options of a configuration: those of the search space, parameters substituted.
    #[must_use]
    pub fn options(&self, index: usize) -> Vec<String> {
        let entry = self.plan.entries.get(index).unwrap_or(&self.fallback);
        let substituted = |option: &String| {
            let values = entry.best.config.iter();
            values.fold(option.clone(), |option, (name, value)| {
                let value = match value {
                    Value::Bool(value) => u8::from(*value).to_string(),
                    value => value.to_string(),
                };
                option.replace(&format!("{{{name}}}"), &value)
            })
        };
        self.source.spec.options.iter().map(substituted).collect()
    }

    /// Writes the launcher with code that was compiled ahead.
    #[must_use]
    pub fn text(&self, images: &[LauncherImage]) -> String {
        let upper = &self.upper;
        let mut text = self.opening();
        text.push_str(&self.plan.text());
        self.interface(&mut text);
        let _ = writeln!(
            text,
            "\n#if defined({upper}_IMPLEMENTATION) && defined(__cplusplus)"
        );
        text.push_str(&self.runtime());
        let count = self.plan.entries.len();
        self.plan
            .functions(&mut text, count, &self.fallback, &self.fallback_code);
        self.implementation(&mut text, images);
        let _ = writeln!(
            text,
            "#endif /* {upper}_IMPLEMENTATION */\n#endif /* {upper}_LAUNCHER_H */"
        );
        text
    }
}

/// Refuses what a launcher cannot pass.
fn check(spec: &KernelSpec) -> Result<(), LauncherError> {
    let unsupported = |what: String| Err(LauncherError::Unsupported(what));
    if let Some(variable) = spec.variables.first() {
        return unsupported(format!("the variable `{}` of the template", variable.name));
    }
    for argument in &spec.arguments {
        let composed = argument.record.is_some() || !argument.pieces.is_empty();
        if composed || (argument.role == Role::Scalar && argument.lanes > 1) {
            return unsupported(format!("the composed argument `{}`", argument.name));
        }
    }
    let named = |option: &&String| {
        let names = option.split('{').skip(1);
        let mut names = names.filter_map(|part| part.split_once('}'));
        names.any(|(name, _)| spec.parameters.iter().all(|known| known.name != name))
    };
    if let Some(option) = spec.options.iter().find(named) {
        return unsupported(format!("the option `{option}`, which depends on the sizes"));
    }
    let target =
        |option: &&String| option.starts_with("-arch") || option.starts_with("--gpu-architecture");
    match spec.options.iter().find(target) {
        Some(option) => unsupported(format!("the option `{option}`")),
        None => Ok(()),
    }
}

/// Returns the default configuration as an entry.
fn default_entry(entries: &[Entry], spec: &KernelSpec) -> Option<Entry> {
    let mut entry = entries.first()?.clone();
    for (name, value) in &mut entry.best.config {
        let parameter = spec.parameters.iter().find(|known| known.name == *name)?;
        *value = parameter.values.get(parameter.default as usize)?.clone();
    }
    Some(entry)
}

/// An argument of the launch function.
struct Parameter<'a> {
    argument: &'a Argument,
    /// C name.
    name: String,
    /// It is a size of the problem.
    size: bool,
}

fn arguments<'a>(plan: &Plan<'_>, spec: &'a KernelSpec) -> Vec<Parameter<'a>> {
    let size = |name: &str| plan.sizes.iter().find(|column| *column.name == *name);
    let taken: Vec<&str> = plan
        .sizes
        .iter()
        .map(|column| column.member.as_str())
        .chain([
            "stream", "status", "made", "values", "code", "chosen", "device", "context",
        ])
        .collect();
    let all: Vec<&str> = spec
        .arguments
        .iter()
        .map(|argument| argument.name.as_str())
        .collect();
    let names = members(&all, &taken);
    spec.arguments
        .iter()
        .zip(names)
        .map(|(argument, name)| match size(&argument.name) {
            Some(column) if argument.role == Role::Scalar => Parameter {
                argument,
                name: column.member.clone(),
                size: true,
            },
            _ => Parameter {
                argument,
                // A name in lower case is kept where it is free.
                name: match taken.contains(&argument.name.as_str()) || !is_plain(&argument.name) {
                    true => name,
                    false => argument.name.clone(),
                },
                size: false,
            },
        })
        .collect()
}

/// Reports whether a name is the same as a member.
fn is_plain(name: &str) -> bool {
    members(&[&name.to_ascii_uppercase()], &[])
        .first()
        .is_some_and(|member| member == name)
}

/// Returns the C type of an element; a type that C lacks is untyped.
fn element(ty: Element, scalar: bool) -> &'static str {
    match ty {
        Element::F32 => "float",
        Element::F64 => "double",
        Element::Bool | Element::U8 => "uint8_t",
        Element::I8 => "int8_t",
        Element::I16 => "int16_t",
        Element::U16 => "uint16_t",
        Element::I32 => "int32_t",
        Element::U32 => "uint32_t",
        Element::I64 => "int64_t",
        Element::U64 => "uint64_t",
        Element::F16 | Element::Bf16 if scalar => "uint16_t",
        Element::F8e4m3 | Element::F8e5m2 if scalar => "uint8_t",
        _ => "void",
    }
}

impl Launcher<'_> {
    fn opening(&self) -> String {
        let (k, u) = (&self.prefix, &self.upper);
        format!(
            "/* {kernel}: launcher. C++17 where {u}_IMPLEMENTATION is defined (in one file), C11 elsewhere.\n \
             * {k}_launch(stream, arguments in the order of the search space, further sizes) chooses a configuration for the\n \
             * current device and the sizes, compiles it by NVRTC at first use where no embedded code fits, and launches it.\n \
             * {k}_scratch_bytes(sizes, &bytes ...) asks for the scratch memory of that configuration.\n \
             * {k}_error() explains the last error of this thread. With {u}_DRIVER_API the types are the driver's, else the\n \
             * runtime's. {u}_CHECKED_ONLY 0 also launches shapes of classes that the gate has not checked, and the\n \
             * default configuration where no entry fits; {k}_chosen() is then {u}_TUNED_COUNT. Link with -ldl. */\n\
             #ifndef {u}_LAUNCHER_H\n#define {u}_LAUNCHER_H\n\
             #ifndef {u}_CHECKED_ONLY\n#define {u}_CHECKED_ONLY {checked}\n#endif\n\
             #include <stddef.h>\n#include <stdint.h>\n\
             #ifdef {u}_DRIVER_API\n#include <cuda.h>\n#else\n#include <cuda_runtime_api.h>\n#endif\n",
            kernel = self.plan.kernel,
            checked = u8::from(self.source.checked_only),
        )
    }

    /// Returns the sizes that are no arguments of the kernel.
    fn further(&self) -> impl Iterator<Item = &Column> {
        self.plan.sizes.iter().filter(|column| {
            let passed =
                |parameter: &Parameter<'_>| parameter.size && parameter.name == column.member;
            !self.arguments.iter().any(passed)
        })
    }

    fn parameters(&self) -> String {
        let (k, mut parameters) = (&self.prefix, Vec::new());
        parameters.push(format!("{k}_stream stream"));
        for Parameter {
            argument,
            name,
            size,
        } in &self.arguments
        {
            let is_scalar = argument.role == Role::Scalar;
            let scalar = element(argument.ty, is_scalar);
            parameters.push(match argument.role {
                Role::Scalar if *size => format!("long long {name}"),
                Role::Scalar => format!("{scalar} {name}"),
                Role::Input => format!("const {scalar} *{name}"),
                _ => format!("{scalar} *{name}"),
            });
        }
        let further = lookup::parameters(self.further());
        if !further.is_empty() {
            parameters.push(further);
        }
        parameters.join(", ")
    }

    fn scratch(&self) -> impl Iterator<Item = &Parameter<'_>> {
        let arguments = self.arguments.iter();
        arguments.filter(|parameter| parameter.argument.role == Role::Scratch)
    }

    fn scratch_parameters(&self) -> String {
        let sizes = lookup::parameters(self.plan.sizes.iter());
        let scratch = self
            .scratch()
            .map(|scratch| format!("size_t *{}", scratch.name));
        let all = [sizes]
            .into_iter()
            .filter(|sizes| !sizes.is_empty())
            .chain(scratch);
        let all = all.collect::<Vec<_>>().join(", ");
        if all.is_empty() {
            "void".to_owned()
        } else {
            all
        }
    }

    /// Writes the declarations, in C.
    fn interface(&self, text: &mut String) {
        let (k, u) = (&self.prefix, &self.upper);
        let types: Vec<String> = self
            .arguments
            .iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.argument.ty))
            .collect();
        let _ = write!(
            text,
            "\n#ifdef {u}_DRIVER_API\ntypedef CUresult {k}_status;\ntypedef CUstream {k}_stream;\n\
             #else\ntypedef cudaError_t {k}_status;\ntypedef cudaStream_t {k}_stream;\n#endif\n\
             #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\
             /* {} */\n\
             {k}_status {k}_launch({});\n\
             {k}_status {k}_scratch_bytes({});\n\
             const char *{k}_error(void);\n\
             /* The entry of this thread's last launch; {u}_TUNED_COUNT for the default configuration, -1 for none. */\n\
             int {k}_chosen(void);\n\
             #ifdef __cplusplus\n}}\n#endif\n",
            CComment::new(&types.join(", ")),
            self.parameters(),
            self.scratch_parameters(),
        );
    }

    fn runtime(&self) -> String {
        let lower = &self.plan.lower;
        RUNTIME
            .replace("K_launch_extents", &format!("{lower}_launch"))
            .replace("K_UPPER_", &format!("{}_", self.upper))
            .replace("K_", &format!("{}_", self.prefix))
    }

    /// Writes the kernel's source and everything that depends on it.
    fn implementation(&self, text: &mut String, images: &[LauncherImage]) {
        let k = &self.prefix;
        let _ = writeln!(text, "\nnamespace {k}_launcher {{\n");
        self.texts(text);
        self.images(text, images);
        let parameters = lookup::parameters(self.plan.sizes.iter());
        for (index, code) in self.codes.iter().enumerate() {
            self.code(text, index, code, &parameters);
        }
        self.tables(text, &parameters);
        self.choice(text, &parameters);
        let _ = writeln!(text, "\n}} /* namespace {k}_launcher */\n");
        self.entrances(text);
    }

    /// Writes a text as an array of literals.
    fn literals(&self, text: &mut String, name: &str, content: &str) {
        let _ = writeln!(text, "static const char *const {name}[] = {{");
        let mut length = 0;
        for line in content.split_inclusive('\n') {
            if length + line.len() > MAX_LITERAL {
                text.push_str("  ,\n");
                length = 0;
            }
            length += line.len();
            let literal = CLiteral::new(line).to_string();
            let _ = writeln!(text, "  {}", literal.replace("\\012", "\\n"));
        }
        if content.is_empty() {
            text.push_str("  \"\"\n");
        }
        text.push_str("  , nullptr};\n");
    }

    fn texts(&self, text: &mut String) {
        let name = CLiteral::new(self.source.name);
        let source = format!("#line 1 {name}\n{}", self.source.text);
        self.literals(text, "source_text", &source);
        let headers = &self.source.headers;
        for (at, (_, content)) in headers.iter().enumerate() {
            self.literals(text, &format!("header_{at}"), content);
        }
        let texts: String = (0..headers.len())
            .map(|at| format!("header_{at}, "))
            .collect();
        let names: String = headers
            .iter()
            .map(|(spelled, _)| format!("{}, ", CLiteral::new(spelled)))
            .collect();
        let _ = writeln!(
            text,
            "static const char *const *const headers[] = {{{texts}nullptr}};\n\
             static const char *const header_names[] = {{{names}nullptr}};\n\
             static const Source source = {{{name}, source_text, headers, header_names, {}}};",
            headers.len()
        );
        let entries: String = self
            .source
            .spec
            .launches
            .iter()
            .map(|launch| format!("{}, ", CLiteral::new(&launch.entry)))
            .collect();
        let _ = writeln!(
            text,
            "static const char *const kernels[] = {{{entries}nullptr}};"
        );
    }

    fn images(&self, text: &mut String, images: &[LauncherImage]) {
        let mut rows = String::new();
        for (at, image) in images.iter().enumerate() {
            let _ = writeln!(
                text,
                "alignas(16) static const unsigned char image_{at}[] = {{"
            );
            // The driver reads PTX up to a zero byte.
            let zero = image.is_ptx.then_some(&0_u8);
            let bytes: Vec<&u8> = image.bytes.iter().chain(zero).collect();
            for line in bytes.chunks(32) {
                let line: Vec<String> = line.iter().map(|byte| byte.to_string()).collect();
                let _ = writeln!(text, "{},", line.join(","));
            }
            let symbols = image.symbols.iter();
            let symbols: String = symbols
                .map(|symbol| format!("{}, ", CLiteral::new(symbol)))
                .collect();
            let _ = writeln!(
                text,
                "}};\nstatic const char *const symbols_{at}[] = {{{symbols}nullptr}};"
            );
            let digits = image.arch.trim_start_matches(|c: char| !c.is_ascii_digit());
            let sm = digits.trim_end_matches(|c: char| !c.is_ascii_digit());
            let own = self.own_macros(image.entry);
            let macros: String = own
                .iter()
                .map(|(name, value)| define(name, value))
                .collect();
            let _ = writeln!(
                rows,
                "  {{{}, {}, {sm}, {}, {}, image_{at}, sizeof image_{at}, symbols_{at}}},",
                image.entry,
                CLiteral::new(&macros),
                digits != sm,
                image.is_ptx,
            );
        }
        let count = images.len();
        let none = if count == 0 {
            "  {-1, \"\", 0, false, false, nullptr, 0, nullptr}\n"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "static const Image images[] = {{\n{rows}{none}}};\nstatic const int image_count = {count};"
        );
    }

    /// Writes options, macros and scratch memory of a configuration.
    fn code(&self, text: &mut String, index: usize, code: &LauncherCode, parameters: &str) {
        let unused: String = self
            .plan
            .sizes
            .iter()
            .map(|size| format!("(void){}; ", size.member))
            .collect();
        let options = self.options(index);
        let options = options
            .iter()
            .map(|option| format!("{}, ", CLiteral::new(option)));
        let options: String = options.collect();
        let _ = writeln!(
            text,
            "\nstatic const char *const options_{index}[] = {{{options}nullptr}};"
        );
        let fixed = code.fixed.iter().map(|(name, value)| define(name, value));
        self.literals(
            text,
            &format!("defines_{index}"),
            &fixed.collect::<String>(),
        );
        let _ = writeln!(
            text,
            "static std::string macros_{index}({parameters}) {{\n  {unused}\n  std::string text = joined(defines_{index});"
        );
        for Dynamic { name, value, .. } in &code.dynamic {
            let head = CLiteral::new(&format!("#define {name} "));
            let _ = writeln!(
                text,
                "  text += {head} + std::to_string(static_cast<long long>({value})) + \"\\n\";"
            );
        }
        let _ = writeln!(
            text,
            "  return text;\n}}\nstatic void scratch_{index}({parameters}{}size_t *bytes) {{\n  {unused}(void)bytes;",
            if parameters.is_empty() { "" } else { ", " }
        );
        for (at, bytes) in code.scratch.iter().enumerate() {
            let _ = writeln!(text, "  bytes[{at}] = {bytes};");
        }
        text.push_str("}\n");
    }

    /// Writes the tables of all configurations.
    fn tables(&self, text: &mut String, parameters: &str) {
        let lower = &self.plan.lower;
        let count = self.codes.len();
        let all =
            |name: &str| -> String { (0..count).map(|at| format!("{name}_{at}, ")).collect() };
        let comma = if parameters.is_empty() { "" } else { ", " };
        let _ = writeln!(
            text,
            "\nstatic const char *const *const all_options[] = {{{}}};\n\
             static std::string (*const all_macros[])({parameters}) = {{{}}};\n\
             static void (*const all_scratch[])({parameters}{comma}size_t *) = {{{}}};",
            all("options"),
            all("macros"),
            all("scratch"),
        );
        for name in &self.plan.launches {
            let functions: String = (0..count)
                .map(|at| format!("{lower}_{at}_launch_{name}, "))
                .collect();
            let _ = writeln!(
                text,
                "static {lower}_launch (*const extents_{name}[])({parameters}) = {{{functions}}};"
            );
        }
    }

    /// Writes the choice of a configuration.
    fn choice(&self, text: &mut String, parameters: &str) {
        let (lower, u) = (&self.plan.lower, &self.upper);
        let sizes = lookup::arguments(self.plan.sizes.iter());
        let comma = if parameters.is_empty() { "" } else { ", " };
        let count = self.codes.len() - 1;
        let (format, values) = self.size_texts();
        let _ = write!(
            text,
            "\nstatic {k}_status choose(int &chosen, Device &device, CUcontext &context{comma}{parameters}) {{\n\
             \x20 message().clear();\n\
             \x20 const {k}_status status = current(device, context);\n\
             \x20 if (status != static_cast<{k}_status>(0)) return status;\n\
             \x20 int how = 0;\n\
             \x20 const {lower}_entry *entry = {lower}_find(device.name, 10 * device.major + device.minor{comma}{sizes}, &how);\n\
             \x20 chosen = entry ? static_cast<int>(entry - {lower}_table) : -1;\n\
             \x20 if (entry) return status;\n\
             \x20 if (!{u}_CHECKED_ONLY && {lower}_{count}_valid({sizes})) {{\n\
             \x20   chosen = {count};\n\
             \x20   failed(0, \"no entry fits %s (sm_%d%d) and{format}: launched the default configuration\", device.name, device.major, device.minor{values});\n\
             \x20   return status;\n\
             \x20 }}\n\
             \x20 bool known = false;\n\
             \x20 for (int i = 0; i < {count}; ++i)\n\
             \x20   known = known || {lower}_names(device.name, {lower}_table[i].device, {lower}_table[i].model) || {lower}_table[i].cc == 10 * device.major + device.minor;\n\
             \x20 if (!known) return failed(CUDA_ERROR_NO_BINARY_FOR_GPU, \"no entry was tuned for %s (sm_%d%d)\", device.name, device.major, device.minor);\n\
             \x20 return failed(CUDA_ERROR_INVALID_VALUE, \"no configuration was tuned and checked for{format}\"{values});\n\
             }}\n",
            k = self.prefix,
        );
    }

    /// Returns a format of all sizes, and its values.
    fn size_texts(&self) -> (String, String) {
        let (mut format, mut values) = (String::new(), String::new());
        for size in &self.plan.sizes {
            let letter = match lookup::size_type(size) {
                "double" => "%g",
                "const char *" => "%s",
                _ => "%lld",
            };
            let _ = write!(format, " {} {letter}", size.name);
            let _ = write!(values, ", {}", size.member);
        }
        (format, values)
    }

    /// Writes the exported functions.
    fn entrances(&self, text: &mut String) {
        let (k, lower) = (&self.prefix, &self.plan.lower);
        let sizes = lookup::arguments(self.plan.sizes.iter());
        let comma = if sizes.is_empty() { "" } else { ", " };
        let _ = write!(
            text,
            "extern \"C\" const char *{k}_error(void) {{ return {k}_launcher::message().c_str(); }}\n\
             extern \"C\" int {k}_chosen(void) {{ return {k}_launcher::last_chosen(); }}\n\n\
             extern \"C\" {k}_status {k}_scratch_bytes({parameters}) {{\n\
             \x20 using namespace {k}_launcher;\n\
             \x20 Device device = {{}};\n\x20 CUcontext context = nullptr;\n\x20 int chosen = -1;\n\
             \x20 const {k}_status status = choose(chosen, device, context{comma}{sizes});\n\
             \x20 if (status != static_cast<{k}_status>(0)) return status;\n\
             \x20 size_t values[{count}] = {{}};\n\
             \x20 all_scratch[chosen]({sizes}{comma}values);\n",
            parameters = self.scratch_parameters(),
            count = self.scratch().count().max(1),
        );
        for (at, scratch) in self.scratch().enumerate() {
            let _ = writeln!(
                text,
                "  if ({name}) *{name} = values[{at}];",
                name = scratch.name
            );
        }
        let _ = write!(
            text,
            "  return status;\n}}\n\nextern \"C\" {k}_status {k}_launch({}) {{\n\
             \x20 using namespace {k}_launcher;\n\
             \x20 last_chosen() = -1;\n\
             \x20 Device device = {{}};\n\x20 CUcontext context = nullptr;\n\x20 int chosen = -1;\n\
             \x20 {k}_status status = choose(chosen, device, context{comma}{sizes});\n\
             \x20 const {k}_status fine = static_cast<{k}_status>(0);\n\
             \x20 if (status != fine) return status;\n\
             \x20 const std::string note = message();\n",
            self.parameters(),
        );
        for Parameter { argument, name, .. } in &self.arguments {
            if argument.role != Role::Scalar {
                let _ = writeln!(
                    text,
                    "  if ((status = pointer(\"{name}\", {name})) != fine) return status;"
                );
            }
        }
        for Parameter {
            argument,
            name,
            size,
        } in &self.arguments
        {
            if *size {
                let ty = element(argument.ty, true);
                let _ = writeln!(text, "  {ty} {name}_value = static_cast<{ty}>({name});");
            }
        }
        for name in &self.plan.launches {
            let _ = writeln!(
                text,
                "  const {lower}_launch made_{name} = extents_{name}[chosen]({sizes});"
            );
        }
        self.launches(text, &sizes);
    }

    /// Writes the launches: all are checked before the first begins.
    fn launches(&self, text: &mut String, sizes: &str) {
        let out = |name: &str| {
            format!("!made_{name}.runs && !made_{name}.block[0] && !made_{name}.grid[0]")
        };
        let _ = writeln!(
            text,
            "  const Code *code = nullptr;\n\
             \x20 status = loaded(code, chosen, all_macros[chosen]({sizes}), source, all_options[chosen], kernels, images, image_count, device, context);\n\
             \x20 if (status != fine) return status;"
        );
        let launches = &self.source.spec.launches;
        for (at, (name, launch)) in self.plan.launches.iter().zip(launches).enumerate() {
            let values: Vec<String> = launch
                .args
                .iter()
                .filter_map(|at| self.arguments.get(*at))
                .map(|parameter| match parameter.size {
                    true => format!("(void *)&{}_value", parameter.name),
                    false => format!("(void *)&{}", parameter.name),
                })
                .collect();
            let _ = writeln!(
                text,
                "  void *values_{at}[] = {{{}}};\n\
                 \x20 if (!({}) && !made_{name}.runs) return launch(*code, {at}, kernels[{at}], made_{name}, {cooperative}, stream, values_{at});",
                if values.is_empty() {
                    "nullptr".to_owned()
                } else {
                    values.join(", ")
                },
                out(name),
                cooperative = launch.cooperative,
            );
        }
        for (at, (name, launch)) in self.plan.launches.iter().zip(launches).enumerate() {
            let _ = writeln!(
                text,
                "  if (made_{name}.runs && (status = launch(*code, {at}, kernels[{at}], made_{name}, {}, stream, values_{at})) != fine) return status;",
                launch.cooperative,
            );
        }
        let _ = writeln!(
            text,
            "  last_chosen() = chosen;\n  message() = note;\n  return fine;\n}}"
        );
    }
}
