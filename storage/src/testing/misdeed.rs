//! What a store can do to those who rely on it, by script.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use s3s::stream::{ByteStream, DynByteStream};
use s3s::{Body, HttpError, HttpRequest, HttpResponse};

/// What happens to the next requests of a kind.
#[derive(Debug, Clone)]
pub struct Misdeed {
    /// Which: the method.
    pub method: &'static str,
    /// And what the path with its query has in it.
    pub names: &'static str,
    /// How many of them.
    pub times: usize,
    /// What happens.
    pub what: What,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// It is refused with this status, and nothing is done.
    Refuse(u16),
    /// It is done, but the connection ends before anybody hears of it.
    LoseAnswer,
    /// It is not done, and the connection ends.
    Drop,
    /// Of a hundred so many are refused with this status, by chance that is the same each time.
    RefuseSome {
        /// The status.
        status: u16,
        /// How many.
        of_a_hundred: usize,
    },
    /// It is done after this time.
    Late(Duration),
    /// Its answer breaks off behind so many bytes.
    CutAfter(usize),
}

/// What is still to happen, and how many requests there were.
#[derive(Debug, Clone, Default)]
pub(super) struct Script(Arc<Mutex<Vec<Misdeed>>>);

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Script {
    pub(super) fn add(&self, misdeed: Misdeed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(misdeed);
    }

    pub(super) fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether everything has happened.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What happens to this request, once.
    pub(super) fn next(&self, request: &HttpRequest) -> Option<What> {
        let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = script
            .iter()
            .position(|misdeed| request.method().as_str() == misdeed.method && asked.contains(misdeed.names))?;
        let what = script[at].what;
        let left = script[at].times;
        script[at].times -= 1;
        if script[at].times == 0 {
            script.remove(at);
        }
        match what {
            What::RefuseSome { status, of_a_hundred } => {
                // Multiplied with a large prime, a count is as good as a die.
                let die = (left.wrapping_mul(2_654_435_761) >> 7) % 100;
                (die < of_a_hundred).then_some(What::Refuse(status))
            }
            other => Some(other),
        }
    }
}

/// The connection ends.
pub(super) fn gone() -> HttpError {
    HttpError::new(Failure::from("the store went away, as the script has it"))
}

/// An answer without its request's deed.
pub(super) fn refusal(status: u16) -> HttpResponse {
    let mut response = HttpResponse::new(Body::empty());
    *response.status_mut() = status.try_into().expect("a status");
    response
}

/// The answer up to there.
pub(super) fn cut(response: HttpResponse, after: usize) -> HttpResponse {
    response.map(|body| {
        let cut: DynByteStream = Box::pin(Cut { body: Box::pin(body), left: after });
        Body::from(cut)
    })
}

struct Cut {
    body: Pin<Box<Body>>,
    left: usize,
}

impl Stream for Cut {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            return Poll::Ready(Some(Err("cut off, as the script has it".into())));
        }
        let next = std::task::ready!(Stream::poll_next(self.body.as_mut(), context));
        Poll::Ready(next.map(|bytes| {
            let mut bytes = bytes?;
            bytes.truncate(self.left);
            self.left -= bytes.len();
            Ok(bytes)
        }))
    }
}

impl ByteStream for Cut {}
