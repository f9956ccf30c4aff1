//! How often the sniffer is right, on a large collection: a number that may rise and not fall.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use mediakeep::media::{Declared, Found, identify, second_opinion};
use serde_json::Value;

/// How many of the answers are right, of how many that are known. Of the lengths three are disputed: one edit list that not all players
/// follow, one file with noise between its frames, one Opus stream whose pre-skip some tools forget.
const FLOORS: &[(&str, usize, usize)] = &[
    ("type", 611, 611),
    ("kind", 611, 611),
    ("width", 237, 237),
    ("height", 237, 237),
    ("orientation", 24, 24),
    ("frames", 43, 43),
    ("durationSeconds", 188, 191),
    ("channels", 175, 175),
    ("sampleRate", 171, 171),
];

/// `MEDIAKEEP_CORPUS` names a folder of other projects' files; without one our own samples are what is tested (`ingest::corpus`).
#[test]
fn a_collection_that_is_named_is_known_as_well_as_ever() {
    let Some(folder) = collection() else { return };
    let manifest = fs::read(folder.join("dev/manifest.json")).expect("a manifest");
    let entries: Vec<Value> = serde_json::from_slice(&manifest).expect("JSON");
    let mut right: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in &entries {
        let name = entry["file"].as_str().expect("a name");
        let found = look(&folder.join("dev").join(name));
        for &(fact, ..) in FLOORS {
            match agrees(fact, entry, &found) {
                Some(true) => *right.entry(fact).or_default() += 1,
                Some(false) => wrong.push(format!("{name}: {fact} of {found:?}")),
                None => {}
            }
        }
    }
    if entries.len() == FLOORS[0].2 {
        for &(fact, floor, of) in FLOORS {
            assert!(right[fact] >= floor, "{fact}: {} right of {of}, at least {floor} were\n{wrong:#?}", right[fact]);
        }
    } else {
        // Another collection: what is asked of us anywhere.
        assert!(wrong.len() * 33 <= right.values().sum::<usize>(), "{wrong:#?}");
    }
}

/// Files that are out to hurt: none is taken for what its manifest says that it must never be.
#[test]
fn a_hostile_collection_is_never_taken_for_what_it_must_not_be() {
    let Some(folder) = collection().map(|folder| folder.join("hostile")).filter(|folder| folder.is_dir()) else {
        return;
    };
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).expect("a manifest")).expect("JSON");
    let samples = manifest["samples"].as_array().expect("samples");
    for sample in samples {
        let name = sample["file"].as_str().expect("a name");
        let told = look(&folder.join(name)).mime_type;
        let never = sample.pointer("/right/never").and_then(Value::as_array).into_iter().flatten();
        for never in never.filter_map(Value::as_str) {
            assert_ne!(canonical(&told), canonical(never), "{name}");
        }
    }
}

fn collection() -> Option<PathBuf> {
    std::env::var_os("MEDIAKEEP_CORPUS").map(PathBuf::from)
}

fn look(path: &Path) -> Found {
    let mut file = File::open(path).expect("a file");
    let size = file.metadata().expect("a size").len();
    let found = identify(&mut file, size, None);
    if found.wants_second_opinion(size) { second_opinion(&mut file, size, found) } else { found }
}

/// Whether an answer is right; `None` where nobody knows what is.
fn agrees(fact: &str, entry: &Value, found: &Found) -> Option<bool> {
    let expected = &entry["expected"];
    let facts = &found.facts;
    // The collection has sizes as stored, we as displayed.
    let lying = matches!(facts.orientation, Some(5..=8));
    let (width, height) = if lying { (facts.height, facts.width) } else { (facts.width, facts.height) };
    let number = |told: Option<u32>| Some(told.map(u64::from) == Some(expected[fact].as_u64()?));
    match fact {
        "type" => {
            let also = entry["alsoAccept"].as_array().into_iter().flatten();
            let names = also.chain([&expected["mimeType"]]).filter_map(Value::as_str).map(canonical);
            let told = canonical(&found.mime_type);
            Some(names.into_iter().any(|name| name == told))
        }
        "kind" => Some(expected["kind"].as_str()?.replace("unknown", "other") == found.kind.as_str()),
        "width" => number(width),
        "height" => number(height),
        "orientation" => number(facts.orientation.map(u32::from)),
        "frames" => number(facts.frames),
        "channels" => number(facts.channels),
        "sampleRate" => number(facts.sample_rate),
        _ => {
            let seconds = expected[fact].as_f64()?;
            let tolerance = expected["durationTolerance"].as_f64().unwrap_or(0.1);
            let optional = expected["durationOptional"].as_bool() == Some(true);
            Some(facts.duration_seconds.map_or(optional, |told| (told - seconds).abs() <= tolerance))
        }
    }
}

fn canonical(name: &str) -> String {
    Declared::parse(name).ok().flatten().map_or(String::new(), |declared| declared.as_str().to_owned())
}
