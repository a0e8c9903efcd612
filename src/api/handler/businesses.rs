//! Businesses and bridgechains. Source: api.md 4.8.

use crate::api::{
    http::ApiError,
    resource::{
        attributes,
        business::{self, BridgechainRow, BusinessRow},
    },
    table::{Call, Listing, Outcome, field},
};

/// `GET /api/businesses`, and searches.
pub fn list(call: &Call<'_>) -> Outcome {
    let frame = call.frame();
    let mut rows: Vec<BusinessRow> = call.head.state().businesses().filter_map(BusinessRow::of).collect();
    rows.retain(|row| field::matches(business::MEMBERS, &call.parameters, row, &frame));
    let order = call.parameters.order().unwrap_or(("name", false));
    let listing = call.page().cut(field::sort(business::MEMBERS, order, rows, &frame));
    let transform = call.parameters.transform();
    Ok(call.list(listing, |out, row, frame| business::write(out, row, frame, transform)))
}

/// `GET /api/businesses/{id}`.
pub fn show(call: &Call<'_>) -> Outcome {
    let row = find(call)?;
    Ok(call.show(|out, frame| business::write(out, &row, frame, call.parameters.transform())))
}

/// `GET /api/businesses/{id}/bridgechains`.
pub fn chains(call: &Call<'_>) -> Outcome {
    let chains = find(call)?.chains().collect();
    Ok(call.list_rows(search_chains(call, chains), business::CHAIN_MEMBERS))
}

/// `GET /api/businesses/{businessId}/bridgechains/{bridgechainId}`.
pub fn chain(call: &Call<'_>) -> Outcome {
    let wanted = call.argument("bridgechainId");
    let found = find_by(call, "businessId")?.chains().find(|chain| chain.genesis_hash().eq_ignore_ascii_case(wanted));
    let chain = found.ok_or(ApiError::NotFound("Bridgechain not found"))?;
    Ok(call.show_row(attributes::BRIDGECHAIN, chain.chain()))
}

/// `GET /api/bridgechains`, and searches.
pub fn all_chains(call: &Call<'_>) -> Outcome {
    let businesses = call.head.state().businesses().filter_map(BusinessRow::of);
    let chains = businesses.flat_map(|business| business.chains().collect::<Vec<_>>()).collect();
    Ok(call.list_rows(search_chains(call, chains), business::CHAIN_MEMBERS))
}

fn search_chains(call: &Call<'_>, mut rows: Vec<BridgechainRow>) -> Listing<BridgechainRow> {
    let frame = call.frame();
    rows.retain(|row| field::matches(business::CHAIN_MEMBERS, &call.parameters, row, &frame));
    let order = call.parameters.order().unwrap_or(("name", false));
    call.page().cut(field::sort(business::CHAIN_MEMBERS, order, rows, &frame))
}

fn find(call: &Call<'_>) -> Result<BusinessRow, ApiError> {
    find_by(call, "id")
}

fn find_by(call: &Call<'_>, argument: &str) -> Result<BusinessRow, ApiError> {
    let wallet = call.frame().find_wallet(call.argument(argument));
    wallet.and_then(BusinessRow::of).ok_or(ApiError::NotFound("Business not found"))
}
