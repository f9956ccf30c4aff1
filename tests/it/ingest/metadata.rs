//! An asset's words: seen with a tag, changed under it.

use std::time::Duration;

use mediakeep_storage::AssetId;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::{Asset, Caller, Host, refusal};

async fn tag(caller: &Caller<'_>, asset: &Asset) -> String {
    let answer = caller.get(&format!("/v1/assets/{}", asset.id)).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["cache-control"], "no-store");
    answer.headers()["etag"].to_str().expect("ASCII").to_owned()
}

async fn amend(caller: &Caller<'_>, asset: &Asset, if_match: Option<&str>, change: &Value) -> Response {
    let request = caller.request(Method::PATCH, &format!("/v1/assets/{}", asset.id)).json(change);
    let request = match if_match {
        Some(tag) => request.header("if-match", tag),
        None => request,
    };
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn words_change_one_by_one_and_null_clears() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;

    for (change, name, alt, title) in [
        (json!({"alt": "a chart"}), Value::Null, json!("a chart"), Value::Null),
        (json!({"name": "a/b.png", "title": "T"}), json!("ab.png"), json!("a chart"), json!("T")),
        (json!({}), json!("ab.png"), json!("a chart"), json!("T")),
        (json!({"alt": null, "title": ""}), json!("ab.png"), Value::Null, json!("")),
        (json!({"name": null, "tenant": "acme"}), Value::Null, Value::Null, json!("")),
    ] {
        let answer = amend(&owner, &asset, None, &change).await;
        assert_eq!(answer.status(), 200, "{change}");
        let told: Value = answer.json().await.expect("JSON");
        assert_eq!((&told["name"], &told["alt"], &told["title"]), (&name, &alt, &title), "{change}");
        assert_eq!(owner.show(&asset).await, told, "{change}");
    }
    assert_eq!(host.restart().await.owner("acme").show(&asset).await["title"], "");
}

#[tokio::test]
async fn a_tag_stands_for_the_words_as_they_were_seen() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let seen = tag(&owner, &asset).await;
    assert!(seen.starts_with('"') && seen.ends_with('"'), "{seen} is strong");

    let first = amend(&owner, &asset, Some(&seen), &json!({"alt": "first"})).await;
    assert_eq!(first.status(), 200);
    let new = first.headers()["etag"].to_str().expect("ASCII").to_owned();
    assert_ne!(new, seen);
    assert_eq!(tag(&owner, &asset).await, new);

    let weak = format!("W/{new}");
    for stale in [seen.as_str(), "\"never\"", "\"\"", &weak] {
        let answer = amend(&owner, &asset, Some(stale), &json!({"alt": "second"})).await;
        assert_eq!(answer.status(), 412, "{stale}");
        assert_eq!(refusal(answer).await["error"], "version_conflict");
    }
    assert_eq!(owner.show(&asset).await["alt"], "first");
    let listed = format!("{seen}, {new}");
    for (right, alt) in [(new.as_str(), "second"), ("*", "third")] {
        assert_eq!(amend(&owner, &asset, Some(right), &json!({"alt": alt})).await.status(), 200, "{right}");
    }
    // Of a list one has to be right.
    let now = tag(&owner, &asset).await;
    assert_eq!(amend(&owner, &asset, Some(&listed), &json!({"alt": "x"})).await.status(), 412);
    assert_eq!(amend(&owner, &asset, Some(&format!("{seen}, {now}")), &json!({"alt": "x"})).await.status(), 200);
}

#[tokio::test]
async fn who_has_seen_all_of_it_is_not_told_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let path = format!("/v1/assets/{}", asset.id);
    let seen = tag(&owner, &asset).await;
    let ask = async |condition: &str, tag: &str| {
        let answer = owner.request(Method::GET, &path).header(condition, tag).send().await.expect("an answer");
        (answer.status().as_u16(), answer.headers().get("etag").cloned(), answer.text().await.expect("a body"))
    };

    let (status, told, body) = ask("if-none-match", &seen).await;
    assert_eq!((status, body.as_str()), (304, ""));
    assert_eq!(told.expect("a tag"), &*seen);
    assert_eq!(ask("if-none-match", "*").await.0, 304);
    assert_eq!(ask("if-none-match", "\"x\"").await.0, 200);
    assert_eq!(ask("if-match", &seen).await.0, 200);
    assert_eq!(ask("if-match", "\"x\"").await.0, 412);

    // A reference changes no word of the asset, and yet what is told of it.
    let referred = owner.post("/v1/runs/run-2/references", &json!({"assets": [asset.id]})).await;
    assert_eq!(referred.status(), 200);
    assert_eq!(ask("if-none-match", &seen).await.0, 200);
    assert_ne!(tag(&owner, &asset).await, seen);
}

#[tokio::test]
async fn what_is_no_asset_id_is_answered_like_an_id_that_nobody_has() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let unknown = AssetId::generate(host.now()).to_string();
    for (body, status) in [("{}", 404), ("{", 400), (r#"{"colour": 1}"#, 400), (r#"{"tenant": "globex"}"#, 403)] {
        let mut told = Vec::new();
        for id in ["ast_0", &unknown] {
            let request = owner.request(Method::PATCH, &format!("/v1/assets/{id}"));
            let answer = request.header("content-type", "application/json").body(body).send().await.expect("an answer");
            assert_eq!(answer.status(), status, "{id}: {body}");
            told.push(answer.text().await.expect("a body"));
        }
        assert_eq!(told[0], told[1], "{body}");
    }
}

#[tokio::test]
async fn of_two_who_saw_the_same_one_is_told() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let seen = tag(&owner, &asset).await;
    let change = json!({"alt": "mine"});

    let answers = futures_util::future::join_all((0..8).map(|_| amend(&owner, &asset, Some(&seen), &change))).await;

    let changed = answers.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(changed, 1);
    assert!(answers.iter().all(|answer| matches!(answer.status().as_u16(), 200 | 412)));
}

#[tokio::test]
async fn what_may_not_be_said_is_refused_and_changes_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let path = format!("/v1/assets/{}", asset.id);
    for (status, body) in [
        (400, json!({"name": "n".repeat(256)}).to_string()),
        (400, json!({"alt": "a".repeat(1025)}).to_string()),
        (400, json!({"title": "t".repeat(257)}).to_string()),
        (400, json!({"colour": "red"}).to_string()),
        (400, json!({"mimeType": "image/jpeg"}).to_string()),
        (400, json!({"alt": 7}).to_string()),
        (400, r#"{"alt": "a", "alt": "b"}"#.to_owned()),
        (400, "[]".to_owned()),
        (400, String::new()),
        (400, "{".to_owned()),
        (400, format!(r#"{{"alt": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000))),
        (413, json!({"alt": "a".repeat(1 << 20)}).to_string()),
        (403, json!({"tenant": "globex", "colour": "red"}).to_string()),
        (403, json!({"alt": "x", "tenantId": 7}).to_string()),
        (403, r#"{"tenant": "globex", "tenant": "acme"}"#.to_owned()),
        (403, r#"{"tenant": "acme", "alt": "a", "alt": "b", "tenant": "globex"}"#.to_owned()),
        (400, r#"{"tenant": "acme", "tenant": "acme"}"#.to_owned()),
    ] {
        let request = owner.request(Method::PATCH, &path).header("content-type", "application/json");
        let answer = request.body(body.clone()).send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{}", &body[..body.len().min(60)]);
        refusal(answer).await;
    }
    let untyped = owner.request(Method::PATCH, &path).body(r#"{"alt": "x"}"#).send().await.expect("an answer");
    assert_eq!(untyped.status(), 415);
    assert_eq!(owner.show(&asset).await, asset.answer["asset"]);
}

#[tokio::test]
async fn the_words_of_the_dead_stay_as_they_are() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(2, 2)).await;
    assert_eq!(owner.delete(&format!("/v1/assets/{}", asset.id)).await.status(), 204);

    let answer = amend(&owner, &asset, None, &json!({"alt": "too late"})).await;

    assert_eq!(answer.status(), 410);
    let body = refusal(answer).await;
    assert_eq!((&body["error"], &body["details"]["reason"]), (&json!("not_found"), &json!("asset_expired")));
    assert_eq!(owner.show(&asset).await["state"], "expired");
    assert_eq!(owner.show(&asset).await["alt"], Value::Null);
}

#[tokio::test]
async fn an_asset_of_another_tenant_is_as_unknown_as_none() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    let stranger = host.owner("globex");
    let mut answers = Vec::new();
    for id in [asset.id.as_str(), "ast_00000000000000000000000000", "no-id", "..%2f..%2fx", &asset.id.to_uppercase()] {
        let path = format!("/v1/assets/{id}");
        for answer in
            [stranger.get(&path).await, stranger.patch(&path, &json!({"alt": "x"})).await, stranger.delete(&path).await]
        {
            assert_eq!(answer.status(), 404, "{id}");
            let mut headers = answer.headers().clone();
            headers.remove("x-request-id");
            headers.remove("date");
            answers.push((headers, refusal(answer).await));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    assert_eq!(host.owner("acme").show(&asset).await, asset.answer["asset"]);
}

#[tokio::test]
async fn a_page_goes_on_where_the_last_one_ended() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(owner.upload(png(2, 2)).await.id);
        host.advance(Duration::from_millis(1));
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page: Value = owner.get(&format!("/v1/runs/run-1/assets?limit=3{next}")).await.json().await.expect("JSON");
        seen.extend(page["assets"].as_array().expect("a list").iter().map(|asset| asset["assetId"].clone()));
        match page["nextCursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
        owner.upload(png(2, 2)).await;
    }
    assert_eq!(seen[..7], made.iter().map(|id| json!(id)).collect::<Vec<_>>());
    for cursor in ["x", "", "AAAA", "%00"] {
        let answer = owner.get(&format!("/v1/assets?cursor={cursor}")).await;
        assert_eq!(answer.status(), 400, "{cursor:?}");
    }
}
