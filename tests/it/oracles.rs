//! That equal bytes lie in the store once tells nobody who has them: an ingest is answered alike whether they are new, the caller's own
//! already, or another tenant's.

use serde_json::json;

use crate::harness::bytes::png;
use crate::harness::form::Form;
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

/// Who has the bytes already.
const OWNERS: [Option<&str>; 3] = [None, Some("globex"), Some("acme")];

#[tokio::test]
async fn an_ingest_says_nothing_of_whether_anybody_has_the_bytes() {
    for (way, send) in ["raw", "form", "inline"].into_iter().enumerate() {
        let mut answers = Vec::new();
        for owner in OWNERS {
            let host = Host::start().await;
            if let Some(owner) = owner {
                host.owner(owner).upload_to("run-0", png(7, 9)).await;
            }
            let told = sent(&host.owner("acme"), way).await;
            assert_eq!(told.status, 201, "{send}: {told:?}");
            answers.push((owner, heard(&host, told).await));
        }
        for (owner, answer) in &answers[1..] {
            assert_eq!(*answer, answers[0].1, "{send}: {owner:?} has the bytes");
        }
    }
}

/// Sends the same bytes one way or another.
async fn sent(caller: &Caller<'_>, way: usize) -> Told {
    let bytes = png(7, 9);
    let answer = match way {
        0 => caller.raw("?name=a.png", "image/png", bytes).await,
        1 => caller.form(Form::new().file(&bytes).text("name", "a.png")).await,
        _ => caller.inline(&json!({"base64": data_encoding::BASE64.encode(&bytes), "name": "a.png"})).await,
    };
    Told::of(answer).await
}

/// Whatever the sender hears then and afterwards, but for names that differ each time.
async fn heard(host: &Host, ingested: Told) -> Vec<Told> {
    let json = ingested.json();
    let text = |pointer: &str| json.pointer(pointer).and_then(|value| value.as_str()).expect(pointer).to_owned();
    let (asset, url) = (text("/asset/assetId"), text("/url"));
    let owner = host.owner("acme");
    let mut all = vec![ingested];
    for path in [format!("/v1/assets/{asset}"), format!("/v1/assets/{asset}/retention"), "/v1/runs/run-1".to_owned()] {
        all.push(Told::of(owner.get(&path).await).await);
    }
    all.push(Told::of(owner.get(&format!("/v1/assets/{asset}/content")).await).await);
    all.push(Told::of(host.stranger().head(&url).await).await);
    let names = [(url, "{url}"), (asset, "{asset}"), (host.url(""), "{base}")];
    let plain = |text: &str| names.iter().fold(text.to_owned(), |text, (name, place)| text.replace(name, place));
    for told in &mut all {
        for line in told.headers.values_mut().flatten() {
            *line = plain(line);
        }
        // A body of media has none of the names in it.
        if let Ok(body) = std::str::from_utf8(&told.body) {
            told.body = plain(body).into();
        }
        told.headers.remove("content-length");
        // A tag says which asset it is of, so no two are the same.
        for tag in told.headers.get_mut("etag").into_iter().flatten() {
            let digest = tag.len().checked_sub(33).expect("a tag ends with a digest");
            tag.truncate(digest);
        }
    }
    all
}

#[tokio::test]
async fn an_ingests_row_names_the_url_as_introspection_does() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(2, 2)).await;
    for _ in 0..2 {
        assert_eq!(owner.post("/v1/urls/revoke", &json!({"all": true})).await.status(), 200);
    }
    let asset = owner.upload(png(3, 3)).await;
    while host.app().index.seal_audit(1_000).await.expect("sealed") > 0 {}

    let rows = Told::of(owner.get(&format!("/v1/audit/events?type=ingest&assetId={}", asset.id)).await).await.json();
    let told = Told::of(owner.post("/v1/urls/introspect", &json!({"url": asset.url})).await).await.json();

    assert_eq!((&told["active"], &rows["events"][0]["urlId"]), (&json!(true), &told["urlId"]), "{rows}");
}
