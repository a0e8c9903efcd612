//! Businesses and bridgechains. Source: api.md 4.8.

use crate::api::{
    http::{ApiError, Reply},
    resource::{
        attributes,
        business::{self, BridgechainRow, BusinessRow},
    },
    table::{Call, Outcome},
};

const BY_NAME: Option<(&str, bool)> = Some(("name", false));

/// `GET /api/businesses`, and searches.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let rows = call.matching(business::MEMBERS, call.head.state().businesses().filter_map(BusinessRow::of));
    let listing = call.ordered(business::MEMBERS, rows, BY_NAME);
    let transform = call.parameters.transform();
    Ok(call.list(listing, |out, row, frame| business::write(out, row, frame, transform)))
}

/// `GET /api/businesses/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let row = find(call)?;
    Ok(call.show(|out, frame| business::write(out, &row, frame, call.parameters.transform())))
}

/// `GET /api/businesses/{id}/bridgechains`.
pub(crate) fn chains(call: &Call<'_>) -> Outcome {
    Ok(list_chains(call, find(call)?.chains()))
}

/// `GET /api/businesses/{businessId}/bridgechains/{bridgechainId}`.
pub(crate) fn chain(call: &Call<'_>) -> Outcome {
    let wanted = call.argument("bridgechainId");
    let found = find_by(call, "businessId")?.chains().find(|chain| chain.genesis_hash().eq_ignore_ascii_case(wanted));
    let chain = found.ok_or(ApiError::NotFound("Bridgechain not found"))?;
    Ok(call.show_row(attributes::BRIDGECHAIN, chain.chain()))
}

/// `GET /api/bridgechains`, and searches.
pub(crate) fn all_chains(call: &Call<'_>) -> Outcome {
    let businesses = call.head.state().businesses().filter_map(BusinessRow::of);
    Ok(list_chains(call, businesses.flat_map(|business| business.chains().collect::<Vec<_>>())))
}

fn list_chains(call: &Call<'_>, chains: impl Iterator<Item = BridgechainRow>) -> Reply {
    let rows = call.matching(business::CHAIN_MEMBERS, chains);
    call.list_rows(call.ordered(business::CHAIN_MEMBERS, rows, BY_NAME), business::CHAIN_MEMBERS)
}

fn find(call: &Call<'_>) -> Result<BusinessRow, ApiError> {
    find_by(call, "id")
}

fn find_by(call: &Call<'_>, argument: &str) -> Result<BusinessRow, ApiError> {
    let wallet = call.frame().find_wallet(call.argument(argument));
    wallet.and_then(BusinessRow::of).ok_or(ApiError::NotFound("Business not found"))
}
