//! Whose turn it is: a lane for each tenant, served in turns.

use std::collections::{HashMap, VecDeque};

use crate::identity::Tenant;

/// What waits, in order of arrival within a tenant.
pub(super) struct Lanes<T> {
    lanes: HashMap<Tenant, Lane<T>>,
    /// Every tenant that has a lane, next first.
    turns: VecDeque<Tenant>,
    length: usize,
}

struct Lane<T> {
    items: VecDeque<T>,
    /// In front of this nothing fits any more, in the take that is under way.
    passed: usize,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), turns: VecDeque::new(), length: 0 }
    }
}

impl<T> Lanes<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, tenant: &Tenant, item: T) {
        self.length += 1;
        if let Some(lane) = self.lanes.get_mut(tenant) {
            return lane.items.push_back(item);
        }
        self.lanes.insert(tenant.clone(), Lane { items: VecDeque::from([item]), passed: 0 });
        self.turns.push_back(tenant.clone());
    }

    /// Takes at most `count`, one from each tenant in turn. What does not fit keeps its place, and once it does not it is not
    /// asked about again.
    pub(super) fn take(&mut self, count: usize, into: &mut Vec<T>, mut fits: impl FnMut(&T) -> bool) {
        let until = into.len() + count;
        let mut idle = VecDeque::new();
        while into.len() < until
            && let Some(tenant) = self.turns.pop_front()
        {
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            let found = lane.items.iter().skip(lane.passed).position(&mut fits);
            lane.passed = found.map_or(0, |found| lane.passed + found);
            let Some(item) = found.and_then(|_| lane.items.remove(lane.passed)) else {
                idle.push_back(tenant);
                continue;
            };
            into.push(item);
            self.length -= 1;
            if lane.items.is_empty() {
                self.lanes.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
        idle.append(&mut self.turns);
        self.turns = idle;
        self.lanes.values_mut().for_each(|lane| lane.passed = 0);
    }

    /// The next one.
    pub(super) fn pop(&mut self) -> Option<T> {
        let mut taken = Vec::new();
        self.take(1, &mut taken, |_| true);
        taken.pop()
    }
}
