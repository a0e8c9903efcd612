//! Records of events to come, each at a place of its own.

/// Records without in-use marks, so that the address of each follows from its place without a read.
#[derive(Clone)]
pub(crate) struct Places<T> {
    pub all: Vec<T>,
    /// The places of released records.
    free: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Keeps a record, and returns its place.
    pub fn insert(&mut self, record: T) -> u32 {
        let Some(free) = self.free.pop() else {
            self.all.push(record);
            return u32::try_from(self.all.len() - 1).expect("2^32 events do not fit into memory");
        };
        self.all[free as usize] = record;
        free
    }

    /// Releases a place, and returns the record that is still in it.
    pub fn release(&mut self, place: u32) -> &mut T {
        self.free.push(place);
        &mut self.all[place as usize]
    }

    /// The record at a place.
    pub fn of(&self, place: u32) -> &T {
        &self.all[place as usize]
    }

    /// Number of records in use.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
