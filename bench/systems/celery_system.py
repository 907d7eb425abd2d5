"""One process of Celery: the commands of child/main.ts that its scenarios use, on the same socket, in Python.

Its handlers run in processes of their own. They note what they see in a file that is mapped into memory here too: one
byte per job for how often it ran, then one double per job for its latency or lateness.
"""
import json
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from datetime import datetime, timezone

from celery import Celery

PLACE = json.loads(os.environ.get("BENCH_PLACE") or sys.argv[1])
URL = f"redis+socket://{PLACE['socket']}"
LOOK_SECONDS = 0.005
PROGRESS_SECONDS = 0.05
PROCESSES = 2
PREFETCH = 64
GOLDEN = 0.6180339887498949

app = Celery("celery_system", broker=URL, backend=URL)
app.conf.update(
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=PREFETCH,
    worker_send_task_events=False,
    task_send_sent_event=False,
    broker_connection_retry_on_startup=True,
)


def monotonic():
    return time.monotonic() * 1_000


class Tally:
    def __init__(self, path, up_to):
        self.up_to = up_to
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), up_to * 9)

    def tick(self, job):
        if "at" in job:
            self.note(job["n"], monotonic() - job["at"])
        elif "due" in job:
            self.note(job["n"], max(0.0, time.time() * 1_000 - job["due"]))
        self.memory[job["n"]] += 1

    def note(self, number, value):
        struct.pack_into("d", self.memory, self.up_to + 8 * number, value)

    def count(self):
        return self.up_to - self.memory[: self.up_to].count(0)

    def ran(self, last):
        seen = self.memory[: self.up_to]
        times = struct.unpack_from(f"{self.up_to}d", self.memory, self.up_to)
        noted = spread([value for value in times if value > 0])
        return {"count": self.count(), "twice": sum(n - 1 for n in seen if n > 1), "first": 0, "last": last, "latency": noted, "lateness": noted}


def spread(times):
    ordered = sorted(times)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0
    mean = sum(ordered) / len(ordered) if ordered else 0
    return {"count": len(ordered), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": at(1), "mean": mean}


@app.task(name="bench.noop")
def noop(job):
    if noop.tally is None:
        noop.tally = Tally(os.environ["BENCH_TALLY"], int(os.environ["BENCH_UP_TO"]))
    noop.tally.tick(job)


noop.tally = None


def send(job):
    if "due" in job:
        noop.apply_async((job,), eta=datetime.fromtimestamp(job["due"] / 1_000, timezone.utc))
    else:
        noop.delay(job)


class Commands:
    def __init__(self):
        self.tally = None
        self.worker = None
        self.stored = 0

    def prepare(self, _):
        return None

    def enqueueMany(self, jobs):
        return self.timed(jobs, send)

    def enqueueEach(self, jobs):
        numbers = iter(self.numbers(jobs))
        times, lock = [], threading.Lock()

        def produce():
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                began = monotonic()
                noop.delay({"n": number})
                times.append(monotonic() - began)

        began = monotonic()
        threads = [threading.Thread(target=produce) for _ in range(jobs["inFlight"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"count": jobs["count"], "ms": monotonic() - began, "latency": spread(times)}

    def enqueuePaced(self, jobs):
        began = monotonic()

        def at_its_time(job):
            time.sleep(max(0, began + job["n"] * 1_000 / jobs["perSecond"] - monotonic()) / 1_000)
            noop.delay({**job, "at": monotonic()})

        return self.timed(jobs, at_its_time)

    def work(self, how):
        path = tempfile.mkstemp(prefix="celery-tally-", dir=os.path.dirname(PLACE["socket"]))[1]
        os.truncate(path, how["upTo"] * 9)
        self.tally = Tally(path, how["upTo"])
        env = {**os.environ, "BENCH_PLACE": json.dumps(PLACE), "BENCH_TALLY": path, "BENCH_UP_TO": str(how["upTo"])}
        options = ["--pool=prefork", f"--concurrency={how.get('concurrency', PROCESSES)}", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        # On a queue where nothing comes, so that its start is not part of what is timed.
        command = [sys.executable, "-m", "celery", "-A", "celery_system", "worker", "-Q", "idle", "--loglevel=ERROR", *options]
        self.worker = subprocess.Popen(command, env=env, cwd=os.path.dirname(os.path.abspath(__file__)))
        while not app.control.ping(timeout=0.2):
            if self.worker.poll() is not None:
                raise RuntimeError("the worker ended at once")
        began = monotonic()
        app.control.add_consumer("celery", reply=True, limit=1)
        return {"began": began}

    def ran(self, count):
        while self.tally.count() < count:
            time.sleep(LOOK_SECONDS)
        return self.tally.ran(monotonic())

    def report(self, _):
        return self.tally.ran(monotonic())

    def usage(self, _):
        own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = sum(used.ru_utime + used.ru_stime for used in (own, ended)) * 1_000
        return {"cpuMs": cpu, "rssBytes": own.ru_maxrss * 1_024, "peakRssBytes": own.ru_maxrss * 1_024}

    def stop(self, _):
        if self.worker is not None:
            self.worker.terminate()
            self.worker.wait()
            self.worker = None

    def progress(self):
        return (self.tally.count() if self.tally else 0) or self.stored

    def numbers(self, jobs):
        start = jobs.get("from", 0)
        return range(start, start + jobs["count"])

    def timed(self, jobs, work):
        began = monotonic()
        due = jobs.get("due")
        for index, number in enumerate(self.numbers(jobs)):
            job = {"n": number}
            if due:  # scattered as in child/jobs.ts
                job["due"] = round(due["start"] + index * GOLDEN % 1 * due["over"])
            work(job)
            self.stored += 1
        return {"count": jobs["count"], "ms": monotonic() - began}


def main():
    commands = Commands()
    line = socket.socket(fileno=3)
    lock = threading.Lock()

    def say(message):
        with lock:
            line.sendall((json.dumps(message) + "\n").encode())

    def obey(message):
        try:
            answer = getattr(commands, message["command"])(message.get("argument"))
            say({"id": message["id"], "answer": answer})
        except Exception:
            say({"id": message["id"], "error": traceback.format_exc()})

    def tell_progress():
        said = 0
        while True:
            time.sleep(PROGRESS_SECONDS)
            now = commands.progress()
            if now != said:
                say({"progress": now})
            said = now

    threading.Thread(target=tell_progress, daemon=True).start()
    say({"ready": True})
    for text in line.makefile():
        threading.Thread(target=obey, args=(json.loads(text),), daemon=True).start()
    commands.stop(None)
    os._exit(0)


if __name__ == "__main__":
    main()
