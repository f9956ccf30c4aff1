//! Lists: page by page, each entry once, whatever comes in meanwhile.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::bytes::{noise, png, wav};
use crate::harness::{Caller, Host, refusal};

/// Every entry of a list, page by page; `between` happens after each page.
async fn walk(caller: &Caller<'_>, path: &str, members: &str, limit: usize, between: impl AsyncFn()) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let next = cursor.as_ref().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let answer = caller.get(&format!("{path}{joint}limit={limit}{next}")).await;
        assert_eq!(answer.status(), 200);
        let page: Value = answer.json().await.expect("JSON");
        let entries = page[members].as_array().expect("a list").clone();
        assert!(entries.len() <= limit && (!entries.is_empty() || cursor.is_none()), "{page}");
        found.extend(entries);
        let Some(after) = page.get("nextCursor").and_then(Value::as_str) else {
            return found;
        };
        cursor = Some(after.to_owned());
        between().await;
    }
}

fn ids(assets: &[Value]) -> Vec<String> {
    assets.iter().map(|asset| asset["assetId"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn what_is_no_text_is_refused_by_its_name() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (path, named) in
        [("/v1/assets?kind=%ff", "kind"), ("/v1/runs?cursor=a%C3", "cursor"), ("/v1/runs?%C3=a", "%C3")]
    {
        let answer = owner.get(path).await;
        assert_eq!(answer.status(), 400, "{path}");
        let message = refusal(answer).await["message"].as_str().expect("text").replace('?', "%");
        assert!(message.contains(named), "{path}: {message}");
    }
    let answer = owner.raw("?alt=%ff", "image/png", png(2, 2)).await;
    assert_eq!(answer.status(), 400);
    assert!(refusal(answer).await["message"].as_str().expect("text").starts_with("alt"));
    assert_eq!(owner.raw("?alt=a+b%20%C3%BC&name=&title", "image/png", png(2, 2)).await.status(), 201);
}

#[tokio::test]
async fn what_was_there_when_paging_began_is_listed_once_and_in_order() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut made = Vec::new();
    for seed in 0..23 {
        host.advance(Duration::from_millis(2));
        made.push(owner.upload(noise(40, seed)).await.id);
    }
    host.owner("globex").upload(png(2, 2)).await;
    for path in ["/v1/assets", "/v1/runs/run-1/assets"] {
        for limit in [1, 5, 23, 500] {
            let left = AtomicUsize::new(5);
            let between = async || {
                if left.load(Relaxed) > 0 {
                    left.fetch_sub(1, Relaxed);
                    host.advance(Duration::from_millis(2));
                    owner.upload(noise(40, 99)).await;
                }
            };
            let listed = ids(&walk(&owner, path, "assets", limit, between).await);
            assert_eq!(listed[..made.len()], made, "{path} by {limit}");
            assert_eq!(listed.iter().collect::<HashSet<_>>().len(), listed.len(), "{path} by {limit}");
        }
    }
}

#[tokio::test]
async fn runs_are_listed_once_while_others_come() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for n in 0..12 {
        let status = if n % 3 == 0 { "closed" } else { "open" };
        assert_eq!(owner.put(&format!("/v1/runs/run-{n:02}"), &json!({"status": status})).await.status(), 200);
    }
    let count = AtomicUsize::new(0);
    let between = async || {
        let n = count.fetch_add(1, Relaxed);
        assert_eq!(owner.put(&format!("/v1/runs/a-{n}"), &json!({})).await.status(), 200);
    };
    let names = |runs: &[Value]| -> Vec<String> {
        runs.iter().map(|run| run["runId"].as_str().expect("a name").to_owned()).collect()
    };
    let listed = names(&walk(&owner, "/v1/runs", "runs", 5, between).await);
    let all: Vec<String> = (0..12).map(|n| format!("run-{n:02}")).collect();
    assert_eq!(listed.iter().filter(|name| name.starts_with("run")).cloned().collect::<Vec<_>>(), all);
    let closed = names(&walk(&owner, "/v1/runs?status=closed", "runs", 2, async || {}).await);
    assert_eq!(closed, ["run-00", "run-03", "run-06", "run-09"]);
    assert_eq!(owner.get("/v1/runs?status=ended").await.status(), 400);
    assert_eq!(walk(&host.owner("globex"), "/v1/runs", "runs", 5, async || {}).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_list_is_narrowed_by_what_its_assets_are() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let picture = owner.upload_to("run-1", png(3, 3)).await.id;
    host.advance(Duration::from_millis(2));
    let sound = owner.upload_to("run-2", wav(1)).await.id;
    host.advance(Duration::from_millis(2));
    let dead = owner.upload_loose(png(4, 4)).await.id;
    assert_eq!(owner.delete(&format!("/v1/assets/{dead}")).await.status(), 204);
    for (query, right) in [
        ("", vec![&picture, &sound, &dead]),
        ("kind=image", vec![&picture, &dead]),
        ("kind=audio", vec![&sound]),
        ("kind=video", vec![]),
        ("mimeType=image/png", vec![&picture, &dead]),
        ("mimeType=audio%2Fwav", vec![&sound]),
        ("runId=run-2", vec![&sound]),
        ("runId=run-9", vec![]),
        ("state=live", vec![&picture, &sound]),
        ("state=expired", vec![&dead]),
        ("state=erased", vec![]),
        ("kind=image&state=live&runId=run-1", vec![&picture]),
        ("kind=audio&runId=run-1", vec![]),
        ("tenantId=acme", vec![&picture, &sound, &dead]),
    ] {
        let listed = ids(&walk(&owner, &format!("/v1/assets?{query}"), "assets", 1, async || {}).await);
        assert_eq!(listed.iter().collect::<Vec<_>>(), right, "{query}");
    }
    assert_eq!(ids(&walk(&owner, "/v1/runs/run-1/assets?kind=image", "assets", 10, async || {}).await), [picture]);
    assert_eq!(owner.get("/v1/runs/run-9/assets").await.status(), 404);
    assert_eq!(owner.get("/v1/assets?tenantId=globex").await.status(), 403);
}

#[tokio::test]
async fn a_query_that_means_nothing_is_a_400() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(3, 3)).await;
    for path in ["/v1/assets", "/v1/runs/run-1/assets", "/v1/runs"] {
        for query in
            ["limit=0", "limit=501", "limit=-1", "limit=x", "limit=", "limit=1&limit=2", "colour=red", "cursor="]
        {
            let answer = owner.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status(), 400, "{path}?{query}");
            assert_eq!(refusal(answer).await["error"], "validation_error");
        }
        assert_eq!(owner.get(&format!("{path}?limit=500")).await.status(), 200);
    }
    for query in ["state=dead", "runId=a%20b"] {
        assert_eq!(owner.get(&format!("/v1/assets?{query}")).await.status(), 400, "{query}");
    }
    assert_eq!(owner.get("/v1/runs/run-1/assets?runId=run-2").await.status(), 400);
}

#[tokio::test]
async fn a_cursor_of_another_list_or_tenant_or_shape_is_a_400() {
    let host = Host::start().await;
    let (owner, stranger) = (host.owner("acme"), host.owner("globex"));
    for caller in [&owner, &stranger] {
        for run in ["run-1", "run-2"] {
            caller.upload_to(run, png(3, 3)).await;
            caller.upload_to(run, png(4, 4)).await;
        }
    }
    let cursor = async |caller: &Caller<'_>, path: &str| {
        let page: Value = caller.get(&format!("{path}?limit=1")).await.json().await.expect("JSON");
        page["nextCursor"].as_str().expect("a cursor").to_owned()
    };
    let lists = ["/v1/assets", "/v1/runs", "/v1/runs/run-1/assets", "/v1/runs/run-2/assets"];
    for own in lists {
        let made = cursor(&owner, own).await;
        assert_eq!(owner.get(&format!("{own}?cursor={made}")).await.status(), 200);
        for other in lists.into_iter().filter(|other| *other != own) {
            assert_eq!(owner.get(&format!("{other}?cursor={made}")).await.status(), 400, "{own} on {other}");
        }
        assert_eq!(stranger.get(&format!("{own}?cursor={made}")).await.status(), 400, "{own} of another tenant");
        for broken in [&made[1..], &made[..made.len() - 1], "AAAA", "%00", "_", "=="] {
            assert_eq!(owner.get(&format!("{own}?cursor={broken}")).await.status(), 400, "{own} {broken}");
        }
    }
}
