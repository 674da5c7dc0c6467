use super::jobs_beside;

#[test]
fn a_core_is_left_to_the_worker_of_each_gpu() {
    assert_eq!(jobs_beside(16, 1), 15);
    assert_eq!(jobs_beside(16, 4), 12);
    assert_eq!(jobs_beside(2, 4), 1);
}
