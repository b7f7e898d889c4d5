//! A backend that merges requests from many threads into larger batches and distributes them over
//! several backends.

use super::{Backend, BackendError, Batch, Evaluations, Imagination, Properties, Reply};
use crate::panics;
use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Evaluates other threads' requests on its own threads. Requests that arrive while one batch is
/// being computed form the next batch, which saturates devices that are fast only on large batches.
/// With several backends, any idle backend takes the next batch.
pub struct Service {
    /// The properties of the first backend.
    properties: Properties,
    imagination: Option<Arc<dyn Imagination>>,
    /// `None` only while the service is being dropped.
    requests: Option<Sender<Request>>,
    servers: Vec<JoinHandle<()>>,
}

struct Request {
    batch: Batch,
    reply: Reply,
}

impl Service {
    /// Serves requests from these backends (at least one), which must evaluate alike. Each runs on
    /// its own thread, in batches of at most `largest` positions (at least one).
    ///
    /// # Panics
    /// Panics if there is no backend.
    pub fn new<B>(backends: impl IntoIterator<Item = B>, largest: usize) -> Service
    where
        B: Backend + 'static,
    {
        let (requests, inbox) = unbounded();
        let mut properties: Option<Properties> = None;
        let mut imagination = None;
        let serve = |(number, backend): (usize, B)| {
            let of_this = backend.properties();
            match &mut properties {
                Some(all) => all.recommended_threads += of_this.recommended_threads,
                None => {
                    imagination = backend.imagination();
                    properties = Some(of_this.clone());
                }
            }
            let inbox = inbox.clone();
            std::thread::Builder::new()
                .name(format!("evaluation {number}"))
                .spawn(move || serve(&backend, &inbox, largest.max(1)))
        };
        // If the system runs out of threads, there are fewer servers. Without any server, requests
        // fail as if the service had stopped.
        let servers = backends.into_iter().enumerate().flat_map(serve).collect();
        Service {
            properties: properties.expect("a backend to serve from"),
            imagination,
            requests: Some(requests),
            servers,
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.requests = None;
        for server in self.servers.drain(..) {
            let _ = server.join();
        }
    }
}

impl Backend for Service {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let (reply, answer) = bounded(1);
        // The caller may have stopped waiting.
        let reply = Box::new(move |answer| drop(reply.send(answer)));
        self.ask(batch.clone(), reply);
        *out = answer.recv().map_err(|_| BackendError::Stopped)??;
        Ok(())
    }

    /// Runs the reply on the thread that computed it.
    fn ask(&self, batch: Batch, reply: Reply) {
        if let Some(requests) = &self.requests {
            // If there are no servers, the request fails.
            let _ = requests.send(Request { batch, reply });
        }
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        self.imagination.clone()
    }
}

/// Serves requests until all clients have disconnected. Batches that ask for futures are not merged.
fn serve(backend: &impl Backend, inbox: &Receiver<Request>, largest: usize) {
    while let Ok(first) = inbox.recv() {
        let (mut waiting, mut together) = (0, Vec::new());
        let mut alone = None;
        let mut next = Some(first);
        while let Some(request) = next.take() {
            match request.batch.steps {
                None => {
                    waiting += request.batch.len();
                    together.push(request);
                }
                Some(_) => alone = Some(request),
            }
            if waiting < largest && alone.is_none() {
                next = inbox.try_recv().ok();
            }
        }
        answer(backend, together, largest);
        if let Some(Request { batch, reply }) = alone {
            reply(unpanicked(|| {
                let mut out = Evaluations::default();
                backend.evaluate(&batch, &mut out)?;
                Ok(out)
            }));
        }
    }
}

fn answer(backend: &impl Backend, requests: Vec<Request>, largest: usize) {
    let evaluated = unpanicked(|| evaluate(backend, &requests, largest));
    let answers: Vec<_> = match evaluated {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(error) => requests.iter().map(|_| Err(error.clone())).collect(),
    };
    for (request, answer) in requests.into_iter().zip(answers) {
        (request.reply)(answer);
    }
}

/// Turns a panic into an error that affects only these requests.
fn unpanicked<T>(ask: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
        let message = panics::message(panic.as_ref()).to_owned();
        Err(BackendError::Panicked(message))
    })
}

/// Returns one answer per request. Batches span requests and have at most `largest` positions.
fn evaluate(
    backend: &impl Backend,
    requests: &[Request],
    largest: usize,
) -> Result<Vec<Evaluations>, BackendError> {
    let mut answers = vec![Evaluations::default(); requests.len()];
    let mut positions = requests
        .iter()
        .enumerate()
        .flat_map(|(request, asked)| (0..asked.batch.len()).map(move |index| (request, index)));
    let mut merged = Batch::default();
    let mut evaluations = Evaluations::default();
    loop {
        let chunk: Vec<(usize, usize)> = positions.by_ref().take(largest).collect();
        if chunk.is_empty() {
            return Ok(answers);
        }
        merged.clear();
        for &(request, index) in &chunk {
            merged.push_from(&requests[request].batch, index);
        }
        backend.evaluate(&merged, &mut evaluations)?;
        for (place, &(request, _)) in chunk.iter().enumerate() {
            let logits = evaluations.logits(place).iter().copied();
            answers[request].push(evaluations.value(place), logits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::{Counting, assert_same, positions};
    use crate::backend::{PredictedFuture, Random};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Fails on batches of one position and panics on batches of two.
    struct Moody(Random);

    impl Backend for Moody {
        fn properties(&self) -> &Properties {
            self.0.properties()
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            match batch.len() {
                1 => Err(BackendError::Torch("out of memory".to_owned())),
                2 => panic!("as the test wants"),
                _ => self.0.evaluate(batch, out),
            }
        }
    }

    #[test]
    fn large_batches_are_split() {
        let counting = Arc::new(Counting::new(Random::new(1)));
        let service = Service::new([Arc::clone(&counting)], 8);
        assert_same(&service, &Random::new(1), &positions(30, true));
        assert_same(&service, &Random::new(1), &Batch::default());
        assert_eq!((counting.positions(), counting.largest()), (30, 8));
    }

    #[test]
    fn requests_that_wait_are_merged() {
        let batch = positions(9, true);
        let (reply, replies) = unbounded();
        let ask = || Request {
            batch: batch.clone(),
            reply: {
                let reply = reply.clone();
                Box::new(move |answer| reply.send(answer).unwrap())
            },
        };
        let counting = Counting::new(Random::new(1));
        answer(&counting, vec![ask(), ask(), ask()], 16);
        assert_eq!((counting.positions(), counting.largest()), (27, 16));
        let lengths: Vec<usize> = replies
            .try_iter()
            .map(|reply| reply.unwrap().len())
            .collect();
        assert_eq!(lengths, [9, 9, 9]);
    }

    #[test]
    fn failures_reach_those_who_asked() {
        let service = Service::new([Moody(Random::new(1))], 8);
        let mut out = Evaluations::default();
        let failed = service.evaluate(&positions(1, true), &mut out);
        assert!(matches!(failed, Err(BackendError::Torch(reason)) if reason == "out of memory"));
        assert_same(&service, &Random::new(1), &positions(3, true));
        for _ in 0..3 {
            let failed = service.evaluate(&positions(2, true), &mut out);
            let message = failed.unwrap_err().to_string();
            assert!(message.contains("as the test wants"), "{message}");
            assert_same(&service, &Random::new(1), &positions(3, true));
        }
    }

    /// Predicts a future for each position, or fails like the backend that it wraps.
    struct Prophet(Moody);

    impl Backend for Prophet {
        fn properties(&self) -> &Properties {
            self.0.properties()
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            self.0.evaluate(batch, out)?;
            if let Some(steps) = batch.steps {
                let future = PredictedFuture {
                    moves: vec![(7, 0.5); steps],
                    ..PredictedFuture::default()
                };
                out.futures = vec![future; batch.len()];
            }
            Ok(())
        }
    }

    #[test]
    fn futures_come_back_too() {
        let service = Service::new([Prophet(Moody(Random::new(1)))], 8);
        let asking = |count| Batch {
            steps: Some(3),
            ..positions(count, true)
        };
        let (batch, mut out) = (asking(5), Evaluations::default());
        service.evaluate(&batch, &mut out).unwrap();
        let predicted = std::mem::take(&mut out.futures);
        let mut expected = Evaluations::default();
        Random::new(1).evaluate(&batch, &mut expected).unwrap();
        assert_eq!(out, expected);
        let moves: Vec<usize> = predicted.iter().map(|future| future.moves.len()).collect();
        assert_eq!(moves, [3; 5]);
        for failing in [1, 2] {
            assert!(service.evaluate(&asking(failing), &mut out).is_err());
            assert_same(&service, &Random::new(1), &positions(3, true));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn it_says_what_the_inner_backend_says(
            sizes in proptest::collection::vec(0..40usize, 1..20),
            largest in 0..50usize,
            servers in 1..3usize,
            threads in 1..6usize,
        ) {
            let service = Service::new((0..servers).map(|_| Random::new(3)), largest);
            let batches: Vec<Batch> = sizes.iter().map(|&size| positions(size, true)).collect();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for batch in &batches {
                            assert_same(&service, &Random::new(3), batch);
                        }
                    });
                }
            });
        }
    }
}
