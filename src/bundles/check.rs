//! Checking a bundle: what in it should not travel, and which of the assets that it names are not what it says.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mediakeep_storage::AssetRecord;

use super::found::{Finding, MAX_FINDINGS, Mention};
use super::{BundleError, Reading};
use crate::access::Principal;
use crate::app::App;

/// All that is wrong with the bundle; at most [`MAX_FINDINGS`].
pub async fn check(app: &App, caller: &Principal, bundle: Reading<'_>) -> Result<Vec<Finding>, BundleError> {
    let (found, _) = bundle.finish()?;
    let mut findings = found.findings;
    let mut known: HashMap<_, Option<AssetRecord>> = HashMap::new();
    for mention in found.mentions {
        if findings.len() >= MAX_FINDINGS {
            break;
        }
        let record = match mention.asset {
            None => None,
            Some(asset) => match known.entry(asset) {
                Entry::Occupied(known) => known.into_mut().as_ref(),
                Entry::Vacant(place) => place.insert(app.index.find(&caller.tenant, asset).await?).as_ref(),
            },
        };
        findings.extend(compared(&mention, record).map(|(code, message)| {
            let path = mention.path.clone();
            Finding { path, code, message }
        }));
    }
    findings.truncate(MAX_FINDINGS);
    Ok(findings)
}

/// What a mention says against what there is. Foreign and absent are one.
fn compared(
    mention: &Mention,
    record: Option<&AssetRecord>,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let Some(record) = record else {
        return [Some(("unknown_asset", "no such asset")), None, None].into_iter().flatten();
    };
    let is_erased = record.state.name() == "erased";
    let digest = mention.sha256.as_ref().is_some_and(|sha256| !is_erased && *sha256 != record.sha256.to_string());
    let size = mention.bytes.is_some_and(|bytes| bytes != record.bytes);
    [
        (!record.is_live() && !mention.is_over).then_some(("expired", "an asset that is over")),
        digest.then_some(("digest_mismatch", "its bytes have another digest")),
        size.then_some(("size_mismatch", "it has another size")),
    ]
    .into_iter()
    .flatten()
}
