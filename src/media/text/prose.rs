//! Text that says in its first lines what it is: subtitles, calendars, messages, scripts.
//!
//! Deliberately absent: the language of code that does not name it. A declared type may.

/// The type that the first line, or the first few, give away.
pub(super) fn by_signature(text: &str) -> Option<&'static str> {
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or_default();
    let upper = first.trim_end().to_ascii_uppercase();
    if let Some(rest) = text.strip_prefix("WEBVTT")
        && (rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
    {
        return Some("text/vtt");
    }
    if upper == "BEGIN:VCALENDAR" {
        return Some("text/calendar");
    }
    if upper == "BEGIN:VCARD" {
        return Some("text/vcard");
    }
    if first.trim_end() == "#EXTM3U" || first.starts_with("#EXTM3U ") {
        return Some("application/vnd.apple.mpegurl");
    }
    if let Some(interpreter) = start.strip_prefix("#!") {
        return script(interpreter.lines().next().unwrap_or_default());
    }
    if start.starts_with("<?php") || start.starts_with("<?=") {
        return Some("text/x-php");
    }
    if first.starts_with("-----BEGIN PGP MESSAGE-----") {
        return Some("application/pgp-encrypted");
    }
    if is_subrip(start) {
        return Some("application/x-subrip");
    }
    if start.starts_with("[Script Info]") {
        return Some("text/x-ssa");
    }
    is_message(text).then_some("message/rfc822")
}

/// By the program that a script asks for.
fn script(line: &str) -> Option<&'static str> {
    let mut words = line.split_ascii_whitespace();
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match name {
        "sh" | "bash" | "dash" | "ksh" | "zsh" | "ash" | "csh" | "tcsh" | "fish" => "text/x-shellscript",
        "python" => "text/x-python",
        "perl" => "text/x-perl",
        "ruby" => "text/x-ruby",
        "lua" => "text/x-lua",
        "tclsh" | "wish" | "tcl" => "text/x-tcl",
        "php" => "text/x-php",
        "node" | "nodejs" | "deno" | "bun" => "text/javascript",
        _ => return None,
    })
}

/// A number, and a line of two times with an arrow between them.
fn is_subrip(text: &str) -> bool {
    let mut lines = text.lines();
    let number = lines
        .next()
        .is_some_and(|line| !line.trim().is_empty() && line.trim().bytes().all(|byte| byte.is_ascii_digit()));
    let times = lines.next().unwrap_or_default();
    let is_time = |time: &str| {
        let digits = time.bytes().filter(u8::is_ascii_digit).count();
        time.matches(':').count() == 2 && time.contains([',', '.']) && digits >= 6
    };
    let mut sides = times.split("-->").map(str::trim);
    let both = sides.next().is_some_and(is_time)
        && sides.next().and_then(|side| side.split_ascii_whitespace().next()).is_some_and(is_time);
    number && both && sides.next().is_none()
}

/// Header fields from the first line on (RFC 5322), two of which only messages have.
fn is_message(text: &str) -> bool {
    let mut fields = 0;
    for (n, line) in text.lines().take(100).enumerate() {
        if line.trim().is_empty() {
            break;
        }
        // An mbox puts a line of its own in front, and long fields are folded.
        if n == 0 && line.starts_with("From ") || n > 0 && line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else { return false };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return false;
        }
        fields += usize::from(FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field)));
    }
    fields >= 2
}

const FIELDS: &[&str] = &[
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Received",
    "Return-Path",
    "MIME-Version",
    "Delivered-To",
    "Content-Type",
    "Reply-To",
    "In-Reply-To",
    "References",
    "DKIM-Signature",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_give_types_away() {
        for (text, name) in [
            ("#!/usr/bin/env -S python3 -u\n", Some("text/x-python")),
            ("#!/bin/node ", Some("text/javascript")),
            ("1\n00:00:01,000 --> 00:00:02,000\nhi\n", Some("application/x-subrip")),
            ("From: a@b\r\nSubject: hi\r\n\r\nbody", Some("message/rfc822")),
            ("Return-Path: <a@b>\nReceived: from x\n\tby y\n\n", Some("message/rfc822")),
            ("Note: this\nis prose", None),
            ("WEBVTTX", None),
            ("1\nword --> word\n", None),
        ] {
            assert_eq!(by_signature(text), name, "{text:?}");
        }
    }
}
