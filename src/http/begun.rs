//! Work that is done once it is begun, whether or not anybody waits for the answer.
//!
//! A connection that is reset takes its handler with it, wherever that stands. A transition that the index has taken happens all the same,
//! and what has to follow it would not: the row cache would go on to answer what was so before, and no record beside the bytes would say
//! what has changed. So whatever changes something that is there already is a task of its own, and the handler only waits for it.

use std::future::Future;

use actix_web::rt;

use crate::assets::AssetError;
use crate::error::ApiError;

/// Does the work to its end; what it comes to is for whoever still waits.
pub async fn begun<T, E>(work: impl Future<Output = Result<T, E>> + 'static) -> Result<T, ApiError>
where
    T: 'static,
    E: Into<ApiError> + 'static,
{
    match rt::spawn(work).await {
        Ok(done) => done.map_err(Into::into),
        // The panic is the handler's, as if it had done the work itself.
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(ended) => Err(AssetError::Internal(ended.to_string()).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[actix_web::test]
    async fn what_was_begun_is_done_though_nobody_waits_for_it_any_more() {
        let (go_on, held) = oneshot::channel::<()>();
        let done = Rc::new(Cell::new(false));
        let told = done.clone();
        let waiting = begun(async move {
            let _ = held.await;
            told.set(true);
            Ok::<_, ApiError>(())
        });
        assert!(waiting.now_or_never().is_none(), "it is held up, and then nobody waits");

        assert!(go_on.send(()).is_ok(), "it is still there");
        while Rc::strong_count(&done) > 1 {
            rt::task::yield_now().await;
        }

        assert!(done.get());
    }
}
