//! `Upload-Concat`: a piece of a later upload, or an upload that is joined of pieces.

use std::collections::HashSet;

use mediakeep_storage::UploadId;
use mediakeep_storage::resumable::Purpose;

use crate::app::App;
use crate::assets::AssetError;
use crate::assets::resumable::MOST_PIECES;
use crate::error::ApiError;

pub(super) fn purpose(app: &App, header: Option<&str>) -> Result<Purpose, ApiError> {
    let wrong =
        || ApiError::validation("Upload-Concat: partial, or final; and URLs of partial uploads, each named once");
    let Some(header) = header else {
        return Ok(Purpose::Asset);
    };
    if header == "partial" {
        return Ok(Purpose::Piece);
    }
    let urls = header.strip_prefix("final;").ok_or_else(wrong)?;
    let urls: Vec<&str> = urls.split(' ').filter(|url| !url.is_empty()).collect();
    if urls.is_empty() || urls.len() > MOST_PIECES {
        return Err(wrong());
    }
    let ids: Vec<Option<UploadId>> = urls.iter().map(|url| upload_of(&app.base_url, url)).collect();
    let unknown: Vec<usize> = (0..ids.len()).filter(|at| ids[*at].is_none()).collect();
    if !unknown.is_empty() {
        return Err(AssetError::Unknown { positions: unknown }.into());
    }
    let ids: Vec<UploadId> = ids.into_iter().flatten().collect();
    let once: HashSet<UploadId> = ids.iter().copied().collect();
    if once.len() < ids.len() {
        return Err(wrong());
    }
    Ok(Purpose::Joined(ids))
}

/// The upload of a URL of ours, with or without its host.
fn upload_of(base_url: &str, url: &str) -> Option<UploadId> {
    let (before, id) = url.rsplit_once("/v1/uploads/")?;
    // Below the host there may be a path under which the service is reached.
    let ours = before == base_url || before.is_empty() || before.starts_with('/') && base_url.ends_with(before);
    UploadId::parse(id).ok().filter(|_| ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_named_by_its_url_or_its_path() {
        let (base, id) = ("https://media.example/keep", "00112233445566778899aabbccddeeff");
        for before in ["https://media.example/keep", "/keep", ""] {
            assert!(upload_of(base, &format!("{before}/v1/uploads/{id}")).is_some(), "{before}");
        }
        for url in ["https://other.example/keep/v1/uploads/", "//other.example/v1/uploads/", "/x/v1/uploads/", ""] {
            assert!(upload_of(base, &format!("{url}{id}")).is_none(), "{url}");
        }
        assert!(upload_of(base, "/v1/uploads/x").is_none());
    }
}
