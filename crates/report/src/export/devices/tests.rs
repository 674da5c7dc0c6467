use super::model;

#[test]
fn the_tables_and_cuda_name_the_same_gpus() {
    for (table, cuda) in [
        ("vgpu:l4", "NVIDIA L4"),
        ("vgpu:a100", "NVIDIA A100-SXM4-40GB"),
        ("vgpu:a4000", "NVIDIA RTX A4000"),
        ("vgpu:a6000", "NVIDIA RTX A6000"),
        ("vgpu:rtx2080ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("vgpu:rtx3090", "NVIDIA GeForce RTX 3090"),
        ("vgpu:rtx4090", "NVIDIA GeForce RTX 4090"),
        ("vgpu:h100", "NVIDIA H100 80GB HBM3"),
        ("vgpu:h200", "NVIDIA H200"),
        ("vgpu:b200", "NVIDIA B200"),
        ("vgpu:rtx5090", "NVIDIA GeForce RTX 5090"),
        ("vgpu:gh200", "NVIDIA GH200 480GB"),
        ("vgpu:l40s", "NVIDIA L40S"),
        ("vgpu:t4", "Tesla T4"),
        ("vgpu:a10g", "NVIDIA A10G"),
        ("vgpu:h100@1500MHz", "NVIDIA H100 80GB HBM3"),
    ] {
        assert_eq!(model(table), model(cuda), "{cuda}");
        assert!(!model(cuda).is_empty());
    }
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
