//! Conditions of readers, after it is decided who may read.

use reqwest::Method;

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::told::Told;

const EXACT: &str = "Fri, 15 Jan 2027 08:00:00 GMT";
const BEFORE: &str = "Fri, 15 Jan 2027 07:59:59 GMT";

#[tokio::test]
async fn who_has_the_bytes_is_not_sent_them_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(5, 5)).await;
    let bound = format!("/v1/assets/{}/content", asset.id);

    for (caller, url) in [(host.stranger(), &asset.url), (owner, &bound)] {
        let tag = Told::of(caller.get(url).await).await.header("etag").to_owned();
        let weak = format!("W/{tag}");
        let listed = format!("\"x\", {weak}");
        for (conditions, status) in [
            (&[("if-none-match", &*tag)][..], 304),
            (&[("if-none-match", &weak)], 304),
            (&[("if-none-match", &listed)], 304),
            (&[("if-none-match", "*")], 304),
            (&[("if-none-match", "\"x\""), ("if-none-match", &tag)], 304),
            (&[("if-none-match", "\"x\"")], 200),
            (&[("if-modified-since", EXACT)], 304),
            (&[("if-modified-since", BEFORE)], 200),
            (&[("if-modified-since", "yesterday")], 200),
            (&[("if-modified-since", EXACT), ("if-modified-since", BEFORE)], 200),
            (&[("if-none-match", "\"x\""), ("if-modified-since", EXACT)], 200),
            (&[("if-match", &tag)], 200),
            (&[("if-match", "*")], 200),
            (&[("if-match", &weak)], 412),
            (&[("if-match", "\"x\"")], 412),
            (&[("if-match", "\"x\""), ("if-none-match", &tag)], 412),
            (&[("if-unmodified-since", BEFORE)], 412),
            (&[("if-unmodified-since", EXACT)], 200),
            (&[("if-none-match", &tag), ("range", "bytes=0-1")], 304),
            (&[("if-match", &tag), ("range", "bytes=0-1")], 206),
        ] {
            for method in [Method::GET, Method::HEAD] {
                let head = method == Method::HEAD;
                let mut request = caller.request(method, url);
                for (name, value) in conditions {
                    request = request.header(*name, *value);
                }
                let told = Told::of(request.send().await.expect("an answer")).await;
                // A HEAD has no range.
                let expected = if head && status == 206 { 200 } else { status };
                assert_eq!(told.status, expected, "{conditions:?}");
                match told.status {
                    304 => {
                        assert_eq!((told.header("etag"), told.body.len()), (&*tag, 0), "{conditions:?}");
                        assert_ne!(told.header("cache-control"), "");
                        assert_eq!(told.header("content-length"), "", "a 304 has no length of its own");
                    }
                    412 if !head => assert_eq!(told.refusal(), "version_conflict"),
                    _ => {}
                }
            }
        }
    }
}

#[tokio::test]
async fn equal_bytes_of_two_tenants_have_nothing_in_common_that_shows() {
    let host = Host::start().await;
    let mut tags = Vec::new();
    for tenant in ["acme", "globex", "Acme"] {
        let asset = host.owner(tenant).upload(png(5, 5)).await;
        tags.push(Told::of(host.stranger().get(&asset.url).await).await.header("etag").to_owned());
    }

    let distinct: std::collections::BTreeSet<&String> = tags.iter().collect();
    assert_eq!(distinct.len(), 3, "{tags:?}");
}

#[tokio::test]
async fn a_condition_opens_nothing_that_is_closed() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(5, 5)).await;
    let tag = Told::of(host.stranger().get(&asset.url).await).await.header("etag").to_owned();
    let over = owner.share(&asset, 1).await;
    host.advance(std::time::Duration::from_secs(1));
    host.raise_generation("acme", &asset).await;

    for (url, status) in [(&over, 404), (&asset.url, 404)] {
        for (name, value) in
            [("if-none-match", &*tag), ("if-none-match", "*"), ("if-modified-since", EXACT), ("if-match", "\"x\"")]
        {
            let request = host.stranger().request(Method::GET, url).header(name, value);
            assert_eq!(request.send().await.expect("an answer").status(), status, "{name}: {value}");
        }
    }
    let bound = format!("/v1/assets/{}/content", asset.id);
    let request = host.owner("globex").request(Method::GET, &bound).header("if-none-match", &tag);
    assert_eq!(request.send().await.expect("an answer").status(), 404);
}
