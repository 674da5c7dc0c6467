use super::*;

fn written(name: &str, content: &[u8]) -> (tempfile::TempDir, DataFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let file = DataFile::new(&path).hashed().unwrap();
    (folder, file)
}

fn npy_of(header: &str, data: &[u8]) -> Vec<u8> {
    let mut content = b"\x93NUMPY\x01\x00".to_vec();
    content.extend((header.len() as u16).to_le_bytes());
    content.extend(header.as_bytes());
    content.extend(data);
    content
}

#[test]
fn arrays_and_raw_numbers_are_read_and_what_does_not_fit_is_told() {
    let data: Vec<u8> = [1.0_f32, 2.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let (_one, raw) = written("x.bin", &data);
    assert_eq!(raw.read(Element::F32, 2), Ok(data.clone()));
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    let (_two, array) = written("x.npy", &npy_of(header, &data));
    assert_eq!(array.read(Element::F32, 2), Ok(data.clone()));
    for (file, element, count, says) in [
        (
            &raw,
            Element::F32,
            3,
            "has 8 bytes of raw data, and 3 elements of f32 take 12",
        ),
        (&array, Element::I32, 2, "NumPy's type `<f4`, and not i32"),
        (&array, Element::F32, 4, "an array of shape (2,)"),
    ] {
        let why = file.read(element, count).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
    let fortran = header.replace("False", "True");
    let (_three, array) = written("x.npy", &npy_of(&fortran, &data));
    assert!(
        array
            .read(Element::F32, 2)
            .unwrap_err()
            .contains("Fortran order")
    );
    let (_four, array) = written("x.npy", &npy_of(header, &data)[..9]);
    assert!(array.read(Element::F32, 2).unwrap_err().contains("damaged"));
}

#[test]
fn a_file_that_is_edited_is_not_the_same_data() {
    let (_folder, file) = written("x.bin", &[1, 2, 3]);
    std::fs::write(&*file.path, [1, 2, 4]).unwrap();
    assert!(
        file.read(Element::U8, 3)
            .unwrap_err()
            .contains("was changed")
    );
    assert_ne!(file, file.hashed().unwrap());
}
