#!/usr/bin/env python3
"""A Pawl worker in Python, with nothing but its standard library.

    PAWL_URL=http://127.0.0.1:7295 python3 worker.py    # PAWL_API_KEY too, where the service asks for a key

It speaks the pull protocol of docs/protocol.md: claim by long poll, renew from a thread of its own, settle in batches,
hear of cancellations, give back what it cannot finish.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
import uuid

CONCURRENCY = 4
WAIT_MS = 20_000


class NonRetryable(Exception):
    """Thrown by a handler: no retry will help."""


class Snooze(Exception):
    """Thrown by a handler: not now. Spends no attempt."""

    def __init__(self, delay):
        super().__init__(f"later: {delay}")
        self.delay = delay


class Context:
    """What a handler gets beside its input."""

    def __init__(self, worker, lease, job):
        self.job, self.attempt, self.tenant = job["id"], job["attempt"], job["tenant"]
        self.cancelled = threading.Event()  # look at it now and then: cancelled, timed out, or the lease is lost
        self._worker, self._lease = worker, lease

    def log(self, message, level="info", data=None):
        self._note(level, message, data)

    def progress(self, value):
        self._note("progress", "", value)

    def _note(self, level, message, data):
        note = {"lease": self._lease, "job": self.job, "level": level, "message": message}
        self._worker.call("/v1/leases/reports", notes=[note if data is None else {**note, "data": data}])


class Worker:
    def __init__(self, url, key, tasks, name=None):
        self.url, self.key, self.handlers = url.rstrip("/"), key, {task["name"]: task.pop("handler") for task in tasks}
        self.tasks = tasks
        # One life of one worker: part of the fencing token of everything it writes.
        self.me = {"name": name or f"python-{os.getpid()}", "instance": str(uuid.uuid4())}
        self.running = {}  # job → (lease, context)
        self.leases = {}  # lease → jobs that are not settled
        self.lock = threading.Lock()
        self.outcomes = queue.Queue()
        self.stopping = threading.Event()
        self.free = threading.Semaphore(CONCURRENCY)

    def call(self, path, timeout=30, **body):
        """Every call can be repeated: claims carry an idempotency key, and the fencing token decides about the rest. So it is, until it is heard."""
        data = json.dumps({"worker": self.me, **body}).encode()
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        delay = 0.1
        while True:
            try:
                request = urllib.request.Request(self.url + path, data, headers, method="POST")
                with urllib.request.urlopen(request, timeout=timeout) as response:
                    text = response.read()
                    return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    raise RuntimeError(f"{path}: {error.read().decode()}") from error
                wait = float(error.headers.get("retry-after") or delay)
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                wait = delay
            time.sleep(wait)
            delay = min(2, delay * 2)

    def run(self):
        for part in (self.renew, self.settle):
            threading.Thread(target=part, daemon=True).start()
        while not self.stopping.is_set():
            self.free.acquire()
            slots = 1
            while slots < CONCURRENCY and self.free.acquire(blocking=False):
                slots += 1
            answer = self.call(
                "/v1/leases/claim", timeout=WAIT_MS / 1000 + 15, tasks=self.tasks, concurrency=CONCURRENCY, limit=slots, wait=WAIT_MS, idempotencyKey=str(uuid.uuid4())
            )
            for lease in answer["leases"]:
                with self.lock:
                    self.leases[lease["lease"]] = {job["id"] for job in lease["jobs"]}
                for job in lease["jobs"]:
                    slots -= 1
                    threading.Thread(target=self.attempt, args=(lease["lease"], job), daemon=True).start()
            for _ in range(slots):
                self.free.release()
        self.end()

    def attempt(self, lease, job):
        context = Context(self, lease, job)
        with self.lock:
            self.running[job["id"]] = (lease, context)
        timer = threading.Timer(job["timeout"] / 1000, context.cancelled.set)
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        outcome = self.run_handler(context, job)
        timer.cancel()
        duration = (time.monotonic() - began) * 1000
        if duration >= job["timeout"]:
            outcome = {"outcome": "failed", "failure": {"kind": "timeout", "name": "timeout", "message": f"it did not end within {job['timeout']} ms"}}
        self.outcomes.put({"lease": lease, "job": job["id"], "duration": duration, **outcome})
        self.free.release()

    def run_handler(self, context, job):
        try:
            output = self.handlers[job["task"]](job["input"], context)
            return {"outcome": "succeeded"} if output is None else {"outcome": "succeeded", "output": output}
        except Snooze as snooze:
            return {"outcome": "snoozed", "delay": snooze.delay}
        except Exception as error:  # whatever a handler throws is what its attempt failed with
            if context.cancelled.is_set():
                return {"outcome": "cancelled"}
            failure = {"name": type(error).__name__, "message": str(error), "stack": traceback.format_exc()}
            return {"outcome": "failed", "failure": failure, "retryable": not isinstance(error, NonRetryable)}

    def renew(self):
        """Once a second: it keeps the leases, and tells of cancellations as soon."""
        while True:
            time.sleep(1)
            with self.lock:
                leases = list(self.leases)
            if not leases:
                continue
            answer = self.call("/v1/leases/renew", leases=leases)
            with self.lock:
                for job, (lease, context) in self.running.items():
                    if job in answer["cancel"] or lease in answer["lost"]:
                        context.cancelled.set()
                for lease in answer["lost"]:
                    self.leases.pop(lease, None)

    def settle(self):
        while True:
            batch = [self.outcomes.get()]
            while len(batch) < 500 and not self.outcomes.empty():
                batch.append(self.outcomes.get())
            results = self.call("/v1/leases/settle", outcomes=batch)["results"]
            for outcome, result in zip(batch, results):
                with self.lock:
                    self.running.pop(outcome["job"], None)
                    jobs = self.leases.get(outcome["lease"])
                    if jobs is not None:
                        jobs.discard(outcome["job"])
                        if not jobs:
                            del self.leases[outcome["lease"]]
                print(json.dumps({"job": outcome["job"], "outcome": outcome["outcome"], "result": result}), flush=True)
                self.outcomes.task_done()

    def end(self):
        """Lets handlers finish for a while, gives back the rest, and says goodbye."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.running:
            time.sleep(0.05)
        with self.lock:
            rest = [{"lease": lease, "job": job, "outcome": "released"} for job, (lease, _) in self.running.items()]
        if rest:
            self.call("/v1/leases/settle", outcomes=rest)
        self.call("/v1/leases/retire")


def resize(photo, context):
    context.log("resizing", data={"photo": photo})
    context.progress({"done": 0.5})
    if photo.get("broken"):
        raise NonRetryable("this is no photo")
    if photo.get("wait"):
        context.cancelled.wait()
        raise RuntimeError("stopped")
    if context.attempt <= photo.get("failures", 0):
        raise OSError("the disk is busy")
    return {"width": photo["width"] // 2, "attempt": context.attempt}


if __name__ == "__main__":
    worker = Worker(
        os.environ.get("PAWL_URL", "http://127.0.0.1:7295"),
        os.environ.get("PAWL_API_KEY"),
        [{"name": "resize", "handler": resize, "retry": [10, 10], "timeout": "1m"}],
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stopping.set())
    print(json.dumps({"worker": worker.me}), file=sys.stderr, flush=True)
    worker.run()
