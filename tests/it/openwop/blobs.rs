//! The public suite's blob scenarios, and the credential, error and discovery legs that a service without runs can answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::seams::host;
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

const SURFACE: &str = "/v1/host/sample/test/surface";

async fn call(caller: &Caller<'_>, namespace: &str, op: &str, args: Value) -> Told {
    let body = json!({"tenantId": namespace, "surface": "blob", "op": op, "args": args});
    Told::of(caller.post(SURFACE, &body).await).await
}

async fn done(caller: &Caller<'_>, namespace: &str, op: &str, args: Value) -> Value {
    let told = call(caller, namespace, op, args).await;
    assert_eq!(told.status, 200, "{}", told.json());
    told.json()
}

fn object(key: &str, text: &str) -> Value {
    json!({"key": key, "contentBase64": data_encoding::BASE64.encode(text.as_bytes()), "contentType": "text/plain"})
}

#[tokio::test]
async fn an_object_comes_back_as_it_was_put() {
    let host = host().await;
    let owner = host.owner("acme");
    for content_type in
        ["text/plain", "application/octet-stream", "text/plain; charset=utf-8", "image/png", "audio/mp3"]
    {
        let mut args = json!({"bucket": "reports", "key": "2026/q2 \u{e4}.txt", "contentBase64": "aGVsbG8=", "contentType": content_type});
        let put = done(&owner, "tenant-a", "put", args.clone()).await;
        assert_eq!(put["sizeBytes"], 5);
        let got = done(&owner, "tenant-a", "get", args.clone()).await;
        assert_eq!(got, json!({"found": true, "contentBase64": "aGVsbG8=", "contentType": content_type}));
        args["bucket"] = json!("other");
        assert_eq!(done(&owner, "tenant-a", "get", args).await, json!({"found": false}));
    }
    let url = done(&owner, "tenant-a", "put", object("k", "x")).await["url"].clone();
    assert_eq!(host.stranger().get(url.as_str().expect("a URL")).await.status(), 401);
}

#[tokio::test]
async fn an_object_of_one_namespace_is_not_in_another() {
    let host = host().await;
    let owner = host.owner("acme");
    done(&owner, "tenant-a", "put", object("shared", "of a")).await;
    for namespace in ["tenant-b", "", "Tenant-A", "globex", "acme"] {
        assert_eq!(
            done(&owner, namespace, "get", json!({"key": "shared"})).await,
            json!({"found": false}),
            "{namespace}"
        );
        assert_eq!(done(&owner, namespace, "list", json!({})).await, json!({"entries": []}), "{namespace}");
        assert_eq!(done(&owner, namespace, "delete", json!({"key": "shared"})).await, json!({"deleted": false}));
        assert_eq!(
            call(&owner, namespace, "presign", json!({"key": "shared", "expiresInSeconds": 5})).await.status,
            404
        );
    }
    assert_eq!(done(&owner, "tenant-a", "get", json!({"key": "shared"})).await["found"], true);
    assert_eq!(host.owner("globex").post(SURFACE, &json!({"surface": "blob"})).await.status(), 404);
}

#[tokio::test]
async fn a_presigned_link_works_for_its_time_and_is_refused_by_the_store_after_it() {
    let host = host().await;
    let owner = host.owner("acme");
    assert_eq!(done(&owner, "tenant-a", "get", json!({"key": "__probe__"})).await, json!({"found": false}));
    done(&owner, "tenant-a", "put", object("pre-1", "presigned-payload")).await;
    let link = done(&owner, "tenant-a", "presign", json!({"key": "pre-1", "expiresInSeconds": 2})).await;
    let url = link["url"].as_str().expect("a URL");
    assert!(url.starts_with(&host.url("/v1/host/sample/blob/")));
    assert_eq!(link["expiresAtMs"], (host.now().as_second() + 2) * 1000);

    host.advance(Duration::from_millis(1_999));
    let within = Told::of(owner.get(url).await).await;
    assert_eq!((within.status, &within.body[..]), (200, &b"presigned-payload"[..]));
    assert_eq!(host.owner("globex").get(url).await.status(), 404);
    assert_eq!(host.stranger().get(url).await.status(), 401);

    host.advance(Duration::from_millis(1));
    let after = Told::of(owner.get(url).await).await;
    assert_eq!((after.status, after.refusal()), (403, "blob_presign_expired".into()));
    assert_eq!(host.owner("globex").get(url).await.status(), 404, "a stranger does not even hear that");
}

#[tokio::test]
async fn a_presigned_link_leads_to_its_key_and_to_no_other_namespaces() {
    let host = host().await;
    let owner = host.owner("acme");
    done(&owner, "tenant-a", "put", object("k", "first of a")).await;
    let link = done(&owner, "tenant-a", "presign", json!({"key": "k", "expiresInSeconds": 60})).await;
    let url = link["url"].as_str().expect("a URL");

    done(&owner, "tenant-b", "put", object("k", "of b")).await;
    assert_eq!(&Told::of(owner.get(url).await).await.body[..], b"first of a");
    done(&owner, "tenant-a", "put", object("k", "second of a")).await;
    assert_eq!(&Told::of(owner.get(url).await).await.body[..], b"second of a");
    done(&owner, "tenant-a", "delete", json!({"key": "k"})).await;
    let told = Told::of(owner.get(url).await).await;
    assert_eq!((told.status, told.refusal()), (404, "not_found".into()));
}

#[tokio::test]
async fn a_link_to_anything_but_an_object_opens_no_object() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(b"not an object".to_vec()).await;
    let (durable, delivery) = (asset.url.clone(), owner.share(&asset, 60).await);
    for url in [&durable, &delivery] {
        let token = url.rsplit('/').next().expect("a token");
        let told = Told::of(owner.get(&format!("/v1/host/sample/blob/{token}")).await).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()));
    }
    let presigned = done(&owner, "a", "put", object("k", "x")).await;
    assert!(presigned["sizeBytes"].is_number());
    let link = done(&owner, "a", "presign", json!({"key": "k", "expiresInSeconds": 60})).await;
    let forged = format!("{}x", link["url"].as_str().expect("a URL"));
    assert_eq!(owner.get(&forged).await.status(), 404);
}

#[tokio::test]
async fn the_last_object_of_a_key_counts_and_the_one_before_has_ended() {
    let host = host().await;
    let owner = host.owner("acme");
    for text in ["one", "two", "three", "two"] {
        // The clock stands still: it is not the time that decides.
        done(&owner, "a", "put", object("k", text)).await;
        let got = done(&owner, "a", "get", json!({"key": "k"})).await;
        assert_eq!(got["contentBase64"], data_encoding::BASE64.encode(text.as_bytes()));
    }
    let live = Told::of(owner.get("/v1/assets?state=live").await).await.json();
    assert_eq!(live["assets"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn keys_are_listed_in_their_order_by_prefix() {
    let host = host().await;
    let owner = host.owner("acme");
    for (key, text) in [("b/2", "22"), ("a", "1"), ("b/1", "1"), ("b", ""), ("c", "333")] {
        let told = call(&owner, "a", "put", object(key, text)).await;
        assert_eq!(told.status, if text.is_empty() { 400 } else { 200 });
    }
    let all = done(&owner, "a", "list", json!({})).await;
    let keys: Vec<&Value> = all["entries"].as_array().expect("a list").iter().map(|one| &one["key"]).collect();
    assert_eq!(keys, ["a", "b/1", "b/2", "c"]);
    let some = done(&owner, "a", "list", json!({"prefix": "b/"})).await;
    assert_eq!(some, json!({"entries": [{"key": "b/1", "sizeBytes": 1}, {"key": "b/2", "sizeBytes": 2}]}));
    let behind = done(&owner, "a", "list", json!({"cursor": "b/2"})).await;
    assert_eq!(behind["entries"], json!([{"key": "c", "sizeBytes": 3}]));
    assert_eq!(done(&owner, "a", "delete", json!({"key": "c"})).await, json!({"deleted": true}));
    assert_eq!(done(&owner, "a", "delete", json!({"key": "c"})).await, json!({"deleted": false}));
}

#[tokio::test]
async fn what_is_no_operation_is_refused_and_what_is_no_surface_is_not_there() {
    let host = host().await;
    let owner = host.owner("acme");
    for (op, args) in [
        ("move", json!({"key": "k"})),
        ("get", json!({})),
        ("get", json!({"key": "a\nb"})),
        ("get", json!({"key": "x".repeat(1025)})),
        ("put", json!({"key": "k"})),
        ("put", json!({"key": "k", "contentBase64": "aGk=", "contentType": "no type"})),
        ("presign", json!({"key": "k"})),
        ("presign", json!({"key": "k", "expiresInSeconds": 0, "method": "PUT"})),
    ] {
        let told = call(&owner, "a", op, args.clone()).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{op} {args}");
    }
    done(&owner, "a", "put", object("k", "x")).await;
    for seconds in [0, -1, 604_801] {
        assert_eq!(call(&owner, "a", "presign", json!({"key": "k", "expiresInSeconds": seconds})).await.status, 400);
    }
    let missing = call(&owner, "a", "presign", json!({"key": "none", "expiresInSeconds": 5})).await;
    assert_eq!((missing.status, missing.refusal()), (404, "blob_object_not_found".into()));
    for surface in ["kv", "cache", "table", "sql", ""] {
        let told = Told::of(owner.post(SURFACE, &json!({"surface": surface, "op": "get", "args": {}})).await).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{surface}");
    }
}

#[tokio::test]
async fn errors_are_one_closed_object_on_routes_of_hosts_too() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let run = "openwop-conformance-noauth-run";
    for (caller, path, status) in [
        (&owner, format!("/v1/runs/{run}"), 404),
        (&owner, "/v1/workflows/none".to_owned(), 404),
        (&owner, format!("/v1/runs/{run}/debug-bundle"), 404),
        (&host.stranger(), format!("/v1/runs/{run}"), 401),
        (&host.bearer("canary-secret-value"), "/v1/runs".to_owned(), 401),
    ] {
        let told = Told::of(caller.get(&path).await).await;
        assert_eq!(told.status, status, "{path}");
        let body = told.json();
        let members = body.as_object().expect("an object");
        assert!(members.keys().all(|name| ["error", "message", "details"].contains(&name.as_str())), "{body}");
        assert!(!body.to_string().contains("canary"), "{body}");
    }
    let refused = Told::of(owner.post("/v1/runs", &json!({})).await).await;
    assert!((400..500).contains(&refused.status));
    let api = Told::of(host.stranger().get("/v1/openapi.json").await).await.json();
    assert!(api["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
}
