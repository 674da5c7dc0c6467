use super::Window;

#[test]
fn a_window_begins_and_ends_at_a_step_of_the_counter() {
    let mut window = Window::default();
    let told = [
        (100, 10),
        (100, 20),
        (130, 30),
        (130, 40),
        (160, 50),
        (160, 60),
        (190, 70),
    ];
    let ends: Vec<_> = told
        .into_iter()
        .filter_map(|(counter, done)| window.step(counter, done, 25))
        .map(|draw| (draw.millijoules, draw.launches))
        .collect();
    // From the step at 30 launches to the first at 55 or more.
    assert_eq!(ends, [(60, 40)]);
}
