//! The tenant comes from the credential alone.

use mediakeep::access::Scope;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::harness::form::{self, Form};
use crate::harness::{Caller, Host, refusal};

/// Every way of naming a tenant, and beside it something that would be refused by itself.
fn requests(owner: &Caller<'_>, tenant: &str, wrong: bool) -> Vec<(&'static str, RequestBuilder)> {
    let raw = || owner.ingest().header("content-type", "text/plain").body("bytes");
    let query = |name: &str| {
        let raw = raw().query(&[(name, tenant)]);
        if wrong { raw.query(&[("colour", "red")]) } else { raw }
    };
    let inline = |name: &str| {
        let mut body = json!({"base64": "AAAA", name: tenant});
        if wrong {
            body["a-colour"] = json!("red");
        }
        owner.ingest().json(&body)
    };
    let form = |name: &str| {
        let form = if wrong { Form::new().text("colour", "red") } else { Form::new() };
        let form = form.file(b"bytes").text(name, tenant);
        owner.ingest().header("content-type", form::TYPE).body(form.end())
    };
    vec![
        ("header", raw().header("x-tenant-id", tenant)),
        ("query tenant", query("tenant")),
        ("query tenantId", query("tenantId")),
        ("JSON tenant", inline("tenant")),
        ("JSON tenantId", inline("tenantId")),
        ("form tenant", form("tenant")),
        ("form tenantId", form("tenantId")),
    ]
}

#[tokio::test]
async fn another_tenant_cannot_be_named() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for tenant in ["globex", "Acme", "nobody", "", "acme ", "acme/globex"] {
        for wrong in [false, true] {
            for (where_, request) in requests(&owner, tenant, wrong) {
                // A header's outer blanks are no part of its value.
                if where_ == "header" && tenant == "acme " {
                    continue;
                }
                let answer = request.send().await.expect("an answer");
                assert_eq!(answer.status(), 403, "{where_} {tenant:?} {wrong}");
                let body = refusal(answer).await;
                assert_eq!(body["error"], "forbidden", "{where_} {tenant:?}");
                assert!(!body.to_string().contains("globex"), "{body}");
            }
        }
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn ones_own_tenant_may_be_named() {
    let host = Host::start().await;
    for (where_, request) in requests(&host.owner("acme"), "acme", false) {
        assert_eq!(request.send().await.expect("an answer").status(), 201, "{where_}");
    }
    assert_eq!(
        host.owner("globex").get("/v1/assets").await.text().await.expect("text"),
        r#"{"assets":[],"nextCursor":null}"#
    );
}

#[tokio::test]
async fn a_tenant_that_is_no_text_is_another() {
    let host = Host::start().await;
    for tenant in [json!(7), json!(["acme"]), json!({"id": "acme"}), json!(true)] {
        let answer = host.owner("acme").inline(&json!({"tenant": tenant, "base64": "AAAA"})).await;
        assert_eq!(answer.status(), 403, "{tenant}");
    }
}

#[tokio::test]
async fn whoever_may_not_write_is_told_so_whatever_is_sent() {
    let host = Host::start().await;
    for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::AssetsWrite) {
        let answer = host.with_scope("acme", scope).inline(&json!({"base64": "AAAA"})).await;
        assert_eq!(answer.status(), 403, "{scope:?}");
        assert_eq!(refusal(answer).await["details"]["scopeRequired"], "assets:write");
    }
    assert_eq!(host.with_scope("acme", Scope::AssetsWrite).inline(&json!({"base64": "AAAA"})).await.status(), 201);
}

#[tokio::test]
async fn nobody_in_particular_may_send_nothing() {
    let host = Host::start().await;
    for credential in ["", "mk_", "mk_acme-all_wrong", "mk_nobody_secret", "a.b.c"] {
        let answer = host.bearer(credential).inline(&json!({"base64": "AAAA", "tenant": "acme"})).await;
        assert_eq!(answer.status(), 401, "{credential:?}");
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        assert_eq!(refusal(answer).await["error"], "unauthenticated");
    }
    let answer = host.stranger().request(Method::POST, "/v1/assets").body("bytes").send().await.expect("an answer");
    assert_eq!(answer.status(), 401);
    assert!(host.is_bare().await);
}
