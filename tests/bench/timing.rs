//! Whether the time that an answer takes tells a stranger's id from nobody's: both are the same 404, and neither is to be the slower one.
//!
//! Both are asked for in turns, in an order that chance decides, and what counts is the ratio of the medians with its bootstrap interval.
//! An interval that holds 1.00 shows no difference that this many requests could. `cargo bench --bench timing -- mint` measures one row.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::time::Instant;

use mediakeep::access::{Scope, hash_secret};
use mediakeep::config::settings::ApiKey;
use mediakeep_keys::{Claims, Class, Ring};
use mediakeep_storage::{AssetId, Timestamp};

use support::client::Connection;
use support::host::Host;
use support::{SERVER_CORE, median, noise, number, wanted};

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

/// Ids of each kind: enough that no one row is always warm.
const IDS: usize = 64;

/// Times that the medians are taken anew from what was measured.
const RESAMPLES: usize = 1_000;

/// A stranger's own credential.
const STRANGER: &str = "mk_stranger_secret-of-a-stranger";

/// What is asked with an id in it.
struct Case {
    name: &'static str,
    method: &'static str,
    path: fn(&Id) -> String,
    body: &'static str,
}

/// An asset's id, and a token that opens it or would.
struct Id {
    asset: String,
    token: String,
}

const CASES: [Case; 4] = [
    Case { name: "capability", method: "GET", path: |id| format!("/a/{}", id.token), body: "" },
    Case { name: "bound", method: "GET", path: |id| format!("/v1/assets/{}/content", id.asset), body: "" },
    Case { name: "metadata", method: "GET", path: |id| format!("/v1/assets/{}", id.asset), body: "" },
    Case {
        name: "mint",
        method: "POST",
        path: |id| format!("/v1/assets/{}/urls", id.asset),
        body: r#"{"class":"delivery"}"#,
    },
];

fn main() {
    support::need(&["taskset"]);
    let folder = support::folder();
    let host = Host::start_with(folder.path(), Some(SERVER_CORE), |settings| {
        settings.access.api_keys.push(ApiKey {
            id: "stranger".to_owned(),
            tenant: "stranger".to_owned(),
            scopes: Scope::ALL.into_iter().map(|scope| scope.name().to_owned()).collect(),
            secret_sha256: hash_secret("secret-of-a-stranger"),
            expires: None,
            revoked: false,
        });
    });
    let foreign: Vec<Id> = (0..IDS).map(|seed| uploaded(&host, seed as u64)).collect();
    let ring = Ring::load(&folder.path().join("keys/ring.json")).expect("the service made a ring");
    let unknown: Vec<Id> = (0..IDS).map(|_| invented(&ring)).collect();
    let address = host.url("").trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    let mut stranger = Connection::open(address, STRANGER);
    let samples = number("MEDIAKEEP_BENCH_SAMPLES", 20_000);

    println!("| a stranger asks for | µs, another tenant's | nobody's | ratio of medians | 95 % of resamples |");
    println!("| --- | --- | --- | --- | --- |");
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let (theirs, nobodys) = measured(case, &mut stranger, &foreign, &unknown, samples);
        let (low, high) = interval(&theirs, &nobodys);
        let (theirs, nobodys) = (median(theirs), median(nobodys));
        println!("| {} | {theirs:.1} | {nobodys:.1} | {:.3} | {low:.3} – {high:.3} |", case.name, theirs / nobodys);
    }
}

fn uploaded(host: &Host, seed: u64) -> Id {
    let answer = host.connect().post("/v1/assets", "application/octet-stream", &noise(seed + 1, 1_000));
    let token = answer.capability().trim_start_matches("/a/").to_owned();
    Id { asset: answer.json()["asset"]["assetId"].as_str().expect("an id").to_owned(), token }
}

/// An id that nobody has, with a token that this service would have made for it.
fn invented(ring: &Ring) -> Id {
    let now = Timestamp::now();
    let asset = AssetId::generate(now).to_string();
    let claims = Claims {
        tenant: "bench".to_owned(),
        asset: asset.clone(),
        class: Class::Durable,
        issued_at: now.as_second(),
        generation: 1,
    };
    let token = ring.mint(ring.signing_kid(now.as_second()), &claims).expect("a key that signs");
    Id { asset, token }
}

/// Microseconds that each request took, of the one kind and of the other.
fn measured(
    case: &Case,
    caller: &mut Connection,
    foreign: &[Id],
    unknown: &[Id],
    samples: usize,
) -> (Vec<f64>, Vec<f64>) {
    let mut chance = Chance(0x5eed);
    let (mut theirs, mut nobodys) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
    // The first tenth warms up and does not count.
    for round in 0..samples + samples / 10 {
        let place = chance.below(IDS);
        let first_theirs = chance.below(2) == 0;
        for is_theirs in [first_theirs, !first_theirs] {
            let path = (case.path)(if is_theirs { &foreign[place] } else { &unknown[place] });
            let began = Instant::now();
            let answer = caller.ask(case.method, &path, case.body);
            let took = began.elapsed().as_secs_f64() * 1e6;
            assert_eq!(answer.status, 404, "{}", case.name);
            if round >= samples / 10 {
                if is_theirs { theirs.push(took) } else { nobodys.push(took) }
            }
        }
    }
    (theirs, nobodys)
}

/// Between which ratios of medians 95 % of the resamples lie.
fn interval(theirs: &[f64], nobodys: &[f64]) -> (f64, f64) {
    let mut chance = Chance(0xb007);
    let mut again = |all: &[f64]| median((0..all.len()).map(|_| all[chance.below(all.len())]).collect());
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| again(theirs) / again(nobodys)).collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40])
}

/// Numbers without an order, the same each time (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
