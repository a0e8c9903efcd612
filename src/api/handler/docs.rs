//! The description of the API, and the page that shows it. All parts of the page are in the binary: it loads nothing
//! from elsewhere.

use super::Call;
use crate::api::{
    ApiError, Reply, openapi,
    parameter::{ANY_TEXT, Parameter, both},
};
use std::sync::{Arc, LazyLock};
use utoipa_swagger_ui::Config;

/// A part of the page as a path has it.
pub const FILE: &[Parameter] = &[both("file", ANY_TEXT)];

type Outcome = Result<Reply, ApiError>;

/// `GET /api/openapi.json`.
pub fn description(call: &Call<'_>) -> Outcome {
    let most = call.context.view.tree().rules().pool.max_transactions_per_request;
    let description = openapi::describe(call.context.settings.dialect, most);
    Ok(Reply::json(description.to_string()))
}

/// `GET /api/docs`.
pub fn entrance(_: &Call<'_>) -> Outcome {
    Ok(Reply::moved("/api/docs/index.html".to_owned()))
}

/// `GET /api/docs/{file}`.
pub fn file(call: &Call<'_>) -> Outcome {
    // No validator: it is a service elsewhere.
    static CONFIG: LazyLock<Arc<Config<'static>>> =
        LazyLock::new(|| Arc::new(Config::from("/api/openapi.json").validator_url("none").use_base_layout()));
    let name = call.argument("file");
    match utoipa_swagger_ui::serve(name, CONFIG.clone()) {
        Ok(Some(file)) => Ok(Reply::file(name, file.bytes.into_owned())),
        Ok(None) => Err(ApiError::NO_ROUTE),
        Err(why) => Err(ApiError::Internal(why.to_string())),
    }
}
