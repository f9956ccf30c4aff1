//! Parts of the bytes, small and large, on both routes.

use std::ops::Range;

use reqwest::Method;

use crate::harness::bytes::noise;
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host};

/// One asset of a single piece and one of many: `SMALL` is read at once, `LARGE` goes out in chunks.
const SMALL: usize = 1_000;
const LARGE: usize = 1_000_000;

#[tokio::test]
async fn one_range_is_a_206_with_just_those_bytes() {
    each_size(async |asked, bytes| {
        let len = bytes.len();
        for (range, expected) in [
            ("bytes=0-1", 0..2),
            ("bytes=0-0", 0..1),
            ("bytes=500-", 500..len),
            ("bytes=-500", len - 500..len),
            ("bytes=-99999999", 0..len),
            ("bytes=0-99999999", 0..len),
            ("bytes=999-99999999999999999999999", 999..len),
            ("bytes=0-9,5-14", 0..15),
            ("bytes=99999999-,0-1", 0..2),
            ("BYTES=,3-4,", 3..5),
        ] {
            let told = asked(range).await;
            assert_eq!(told.status, 206, "{range} of {len}");
            assert_eq!(told.header("content-range"), format!("bytes {}-{}/{len}", expected.start, expected.end - 1));
            assert_eq!(told.header("content-length"), expected.len().to_string(), "{range}");
            assert_eq!((told.header("transfer-encoding"), told.header("accept-ranges")), ("", "bytes"));
            assert_eq!(told.header("content-type"), "application/octet-stream");
            assert!(told.body == bytes[expected], "{range} of {len}");
        }
    })
    .await;
}

#[tokio::test]
async fn several_ranges_are_parts_that_can_be_told_apart() {
    each_size(async |asked, bytes| {
        let len = bytes.len();
        for (range, expected) in [
            ("bytes=0-0,-1", vec![0..1, len - 1..len]),
            ("bytes=500-599,0-9", vec![500..600, 0..10]),
            ("bytes=0-9,90-99,5-14", vec![0..15, 90..100]),
            ("bytes=0-1,2-3", vec![0..2, 2..4]),
        ] {
            let told = asked(range).await;
            assert_eq!((told.status, told.header("content-range")), (206, ""), "{range}");
            assert_eq!(told.header("content-length"), told.body.len().to_string(), "{range}");
            assert_eq!(told.header("transfer-encoding"), "");
            let parts = parts(&told);
            let right = parts
                .iter()
                .zip(&expected)
                .all(|((found, body), range)| found == range && **body == bytes[range.clone()]);
            assert!(right && parts.len() == expected.len(), "{range} of {len}");
        }
        let sixteen: Vec<String> = (0..16).map(|n| format!("{}-{}", n * 10, n * 10 + 1)).collect();
        assert_eq!(parts(&asked(&format!("bytes={}", sixteen.join(","))).await).len(), 16);
    })
    .await;
}

#[tokio::test]
async fn what_costs_more_than_the_whole_is_the_whole() {
    each_size(async |asked, bytes| {
        let seventeen: Vec<String> = (0..17).map(|n| format!("{}-{}", n * 10, n * 10 + 1)).collect();
        for range in
            [&*format!("bytes={}", seventeen.join(",")), "bytes=0-,-1", "bytes=0-,0-,0-", "bytes=0-99999999,1-2"]
        {
            whole(&asked(range).await, &bytes, range);
        }
    })
    .await;
}

#[tokio::test]
async fn a_range_that_does_not_read_is_as_if_it_were_not_there() {
    each_size(async |asked, bytes| {
        for range in [
            "bytes=5-4",
            "bytes=abc",
            "bytes=",
            "bytes=-",
            "items=0-1",
            "0-1",
            "bytes=0-1-2",
            "bytes=--1",
            "bytes = 0-1",
            "bytes=+0-1",
        ] {
            whole(&asked(range).await, &bytes, range);
        }
    })
    .await;
}

#[tokio::test]
async fn two_lines_of_ranges_are_none() {
    let host = Host::start().await;
    let bytes = noise(SMALL, 1);
    let asset = host.owner("acme").upload(bytes.clone()).await;

    let request =
        host.stranger().request(Method::GET, &asset.url).header("range", "bytes=0-1").header("range", "bytes=4-5");
    whole(&Told::of(request.send().await.expect("an answer")).await, &bytes, "two lines");
}

#[tokio::test]
async fn no_byte_of_the_range_is_a_416_with_the_length() {
    each_size(async |asked, bytes| {
        let len = bytes.len();
        let beyond = format!("bytes={len}-");
        for range in
            ["bytes=-0", &beyond, "bytes=99999999-99999999", "bytes=18446744073709551615-", "bytes=-0,99999999-"]
        {
            let told = asked(range).await;
            assert_eq!(told.status, 416, "{range}");
            assert_eq!(told.header("content-range"), format!("bytes */{len}"));
            assert_eq!(told.refusal(), "validation_error: range_not_satisfiable");
        }
    })
    .await;
}

#[tokio::test]
async fn a_range_counts_only_if_the_client_has_the_rest_of_these_bytes() {
    let host = Host::start().await;
    let bytes = noise(SMALL, 1);
    let asset = host.owner("acme").upload(bytes.clone()).await;
    let first = Told::of(host.stranger().get(&asset.url).await).await;
    let (tag, date) = (first.header("etag"), first.header("last-modified"));
    let weak = format!("W/{tag}");

    for (proofs, status) in [
        (&[tag][..], 206),
        (&[date], 206),
        (&[&weak], 200),
        (&["\"another\""], 200),
        (&["Fri, 15 Jan 2027 07:59:59 GMT"], 200),
        (&["Fri, 15 Jan 2027 08:00:01 GMT"], 200),
        (&["yesterday"], 200),
        (&[tag, "\"another\""], 200),
    ] {
        let mut request = host.stranger().request(Method::GET, &asset.url).header("range", "bytes=0-1");
        for proof in proofs {
            request = request.header("if-range", *proof);
        }
        let told = Told::of(request.send().await.expect("an answer")).await;
        assert_eq!(told.status, status, "{proofs:?}");
        assert_eq!(told.body.len(), if status == 206 { 2 } else { SMALL });
    }
}

/// Plays the story on both routes, for an asset of each size.
async fn each_size(story: impl AsyncFn(&dyn Fn(&str) -> Asked, Vec<u8>)) {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for length in [SMALL, LARGE] {
        let bytes = noise(length, 7);
        let asset = owner.upload(bytes.clone()).await;
        story(&|range| ask(&host.stranger(), &asset.url, range), bytes.clone()).await;
        story(&|range| ask(&owner, &bound(&asset), range), bytes).await;
    }
}

type Asked = std::pin::Pin<Box<dyn Future<Output = Told>>>;

fn ask(caller: &Caller<'_>, url: &str, range: &str) -> Asked {
    let request = caller.request(Method::GET, url).header("range", range);
    Box::pin(async move { Told::of(request.send().await.expect("an answer")).await })
}

fn bound(asset: &Asset) -> String {
    format!("/v1/assets/{}/content", asset.id)
}

#[track_caller]
fn whole(told: &Told, bytes: &[u8], what: &str) {
    assert_eq!((told.status, told.header("content-range")), (200, ""), "{what}");
    assert_eq!(told.header("content-length"), bytes.len().to_string(), "{what}");
    assert!(told.body == bytes, "{what}");
}

/// What a client makes of `multipart/byteranges` (RFC 9110 §14.6): each part's range and its bytes.
fn parts(told: &Told) -> Vec<(Range<usize>, &[u8])> {
    let boundary = told.header("content-type").strip_prefix("multipart/byteranges; boundary=").expect("parts");
    let mut rest = &told.body[..];
    let mut parts = Vec::new();
    loop {
        let delimiter = format!("--{boundary}");
        rest = rest.strip_prefix(delimiter.as_bytes()).expect("a delimiter");
        if rest == b"--\r\n" {
            return parts;
        }
        rest = rest.strip_prefix(b"\r\n").expect("the end of a delimiter's line");
        let end = memchr::memmem::find(rest, b"\r\n\r\n").expect("the end of a head");
        let head = std::str::from_utf8(&rest[..end]).expect("a head of text");
        assert!(head.contains("Content-Type: application/octet-stream"), "{head}");
        let range = head.split("Content-Range: bytes ").nth(1).and_then(|range| range.split(['\r', '/']).next());
        let (first, last) = range.and_then(|range| range.split_once('-')).expect("a range");
        let range = first.parse().expect("a number")..last.parse::<usize>().expect("a number") + 1;
        let body = &rest[end + 4..][..range.len()];
        rest = rest[end + 4 + range.len()..].strip_prefix(b"\r\n").expect("the end of a part");
        parts.push((range, body));
    }
}
