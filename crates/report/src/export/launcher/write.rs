//! Text of a launcher.

use super::super::lookup;
use super::super::plan::Column;
use super::code::{Dynamic, LauncherCode, define};
use super::{Launcher, LauncherImage, Parameter};
use std::fmt::Write as _;
use tuner_core::element::Element;
use tuner_core::escape::{CComment, CLiteral};
use tuner_core::plan::Role;
use tuner_core::target::ArchFeatures;

/// The part common to all kernels; `K_` and `K_UPPER_` are replaced by the kernel's prefix.
const RUNTIME: &str = include_str!("../launcher.hpp");
/// Launches in clusters, inserted after the runtime if a kernel has any.
const CLUSTERS: &str = include_str!("../clusters.hpp");
/// Largest string literal of C++ (ISO C++ recommends 65,536 characters).
const MAX_LITERAL: usize = 16_000;

impl Launcher<'_> {
    pub(super) fn opening(&self) -> String {
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

    /// Returns the sizes that are not arguments of the kernel.
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
            if argument.is_tensor_map() {
                continue;
            }
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
    pub(super) fn interface(&self, text: &mut String) {
        let (k, u) = (&self.prefix, &self.upper);
        let types: Vec<String> = self
            .arguments
            .iter()
            .filter(|parameter| !parameter.argument.is_tensor_map())
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

    pub(super) fn runtime(&self) -> String {
        let lower = &self.plan.lower;
        let clusters = match self.plan.has_clusters() {
            true => CLUSTERS,
            false => "",
        };
        [RUNTIME, clusters, self.map_runtime()]
            .concat()
            .replace("K_launch_extents", &format!("{lower}_launch"))
            .replace("K_UPPER_", &format!("{}_", self.upper))
            .replace("K_", &format!("{}_", self.prefix))
    }

    /// Writes the kernel's source and everything that depends on it.
    pub(super) fn implementation(&self, text: &mut String, images: &[LauncherImage]) {
        let k = &self.prefix;
        let _ = writeln!(text, "\nnamespace {k}_launcher {{\n");
        self.texts(text);
        self.images(text, images);
        let parameters = lookup::parameters(self.plan.sizes.iter());
        for (index, code) in self.codes.iter().enumerate() {
            self.code(text, index, code, &parameters);
        }
        self.tables(text, &parameters);
        self.kernel_table(text);
        self.map_functions(text);
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
            // The source is meant to be read here, and `\n` is easier to read than its octal form.
            let ended = literal.strip_suffix("\\012\"");
            let literal = ended.map_or_else(|| literal.clone(), |rest| format!("{rest}\\n\""));
            let _ = writeln!(text, "  {literal}");
        }
        // The closing line starts with a comma, which must follow a literal.
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
        let features = self.source.spec.arch_features;
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
             static const Source source = {{{features}, {first}, {name}, source_text, headers, header_names, {}}};",
            headers.len(),
            features = CLiteral::new(features.map_or("", ArchFeatures::suffix)),
            first = features.map_or(0, ArchFeatures::first_capability),
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
        // C++ has no arrays without elements.
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

    /// Returns statements for functions of the sizes, which need not read all of them.
    pub(super) fn unused_sizes(&self) -> String {
        let sizes = self.plan.sizes.iter();
        sizes
            .map(|size| format!("(void){}; ", size.member))
            .collect()
    }

    /// Writes options, macros and scratch memory of a configuration.
    fn code(&self, text: &mut String, index: usize, code: &LauncherCode, parameters: &str) {
        let unused = self.unused_sizes();
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
            &format!("Defines_{index}"),
            &fixed.collect::<String>(),
        );
        let _ = writeln!(
            text,
            "static std::string macros_{index}({parameters}) {{\n  {unused}\n  std::string text = joined(Defines_{index});"
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
                "static {lower}_launch (*const Extents_{name}[])({parameters}) = {{{functions}}};"
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
                let _ = writeln!(text, "  {ty} Value_{name} = static_cast<{ty}>({name});");
            }
        }
        for name in &self.plan.launches {
            let _ = writeln!(
                text,
                "  const {lower}_launch Made_{name} = Extents_{name}[chosen]({sizes});"
            );
        }
        self.map_values(text, &sizes);
        self.launches(text, &sizes);
    }
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
        Element::F16 | Element::Bf16 | Element::F8e4m3 | Element::F8e5m2 => match ty.storage() {
            Some(bits) if scalar => element(bits, scalar),
            _ => "void",
        },
    }
}
