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
        assert_eq!(find_within(name, &folders).unwrap(), inside, "{name}");
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
        let error = find_within(name, &folders).unwrap_err();
        assert!(error.detail.contains("--kernels DIR"), "{name}: {error:?}");
    }
}

/// Creates a folder `kernels` with an invalid recording and search space, and a file next to it.
fn offered() -> (tempfile::TempDir, [PathBuf; 1]) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().canonicalize().unwrap().join("kernels");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("data.csv"), "tile,time\n1,2\n").unwrap();
    std::fs::write(folder.join("keys.yaml"), "password: hunter2\n").unwrap();
    std::fs::write(root.path().join("secret.csv"), "TUNER_TOKEN=hunter2\n").unwrap();
    (root, [folder])
}

fn refusal(body: &str, folders: &[PathBuf]) -> String {
    let request = serde_json::from_str(body).unwrap();
    confine(request, folders).unwrap_err().detail
}

#[test]
fn knowledge_is_a_file_of_the_folders() {
    let (root, folders) = offered();
    let secret = root.path().join("secret.csv");
    let link = folders[0].join("link.csv");
    std::os::unix::fs::symlink(&secret, link).unwrap();
    for name in [
        "/proc/self/environ",
        "/etc/shadow",
        "../secret.csv",
        "link.csv",
        ".",
        secret.to_str().unwrap(),
    ] {
        let body = format!(r#"{{"device":"replay:data.csv","knowledge":["{name}"]}}"#);
        let detail = refusal(&body, &folders);
        assert!(detail.contains("--kernels DIR"), "{name}: {detail}");
    }
    let body = r#"{"device":"replay:data.csv","knowledge":["data.csv"],"strategy":"evolve"}"#;
    let confined = confine(serde_json::from_str(body).unwrap(), &folders).unwrap();
    let data = folders[0].join("data.csv");
    assert_eq!(confined.knowledge, [data.to_str().unwrap()]);
    assert_eq!(confined.device, format!("replay:{}", data.display()));
}

#[test]
fn nothing_of_a_file_that_is_no_search_space_is_quoted() {
    let (_root, folders) = offered();
    for body in [
        r#"{"kernels":["keys"]}"#,
        r#"{"kernels":["./keys.yaml"]}"#,
        "{}",
    ] {
        let detail = refusal(body, &folders);
        assert!(detail.contains("cannot be read"), "{detail}");
        assert!(
            !detail.contains("password") && !detail.contains("hunter2"),
            "{detail}"
        );
    }
}

#[test]
fn what_can_never_be_carried_out_is_refused() {
    let (_root, folders) = offered();
    for (body, why) in [
        (
            r#"{"device":"replay:data.csv","objective":"time,colour"}"#,
            "--objective",
        ),
        (
            r#"{"device":"replay:data.csv","objective":"time,registers"}"#,
            "registers",
        ),
        (r#"{"device":"replay:data.csv","prior":"oracle"}"#, "prior"),
        (
            r#"{"device":"replay:data.csv","until_converged":"90%"}"#,
            "--until-converged",
        ),
        (
            r#"{"device":"replay:data.csv","knowledge":["data.csv"],"strategy":"random"}"#,
            "knowledge",
        ),
    ] {
        let detail = refusal(body, &folders);
        assert!(detail.contains(why), "{body}: {detail}");
    }
}

#[test]
fn of_files_with_the_same_name_that_of_the_first_folder_is_listed() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| root.path().join(name));
    for file in [
        first.join("k.yaml"),
        second.join("k.yaml"),
        second.join("z.yaml"),
    ] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }
    let listed = list_kernels(&[first.clone(), second.clone()]).unwrap();
    assert_eq!(listed, [first.join("k.yaml"), second.join("z.yaml")]);
}
