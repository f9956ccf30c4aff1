//! What the documents promise of the tests.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_security_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/SECURITY.md")).expect("a page");
    let names = page.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.rsplit_once("::"));
    let mut named = 0;
    for (place, test) in names.filter(|(place, _)| place.bytes().all(|b| b.is_ascii_lowercase() || b"_:".contains(&b)))
    {
        let source = match place {
            "keys" => sources(&root.join("keys/src")),
            "lib" => sources(&root.join("src")),
            file => fs::read_to_string(root.join(format!("tests/it/{}.rs", file.replace("::", "/")))).expect(file),
        };
        assert!(source.contains(&format!("fn {test}(")), "{place}::{test} is no test");
        named += 1;
    }
    assert!(named > 40, "{named} are named");
}

fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else {
            text += &fs::read_to_string(&path).expect("a file");
        }
    }
    text
}
