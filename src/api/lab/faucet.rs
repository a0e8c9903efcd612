//! The public faucet: its amount for each payment, and its limits.

use crate::{
    api::http::access::{Limiter, Quota, RateLimit},
    protocol::Arktoshi,
};
use std::net::{IpAddr, Ipv4Addr};

/// The settings of the public faucet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicFaucet {
    /// The amount of a payment.
    pub amount: Arktoshi,
    /// Payments for each client.
    pub each: RateLimit,
    /// Payments for all of them together.
    pub all: RateLimit,
}

/// Counts the payments of the public faucet.
#[derive(Debug, Default)]
pub struct FaucetCounts {
    each: Limiter,
    all: Limiter,
}

impl FaucetCounts {
    /// Counts a payment to a client. Returns the exceeded quota if the client may have no payment now.
    pub fn exceeded(&self, faucet: PublicFaucet, client: IpAddr) -> Option<Quota> {
        let own = self.each.take(faucet.each, client);
        if own.is_exceeded() {
            return Some(own);
        }
        // The limit for all clients counts them as one client.
        let all = self.all.take(faucet.all, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        all.is_exceeded().then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_payments_and_all_together_have_theirs() {
        let limit = |requests| RateLimit { requests, window_ms: 3_600_000 };
        let faucet = PublicFaucet { amount: Arktoshi::coins(10), each: limit(2), all: limit(3) };
        let (counts, client) = (FaucetCounts::default(), |last| IpAddr::from([10, 0, 0, last]));
        let may = |last| counts.exceeded(faucet, client(last)).is_none();
        assert_eq!([may(1), may(1), may(1)], [true, true, false]);
        assert_eq!([may(2), may(2), may(3)], [true, false, false], "three payments in all");
        let wait = counts.exceeded(faucet, client(1)).expect("it is exceeded").retry_after_seconds;
        assert!((3_500..=3_600).contains(&wait), "{wait}");
    }
}
