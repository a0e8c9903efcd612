//! The description of the API, and the page that shows it. All parts of the page are in the binary: it loads nothing
//! from elsewhere.

use super::site::SiteFile;
use crate::api::{
    http::Reply,
    table::{Call, Outcome, openapi},
};
use std::sync::LazyLock;

/// `GET /api/openapi.json`.
pub(crate) fn description(call: &Call<'_>) -> Outcome {
    let most = call.context.view.tree().rules().pool.max_transactions_per_request;
    let description = openapi::describe(call.routes, call.context.settings.dialect, most);
    Ok(Reply::json(description.to_string()))
}

/// `GET /api/docs`.
pub(crate) fn entrance(_: &Call<'_>) -> Outcome {
    Ok(Reply::moved("/api/docs/index.html".to_owned()))
}

/// `GET /api/docs/{file}`.
pub(crate) fn file(call: &Call<'_>) -> Outcome {
    SiteFile::find(&*PARTS, call.argument("file"))
}

/// The files of the page. Source: src/api/docs/README.md.
static PARTS: LazyLock<[SiteFile; 4]> = LazyLock::new(|| {
    [
        SiteFile::new("index.html", include_str!("../docs/index.html")),
        SiteFile::new("start.js", include_str!("../docs/start.js")),
        SiteFile::of_gzip("swagger-ui-bundle.js", include_bytes!("../docs/swagger-ui-bundle.js.gz")),
        SiteFile::of_gzip("swagger-ui.css", include_bytes!("../docs/swagger-ui.css.gz")),
    ]
});
