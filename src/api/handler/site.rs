//! The files of pages. All answers share a file's bytes, so slow readers in any number cost no memory for them.

use crate::api::{
    http::{ApiError, Reply},
    table::Outcome,
};
use bytes::Bytes;
use flate2::read::GzDecoder;
use std::{
    io::Read,
    sync::{Arc, OnceLock},
};

/// A file.
pub(crate) struct SiteFile {
    name: &'static str,
    content: Bytes,
    /// The body in gzip, once a client has accepted gzip.
    packed: Arc<OnceLock<Bytes>>,
}

impl SiteFile {
    pub fn new(name: &'static str, content: impl Into<Bytes>) -> Self {
        Self { name, content: content.into(), packed: Arc::default() }
    }

    /// A file that the binary holds in gzip.
    pub fn of_gzip(name: &'static str, packed: &'static [u8]) -> Self {
        let mut content = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut content).expect("the file was compressed by gzip");
        Self { name, content: content.into(), packed: Arc::new(Bytes::from_static(packed).into()) }
    }

    /// The file as an answer.
    pub fn reply(&self) -> Reply {
        Reply::file(self.name, self.content.clone()).of_site(&self.packed)
    }

    /// The file of a name as an answer.
    ///
    /// # Errors
    /// There is no file of this name.
    pub fn find(files: &[Self], name: &str) -> Outcome {
        files.iter().find(|file| file.name == name).map(Self::reply).ok_or(ApiError::NO_ROUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_the_same_bytes() {
        let file = SiteFile::new("a.js", "let a = 1;");
        let (one, other) = (file.reply(), file.reply());
        assert_eq!((one.body.as_ptr(), &one.body[..]), (other.body.as_ptr(), &b"let a = 1;"[..]));
    }
}
