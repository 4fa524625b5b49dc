-- What the driver calls: the functions of a command and of hooks. It goes on in the scope of names.lua.

local globals, rawget, api, tid = _G, rawget, sysbench, native.tid

-- The function of a command or of a hook, and whether clients run it side by side; nil where there is none.
local function find(name)
   local command = api.cmdline.commands[name]
   if command ~= nil then
      return command[1], command[2] == api.cmdline.PARALLEL_COMMAND
   end
   local task = rawget(globals, name)
   return type(task) == "function" and task or nil, false
end

-- What is called where the script has no function of a name.
local function nothing() end

-- Says how a function of the script has failed: as refused with the place, or as broken with the reason.
local function failed(outcome)
   if type(outcome) == "table" and outcome.errcode == sysbench.error.RESTART_EVENT then
      local hook = sysbench.hooks.before_restart_event
      if hook then
         local ok, mistake = pcall(hook, outcome)
         if not ok then
            return DONE_BROKEN, tostring(mistake)
         end
      end
      return DONE_RESTART, outcome.at
   end
   if outcome == refusal then
      return DONE_REFUSED, refused_at
   end
   return DONE_BROKEN, tostring(outcome)
end

-- Calls functions of the script by their names, and says how each has ended: with what it gave, or how it failed. Who
-- calls the same function again gives no name; a global function is looked up each time all the same, because a script
-- may put another in its place.
local function converse()
   local given, name, command = yield()
   barred = false
   while true do
      if given then
         name = given
         command = find(name) or nothing
         if command == rawget(globals, name) then
            command = false
         end
      end
      local ok, outcome = pcall(command or globals[name] or nothing, tid)
      if ok then
         given = yield(DONE, outcome)
      else
         given = yield(failed(outcome))
      end
   end
end

return converse, find
