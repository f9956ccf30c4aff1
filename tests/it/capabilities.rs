//! Whoever holds no good token learns nothing, not even why.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use mediakeep_keys::{Claims, Class};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{BEGINNING, Host, asset, credential};

#[tokio::test]
async fn whatever_opens_nothing_is_answered_alike() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let mine = owner.upload(png(6, 6)).await;
    let theirs = other.upload(png(6, 6)).await;
    let revoked = owner.upload(png(7, 7)).await;
    host.raise_generation("acme", &revoked).await;
    let token = token_of(&mine.url);
    let [head, payload, mac] = <[&str; 3]>::try_from(token.split('.').collect::<Vec<_>>()).expect("three parts");
    let [their_head, their_payload, their_mac] =
        <[&str; 3]>::try_from(token_of(&theirs.url).split('.').collect::<Vec<_>>()).expect("three parts");
    let kid = kid_of(token);
    let unknown = host.signed("acme", "ast_00000000000000000000000000", Class::Durable, BEGINNING, 1);
    let ahead = host.signed("acme", &mine.id, Class::Durable, BEGINNING + 61, 1);
    let cut = &token[..token.len() - 1];

    let mut table = vec![
        ("nothing", String::new()),
        ("a word", "nothing".into()),
        ("dots", "a..".into()),
        ("more dots", "a.b.c.d".into()),
        ("32 KiB of junk", "A".repeat(32 << 10)),
        ("an unknown asset", unknown),
        ("an older generation", token_of(&revoked.url).into()),
        ("minted too far ahead", ahead),
        ("a token twice", format!("{token}.{token}")),
        ("a token and a dot", format!("{token}.")),
        ("a token cut off", cut.into()),
        ("a token with padding", format!("{token}=")),
        ("a token with a space", format!("{token}%20")),
        ("another tenant's header and MAC", format!("{their_head}.{payload}.{their_mac}")),
        ("another tenant's payload", format!("{head}.{their_payload}.{mac}")),
        ("no MAC", format!("{head}.{payload}.")),
        ("a token of an issuer", include_str!("../../keys/fixtures/rs256.jwt").trim_end().into()),
        ("a credential", credential("acme", "all")),
    ];
    for header in [
        json!({"alg": "none", "typ": "openwop-media+jwt", "kid": kid}),
        json!({"alg": "None", "typ": "openwop-media+jwt", "kid": kid}),
        json!({"alg": "RS256", "typ": "openwop-media+jwt", "kid": kid}),
        json!({"alg": "HS512", "typ": "openwop-media+jwt", "kid": kid}),
        json!({"alg": "HS256", "typ": "JWT", "kid": kid}),
        json!({"alg": "HS256", "typ": "openwop-media+jwt", "kid": "k-none"}),
        json!({"alg": "HS256", "typ": "openwop-media+jwt", "kid": "../../k"}),
        json!({"alg": "HS256", "typ": "openwop-media+jwt", "kid": kid, "crit": ["x"]}),
        json!({"alg": "HS256", "typ": "openwop-media+jwt", "kid": kid, "jku": host.url("/x")}),
        json!({"alg": "HS256", "typ": "openwop-media+jwt"}),
    ] {
        let token = format!("{}.{payload}.{mac}", BASE64URL_NOPAD.encode(header.to_string().as_bytes()));
        table.push(("another header", token));
    }
    for place in [0, head.len() + 3, head.len() + payload.len() + 5, token.len() - 1] {
        table.push(("a changed character", changed(token, place)));
    }

    let expected = Told::of(host.stranger().get("/a/never-a-token").await).await;
    assert_eq!((expected.status, expected.refusal()), (404, "not_found".into()));
    for (what, token) in table {
        let told = Told::of(host.stranger().get(&format!("/a/{token}")).await).await;
        assert_eq!(told, expected, "{what}");
        let head = Told::of(host.stranger().head(&format!("/a/{token}/name.png")).await).await;
        assert_eq!((head.status, &head.headers, head.body.len()), (404, &expected.headers, 0), "{what}");
    }
    assert_eq!(host.stranger().get(&mine.url).await.status(), 200);
}

#[tokio::test]
async fn a_strangers_credential_closes_what_no_credential_opens() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(6, 6)).await;
    let unknown = Told::of(host.stranger().get("/a/nothing").await).await;
    let open = Told::of(host.stranger().get(&asset.url).await).await;

    for foreign in [host.owner("globex"), host.owner("Acme")] {
        assert_eq!(Told::of(foreign.get(&asset.url).await).await, unknown);
    }
    for ignored in
        [credential("acme", "all"), credential("acme", "audit-read"), "mk_globex-all_wrong".into(), "x.y.z".into()]
    {
        assert_eq!(Told::of(host.bearer(&ignored).get(&asset.url).await).await, open, "{ignored}");
    }
    for garbage in ["Basic Z2xvYmV4Og==", "Bearer", "", "\u{fc}"] {
        let request = host.stranger().request(Method::GET, &asset.url).header("authorization", garbage.as_bytes());
        assert_eq!(Told::of(request.send().await.expect("an answer")).await, open, "{garbage}");
    }
}

#[tokio::test]
async fn a_tenant_that_is_suspended_is_not_served_to_anybody() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let asset = owner.upload(png(6, 6)).await;
    let delivery = owner.share(&asset, 900).await;
    let theirs = other.upload(png(6, 6)).await;
    let unknown = Told::of(host.stranger().get("/a/nothing").await).await;
    let suspend = |suspended| {
        host.reload(|settings| {
            settings.tenants =
                vec![mediakeep::config::settings::Tenant { id: "acme".into(), suspended, ..Default::default() }];
        });
    };

    suspend(true);
    for url in [&asset.url, &delivery] {
        assert_eq!(Told::of(host.stranger().get(url).await).await, unknown);
    }
    let told = Told::of(owner.get(&format!("/v1/assets/{}", asset.id)).await).await;
    assert_eq!((told.status, told.refusal()), (403, "forbidden: tenant_suspended".into()));
    assert_eq!(other.get(&theirs.url).await.status(), 200);

    suspend(false);
    assert_eq!(owner.get(&asset.url).await.status(), 200);
    assert_eq!(host.stranger().get(&delivery).await.status(), 200);
}

#[tokio::test]
async fn a_key_that_is_gone_takes_its_rights_with_it_and_leaves_the_runs_urls() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(6, 6)).await;

    host.reload(|settings| settings.access.api_keys.retain(|key| key.id != "acme-all"));

    let told = Told::of(owner.post(&format!("/v1/assets/{}/urls", asset.id), &json!({"class": "durable"})).await).await;
    assert_eq!((told.status, told.refusal()), (401, "unauthenticated".into()));
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
}

#[tokio::test]
async fn a_token_from_a_clock_ahead_of_ours_is_good_and_lives_no_longer() {
    let host = Host::start().await;
    let mine = host.owner("acme").upload(png(6, 6)).await;
    let class = Class::Delivery {
        expires_at: BEGINNING + 70,
        url_id: "url_of_another_replica".into(),
        disposition: None,
        counted: false,
    };
    let ahead = host.signed("acme", &mine.id, class.clone(), BEGINNING + 60, 1);
    let too_far = host.signed("acme", &mine.id, class, BEGINNING + 61, 1);
    let status = async |token: &str| host.stranger().get(&format!("/a/{token}")).await.status().as_u16();

    assert_eq!((status(&ahead).await, status(&too_far).await), (200, 404));
    host.advance(Duration::from_secs(1));
    assert_eq!((status(&ahead).await, status(&too_far).await), (200, 200));
    host.advance(Duration::from_secs(69));
    assert_eq!((status(&ahead).await, status(&too_far).await), (410, 410));
}

#[tokio::test]
async fn who_holds_an_authentic_token_hears_what_has_ended() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let request = owner.request(Method::POST, "/v1/assets").query(&[("retainUntil", "2027-01-15T08:10:00Z")]);
    let asset = asset(request.body(png(6, 6)).send().await.expect("an answer")).await;
    let delivery = owner.share(&asset, 60).await;

    host.advance(Duration::from_secs(60));
    let told = Told::of(host.stranger().get(&delivery).await).await;
    assert_eq!((told.status, told.refusal()), (410, "not_found: url_expired".into()));
    assert_eq!(told.json()["details"].as_object().map(serde_json::Map::len), Some(1));

    host.advance(Duration::from_secs(48 * 3600));
    let told = Told::of(host.stranger().get(&asset.url).await).await;
    assert_eq!((told.status, told.refusal()), (410, "not_found: asset_expired".into()));
    let details = &told.json()["details"];
    assert_eq!(
        (&details["sha256"], &details["bytes"], &details["mimeType"]),
        (&asset.answer["asset"]["sha256"], &asset.answer["asset"]["bytes"], &json!("image/png"))
    );
    assert!(details["at"].is_string());
    let bound = Told::of(owner.get(&format!("/v1/assets/{}/content", asset.id)).await).await;
    assert_eq!((bound.status, &bound.body), (410, &told.body));
    assert_eq!(Told::of(host.stranger().get(&delivery).await).await.refusal(), "not_found: url_expired");
    let foreign = Told::of(host.owner("globex").get(&asset.url).await).await;
    assert_eq!(foreign, Told::of(host.stranger().get("/a/nothing").await).await);
}

impl Host {
    /// A token that this host's ring signs for those claims, whatever they say.
    fn signed(&self, tenant: &str, asset: &str, class: Class, issued_at: i64, generation: u32) -> String {
        let live = self.app().live();
        let claims = Claims { tenant: tenant.into(), asset: asset.into(), class, issued_at, generation };
        live.ring.mint(live.ring.signing_kid(BEGINNING), &claims).expect("claims of the right form")
    }
}

/// The key that a token names.
fn kid_of(token: &str) -> String {
    let header = BASE64URL_NOPAD.decode(token.split('.').next().expect("a header").as_bytes()).expect("base64url");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!((&header["alg"], &header["typ"]), (&json!("HS256"), &json!("openwop-media+jwt")));
    header["kid"].as_str().expect("a kid").to_owned()
}

fn token_of(url: &str) -> &str {
    url.rsplit_once("/a/").expect("a capability URL").1
}

fn changed(token: &str, place: usize) -> String {
    let other = if token.as_bytes()[place] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &token[..place], &token[place + 1..])
}
