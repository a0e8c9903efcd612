//! A body that breaks off: half of what its head announces.
#![expect(clippy::disallowed_methods, reason = "what was sent has to leave before the connection breaks")]

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Sleep;
use warp::http::{HeaderValue, Response, header};

/// The time for the sent half to leave before the connection breaks.
const FLUSH: Duration = Duration::from_millis(5);

/// A body that breaks off in the middle.
pub(crate) struct CutBody {
    half: Option<Bytes>,
    length: u64,
    breaks: Option<Pin<Box<Sleep>>>,
}

impl CutBody {
    /// Cuts an answer: its head is whole, and half of its body is sent. An answer without a body does not change.
    pub async fn of<B: Body<Data = Bytes>>(response: Response<B>) -> Response<Self> {
        let (mut head, body) = response.into_parts();
        // The API's answer is in memory already.
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        if !body.is_empty() {
            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let half = body.slice(..body.len() / 2);
        Response::from_parts(head, Self { half: Some(half), length: body.len() as u64, breaks: None })
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(half) = self.half.take().filter(|half| !half.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        if self.length == 0 {
            return Poll::Ready(None);
        }
        let breaks = self.breaks.get_or_insert_with(|| Box::pin(tokio::time::sleep(FLUSH)));
        ready!(breaks.as_mut().poll(context));
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
