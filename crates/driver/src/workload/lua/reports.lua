-- The reports that scripts can set as their hooks. Each takes what a hook takes, and prints a line of rates per second
-- and of latencies in milliseconds. A cumulative report is the same line, of the whole run.

local percentile = sysbench.opt.percentile

local function per_second(stat, count)
   return stat.time_interval > 0 and count / stat.time_interval or 0
end

local function rates(stat)
   local statements = stat.reads + stat.writes + stat.other
   return {
      seconds = stat.time_total,
      threads = stat.threads_running,
      events = per_second(stat, stat.events),
      statements = per_second(stat, statements),
      reads = per_second(stat, stat.reads),
      writes = per_second(stat, stat.writes),
      other = per_second(stat, stat.other),
      latency_ms = stat.latency_pct * 1000,
      errors = per_second(stat, stat.errors),
      reconnects = per_second(stat, stat.reconnects),
   }
end

-- Puts rates in the places of their names.
local function filled(form, rate)
   return (form:gsub("%${([%a_]+)}", function(name)
      local digits = (name == "seconds" or name == "threads") and "%.0f" or "%.2f"
      return digits:format(rate[name])
   end))
end

local function printing(form)
   return function(stat)
      print(filled(form, rates(stat)))
   end
end

return {
   default = printing(
      "[ ${seconds}s ] thds: ${threads} tps: ${events} qps: ${statements} (r/w/o: ${reads}/${writes}/${other}) "
         .. "lat (ms," .. percentile .. "%): ${latency_ms} err/s ${errors} reconn/s: ${reconnects}"
   ),
   csv = printing(
      "${seconds},${threads},${events},${statements},${reads},${writes},${other},${latency_ms},${errors},"
         .. "${reconnects}"
   ),
   json = printing(
      '{"time": ${seconds}, "threads": ${threads}, "tps": ${events}, "qps": {"total": ${statements}, '
         .. '"reads": ${reads}, "writes": ${writes}, "other": ${other}}, "latency": ${latency_ms}, '
         .. '"errors": ${errors}, "reconnects": ${reconnects}}'
   ),
}
