//! HTML, as browsers recognise it (WHATWG MIME Sniffing section 7.1).

use crate::media::markup::starts;

/// True when the first thing after white space is one of the known tags and the tag ends there. Comments in front are
/// skipped, so that what a longer one hides is found; a comment alone is HTML, too, and so is the end of one.
pub(super) fn is_html(text: &str) -> bool {
    let start = text.trim_start_matches(SPACE);
    // What a page is cut out of may have been in a comment.
    let mut rest = start.strip_prefix("-->").map_or(start, |rest| rest.trim_start_matches(SPACE)).as_bytes();
    while starts(rest, b"<!--") {
        let Some(end) = memchr::memmem::find(&rest[4..], b"-->").map(|at| at + 7) else {
            break;
        };
        let after = rest[end..].trim_ascii_start();
        if after.is_empty() {
            return true;
        }
        rest = after;
        if !rest.starts_with(b"<") {
            return true;
        }
    }
    TAGS.iter().chain(MORE_TAGS).any(|tag| {
        starts(rest, tag)
            && rest.get(tag.len()).is_some_and(|byte| matches!(byte, b' ' | b'>' | b'\t' | b'\n' | b'\r' | 0x0C | b'/'))
    }) || starts(rest, b"<!--")
        && rest.get(4).is_some_and(|byte| matches!(byte, b' ' | b'>' | b'\t' | b'\n' | b'\r' | 0x0C | b'-'))
}

const SPACE: [char; 5] = ['\t', '\n', '\u{C}', '\r', ' '];

const TAGS: &[&[u8]] = &[
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
];

/// Not WHATWG's, but HTML all the same, and better said so than shown.
const MORE_TAGS: &[&[u8]] = &[
    b"<meta",
    b"<link",
    b"<form",
    b"<img",
    b"<object",
    b"<embed",
    b"<base",
    b"<frameset",
    b"<center",
    b"<span",
    b"<ul",
    b"<ol",
    b"<h2",
    b"<h3",
    b"<pre",
    b"<section",
    b"<article",
    b"<main",
    b"<header",
    b"<nav",
    b"<button",
    b"<input",
    b"<video",
    b"<audio",
    b"<canvas",
    b"<template",
    b"<noscript",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_to_end() {
        for html in [
            "<html>",
            " <a href=x>",
            "<!DOCTYPE HTML>",
            "<!-- x --> <p>",
            "<!-- c -->text",
            "<b>",
            "<!-- ",
            "-->\n<div id=x>",
            "<ul>",
        ] {
            assert!(is_html(html), "{html}");
        }
        for text in ["<", "<apple>", "<htm", "text <p>", "<!", "<bold>"] {
            assert!(!is_html(text), "{text}");
        }
    }
}
