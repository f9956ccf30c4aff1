//! `Upload-Checksum`: a digest of a request's bytes, sent before them.

use actix_web::http::header::HeaderMap;
use data_encoding::BASE64;
use ring::digest::{self, Context};

use super::headers::text;
use crate::error::ApiError;

/// Those that there are: the first is what clients of tus send, though nothing else should rely on it.
pub(super) const ALGORITHMS: &str = "sha1,sha256,sha384,sha512";

/// What the bytes should come to, and what they come to so far.
pub(super) struct Checksum {
    hash: Context,
    right: Vec<u8>,
}

impl Checksum {
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let Some(header) = text(headers, "upload-checksum")? else {
            return Ok(None);
        };
        let wrong =
            || ApiError::validation(format!("Upload-Checksum: one of {ALGORITHMS}, a space, the digest in base64"));
        let (name, value) = header.split_once(' ').ok_or_else(wrong)?;
        let algorithm = match name {
            "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => &digest::SHA256,
            "sha384" => &digest::SHA384,
            "sha512" => &digest::SHA512,
            _ => return Err(wrong()),
        };
        let right = BASE64.decode(value.trim().as_bytes()).map_err(|_| wrong())?;
        if right.len() != algorithm.output_len() {
            return Err(wrong());
        }
        Ok(Some(Self { hash: Context::new(algorithm), right }))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    pub(super) fn came_out_right(self) -> bool {
        self.hash.finish().as_ref() == self.right
    }
}
