-- The load of a benchmark, for wrk: the request bodies in a file, one to a line, in turn from the first one asked for on.
-- An answer fails when it has an error in it, or another status than 200. The last line of the output are the figures.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  requests = {}
  for body in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, nil, body)
  end
  place = tonumber(arguments[2])
  failed = 0
  firstFailure = ""
end

function request()
  place = place + 1
  return requests[(place - 1) % #requests + 1]
end

function response(status, _, body)
  if status == 200 and not body:find('"errors":', 1, true) then return end
  failed = failed + 1
  if firstFailure == "" then firstFailure = status .. " " .. body:sub(1, 600):gsub("%c", " ") end
end

function done(summary, latency)
  local thread = threads[1]
  if thread:get("firstFailure") ~= "" then io.write("first failure: ", thread:get("firstFailure"), "\n") end
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"failed":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f}\n',
    summary.requests,
    thread:get("failed") + errors.connect + errors.read + errors.write + errors.timeout,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3
  ))
end
