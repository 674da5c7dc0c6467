use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn marks_lie_inside_and_are_few(low in 1e-3f64..1e6, span in 1.001f64..1e6, most in 2usize..12) {
        for scale in [
            Scale::linear(low..low * span, 0.0..100.0),
            Scale::log(low..low * span, 0.0..100.0),
        ] {
            let marks = scale.marks(most);
            prop_assert!(marks.len() <= 2 * most + 1);
            for mark in marks {
                let place = scale.position(mark);
                prop_assert!((-0.1..=100.1).contains(&place), "{mark} at {place}");
            }
        }
    }
}

#[test]
fn text_from_outside_is_escaped_and_a_file_of_its_own_has_its_style() {
    let mut canvas = Canvas::new(10.0, 10.0);
    canvas.text("soft", (0.0, 0.0), "start", "<b>&\"");
    let drawing = canvas.finish("a <plot>");
    let svg = drawing.to_string();
    assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;&amp;&quot;"));
    assert!(standalone(&drawing, "s{}").contains("<style>\ns{}</style>"));
}
