use super::*;

#[test]
fn every_table_and_cuda_name_the_same_gpu() {
    for arch in list_gpus() {
        let virtual_name = format!("vgpu:{}", arch.name);
        assert_eq!(model(&virtual_name), model(arch.full_name), "{}", arch.name);
        assert!(!model(arch.full_name).is_empty(), "{}", arch.name);
        let found = by_device_name(arch.full_name).map(|arch| arch.name);
        assert_eq!(found, Some(arch.name));
    }
}

#[test]
fn devices_are_known_by_the_names_they_give_themselves() {
    for (device, name) in [
        ("vgpu:l4", Some("l4")),
        ("NVIDIA H100 80GB HBM3", Some("h100")),
        ("NVIDIA A100-PCIE-40GB", Some("a100")),
        ("A100-PCIE-40GB", Some("a100")),
        ("conv2d_A100", Some("a100")),
        ("NVIDIA A100-SXM4-40GB", Some("a100")),
        ("NVIDIA RTX A4000", Some("a4000")),
        ("NVIDIA GeForce RTX 3090", Some("rtx3090")),
        ("NVIDIA GeForce RTX 3090 Ti", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA L4", Some("l4")),
        ("NVIDIA L40S", Some("l40s")),
        ("NVIDIA L40", None),
        ("NVIDIA GH200 480GB", Some("gh200")),
        ("NVIDIA B200", Some("b200")),
        ("Tesla T4", Some("t4")),
        ("NVIDIA T400", None),
        ("NVIDIA A10G", Some("a10g")),
        ("NVIDIA GeForce RTX 5090", Some("rtx5090")),
        ("vgpu:h100@1500MHz", Some("h100@1500MHz")),
        ("AMD Instinct MI250X", None),
    ] {
        let found = by_device_name(device).map(|arch| arch.name);
        assert_eq!(found, name, "{device}");
    }
    assert_eq!(model("vgpu:h100@1500MHz"), model("NVIDIA H100 80GB HBM3"));
}

#[test]
fn other_models_stay_apart() {
    for (one, other) in [
        ("NVIDIA L4", "NVIDIA L40S"),
        ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090 Ti"),
        (
            "NVIDIA GeForce RTX 4090",
            "NVIDIA GeForce RTX 4090 Laptop GPU",
        ),
        ("Quadro RTX 6000", "NVIDIA RTX 6000 Ada Generation"),
    ] {
        assert_ne!(model(one), model(other));
    }
    for name in ["AMD Instinct MI250X", "A100", "", "NVIDIA"] {
        assert_eq!(model(name), "", "{name}");
    }
}
