use super::{PortfolioInput, write_portfolio};
use crate::portfolio::{
    Axis, AxisValues, DecisionTree, SEARCH_STEPS, Shape, Table, best_of_size, loss_curve,
};
use tuner_core::record::TimingKind;
use tuner_core::value::Value;

#[test]
fn the_report_has_the_plot_and_escapes_text_of_files() {
    let hostile = "<script>alert(1)</script>`";
    let config = |value: &str| vec![("V".to_owned(), Value::Text(value.into()))];
    let shape = |place: usize| Shape {
        name: format!("{hostile}{place}"),
        place: vec![place],
    };
    let table = Table {
        axes: vec![Axis {
            name: "device".to_owned(),
            values: AxisValues::Names(vec![hostile.to_owned(), "b".to_owned()]),
        }],
        shapes: vec![shape(0), shape(1)],
        configs: vec![config(hostile), config("b")],
        times: vec![vec![Some(1.0), Some(4.0)], vec![Some(2.0), Some(3.0)]],
        timing: TimingKind::Recorded,
    };
    let losses = table.losses();
    let choice = best_of_size(&losses, 2, SEARCH_STEPS).unwrap();
    let files = write_portfolio(&PortfolioInput {
        kernel: hostile,
        device: hostile,
        loss: 0.02,
        table: &table,
        losses: &losses,
        choice: &choice,
        curve: &loss_curve(&losses, 2, SEARCH_STEPS),
        tree: &DecisionTree::new(&table, &losses, &choice.members, 0.02).unwrap(),
    });
    assert!(!files.html.contains("<script>alert"), "{}", files.html);
    assert!(!files.plots[0].1.contains("<script>alert"));
    assert!(files.html.contains("<svg") && files.markdown.contains("plots/portfolio.svg"));
    assert!(
        files
            .markdown
            .contains("recorded times of 2 configurations")
    );
}
