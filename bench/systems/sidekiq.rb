# frozen_string_literal: true

# One process of Sidekiq: the commands of child/main.ts that its scenarios use, on the same socket, in Ruby.
require "json"
require "socket"
require "sidekiq"
require "sidekiq/cli" # makes it a server
require "sidekiq/launcher"

PLACE = JSON.parse(ARGV[0])
QUEUE = "bench"
CHUNK = 1_000
PROGRESS_SECONDS = 0.05
GOLDEN = 0.6180339887498949

# Every second and not every five: the setting for those who mind how late jobs are.
Sidekiq.options[:average_scheduled_poll_interval] = 1
Sidekiq.logger.level = Logger::FATAL
Sidekiq.redis = { url: "unix://#{PLACE.fetch("socket")}", size: 80 } # 64 threads enqueue at once

def monotonic
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
end

# What the handlers of this process have seen.
class Tally
  attr_reader :count

  def initialize(up_to)
    @seen = Array.new(up_to, false)
    @count = @twice = 0
    @first = @last = 0.0
    @latency = []
    @lateness = []
    @lock = Mutex.new
    @more = ConditionVariable.new
  end

  def tick(input)
    now = monotonic
    @lock.synchronize do
      @latency << now - input["at"] if input["at"]
      @lateness << [0, Time.now.to_f * 1_000 - input["due"]].max if input["due"]
      @first = now if @count.zero?
      @last = now
      if @seen[input["n"]]
        @twice += 1
      else
        @seen[input["n"]] = true
        @count += 1
        @more.broadcast
      end
    end
  end

  def reached(count)
    @lock.synchronize { @more.wait(@lock) while @count < count }
  end

  def ran
    @lock.synchronize { { count: @count, twice: @twice, first: @first, last: @last, latency: spread(@latency), lateness: spread(@lateness) } }
  end
end

def spread(times)
  sorted = times.sort
  at = ->(share) { sorted.empty? ? 0 : sorted[[(sorted.size * share).ceil - 1, 0].max] }
  mean = sorted.empty? ? 0 : sorted.sum / sorted.size
  { count: sorted.size, p50: at[0.5], p90: at[0.9], p99: at[0.99], p999: at[0.999], max: sorted.last || 0, mean: mean }
end

class Noop
  include Sidekiq::Worker
  sidekiq_options queue: QUEUE

  def perform(input)
    $tally.tick(input)
  end
end

$tally = Tally.new(0)
$stored = 0

def timed(count)
  began = monotonic
  yield
  { count: count, ms: monotonic - began }
end

def inputs(jobs)
  from = jobs["from"] || 0
  due = jobs["due"]
  (0...jobs["count"]).lazy.map do |i|
    job = { "n" => from + i }
    job["due"] = (due["start"] + i * GOLDEN % 1 * due["over"]).round if due # scattered as in child/jobs.ts
    job
  end
end

# Jobs without a due time, or with one each: never mixed.
def push(chunk)
  later = chunk.first["due"] ? { "at" => chunk.map { |job| job["due"] / 1_000.0 } } : {}
  Sidekiq::Client.push_bulk({ "class" => Noop, "queue" => QUEUE, "args" => chunk.map { |job| [job] } }.merge(later))
end

COMMANDS = {
  "prepare" => ->(_) {},
  "enqueueMany" => lambda do |jobs|
    timed(jobs["count"]) do
      inputs(jobs).each_slice(CHUNK) do |chunk|
        push(chunk)
        $stored += chunk.size
      end
    end
  end,
  "enqueueEach" => lambda do |jobs|
    waiting = Queue.new
    inputs(jobs).each { |input| waiting << input }
    waiting.close
    times = Queue.new
    took = timed(jobs["count"]) do
      threads = Array.new(jobs["inFlight"]) do
        Thread.new do
          while (input = waiting.pop)
            began = monotonic
            Noop.perform_async(input)
            times << monotonic - began
          end
        end
      end
      threads.each(&:join)
    end
    took.merge(latency: spread(Array.new(times.size) { times.pop }))
  end,
  "enqueuePaced" => lambda do |jobs|
    timed(jobs["count"]) do
      began = monotonic
      inputs(jobs).each_with_index do |input, index|
        sleep([0, began + index * 1_000.0 / jobs["perSecond"] - monotonic].max / 1_000)
        Noop.perform_async(input.merge("at" => monotonic))
        $stored += 1
      end
    end
  end,
  "work" => lambda do |how|
    $tally = Tally.new(how["upTo"])
    began = monotonic
    $launcher = Sidekiq::Launcher.new(Sidekiq.options.merge(queues: [QUEUE], concurrency: how["concurrency"] || 10))
    $launcher.run
    { began: began }
  end,
  "ran" => lambda do |count|
    $tally.reached(count)
    $tally.ran
  end,
  "report" => ->(_) { $tally.ran },
  "usage" => lambda do |_|
    times = Process.times
    rss = File.read("/proc/self/statm").split[1].to_i * 4_096
    { cpuMs: (times.utime + times.stime) * 1_000, rssBytes: rss, peakRssBytes: rss }
  end,
  "stop" => ->(_) { $launcher&.stop }
}.freeze

socket = UNIXSocket.for_fd(3)
lock = Mutex.new
say = ->(message) { lock.synchronize { socket.puts(JSON.generate(message)) } }

Thread.new do
  said = 0
  loop do
    sleep PROGRESS_SECONDS
    now = $tally.count.positive? ? $tally.count : $stored
    say.call(progress: now) if now != said
    said = now
  end
end

say.call(ready: true)
while (line = socket.gets)
  message = JSON.parse(line)
  Thread.new(message) do |asked|
    answer = COMMANDS.fetch(asked["command"]).call(asked["argument"])
    say.call(id: asked["id"], answer: answer)
  rescue StandardError => e
    say.call(id: asked["id"], error: e.full_message(highlight: false))
  end
end
exit!
