//! Which room may import which: read off the `use` lines, held against a table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A room and the rooms it may use. What is not in a row is not allowed; a room without a row may use nothing of ours.
const ALLOWED: &[(&str, &[&str])] = &[
    ("access", &["clock", "config"]),
    ("app", &["access", "assets", "audit", "clock", "config", "remote", "telemetry"]),
    ("artifacts", &["access", "app", "assets", "base64", "retention"]),
    ("assets", &["access", "app", "config", "http/conditional", "http/disposition", "media", "retention", "telemetry"]),
    ("audit", &["access", "app", "assets", "config"]),
    ("base64", &[]),
    ("bundles", &["access", "app", "assets", "audit", "base64", "config", "json", "projection"]),
    ("config", &[]),
    ("content", &["access", "app", "assets", "base64", "remote", "retention"]),
    ("error", &["access", "assets"]),
    (
        "http",
        &[
            "access",
            "app",
            "artifacts",
            "assets",
            "audit",
            "base64",
            "bundles",
            "content",
            "error",
            "http",
            "json",
            "openwop",
            "projection",
            "remote",
            "retention",
        ],
    ),
    ("json", &[]),
    ("jobs", &["app", "audit", "config", "retention"]),
    ("media", &[]),
    ("openwop", &["access", "app", "assets", "config", "projection"]),
    ("projection", &["media"]),
    ("remote", &["config"]),
    ("retention", &["access", "app", "assets"]),
    ("server", &["app", "clock", "config", "http", "jobs"]),
];

/// Rooms that may name a type of actix.
const ACTIX: &[&str] = &["error", "http", "server"];

/// Pure parts of the edge, which use nothing of ours but each other's kind.
const LEAVES: &[&str] = &["http/conditional", "http/disposition", "http/range"];

#[test]
fn rooms_use_only_what_they_may() {
    let wrong: BTreeSet<String> = uses()
        .into_iter()
        .filter(|(room, used)| !allowed(room, used))
        .map(|(room, used)| format!("{room} → {used}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_edge_names_actix() {
    let mut wrong = BTreeSet::new();
    each_file(Path::new("src"), &mut |room, text| {
        if text.lines().any(|line| line.trim_start().starts_with("use actix")) && !ACTIX.contains(&top(room)) {
            wrong.insert(room.to_owned());
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn storage_and_keys_know_nothing_of_each_other_nor_of_the_service() {
    for (crate_, foreign) in [("storage", "mediakeep_keys"), ("keys", "mediakeep_storage")] {
        each_file(&Path::new(crate_).join("src"), &mut |room, text| {
            if room.split('/').any(|part| part == "tests" || part == "testing") {
                return;
            }
            for name in [foreign, "mediakeep::", "actix", "std::env", "SystemTime::now", "Timestamp::now"] {
                let used = text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(name));
                assert!(!used, "{crate_}/{room} uses {name}");
            }
        });
    }
}

#[test]
fn every_row_of_the_table_is_needed() {
    let used = uses();
    for (room, rooms) in ALLOWED {
        for other in *rooms {
            let needed = used
                .iter()
                .any(|(from, to)| top(from) == *room && (to == other || to.starts_with(&format!("{other}/"))));
            assert!(needed, "{room} → {other} is allowed and not used");
        }
    }
}

fn allowed(room: &str, used: &str) -> bool {
    if let Some(leaf) = LEAVES.iter().find(|leaf| room.starts_with(**leaf)) {
        return used.starts_with(leaf);
    }
    let Some((_, rooms)) = ALLOWED.iter().find(|(name, _)| *name == top(room)) else {
        return used == room;
    };
    top(used) == top(room) || rooms.iter().any(|other| used == *other || used.starts_with(&format!("{other}/")))
}

/// Every `crate::a::b` of the service's code: the room it stands in, and what it names.
fn uses() -> BTreeSet<(String, String)> {
    let mut uses = BTreeSet::new();
    each_file(Path::new("src"), &mut |room, text| {
        if room == "main" || room.starts_with("cli") || room == "lib" {
            return;
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("crate::") {
                let path: Vec<&str> = line[at + 7..]
                    .split("::")
                    .map_while(|part| {
                        let name: &str =
                            &part[..part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len())];
                        (!name.is_empty()).then_some(name)
                    })
                    .collect();
                let depth = if path.first() == Some(&"http") { 2 } else { 1 };
                let used = path.into_iter().take(depth).collect::<Vec<_>>().join("/");
                if !used.is_empty() && used != "Failure" {
                    uses.insert((room.to_owned(), used));
                }
            }
        }
    });
    uses
}

fn top(room: &str) -> &str {
    room.split('/').next().unwrap_or(room)
}

/// Every file below the folder, by the room it is: `assets/fetch` for `src/assets/fetch.rs`.
fn each_file(folder: &Path, look: &mut impl FnMut(&str, &str)) {
    fn walk(root: &Path, folder: &Path, look: &mut impl FnMut(&str, &str)) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, look);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let room = path.strip_prefix(root).expect("below it").with_extension("");
                look(&room.to_string_lossy(), &fs::read_to_string(&path).expect("a file"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    walk(&root, &root, look);
}
