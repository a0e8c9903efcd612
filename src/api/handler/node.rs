//! The node itself: status, configuration, the chain as a whole. Source: api.md 4.9, 7.

use crate::{
    api::{
        context::ApiContext,
        http::{ApiError, Reply},
        table::{Call, DialectSet, Frame, Member, Outcome, Shape, json, shape},
        view::VERSION,
    },
    ledger::rules::DynamicFees,
    protocol::{NetworkConfig, transaction::Kind},
};

/// The number of log lines if the request names none.
const LINES_SHOWN: usize = 1_000;

const HEIGHT: Member<ApiContext> = Member::new("height", Shape::Integer, |_, frame| frame.head.height().into());
const ID: Member<ApiContext> = Member::new("id", shape::BLOCK_ID, |_, frame| frame.head.tip().id().into());

pub(crate) const STATUS: &[Member<ApiContext>] = &[
    Member::new("synced", Shape::Boolean, |_, frame| is_synced(frame).into()),
    Member::new("now", Shape::Integer, |_, frame| frame.head.height().into()),
    Member::new("blocksCount", Shape::Integer, |_, frame| blocks_behind(frame).into()),
    Member::new("timestamp", Shape::Integer, |_, frame| frame.view.now().seconds().into()),
];

pub(crate) const SYNCING: &[Member<ApiContext>] = &[
    Member::new("syncing", Shape::Boolean, |_, frame| (!is_synced(frame)).into()),
    Member::new("blocks", Shape::Integer, |_, frame| blocks_behind(frame).into()),
    HEIGHT,
    ID,
];

pub(crate) const BLOCKCHAIN: &[Member<ApiContext>] = &[
    Member::nested("block", &[HEIGHT, ID]),
    Member::new("supply", shape::AMOUNT, |_, frame| frame.state().supply().into()),
];

pub(crate) const CRYPTO: &[Member<ApiContext>] = &[
    Member::by("exceptions", Shape::Map(&Shape::Any), |_, frame, slot| {
        slot.object(|exceptions| {
            for (name, value) in config(frame).exceptions.json.as_object().into_iter().flatten() {
                exceptions.member(name).put(value);
            }
        });
    }),
    Member::by("genesisBlock", Shape::Map(&Shape::Any), |_, frame, slot| slot.put(&config(frame).genesis.json)),
    Member::by("milestones", Shape::List(&Shape::Map(&Shape::Any)), |_, frame, slot| {
        slot.list(config(frame).milestones.all(), |out, milestone| json::write_value(out, &milestone.json));
    }),
    Member::by("network", Shape::Map(&Shape::Any), |_, frame, slot| slot.put(&config(frame).network.to_json())),
];

/// `GET /`.
pub(crate) fn hello(_: &Call<'_>) -> Outcome {
    Ok(Reply::json(br#"{"data":"Hello World!"}"#.to_vec()))
}

/// `GET /api/node/status`.
pub(crate) fn status(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(STATUS, call.context))
}

/// `GET /api/node/syncing`.
pub(crate) fn syncing(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(SYNCING, call.context))
}

/// `GET /api/node/configuration`.
pub(crate) fn configuration(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(CONFIGURATION, call.context))
}

/// `GET /api/node/configuration/crypto`.
pub(crate) fn crypto(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(CRYPTO, call.context))
}

/// `GET /api/node/debug`.
pub(crate) fn debug(call: &Call<'_>) -> Outcome {
    let log = call.context.log.as_ref().ok_or(ApiError::NO_ROUTE)?;
    Ok(Reply::text(log.last(call.parameters.number("lines").unwrap_or(LINES_SHOWN))))
}

/// `GET /api/blockchain`.
pub(crate) fn blockchain(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(BLOCKCHAIN, call.context))
}

/// True if the node keeps up: it is alone, or its newest block is younger than three slots.
fn is_synced(frame: &Frame<'_>) -> bool {
    let age = frame.view.now().seconds().0.saturating_sub(frame.state().timestamp().0);
    frame.view.neighbours().is_empty() || age < 3 * frame.view.tree().slots().blocktime()
}

/// The median height of the neighbours minus this node's height.
fn blocks_behind(frame: &Frame<'_>) -> i64 {
    i64::from(frame.view.neighbours().median_height().0) - i64::from(frame.head.height().0)
}

const CONFIGURATION: &[Member<ApiContext>] = &[
    Member::nested("core", &[Member::new("version", Shape::Text, |_, _| VERSION.into())]),
    Member::by("nethash", shape::HASH, |_, frame, slot| slot.put(&config(frame).network.nethash)),
    Member::by("slip44", Shape::Integer, |_, frame, slot| slot.put(&config(frame).network.slip44)),
    Member::by("wif", Shape::Integer, |_, frame, slot| slot.put(&config(frame).network.wif)),
    Member::by("token", Shape::Text, |_, frame, slot| slot.put(&config(frame).network.token)),
    Member::by("symbol", Shape::Text, |_, frame, slot| slot.put(&config(frame).network.symbol)),
    Member::by("explorer", Shape::Text, |_, frame, slot| slot.put(&config(frame).network.explorer)),
    Member::by("version", Shape::Integer, |_, frame, slot| slot.put(&config(frame).network.pub_key_hash)),
    Member::by("ports", Shape::Map(&Shape::Integer), |context, _, slot| {
        slot.object(|ports| {
            ports.member("@arkecosystem/core-p2p").put(&context.ports.p2p);
            ports.member("@arkecosystem/core-api").put(&context.ports.api);
        });
    }),
    Member::by("constants", Shape::Map(&Shape::Any), |_, frame, slot| {
        slot.put(&config(frame).milestones.at(frame.head.height()).json);
    }),
    Member::nested("transactionPool", POOL),
];

/// The shape of the configuration.
pub(crate) const CONFIGURATION_SHAPE: Shape = Shape::Resource("Configuration", &CONFIGURATION);

const POOL: &[Member<ApiContext>] = &[
    Member::<ApiContext>::by("maxTransactionAge", Shape::Integer, |_, frame, slot| {
        slot.put(&frame.view.tree().rules().pool.max_transaction_age);
    })
    .only(DialectSet::DOCUMENTED),
    Member::nested("dynamicFees", FEES),
];

const FEES: &[Member<ApiContext>] = &[
    Member::new("enabled", Shape::Boolean, |_, frame| fees(frame).is_some().into()),
    Member::some("minFeePool", Shape::Integer, |_, frame| fees(frame).map(|fees| fees.min_fee_pool).into()),
    Member::some("minFeeBroadcast", Shape::Integer, |_, frame| fees(frame).map(|fees| fees.min_fee_broadcast).into()),
    Member::some_by("addonBytes", Shape::Map(&Shape::Integer), |_, frame, slot| {
        if fees(frame).is_some() {
            slot.object(|bytes| {
                Kind::ALL.into_iter().for_each(|kind| bytes.member(kind.key()).put(&kind.addon_bytes()))
            });
        }
    }),
];

fn fees<'f>(frame: &Frame<'f>) -> Option<&'f DynamicFees> {
    frame.view.tree().rules().pool.dynamic_fees.as_ref()
}

fn config<'f>(frame: &Frame<'f>) -> &'f NetworkConfig {
    frame.view.tree().config()
}
