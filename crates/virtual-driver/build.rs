//! Builds the shared libraries that CUDA programs load: the sources of `cuda-shim`, once per library,
//! linked by the C compiler with the symbol versions of NVIDIA's library.
//!
//! cargo cannot build or install shared libraries with versioned symbols, so these become data of this
//! crate.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

struct Library {
    /// Folder and file name among the libraries.
    path: &'static str,
    /// `DT_SONAME`.
    name: &'static str,
    /// Value of `cfg(shim)`.
    variant: &'static str,
    /// Node of the version script; empty for unversioned symbols.
    version: &'static str,
    /// List of the symbols that NVIDIA's library exports.
    symbols: &'static str,
    /// Folder of the functions.
    functions: &'static str,
}

const LIBRARIES: [Library; 4] = [
    Library {
        path: "libcudart.so.12",
        name: "libcudart.so.12",
        variant: "cudart12",
        version: "libcudart.so.12",
        symbols: "libcudart-12.txt",
        functions: "runtime",
    },
    Library {
        path: "libcudart.so.13",
        name: "libcudart.so.13",
        variant: "cudart13",
        version: "libcudart.so.13",
        symbols: "libcudart-13.txt",
        functions: "runtime",
    },
    Library {
        path: "libcuda.so.1",
        name: "libcuda.so.1",
        variant: "cuda",
        version: "",
        symbols: "libcuda.txt",
        functions: "driver",
    },
    Library {
        path: "forward/libcuda.so.1",
        name: "libcuda.so.1",
        variant: FORWARD,
        version: "",
        symbols: "libcuda.txt",
        functions: "driver",
    },
];

/// The library that forwards its functions to the machine's driver.
const FORWARD: &str = "forward";

/// The library that redirects a runtime that is linked into a program.
const REDIRECT: &str = "libtuner-redirect.so";

fn main() -> io::Result<()> {
    let shim = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../cuda-shim");
    println!("cargo::rerun-if-changed={}", shim.join("src").display());
    println!("cargo::rerun-if-changed={}", shim.join("symbols").display());
    let map = shim.join("../gpu/tensor-map/src");
    println!("cargo::rerun-if-changed={}", map.display());
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let linux = variable("CARGO_CFG_TARGET_OS")? == "linux";
    for library in &LIBRARIES {
        if linux {
            build(library, &shim, &out)?;
        } else {
            // CUDA programs of other systems load other libraries.
            write_file(&out.join(library.path), &[])?;
        }
    }
    match linux {
        true => build_redirect(&shim, &out),
        false => write_file(&out.join(REDIRECT), &[]),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

fn build(library: &Library, shim: &Path, out: &Path) -> io::Result<()> {
    let implemented = implemented(&shim.join("src"), library.functions)?;
    let mut names = exported(library, shim, &implemented)?;
    if library.variant == FORWARD {
        // The driver of a GPU has no state for the runtime library: a jump would return an error instead of
        // a pointer.
        names.retain(|name| !name.starts_with("__cudaTuner"));
    }
    let text = match library.variant {
        FORWARD => make_jumps(&names, &hooks(&shim.join("src/forward/hooks.rs"))?)?,
        _ => make_stubs(&names, &implemented)?,
    };
    let archive = compile(library.variant, &text, &shim.join("src/lib.rs"), out)?;
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    let exports = format!("global: {};", list.join("; "));
    let script = format!("{} {{ {exports} local: *; }};\n", library.version);
    let soname = format!("-Wl,-soname,{}", library.name);
    link(&[&soname], &script, &archive, &out.join(library.path))
}

/// Returns the names of the functions that a library exports.
fn exported(
    library: &Library,
    shim: &Path,
    implemented: &BTreeSet<String>,
) -> io::Result<BTreeSet<String>> {
    let names = fs::read_to_string(shim.join("symbols").join(library.symbols))?;
    let names = names.split_whitespace().map(str::to_owned);
    Ok(names.chain(implemented.iter().cloned()).collect())
}

/// Compiles a library's sources with generated ones; returns the archive.
fn compile(variant: &str, generated: &str, root: &Path, out: &Path) -> io::Result<PathBuf> {
    let stubs = out.join(format!("{variant}-stubs.rs"));
    fs::write(&stubs, generated)?;
    let archive = out.join(format!("lib{variant}.a"));
    let sources = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../cuda-shim/src");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc
        .env("CUDA_SHIM_STUBS", &stubs)
        .env("CUDA_SHIM_SOURCES", layout_number(&sources)?.to_string())
        .args(["--edition", "2024"])
        .args(["--crate-type", "staticlib"])
        .args(["--crate-name", "cuda_shim"])
        .args(["--target", &variable("TARGET")?])
        .args(["-C", "opt-level=2"])
        .args(["-C", "panic=abort"])
        .args(["-C", "relocation-model=pic"])
        .args(["--cfg", "shim"])
        .args(["--cfg", &format!("shim=\"{variant}\"")])
        // A library has one interface; the functions of the other are not exported.
        .args(["-A", "dead_code", "-A", "unused"])
        .arg("-o")
        .arg(&archive)
        .arg(root);
    run(rustc)?;
    Ok(archive)
}

/// Builds the library that `LD_PRELOAD` loads (`cuda-shim`, `redirect`).
fn build_redirect(shim: &Path, out: &Path) -> io::Result<()> {
    let [cuda12, cuda13, ..] = &LIBRARIES;
    let implemented = implemented(&shim.join("src"), cuda13.functions)?;
    let names = [cuda12, cuda13].map(|library| exported(library, shim, &implemented));
    let [cuda12, cuda13] = names;
    let text = make_slots([&cuda12?, &cuda13?])?;
    let root = shim.join("src/redirect/mod.rs");
    let archive = compile("redirect", &text, &root, out)?;
    let options = [
        "-Wl,-soname,libtuner-redirect.so",
        "-Wl,-init,__tuner_redirect_runtimes",
        // Before the initializers of all libraries, which may register kernels.
        "-Wl,-z,initfirst",
    ];
    link(&options, "{ local: *; };\n", &archive, &out.join(REDIRECT))
}

/// Returns a number that changes with the compiler and the sources: libraries share the state of a process
/// if it is equal.
fn layout_number(sources: &Path) -> io::Result<u64> {
    let version = Command::new(variable("RUSTC")?).arg("-vV").output()?;
    let mut hasher = DefaultHasher::new();
    version.stdout.hash(&mut hasher);
    hash_folder(sources, &mut hasher)?;
    Ok(hasher.finish())
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => hash_folder(&path, hasher)?,
            false => fs::read(&path)?.hash(hasher),
        }
    }
    Ok(())
}

/// Links an archive into a shared library with a version script.
fn link(options: &[&str], script: &str, archive: &Path, library: &Path) -> io::Result<()> {
    let map = archive.with_extension("map");
    fs::write(&map, script)?;
    let mut cc = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    cc.args(["-shared", "-s", "-Wl,--gc-sections"])
        .args(options)
        .arg(format!("-Wl,--version-script={}", map.display()))
        .arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive")
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s"])
        .arg("-o")
        .arg(library);
    write_file(library, &[])?;
    run(cc)
}

fn run(mut command: Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| io::Error::other(format!("{program}: {error}; a C compiler is needed")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{program} failed:\n{text}")))
}

/// Returns the names of the functions that the sources of an interface, and those of both, export.
fn implemented(sources: &Path, interface: &str) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let folders = [sources.join(interface), sources.join("both")];
    for entry in fs::read_dir(&folders[0])?.chain(fs::read_dir(&folders[1])?) {
        let text = fs::read_to_string(entry?.path())?;
        // In `both`, a second name follows the first one.
        let starts = text.split("fn ").skip(1).chain(text.split(" | ").skip(1));
        for after in starts {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = after.get(..end.unwrap_or(0)).unwrap_or_default();
            if is_of_interface(name, interface) {
                names.insert(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Returns the names of the functions that the library between a program and a driver implements itself.
fn hooks(path: &Path) -> io::Result<BTreeSet<String>> {
    let text = fs::read_to_string(path)?;
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("fn ").unwrap_or(line);
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        line.get(..end?)
    });
    let exported = names.filter(|name| is_of_interface(name, "driver"));
    Ok(exported.map(str::to_owned).collect())
}

/// Writes jumps to the functions of a driver, through a table that is filled when the library is loaded.
fn make_jumps(names: &BTreeSet<String>, own: &BTreeSet<String>) -> io::Result<String> {
    let names: Vec<&String> = names.iter().filter(|name| !own.contains(*name)).collect();
    let count = names.len();
    let mut text = format!(
        "use std::sync::atomic::{{AtomicPtr, Ordering::Relaxed}};\n\
         #[unsafe(no_mangle)] static FORWARD_TABLE: [AtomicPtr<std::ffi::c_void>; {count}] =\n\
         [const {{ AtomicPtr::new(std::ptr::null_mut()) }}; {count}];\n\
         #[used] #[unsafe(link_section = \".init_array\")] static AT_LOAD: extern \"C\" fn() = fill;\n\
         extern \"C\" fn fill() {{ for (place, name) in FORWARD_TABLE.iter().zip(NAMES) {{\n\
         place.store(crate::forward::address_of_name(name).cast_mut(), Relaxed); }} }}\n\
         core::arch::global_asm!(\".hidden FORWARD_TABLE\");\nconst NAMES: [&std::ffi::CStr; {count}] = [\n"
    );
    for name in &names {
        writeln!(text, "c\"{name}\",").map_err(io::Error::other)?;
    }
    text.push_str("];\n");
    for (index, name) in names.iter().enumerate() {
        let jump = jump_through("FORWARD_TABLE", index)?;
        writeln!(
            text,
            "core::arch::global_asm!(\".text\\n.globl {name}\\n.type {name},@function\\n{name}: {jump}\");"
        )
        .map_err(io::Error::other)?;
    }
    Ok(text)
}

/// Returns the instructions of a jump to the address at an index of a table.
fn jump_through(table: &str, index: usize) -> io::Result<String> {
    let place = index * 8;
    Ok(match variable("CARGO_CFG_TARGET_ARCH")? == "x86_64" {
        true => format!("jmp qword ptr [rip + {table} + {place}]"),
        false => {
            format!("adrp x16, {table}+{place}\\nldr x16, [x16, :lo12:{table}+{place}]\\nbr x16")
        }
    })
}

/// Writes the names of the functions of both runtime libraries and a slot for each, as in a procedure linkage
/// table: a thunk jumps to the address in the slot. The first address is that of code that looks the function up.
fn make_slots(libraries: [&BTreeSet<String>; 2]) -> io::Result<String> {
    let is_x86 = variable("CARGO_CFG_TARGET_ARCH")? == "x86_64";
    let [mut code, mut slots, mut thunks] = [const { String::new() }; 3];
    let count = libraries.map(BTreeSet::len).iter().sum();
    for index in 0..count {
        let jump = jump_through("__tuner_slots", index)?;
        let first = match is_x86 {
            true => format!("push {index}\\njmp __tuner_first"),
            false => format!("mov x17, #{index}\\nb __tuner_first"),
        };
        code.push_str(&format!(
            ".Lthunk{index}: {jump}\\n.Lfirst{index}: {first}\\n"
        ));
        slots.push_str(&format!(".quad .Lfirst{index}\\n"));
        thunks.push_str(&format!(".quad .Lthunk{index}\\n"));
    }
    let [cuda12, cuda13] = libraries.map(|names| {
        let names: Vec<String> = names.iter().map(|name| format!("c\"{name}\"")).collect();
        names.join(", ")
    });
    Ok(format!(
        "pub(super) const NAMES: [&[&std::ffi::CStr]; 2] = [&[{cuda12}], &[{cuda13}]];\n\
         pub(super) const COUNT: usize = {count};\n\
         core::arch::global_asm!(\".text\\n{code}.data\\n.p2align 3\\n\
         .globl __tuner_slots\\n.hidden __tuner_slots\\n__tuner_slots: {slots}\
         .globl __tuner_thunks\\n.hidden __tuner_thunks\\n__tuner_thunks: {thunks}.text\\n\");\n"
    ))
}

/// Reports whether a function is one of the driver or of the runtime interface, by its name.
fn is_of_interface(name: &str, interface: &str) -> bool {
    let exported = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    let prefix = match interface {
        "driver" => "cu",
        _ => "cuda",
    };
    name.strip_prefix(prefix).is_some_and(exported) || name.starts_with("__cuda")
}

/// Writes functions for the names that the sources do not export: those of the per-thread default stream
/// jump to the plain ones, and the others report themselves as unsupported.
fn make_stubs(names: &BTreeSet<String>, implemented: &BTreeSet<String>) -> io::Result<String> {
    // The call preserves the argument registers.
    let (call, jump, plt) = match variable("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => (
            "push rdi\\npush rsi\\npush rdx\\npush rcx\\npush r8\\npush r9\\nsub rsp, 8\\n\
             call __tuner_mean_own_stream@PLT\\n\
             add rsp, 8\\npop r9\\npop r8\\npop rcx\\npop rdx\\npop rsi\\npop rdi\\n",
            "jmp",
            "@PLT",
        ),
        _ => (
            "sub sp, sp, #80\\nstp x0, x1, [sp]\\nstp x2, x3, [sp, #16]\\nstp x4, x5, [sp, #32]\\n\
             stp x6, x7, [sp, #48]\\nstp x29, x30, [sp, #64]\\nbl __tuner_mean_own_stream\\n\
             ldp x0, x1, [sp]\\nldp x2, x3, [sp, #16]\\nldp x4, x5, [sp, #32]\\n\
             ldp x6, x7, [sp, #48]\\nldp x29, x30, [sp, #64]\\nadd sp, sp, #80\\n",
            "b",
            "",
        ),
    };
    let mut text = String::new();
    for name in names.iter().filter(|name| !implemented.contains(*name)) {
        let plain = name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds"));
        let written = match plain.filter(|plain| implemented.contains(*plain)) {
            Some(plain) => writeln!(
                text,
                "core::arch::global_asm!(\".text\\n.globl {name}\\n.type {name},@function\\n{name}: {call}{jump} {plain}{plt}\");"
            ),
            None => writeln!(
                text,
                "#[unsafe(no_mangle)] pub extern \"C\" fn {name}() -> i32 {{ crate::abi::missing(\"{name}\") }}"
            ),
        };
        written.map_err(io::Error::other)?;
    }
    Ok(text)
}
