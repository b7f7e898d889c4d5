//! Follows the generations of a store.

use super::{Generation, Name, Store, StoreError};

/// Tracks the generations of a store: those known so far, and new ones as they appear.
///
/// The first look lists the generations. After that, each following one is requested by name,
/// because listings may be stale, but reads by name are not.
#[derive(Debug)]
pub struct Generations {
    /// Maps the number of a generation to the name of its manifest.
    name: fn(u64) -> Name,
    last: Option<Generation>,
    accepted: Option<Generation>,
}

impl Default for Generations {
    fn default() -> Generations {
        Generations::of(Name::generation)
    }
}

impl Generations {
    /// Returns a follower of the generations whose manifests have these names, such as the
    /// candidates.
    pub fn of(name: fn(u64) -> Name) -> Generations {
        Generations {
            name,
            last: None,
            accepted: None,
        }
    }

    /// Looks for generations beyond the last known one; returns whether any were found.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached, or if it contains an invalid manifest.
    pub fn look(&mut self, store: &Store) -> Result<bool, StoreError> {
        let known = self.last.as_ref().map(|last| last.number);
        if known.is_none() {
            self.find(store)?;
        }
        while let Some(next) = self.read(store, self.next_number())? {
            self.take(next);
        }
        Ok(self.last.as_ref().map(|last| last.number) != known)
    }

    /// Returns the newest generation.
    pub fn last(&self) -> Option<&Generation> {
        self.last.as_ref()
    }

    /// Returns the newest generation that no gate has rejected.
    pub fn accepted(&self) -> Option<&Generation> {
        self.accepted.as_ref()
    }

    /// Returns the number of the next generation.
    pub fn next_number(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.number + 1)
    }

    /// Finds the newest listed generation, and the newest accepted one up to it.
    fn find(&mut self, store: &Store) -> Result<(), StoreError> {
        let name = (self.name)(0);
        let (folder, _) = name.as_str().split_once('/').unwrap_or_default();
        let names = store.list(folder)?;
        let numbers = names.iter().filter_map(|name| {
            let number = name.number()?;
            ((self.name)(number) == *name).then_some(number)
        });
        let newest = numbers.max();
        let Some(newest) = newest else {
            return Ok(());
        };
        for number in (0..=newest).rev() {
            let Some(generation) = self.read(store, number)? else {
                continue;
            };
            let is_accepted = generation.is_accepted();
            if is_accepted {
                self.accepted = Some(generation.clone());
            }
            self.last.get_or_insert(generation);
            if is_accepted {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, store: &Store, number: u64) -> Result<Option<Generation>, StoreError> {
        store.manifest(&(self.name)(number), number)
    }

    fn take(&mut self, generation: Generation) {
        if generation.is_accepted() {
            self.accepted = Some(generation.clone());
        }
        self.last = Some(generation);
    }
}

impl Store {
    /// Returns all generations, in order.
    ///
    /// # Errors
    /// As [`Generations::look`].
    pub fn generations(&self) -> Result<Vec<Generation>, StoreError> {
        let mut found = Vec::new();
        self.add_generations(&mut found)?;
        Ok(found)
    }

    /// Appends the generations that `found` lacks.
    ///
    /// # Errors
    /// As [`Generations::look`].
    pub fn add_generations(&self, found: &mut Vec<Generation>) -> Result<(), StoreError> {
        loop {
            let number = found.len() as u64;
            let Some(generation) = self.manifest(&Name::generation(number), number)? else {
                return Ok(());
            };
            found.push(generation);
        }
    }

    /// Returns the manifest stored under a name, which is that of generation `number`. Returns
    /// `None` if the store does not contain it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached, or the manifest is invalid.
    pub fn manifest(&self, name: &Name, number: u64) -> Result<Option<Generation>, StoreError> {
        let Some(bytes) = self.get(name)? else {
            return Ok(None);
        };
        let read = Generation::parse(&bytes, number);
        read.map(Some).map_err(|source| StoreError::Manifest {
            path: self.path(name),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::generation::tests::generation;
    use super::super::{Outcome, Put};
    use super::*;

    fn put(store: &Store, number: u64, is_accepted: bool) {
        let mut generation = generation(number);
        generation.gate = (!is_accepted).then_some(Outcome {
            is_accepted,
            opponent: 0,
            wins: 0,
            draws: 0,
            losses: 4,
            llr: -3.0,
        });
        let name = Name::generation(number);
        assert_eq!(store.put(&name, &generation.to_json()).unwrap(), Put::New);
    }

    #[test]
    fn the_newest_accepted_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let mut followed = Generations::default();
        let numbers = |followed: &Generations| {
            let number = |it: Option<&Generation>| it.map(|it| it.number);
            (number(followed.last()), number(followed.accepted()))
        };
        assert!(!followed.look(&store).unwrap());
        assert_eq!(
            (numbers(&followed), followed.next_number()),
            ((None, None), 0)
        );
        put(&store, 0, true);
        assert!(followed.look(&store).unwrap());
        assert!(!followed.look(&store).unwrap());
        put(&store, 1, true);
        put(&store, 2, false);
        assert!(followed.look(&store).unwrap());
        assert_eq!(numbers(&followed), (Some(2), Some(1)));
        // A first look now finds the same generations.
        let mut late = Generations::default();
        assert!(late.look(&store).unwrap());
        assert_eq!(numbers(&late), (Some(2), Some(1)));
        assert_eq!(store.generations().unwrap().len(), 3);
        std::fs::write(folder.path().join("generations/000003.json"), "{").unwrap();
        let error = followed.look(&store).unwrap_err().to_string();
        assert!(error.contains("000003.json"), "{error}");
    }
}
