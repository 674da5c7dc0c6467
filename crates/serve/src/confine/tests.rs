use super::*;

#[test]
fn only_files_in_the_folders_are_found_whatever_the_spelling() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let folder = root.join("kernels");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("in.json"), "{}").unwrap();
    std::fs::write(root.join("secret.json"), "{}").unwrap();
    std::os::unix::fs::symlink(root.join("secret.json"), folder.join("link.json")).unwrap();
    let folders = [folder.clone()];
    let inside = folder.join("in.json");
    for name in [
        "in.json",
        "./in.json",
        "../kernels/in.json",
        inside.to_str().unwrap(),
    ] {
        assert_eq!(within(name, &folders).unwrap(), inside, "{name}");
    }
    let secret = root.join("secret.json");
    for name in [
        "../secret.json",
        "link.json",
        "/etc/passwd",
        secret.to_str().unwrap(),
        "x/../../secret.json",
        "",
        ".",
        "in.json/../../secret.json",
        "in\0.json",
    ] {
        let error = within(name, &folders).unwrap_err();
        assert!(error.detail.contains("--kernels DIR"), "{name}: {error:?}");
    }
}
