//! The time that a wallet waits for its transfer on a testnet that forges on demand: from the POST to the confirmed
//! transaction, again and again.
//!
//! ```sh
//! dposlab up --pace on-demand &
//! cargo run --example on_demand -- http://127.0.0.1:4003 500
//! ```
#![expect(clippy::disallowed_methods, reason = "what it measures is real time")]

use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real};
use serde_json::{Value, json};
use std::{env, time::Instant};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:4003".to_owned());
    let count: usize = arguments.next().map_or(Ok(20), |count| count.parse())?;
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(true).build().into();
    let post = |path: &str, body: &Value| -> Result<Value, Failed> {
        Ok(agent.post(format!("{url}{path}")).send_json(body)?.body_mut().read_json()?)
    };
    let made = post("/lab/accounts", &json!({"count": 2, "balance": (count as u64 + 1) * 120_000_000}))?;
    let keys = |index: usize| {
        let passphrase = made["data"]["accounts"][index]["passphrase"].as_str();
        passphrase.map(|text| KeyPair::from_passphrase(text, Real)).ok_or("an account has a passphrase")
    };
    let (sender, recipient) = (keys(0)?, keys(1)?.public().address(23));
    let mut waits = Vec::with_capacity(count);
    for nonce in 1..=count as u64 {
        let transfer =
            Transaction::transfer(recipient, Arktoshi::coins(1)).network(23).nonce(Nonce(nonce)).sign(&sender);
        let begun = Instant::now();
        let answer = post("/api/transactions", &json!({"transactions": [transfer.to_json()]}))?;
        let confirmed: Value =
            agent.get(format!("{url}/api/transactions/{}", transfer.id())).call()?.body_mut().read_json()?;
        waits.push(begun.elapsed());
        if confirmed["data"]["confirmations"].as_u64() < Some(1) {
            return Err(format!("transfer {nonce} is not confirmed: {answer} {confirmed}").into());
        }
    }
    waits.sort_unstable();
    let at = |share: usize| waits[(waits.len() - 1) * share / 100];
    println!(
        "{count} transfers: half of them confirmed in {:.2?}, 99 % in {:.2?}, all in {:.2?}",
        at(50),
        at(99),
        at(100)
    );
    Ok(())
}
