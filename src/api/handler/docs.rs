//! The description of the API, and the page that shows it. All parts of the page are in the binary: it loads nothing
//! from elsewhere.

use crate::api::{
    http::{ApiError, Reply},
    table::{Call, Outcome, openapi},
};
use flate2::read::GzDecoder;
use std::io::Read;

/// `GET /api/openapi.json`.
pub fn description(call: &Call<'_>) -> Outcome {
    let most = call.context.view.tree().rules().pool.max_transactions_per_request;
    let description = openapi::describe(call.routes, call.context.settings.dialect, most);
    Ok(Reply::json(description.to_string()))
}

/// `GET /api/docs`.
pub fn entrance(_: &Call<'_>) -> Outcome {
    Ok(Reply::moved("/api/docs/index.html".to_owned()))
}

/// `GET /api/docs/{file}`.
pub fn file(call: &Call<'_>) -> Outcome {
    let name = call.argument("file");
    PARTS.iter().find(|part| part.name == name).map(|part| Reply::file(name, part.content())).ok_or(ApiError::NO_ROUTE)
}

/// A file of the page.
struct Part {
    name: &'static str,
    bytes: &'static [u8],
    /// The binary holds it compressed.
    is_gzip: bool,
}

/// All of the page. Source: src/api/docs/README.md.
const PARTS: [Part; 4] = [
    Part { name: "index.html", bytes: include_bytes!("../docs/index.html"), is_gzip: false },
    Part { name: "start.js", bytes: include_bytes!("../docs/start.js"), is_gzip: false },
    Part { name: "swagger-ui-bundle.js", bytes: include_bytes!("../docs/swagger-ui-bundle.js.gz"), is_gzip: true },
    Part { name: "swagger-ui.css", bytes: include_bytes!("../docs/swagger-ui.css.gz"), is_gzip: true },
];

impl Part {
    fn content(&self) -> Vec<u8> {
        if !self.is_gzip {
            return self.bytes.to_vec();
        }
        let mut content = Vec::new();
        GzDecoder::new(self.bytes).read_to_end(&mut content).expect("the file was compressed by gzip");
        content
    }
}
