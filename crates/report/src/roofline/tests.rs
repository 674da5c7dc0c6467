use super::arch_of;

#[test]
fn devices_are_known_by_the_names_they_give_themselves() {
    for (device, name) in [
        ("vgpu:l4", Some("l4")),
        ("NVIDIA H100 80GB HBM3", Some("h100")),
        ("NVIDIA A100-PCIE-40GB", Some("a100")),
        ("NVIDIA RTX A4000", Some("a4000")),
        ("NVIDIA GeForce RTX 3090", Some("rtx3090")),
        ("NVIDIA GeForce RTX 3090 Ti", None),
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
        assert_eq!(arch_of(device).map(|arch| arch.name), name, "{device}");
    }
}
