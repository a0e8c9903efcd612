//! Facts about a kind of fault that the rest of the program needs, declared beside the kind.

/// The facts of a kind of fault. A new kind takes one of the constants and changes what is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The nodes that it names break the rules or cannot keep them. Invariants exempt them.
    pub deviant: bool,
    /// Nodes forge for one delegate beside each other, each by the rules. The block of one may come before the other has made its
    /// own, which its relay refuses then: that is not held against it.
    pub paired: bool,
    /// Delegates forge other blocks, or at other times, than the rules say. The possible blocks are then unknown.
    pub irregular: bool,
    pub lasting: Lasting,
    pub timing: Timing,
}

/// The duration of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// From its beginning to its end.
    Spell,
    /// It is over at once, and takes no end.
    AtOnce,
    /// It is over at once and does nothing but end others.
    Mending,
}

/// The timing of the nodes that a fault names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// On time.
    True,
    /// Not before the fault is over.
    Stopped,
    /// By a wrong clock, or late.
    Wrong,
}

impl Facts {
    /// Something happens between nodes.
    pub const NETWORK: Self =
        Self { deviant: false, paired: false, irregular: false, lasting: Lasting::Spell, timing: Timing::True };
    /// Nodes leave something out, as they may.
    pub const OMISSION: Self = Self::NETWORK;
    /// Nodes break the rules, or cannot keep them.
    pub const BREACH: Self = Self { deviant: true, ..Self::NETWORK };
    /// Delegates break the rules of forging.
    pub const IRREGULAR: Self = Self { irregular: true, ..Self::BREACH };
    /// Honest nodes forge for one delegate beside each other.
    pub const PAIRED: Self = Self { paired: true, irregular: true, ..Self::NETWORK };
    /// Clients hand in transactions.
    pub const CLIENTS: Self = Self::NETWORK;

    /// The same, over at once.
    pub const fn at_once(self) -> Self {
        Self { lasting: Lasting::AtOnce, ..self }
    }

    /// The same, by nodes that do what is due at these times.
    pub const fn timed(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// It ends by itself, at the instant at which it begins.
    pub fn is_over_at_once(self) -> bool {
        self.lasting != Lasting::Spell
    }
}
