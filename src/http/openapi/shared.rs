//! What operations have in common, said once and laid over each of them: refusals, headers, and what parameters look like.

use serde_json::{Map, Value, json};

/// Completes the document that the handlers' annotations make.
pub(super) fn complete(document: &mut Value) {
    document["components"]["responses"] =
        REFUSALS.iter().map(|refusal| (name_of(refusal.0), response(refusal))).collect();
    document["components"]["headers"] = HEADERS.iter().map(|(name, text)| ((*name).to_owned(), header(text))).collect();
    let Some(paths) = document["paths"].as_object_mut() else {
        return;
    };
    for (path, item) in paths.iter_mut() {
        let Some(item) = item.as_object_mut() else {
            continue;
        };
        for (method, operation) in item.iter_mut() {
            complete_operation(path, method, operation);
        }
        if let Some(head) = item.get("get").filter(|get| is_delivery(get)).map(head_of) {
            item.insert("head".to_owned(), head);
        }
    }
    if let Some(named) = paths.get("/a/{capability}").map(with_file_name) {
        paths.insert("/a/{capability}/{filename}".to_owned(), named);
    }
}

/// Refusals by their status: the `error` that they carry, and when.
const REFUSALS: [(u16, &str, &str); 16] = [
    (400, "validation_error", "Something in the request is not what it should be; the message names it."),
    (401, "unauthenticated, key_expired or key_revoked", "There is no valid credential."),
    (
        403,
        "forbidden",
        "The credential lacks a scope (`details.scopeRequired`), its tenant is suspended (`details.reason`), or the request names another tenant. It never depends on what exists.",
    ),
    (404, "not_found", "There is no such thing for this tenant. Foreign and unknown are one answer."),
    (405, "method_not_allowed", "The resource does not know the method; `Allow` names those that it knows."),
    (409, "named at the operation", "Something stands against it."),
    (410, "not_found", "It is over; `details.reason` says why: `url_expired`, `asset_expired`, `asset_erased`."),
    (412, "version_conflict", "It is not what `If-Match` or `If-Unmodified-Since` takes it for."),
    (413, "payload_too_large", "The body is too large; `details.limit` says how large it may be."),
    (415, "unsupported_media_type", "The body is of a type that is not taken here."),
    (416, "validation_error", "No byte of the range is there; `Content-Range` says how many there are."),
    (
        429,
        "rate_limited",
        "Too many requests or uploads at a time (`details.reason`: `rate`), or more than the tenant's quota leaves (`quota`).",
    ),
    (500, "internal_error", "Something went wrong here."),
    (503, "service_unavailable", "A store is not available now."),
    (507, "insufficient_storage", "There is no space left."),
    (0, "the code of the refusal", "Any other refusal has the same shape."),
];

/// Headers of answers.
const HEADERS: [(&str, &str); 17] = [
    ("X-Request-Id", "Names the request, in our log too."),
    ("Allow", "The methods that the resource knows."),
    ("WWW-Authenticate", "`Bearer`"),
    ("Retry-After", "Seconds to wait before trying again."),
    ("Content-Range", "Which bytes these are, of how many."),
    ("Cache-Control", "For how long who may keep the answer."),
    ("ETag", "Strong; it differs between tenants for equal bytes."),
    ("Last-Modified", "When the asset was stored: its bytes never change."),
    ("Accept-Ranges", "`bytes`"),
    ("Repr-Digest", "SHA-256 of all the bytes (RFC 9530)."),
    (
        "Content-Disposition",
        "`inline` for passive media and clean PDFs, `attachment` for everything else; the name by RFC 8187.",
    ),
    ("X-Content-Type-Options", "`nosniff`"),
    ("Content-Security-Policy", "Nothing is loaded or run; `sandbox` except for a clean PDF."),
    ("Referrer-Policy", "`no-referrer`"),
    ("Cross-Origin-Resource-Policy", "`cross-origin`"),
    ("Access-Control-Allow-Origin", "`*`, never with credentials."),
    ("Location", "Where the asset's metadata is, or the upload."),
];

const DELIVERY: [&str; 8] = [
    "ETag",
    "Last-Modified",
    "Accept-Ranges",
    "Repr-Digest",
    "Content-Disposition",
    "X-Content-Type-Options",
    "Content-Security-Policy",
    "Referrer-Policy",
];

const CROSS_ORIGIN: [&str; 2] = ["Cross-Origin-Resource-Policy", "Access-Control-Allow-Origin"];

/// Parameters by name: their description, and the rest of their schema.
fn parameter(name: &str) -> Option<(&'static str, Value)> {
    Some(match name {
        "assetId" => (
            "The asset. What is no asset id at all is as unknown as an id that nobody has.",
            json!({"pattern": "^ast_[0-9a-hjkmnp-tv-z]{26}$"}),
        ),
        "runId" => ("The run.", json!({"minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9._:~-]+$"})),
        "uploadId" => ("The upload.", json!({"pattern": "^[0-9a-f]{32}$"})),
        "Tus-Resumable" => ("The version of the protocol; another, or none, is 412.", json!({"enum": ["1.0.0"]})),
        "Upload-Length" => ("How many bytes there will be.", json!({"pattern": "^[0-9]{1,19}$"})),
        "Upload-Defer-Length" => ("`1`: the length is said by a later PATCH.", json!({"enum": ["1"]})),
        "Upload-Metadata" => (
            "Pairs of a key and its value in base64: the members of an ingest, `runId`, `filename`, `filetype`. Other keys are passed over.",
            json!({}),
        ),
        "Upload-Concat" => ("`partial`, or `final;` and the URLs of partial uploads.", json!({})),
        "Upload-Offset" => {
            ("Where in the upload the bytes begin: where it ends now.", json!({"pattern": "^[0-9]{1,19}$"}))
        }
        "Upload-Checksum" => {
            ("An algorithm of `Tus-Checksum-Algorithm` and the digest of the body in base64.", json!({}))
        }
        "X-HTTP-Method-Override" => ("What is meant.", json!({"enum": ["PATCH", "DELETE", "HEAD"]})),
        "holdId" => (
            "The hold, by a name of the host's own.",
            json!({"minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9._:~-]+$"}),
        ),
        "artifactId" => (
            "The artifact, by a name of the host's own within the run.",
            json!({"minLength": 1, "maxLength": 257, "pattern": "^[A-Za-z0-9._:~-]+$"}),
        ),
        "form" => ("The shape.", json!({"enum": ["envelope", "content-part", "a2a-part", "attachment-ref", "speech"]})),
        "by" => (
            "How the part leads to the bytes: `mediaRef` (if nobody says), `url` or `data` of a `content-part`; `url` (if nobody says) or `raw` of an `a2a-part`. `data` and `raw` only up to the inline cap.",
            json!({"enum": ["mediaRef", "url", "data", "raw"]}),
        ),
        "voiceId" => ("Of `speech`: the voice, said back as it is.", json!({"minLength": 1, "maxLength": 128})),
        "aliasOrType" => {
            ("An alias such as `pdf`, or a media type such as `application/pdf`.", json!({"maxLength": 255}))
        }
        "at" => ("When the sweep would be; absent: now.", json!({"format": "date-time"})),
        "erase" => ("Erases it, whatever its floor; needs `assets:erase`.", json!({})),
        "copies" => ("With `erase`: erases every other asset with the same bytes too.", json!({})),
        "capability" => ("The token: it is the credential.", json!({})),
        "filename" => ("A file name that a client appends; it is not looked at.", json!({})),
        "cursor" => ("`nextCursor` of the page before.", json!({})),
        "limit" => ("The most entries of the page.", json!({"minimum": 1, "maximum": 500})),
        "kind" => ("Only of this kind.", json!({})),
        "mimeType" => ("Only of this media type.", json!({})),
        "state" => ("Only in this state; absent: in every state.", json!({"enum": ["live", "expired", "erased"]})),
        "status" => ("Only runs of this status.", json!({"enum": ["open", "closed"]})),
        "since" => {
            ("Only what happened behind this row.", json!({"format": "uint64", "minimum": 0, "maximum": u64::MAX}))
        }
        "type" => (
            "Only rows of this type.",
            json!({"enum": ["ingest", "amend", "mint", "revoke", "read", "denied", "refer", "artifact", "hold", "lift", "floor", "expire", "erase", "key", "check"]}),
        ),
        "Range" => ("The bytes wanted; more than 16 ranges, or more bytes than there are, give the whole.", json!({})),
        "If-Range" => ("`Range` counts only if this is the strong tag, or the date, of these bytes.", json!({})),
        "If-None-Match" => ("304 if one of these is the tag.", json!({})),
        "If-Modified-Since" => ("304 if nothing changed since.", json!({})),
        "If-Match" => ("412 unless one of these is the tag.", json!({})),
        "If-Unmodified-Since" => ("412 if something changed since.", json!({})),
        "Idempotency-Key" => {
            ("The same request sent again with it is carried out once.", json!({"pattern": "^[A-Za-z0-9._~-]{1,128}$"}))
        }
        "Content-Digest" => ("The digest of the body as sent (RFC 9530), `sha-256` alone.", json!({})),
        _ => return None,
    })
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        complete_parameter(parameter);
    }
    if path == "/v1/uploads" && operation.get("requestBody").is_some() {
        operation["requestBody"]["required"] = json!(false);
    }
    let refusals = refusals_of(path, operation);
    let is_delivery = is_delivery(operation);
    let summary = operation["summary"].clone();
    let Some(responses) = operation["responses"].as_object_mut() else {
        return;
    };
    responses.remove("4XX");
    for status in refusals {
        let key = if status == 0 { "default".to_owned() } else { status.to_string() };
        responses.entry(key).or_insert_with(|| json!({"$ref": format!("#/components/responses/{}", name_of(status))}));
    }
    for (status, response) in responses.iter_mut().filter(|(_, response)| response.get("$ref").is_none()) {
        if response["description"].as_str().is_none_or(str::is_empty) {
            response["description"] = summary.clone();
        }
        let mut headers = vec!["X-Request-Id", "Cache-Control"];
        if is_delivery && method != "options" {
            // Of the store's answer nobody here knows more than how it may be shown.
            let own = if status == "302" { &DELIVERY[5..] } else { &DELIVERY[..] };
            headers.extend(own);
            response["content"] = match status.as_str() {
                "200" => json!({"*/*": {}}),
                "206" => json!({"*/*": {}, "multipart/byteranges": {}}),
                _ => response["content"].take(),
            };
        }
        if status == "206" {
            headers.push("Content-Range");
        }
        if status == "201" && (path.ends_with("/assets") || path.ends_with("/uploads")) {
            headers.push("Location");
        }
        if path.starts_with("/a/") {
            headers.extend(CROSS_ORIGIN);
        }
        lay_headers(response, &headers);
        if response["content"].is_null()
            && let Some(response) = response.as_object_mut()
        {
            response.remove("content");
        }
    }
}

/// Which refusals an operation may answer, as far as that follows from its form; the others stand at its handler.
fn refusals_of(path: &str, operation: &Value) -> Vec<u16> {
    let mut refusals = vec![500, 503, 0];
    if is_secured(operation) {
        refusals.extend([400, 401, 403]);
    }
    if ["{assetId}", "{runId}", "{uploadId}"].iter().any(|id| path.contains(id)) {
        refusals.push(404);
    }
    if operation.get("requestBody").is_some() {
        refusals.extend([413, 415, 507]);
    }
    if has_tag(operation, "ingest") {
        refusals.extend([409, 429]);
    }
    refusals
}

fn complete_parameter(parameter: &mut Value) {
    let known = parameter["name"].as_str().and_then(self::parameter);
    let Some((description, schema)) = known else {
        return;
    };
    if parameter.get("description").is_none() {
        parameter["description"] = json!(description);
    }
    // What is no asset's id in a list's filter finds nothing, like an id that nobody has: it is not refused.
    let is_filter = parameter["in"] == "query" && parameter["name"] == "assetId";
    if let (Some(schema), Value::Object(more), false) = (parameter["schema"].as_object_mut(), schema, is_filter) {
        schema.extend(more);
    }
}

/// HEAD says what GET says, without the bytes and without ranges.
fn head_of(get: &Value) -> Value {
    let mut head = get.clone();
    head["operationId"] = json!(format!("{}_head", get["operationId"].as_str().unwrap_or_default()));
    head["summary"] = json!("What GET says, without the bytes; `Range` is not looked at.");
    if let Some(parameters) = head["parameters"].as_array_mut() {
        parameters.retain(|parameter| parameter["name"] != "Range" && parameter["name"] != "If-Range");
    }
    if let Some(responses) = head["responses"].as_object_mut() {
        responses.retain(|status, _| !["206", "302", "416"].contains(&status.as_str()));
        responses.values_mut().filter_map(Value::as_object_mut).for_each(|response| drop(response.remove("content")));
    }
    head
}

/// The same path with a file name behind it.
fn with_file_name(item: &Value) -> Value {
    let mut item = item.clone();
    for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
        operation["operationId"] = json!(format!("{}_named", operation["operationId"].as_str().unwrap_or_default()));
        let mut name = json!({"name": "filename", "in": "path", "required": true, "schema": {"type": "string"}});
        complete_parameter(&mut name);
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.push(name);
        }
    }
    item
}

fn response((status, code, when): &(u16, &str, &str)) -> Value {
    let mut response = json!({
        "description": format!("{when} `error`: {code}."),
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    });
    let own: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        405 => &["Allow"],
        416 => &["Content-Range"],
        429 | 503 => &["Retry-After"],
        _ => &[],
    };
    lay_headers(&mut response, &[&["X-Request-Id", "Cache-Control"], own].concat());
    response
}

fn lay_headers(response: &mut Value, names: &[&str]) {
    for name in names {
        response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
    }
}

fn header(text: &str) -> Value {
    json!({"description": text, "schema": {"type": "string"}})
}

fn name_of(status: u16) -> String {
    if status == 0 { "Refusal".to_owned() } else { format!("Refusal{status}") }
}

fn is_delivery(operation: &Value) -> bool {
    has_tag(operation, "delivery")
}

fn has_tag(operation: &Value, tag: &str) -> bool {
    operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|own| own == tag))
}

fn is_secured(operation: &Value) -> bool {
    operation["security"].as_array().is_some_and(|ways| ways.iter().any(|way| way.get("bearer").is_some()))
}
