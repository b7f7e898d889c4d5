//! Scheduling hints for workers' threads.

/// Makes Linux schedule this thread, and all threads that it starts later, for throughput rather
/// than for low latency (`SCHED_BATCH`). The niceness does not change.
///
/// A worker's threads wake each other for every batch. If several workers share a processor, each
/// wake-up would otherwise preempt another worker in the middle of an evaluation, and evict that
/// worker's network from the caches (bench/loop.md).
pub fn prefer_throughput() {
    #[cfg(target_os = "linux")]
    {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameter outlives the call, which only reads it.
        let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const priority) };
        if status != 0 {
            // Some sandboxes forbid the call. The program is then only slower.
            tracing::debug!("no batch scheduling: {}", std::io::Error::last_os_error());
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::prefer_throughput;

    /// Returns the 41st field of this thread's `stat` file (proc(5)).
    fn policy() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The second field is a name in parentheses, which may contain spaces.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let policy = fields.split_whitespace().nth(41 - 3).unwrap();
        policy.parse().unwrap()
    }

    #[test]
    fn threads_inherit_batch_scheduling_and_others_keep_theirs() {
        let before = policy();
        let inherited = std::thread::spawn(|| {
            prefer_throughput();
            (policy(), std::thread::spawn(policy).join().unwrap())
        });
        let batch = libc::SCHED_BATCH;
        assert_eq!(inherited.join().unwrap(), (batch, batch));
        assert_eq!(policy(), before);
    }
}
