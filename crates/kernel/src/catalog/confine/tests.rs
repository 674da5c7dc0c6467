use super::check_laid_out;
use crate::catalog::Kernel;
use std::path::Path;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn space(source: &str, reference: &str, data: &str, include: &str) -> String {
    format!(
        "version: 1\nkernel: copy\nsource: {source}\ncompile: {{ include: [{include}] }}\n\
         problems: {{ small: {{ N: 4 }} }}\nparameters:\n  B: {{ values: [32] }}\narguments:\n  \
         - {{ name: x, type: f32, role: input, shape: [N], fill: {{ file: {data} }} }}\n  \
         - {{ name: y, type: f32, role: output, shape: [N] }}\nlaunches:\n  \
         - {{ entry: f, grid: [1, 1, 1], block: [B, 1, 1] }}\n\
         reference: {{ source: {reference}, entry: f, grid: [1, 1, 1], block: [32, 1, 1] }}\n"
    )
}

const KERNEL: &str = "extern \"C\" __global__ void f(const float* x, float* y) { y[0] = x[0]; }\n";

/// A project with a search space, and foreign files next to it.
fn project(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for kernel in ["own/templates/k.cu", "own/kernels/k.cu", "other/k.cu"] {
        write(&at(kernel), KERNEL);
    }
    for data in ["own/data/x.bin", "other/x.bin"] {
        write(&at(data), "0123456789abcdef");
    }
    std::os::unix::fs::symlink(at("other"), at("own/link")).unwrap();
    let file = at("own/search_spaces/k.yaml");
    write(&file, text);
    (dir, file)
}

const SOURCE: &str = "../templates/k.cu";
const DATA: &str = "../data/x.bin";

#[test]
fn files_of_the_project_and_of_folders_that_are_named_are_read() {
    for (source, data, include) in [
        (SOURCE, DATA, ""),
        ("../kernels/k.cu", DATA, ""),
        ("../../other/k.cu", "../../other/x.bin", "../../other"),
    ] {
        let (_dir, file) = project(&space(source, SOURCE, data, include));
        Kernel::load(&file).unwrap();
    }
}

#[test]
fn files_of_other_places_are_refused_where_they_are_named() {
    let cases = [
        ("/etc/passwd", SOURCE, DATA, "template", "3:9"),
        ("../../other/k.cu", SOURCE, DATA, "template", "3:9"),
        ("../link/k.cu", SOURCE, DATA, "template", "3:9"),
        ("../../none/k.cu", SOURCE, DATA, "template", "3:9"),
        (SOURCE, "../../other/k.cu", DATA, "reference", "13:22"),
        (SOURCE, SOURCE, "/etc/hostname", "data", "9:"),
        (SOURCE, SOURCE, "../link/x.bin", "data", "9:"),
    ];
    for (source, reference, data, what, at) in cases {
        let (_dir, file) = project(&space(source, reference, data, ""));
        let said = Kernel::load(&file).unwrap_err().to_string();
        assert!(said.contains(&format!("the {what} ")), "{said}");
        assert!(said.contains("outside the project"), "{said}");
        assert!(said.contains(&format!("k.yaml:{at}")), "{said}");
        assert!(said.contains("include: [FOLDER]"), "{said}");
    }
}

#[test]
fn values_of_other_places_are_refused_for_each_problem() {
    let spaced = |values: &str| {
        let text = space(SOURCE, SOURCE, DATA, "");
        let reference = text.find("reference:").unwrap();
        format!(
            "{}reference: {{ values: {{ y: \"{values}\" }} }}\n",
            &text[..reference]
        )
    };
    let (_dir, file) = project(&spaced(DATA));
    Kernel::load(&file).unwrap();
    let (dir, file) = project(&spaced("../data/{problem}/x.bin"));
    write(&dir.path().join("own/data/small/x.bin"), "0123456789abcdef");
    Kernel::load(&file).unwrap();
    for values in ["/etc/hostname", "../link/x.bin", "../data/{problem}/x.bin"] {
        let (dir, file) = project(&spaced(values));
        let link = dir.path().join("own/data/small");
        std::os::unix::fs::symlink(dir.path().join("other"), link).unwrap();
        let said = Kernel::load(&file).unwrap_err().to_string();
        assert!(said.contains("outside the project"), "{values}: {said}");
    }
}

#[test]
fn a_space_without_a_project_has_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    write(&inner.join("k.cu"), KERNEL);
    write(&inner.join("x.bin"), "0123456789abcdef");
    write(&dir.path().join("k.cu"), KERNEL);
    let file = inner.join("k.yaml");
    write(&file, &space("k.cu", "k.cu", "x.bin", ""));
    Kernel::load(&file).unwrap();
    write(&file, &space("../k.cu", "k.cu", "x.bin", ""));
    assert!(Kernel::load(&file).is_err());
    // A repository around it is its project.
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    Kernel::load(&file).unwrap();
}

#[test]
fn the_working_folder_is_the_project_of_spaces_in_it() {
    let layout = |space_folder: &str| {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("templates/k.cu"), KERNEL);
        write(&dir.path().join("data/x.bin"), "0123456789abcdef");
        let file = dir.path().join(space_folder).join("k.yaml");
        write(&file, &space(SOURCE, SOURCE, DATA, ""));
        (dir, file)
    };
    let (dir, file) = layout("spaces");
    Kernel::load_in(&file, dir.path()).unwrap();
    Kernel::load(&file).unwrap_err();
    // A folder next to the space, the root and parents of homes do not extend the allowed folders.
    let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap());
    for folder in [
        &dir.path().join("templates"),
        Path::new("/"),
        &home,
        home.parent().unwrap(),
    ] {
        Kernel::load_in(&file, folder).unwrap_err();
    }
    let links = super::project_of(&home, &home.join("spaces/k.yaml"));
    assert_eq!(links, None);
}

#[test]
fn what_another_machine_sent_names_nothing_of_this_one() {
    let good = space(SOURCE, SOURCE, DATA, "");
    let (dir, file) = project(&good);
    check_laid_out(&file, &dir.path().join("own")).unwrap();
    for include in ["/etc", "../../other"] {
        let (dir, file) = project(&space(SOURCE, SOURCE, DATA, include));
        let said = check_laid_out(&file, &dir.path().join("own")).unwrap_err();
        assert!(said.to_string().contains("folder of headers"), "{said}");
    }
    let (dir, file) = project(&space("/etc/passwd", SOURCE, DATA, ""));
    check_laid_out(&file, &dir.path().join("own")).unwrap_err();
}
