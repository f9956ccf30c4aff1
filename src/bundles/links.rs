//! The links of ours in a word: of which kind they are, whose, and where they stand.
//!
//! A capability is found by itself, not by the URL around it: whoever has the token has the URL. So it does not matter what stands before
//! or behind it, nor by which address the service was known when it was made; a URL within a URL is looked at with its percent-encoding
//! undone, as often as it takes.

use std::ops::Range;

use data_encoding::BASE64URL_NOPAD;
use mediakeep_storage::{AssetId, TenantId};
use memchr::memmem;
use serde_json::Value;

use super::word::Word;
use crate::app::App;

/// Reads links for one tenant. Nothing is looked up: what a link says does not depend on what exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'a> {
    pub(super) app: &'a App,
    pub(super) tenant: &'a TenantId,
}

/// A link of ours, or one that looks so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// A capability of the tenant's own, past or alive.
    Capability(AssetId),
    /// A bound URL; `None`: of what is no asset's name.
    Bound(Option<AssetId>),
    /// It names another tenant.
    Foreign,
    /// It is under our address, and no URL that we have made.
    Broken,
}

/// A link, and where it stands in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) link: Link,
    pub(super) place: Range<u64>,
    /// How often it is percent-encoded there.
    pub(super) layers: u8,
}

/// How every token of ours begins: `{"alg":"HS256","typ":"openwop-media+jwt"`, as base64 writes it.
const HEAD: &[u8] = b"eyJhbGciOiJIUzI1NiIsInR5cCI6Im9wZW53b3AtbWVkaWErand0I";

/// The longest part of a token that is looked for, in bytes: a tenant's and an asset's names, a kid and a few numbers have a third of it.
const MAX_PART: usize = 1024;

/// The length of a token's last part, of 32 bytes.
const MAC: usize = 43;

/// So often percent-encoding is undone.
const MAX_LAYERS: u8 = 4;

impl Links<'_> {
    /// The links in a word, in no order, none within another.
    pub(super) fn of(&self, word: &Word) -> Vec<Met> {
        let mut met = Vec::new();
        self.look(word, 0, &mut met);
        met
    }

    /// What is hidden deepest comes first. Of two that begin at one place the one that is less hidden counts: it was not encoded there.
    fn look(&self, word: &Word, layers: u8, met: &mut Vec<Met>) {
        if layers < MAX_LAYERS
            && let Some(inner) = word.decoded()
        {
            self.look(&inner, layers + 1, met);
        }
        for (link, range) in self.in_bytes(word.bytes()) {
            let place = word.places(&range);
            match met.iter_mut().find(|other| other.place.start < place.end && place.start < other.place.end) {
                None => met.push(Met { link, place, layers }),
                Some(other) if other.place.start == place.start => *other = Met { link, place, layers },
                Some(_) => {}
            }
        }
    }

    fn in_bytes(&self, bytes: &[u8]) -> Vec<(Link, Range<usize>)> {
        let mut found: Vec<(Link, Range<usize>)> = Vec::new();
        for at in memmem::find_iter(bytes, HEAD) {
            if let Some(end) = token_end(bytes, at)
                && let Some(link) = self.opened(&bytes[at..end])
            {
                found.push((link, before(bytes, at)..behind(bytes, end)));
            }
        }
        for at in memmem::find_iter(bytes, self.app.base_url.as_bytes()) {
            if found.iter().any(|(_, other)| other.contains(&at)) {
                continue;
            }
            let path = at + self.app.base_url.len();
            if let Some((link, end)) = self.under_base(&bytes[path..]) {
                found.push((link, at..path + end));
            }
        }
        found
    }

    /// What a token says, if it is authentic.
    fn opened(&self, token: &[u8]) -> Option<Link> {
        let (claims, _) = self.app.live().ring.open(std::str::from_utf8(token).ok()?).ok()?;
        Some(match AssetId::parse(&claims.asset) {
            Ok(asset) if claims.tenant == self.tenant.as_str() => Link::Capability(asset),
            Ok(_) => Link::Foreign,
            Err(_) => Link::Broken,
        })
    }

    /// What a path under our address is, and how long.
    fn under_base(&self, path: &[u8]) -> Option<(Link, usize)> {
        let length = |rest: &[u8]| rest.iter().position(|byte| b"/?#&,;".contains(byte)).unwrap_or(rest.len());
        if let Some(rest) = path.strip_prefix(b"/a/") {
            let token = &rest[..length(rest)];
            let token = &token[..token.iter().rposition(|byte| !ends_sentence(*byte)).map_or(0, |last| last + 1)];
            let foreign = tenant_said(token).is_some_and(|tenant| tenant != self.tenant.as_str());
            return Some((if foreign { Link::Foreign } else { Link::Broken }, 3 + token.len()));
        }
        let rest = path.strip_prefix(b"/v1/assets/")?;
        let (id, rest) = rest.split_at(length(rest));
        let rest = rest.strip_prefix(b"/content")?;
        if rest.first().is_some_and(|next| next.is_ascii_alphanumeric() || b"/_-".contains(next)) {
            return None;
        }
        let asset = std::str::from_utf8(id).ok().and_then(|id| AssetId::parse(id).ok());
        Some((Link::Bound(asset), "/v1/assets/".len() + id.len() + "/content".len()))
    }
}

/// Where the token ends that begins there: three parts, of which the last has one length.
fn token_end(bytes: &[u8], at: usize) -> Option<usize> {
    let part = |from: usize| bytes[from..].iter().take(MAX_PART).take_while(|byte| is_base64url(**byte)).count();
    let payload = at + part(at) + 1;
    let mac = payload + bytes.get(payload..).map(|_| part(payload))? + 1;
    let dots = [payload - 1, mac - 1];
    let whole =
        dots.iter().all(|dot| bytes.get(*dot) == Some(&b'.')) && bytes.get(mac..).is_some_and(|_| part(mac) >= MAC);
    whole.then_some(mac + MAC)
}

/// Where the URL begins whose token begins there: with its scheme, else with its path; a token alone begins with itself.
fn before(bytes: &[u8], token: usize) -> usize {
    if token == 0 || bytes[token - 1] != b'/' {
        return token;
    }
    let from = bytes[..token].iter().rposition(|byte| !is_of_path(*byte)).map_or(0, |last| last + 1);
    let lower = bytes[from..token].to_ascii_lowercase();
    let schemes = [b"https://".as_slice(), b"http://"];
    let scheme = schemes.iter().filter_map(|scheme| memmem::rfind(&lower, scheme)).max();
    let path = memchr::memrchr(b':', &lower).map_or(0, |colon| colon + 1);
    from + scheme.unwrap_or(path)
}

/// Where the URL ends whose token ends there: a file name belongs to it, the punctuation of a sentence does not.
fn behind(bytes: &[u8], token: usize) -> usize {
    let Some((b'/', name)) = bytes.get(token..).and_then(<[u8]>::split_first) else {
        return token;
    };
    let name = &name[..name.iter().position(|byte| !is_of_path(*byte) || *byte == b'/').unwrap_or(name.len())];
    let name = name.iter().rposition(|byte| !ends_sentence(*byte)).map_or(0, |last| last + 1);
    token + 1 + name
}

/// Whose a token says that it is, true or not.
fn tenant_said(token: &[u8]) -> Option<String> {
    let payload = token.split(|byte| *byte == b'.').nth(1)?;
    let json: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(payload).ok()?).ok()?;
    json["tid"].as_str().map(str::to_owned)
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-._~:@/+%!$*".contains(&byte)
}

fn ends_sentence(byte: u8) -> bool {
    b".,;:!?*".contains(&byte)
}
