//! The same stories on the other index.
//!
//! The stories of this binary run on the embedded index. One of them starts a PostgreSQL server, and the whole binary once more on it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use mediakeep_storage::testing;

use crate::harness::index;

/// Stories that would say nothing of PostgreSQL, and why. They are told once, in the ordinary run.
const TOLD_ONCE: &[(&str, &str)] = &[
    ("arrows::", "reads source files"),
    ("backends::", "this, and stories that name their index themselves"),
    ("command_line::help_lists_what_there_is", "needs no index"),
    ("command_line::the_openapi_document_needs_no_configuration", "needs no index"),
    ("crash::an_index_that_was_cut_off_while_it_was_made_is_made_anew", "cuts off a file of sled's"),
    ("quickstart::", "its index is always sled"),
    ("settings::a_file_that_is_named_has_to_exist", "needs no index"),
    (
        "settings::a_second_process_on_one_index_is_told_so_within_a_second",
        "sled's file lock: PostgreSQL takes a second process",
    ),
    ("settings::a_variable_wins_over_the_file_and_both_over_the_default", "needs no index"),
];

/// Lives of the crash story on PostgreSQL: which moments it finds depends on the service's code more than on the index's.
const KILLS: &str = "4";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_on_postgresql() {
    let server = testing::server_url().await;
    let all = stories();
    let told_once: Vec<&String> =
        all.iter().filter(|story| TOLD_ONCE.iter().any(|(name, _)| story.starts_with(name))).collect();
    for (name, _) in TOLD_ONCE {
        assert!(told_once.iter().any(|story| story.starts_with(name)), "{name} is no story any more");
    }

    let mut run = this_binary();
    run.args(TOLD_ONCE.iter().flat_map(|(name, _)| ["--skip", name]));
    run.env(index::VARIABLE, "postgres").env(testing::SERVER_VARIABLE, server.as_str()).env("MEDIAKEEP_KILLS", KILLS);
    let told = tokio::task::spawn_blocking(move || passed(run)).await.expect("it does not panic");

    assert_eq!(told, Some(all.len() - told_once.len()), "stories that passed on PostgreSQL");
}

/// Every story of this binary.
fn stories() -> Vec<String> {
    let output = this_binary().args(["--list", "--format", "terse"]).output().expect("a list");
    let list = String::from_utf8(output.stdout).expect("text");
    list.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
}

fn this_binary() -> Command {
    Command::new(std::env::current_exe().expect("a path"))
}

/// Runs stories to their end, showing what they say; how many there were, if all of them passed.
fn passed(mut run: Command) -> Option<usize> {
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut passed = None;
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        // Past the capture of this test's own output: whoever waits sees how far it is.
        let _ = writeln!(std::io::stdout(), "on postgresql: {line}");
        if let Some(result) = line.strip_prefix("test result: ok. ") {
            passed = result.split(' ').next().and_then(|count| count.parse().ok());
        }
    }
    child.wait().expect("its end").success().then_some(passed).flatten()
}
