//! Large files, as `put` sends them: in parts, over lines that break, and after it was killed.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Output, Stdio};

use mediakeep::access::hash_secret;
use reqwest::Method;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::bytes::noise;
use crate::harness::fates::{Fate, Line};
use crate::harness::process::{Place, Ran, Server, ran};

const MIB: usize = 1 << 20;

/// A part of 16 MiB and one of 8.
const LARGE: usize = 24 * MIB;

/// The command that puts that file into `run-7` by that address.
fn putting(place: &Place, file: &str, server: &str) -> Command {
    let mut command = place.command(&["put", file, "--server", server, "--run", "run-7"]);
    command.env("MEDIAKEEP_KEY", Server::key());
    command
}

async fn run(command: Command) -> Ran {
    tokio::task::spawn_blocking(|| ran(command)).await.expect("it does not panic")
}

/// What the run has.
async fn assets(server: &Server) -> Vec<Value> {
    let list = server.request(Method::GET, "/v1/runs/run-7/assets").send().await.expect("an answer");
    let list: Value = list.json().await.expect("JSON");
    list["assets"].as_array().expect("a list").clone()
}

/// The bytes behind the URL that was printed.
async fn printed(server: &Server, put: &Ran) -> Vec<u8> {
    assert_eq!((put.code, put.stdout.lines().count()), (0, 2), "{put:?}");
    let url = put.stdout.lines().last().expect("a line").trim();
    let got = server.request(Method::GET, url).send().await.expect("an answer");
    assert_eq!(got.status(), 200);
    got.bytes().await.expect("bytes").into()
}

/// How many uploads are remembered as begun.
fn remembered(place: &Place) -> usize {
    std::fs::read_dir(place.file("state/mediakeep/uploads")).map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_arrives_over_a_line_that_breaks_and_a_proxy_that_refuses() {
    let place = Place::new();
    let server = place.serve().await;
    let bytes = noise(LARGE, 1);
    place.write("löng.bin", &bytes);
    let fates = [Fate::CutAfter(5 * MIB), Fate::Refuse(503), Fate::CutAfter(12 * MIB), Fate::Refuse(502)];
    let line = Line::to(server.port(), &fates).await;

    let put = run(putting(&place, "löng.bin", &line.url())).await;

    assert!(printed(&server, &put).await == bytes);
    let assets = assets(&server).await;
    assert_eq!((assets.len(), &assets[0]["name"]), (1, &"löng.bin".into()));
    assert!(line.sent() < LARGE + LARGE / 2, "{}", line.sent());
    assert_eq!(remembered(&place), 0);
    assert!(server.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bar_shows_on_a_terminal_how_far_it_is_and_nowhere_else() {
    let place = Place::new();
    let server = place.serve().await;
    // The first goes in one request, the second in parts.
    for (file, bytes) in [("small.bin", noise(4 * MIB, 8)), ("large.bin", noise(LARGE, 9))] {
        place.write(file, bytes);
        let (seen, put) = on_a_terminal(putting(&place, file, &server.url(""))).await;
        assert_eq!((put.status.code(), put.stdout.is_empty()), (Some(0), false), "{seen}");
        assert!(seen.contains(file) && seen.contains(" MiB/") && seen.contains("MiB/s"), "{seen:?}");
        // It ends with an empty line: what the next program writes stands by itself.
        assert!(seen.ends_with("\r\u{1b}[2K") || seen.trim_end().ends_with("\u{1b}[2K"), "{seen:?}");
        let said = seen + &String::from_utf8_lossy(&put.stdout);
        let secret = Server::key().rsplit('_').next().expect("a secret").to_owned();
        assert!(!said.contains(&secret) && !said.to_ascii_lowercase().contains("bearer"), "{said:?}");

        let put = run(putting(&place, file, &server.url(""))).await;
        assert_eq!((put.code, put.stderr.as_str()), (0, ""));
    }
}

/// Runs it with a terminal for its errors, and says what that showed.
async fn on_a_terminal(mut command: Command) -> (String, Output) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    let name = ptsname(&ours, Vec::new()).expect("its name").into_string().expect("text");
    let theirs = File::options().read(true).write(true).open(name).expect("its other end");
    let screen = tokio::task::spawn_blocking(move || {
        let (mut ours, mut seen) = (File::from(ours), Vec::new());
        // Once nobody has the other end any more there is nothing to be read, which is an error here.
        let _ = ours.read_to_end(&mut seen);
        String::from_utf8_lossy(&seen).into_owned()
    });
    let ended = tokio::task::spawn_blocking(move || command.env("TERM", "xterm").stderr(theirs).output());
    let put = ended.await.expect("it does not panic").expect("it runs");
    (screen.await.expect("it does not panic"), put)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_was_killed_is_gone_on_with_by_the_next() {
    let place = Place::new();
    let server = place.serve().await;
    let bytes = noise(LARGE, 2);
    place.write("a.bin", &bytes);
    let line = Line::to(server.port(), &[Fate::StallAfter(20 * MIB)]).await;
    let mut command = putting(&place, "a.bin", &line.url());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while line.sent() < 20 * MIB {
        assert_eq!(child.try_wait().expect("a child"), None, "it is cut off from an answer");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    child.kill().expect("a child");
    child.wait().expect("a child");
    assert_eq!(remembered(&place), 1);
    let noted = std::fs::read_dir(place.file("state/mediakeep/uploads")).expect("a folder").next().expect("a note");
    let noted = std::fs::read_to_string(noted.expect("a note").path()).expect("text");
    assert!(noted.trim().len() == 32 && noted.trim().bytes().all(|b| b.is_ascii_hexdigit()), "{noted}");
    std::fs::create_dir(place.file("moved")).expect("a folder");
    std::fs::rename(place.file("a.bin"), place.file("moved/a.bin")).expect("a rename");

    let put = run(putting(&place, "moved/a.bin", &line.url())).await;

    assert!(printed(&server, &put).await == bytes);
    assert_eq!(assets(&server).await.len(), 1);
    assert!(line.sent() < LARGE + LARGE / 2, "{}", line.sent());
    assert_eq!(remembered(&place), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_remembered_of_an_upload_that_is_over_or_of_other_bytes_does_not_count() {
    let place = Place::new();
    let server = place.serve().await;
    place.write("a.bin", noise(LARGE, 3));
    let line = Line::to(server.port(), &[Fate::StallAfter(2 * MIB), Fate::StallAfter(2 * MIB)]).await;
    let killed = async |seen: usize| {
        let mut command = putting(&place, "a.bin", &line.url());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        while line.sent() < seen {
            assert_eq!(child.try_wait().expect("a child"), None, "it goes on until it is killed");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
    };
    killed(2 * MIB).await;
    place.write("a.bin", noise(LARGE, 4));
    killed(4 * MIB).await;
    assert_eq!(remembered(&place), 2, "another file is another upload");
    for note in std::fs::read_dir(place.file("state/mediakeep/uploads")).expect("a folder") {
        let note = note.expect("a note").path();
        let id = std::fs::read_to_string(&note).expect("text");
        loop {
            let ended = server.request(Method::DELETE, &format!("/v1/uploads/{}", id.trim()));
            let ended = ended.header("Tus-Resumable", "1.0.0").send().await.expect("an answer").status();
            if ended == 204 {
                break;
            }
            assert_eq!(ended, 423, "whoever wrote it may not have noticed yet");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    let put = run(putting(&place, "a.bin", &line.url())).await;

    assert!(printed(&server, &put).await == noise(LARGE, 4));
    assert_eq!((assets(&server).await.len(), remembered(&place)), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_a_large_file_is_told_at_once_and_the_same_bytes_twice_are_two_assets() {
    let place = Place::with(&format!(
        "[[access.api_keys]]\nid = \"writer\"\ntenant = \"acme\"\nscopes = [\"assets:write\"]\nsecret_sha256 = \"{}\"\n\
         [limits]\nmax_upload_bytes = \"25 MiB\"",
        hash_secret("of-the-writer")
    ));
    let server = place.serve().await;
    place.write("a.bin", noise(LARGE, 5));
    place.write("b.bin", noise(LARGE + 2 * MIB, 6));
    let base = server.url("");

    let too_large = run(putting(&place, "b.bin", &base)).await;
    let mut wrong_key = putting(&place, "a.bin", &base);
    wrong_key.env("MEDIAKEEP_KEY", "mk_acme_wrong");
    let wrong_key = run(wrong_key).await;
    for (refused, why) in [(&too_large, "413"), (&wrong_key, "401")] {
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }

    let first = run(putting(&place, "a.bin", &base)).await;
    assert!(printed(&server, &first).await == noise(LARGE, 5));
    // A key that may not mint has the URL that wants a credential.
    let mut writer = putting(&place, "a.bin", &base);
    writer.env("MEDIAKEEP_KEY", "mk_writer_of-the-writer");
    let second = run(writer).await;
    let bound = second.stdout.lines().last().expect("a line").trim().trim_start_matches(&base).to_owned();
    assert!(bound.starts_with("/v1/assets/ast_") && bound.ends_with("/content"), "{second:?}");
    let got = server.request(Method::GET, &bound).send().await.expect("an answer");
    assert!(got.bytes().await.expect("bytes") == noise(LARGE, 5));
    assert_eq!(assets(&server).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_knows_no_uploads_in_parts_gets_one_request() {
    let place = Place::new();
    place.write("a.bin", noise(LARGE, 7));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let old = tokio::spawn(async move {
        let mut heard = Vec::new();
        while heard.len() < 2 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a byte"));
            }
            let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).await.expect("a body");
            let (status, said) = match head.starts_with("options ") {
                true => ("404 Not Found", r#"{"error":"not_found","message":"no such route"}"#),
                false => ("201 Created", r#"{"url":"http://old/a/1"}"#),
            };
            let length = said.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{said}");
            stream.write_all(answer.as_bytes()).await.expect("it listens");
            heard.push((head.lines().next().expect("a line").to_owned(), body.len()));
        }
        heard
    });

    let put = run(putting(&place, "a.bin", &format!("http://{address}"))).await;

    assert_eq!((put.code, put.stdout.lines().last()), (0, Some("  http://old/a/1")), "{put:?}");
    let expected = [("options /v1/uploads http/1.1", 0), ("post /v1/runs/run-7/assets?name=a.bin http/1.1", LARGE)];
    assert_eq!(old.await.expect("it ends"), expected.map(|(line, length)| (line.to_owned(), length)));
}
