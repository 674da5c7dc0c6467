//! The page of changed code: each change below its parent.

use super::Browser;
use crate::evolve;
use crate::serve::Daemon;
use serde_json::Value;

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn the_family_tree_of_changed_code_is_shown_with_its_diffs() {
    let folder = evolve::project();
    let folder = folder.path();
    // The note is markup, if anything takes it for it.
    let body = format!(
        "source = {:?}\nprint(json.dumps({{'id': request['id'], 'note': '<img src=x onerror=\"window.pwned=1\">', \
         'source': source.replace('BLOCK_THREADS', 'THREADS%d' % request['round'])}}))",
        evolve::FAST
    );
    let mutator = evolve::python(folder, "twice.py", &body);
    evolve::evolve(folder, &mutator, &["--rounds", "2"]).says(0, &["predicted better"]);
    let changes = evolve::changes(folder);
    let browser = Browser::open(1280, 900, false);
    let daemon = Daemon::start(&folder.join("t.db"));
    browser.go(&format!("http://{}", daemon.address));
    browser.wait_for_text("Under way");
    browser.keys("7");
    let page = browser.wait_for_text("scale on ");
    for text in ["predicted better", "onerror", "best gain", "finished"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    let rows = browser.run("return document.querySelectorAll('.family tbody tr').length");
    assert_eq!(rows.as_u64(), Some(changes.len() as u64));
    // A change of a change is indented below it.
    let indents = "const one = (depth) => ({ depth, change: 'c', outcome: 'failed', found: '', note: '' }); \
                   const tree = familyTree({ title: 't', changes: [one(1), one(2), one(3)], figures: [] }); \
                   document.body.append(tree); \
                   return [...tree.querySelectorAll('td:first-child span')].map((name) => \
                   parseFloat(getComputedStyle(name).paddingLeft))";
    let indents: Vec<f64> = serde_json::from_value(browser.run(indents)).expect("numbers");
    assert!(
        indents.len() == 3 && indents.is_sorted_by(|a, b| a < b),
        "{indents:?}"
    );
    browser.run("document.body.lastChild.remove()");
    browser.run("document.querySelector('.family details').open = true");
    browser.wait_for_text("+    if (i < N) y[i]");
    browser.picture("dashboard-changes");
    assert_eq!(browser.run("return window.pwned || null"), Value::Null);
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}
