-- What else scripts find under a name: random numbers, the names of before 1.0, modules, files and libraries. It goes on in
-- the scope of requests.lua.

-- Random numbers -------------------------------------------------------------------------------------------------

sysbench.rand = complete("sysbench.rand", {
   default = native.default,
   uniform = native.uniform,
   gaussian = native.gaussian,
   special = native.special,
   pareto = native.pareto,
   zipfian = native.zipfian,
   uniform_uint64 = native.uniform_uint64,
   uniform_double = native.uniform_double,
   unique = native.unique,
   string = function(template)
      return native.string(a_text(template, "sysbench.rand.string"))
   end,
   varstring = function(shortest, longest)
      if type(shortest) ~= "number" or type(longest) ~= "number" then
         raise("varstring takes two numbers, the shortest and the longest")
      end
      return native.varstring(shortest, longest)
   end,
})

-- The names of before 1.0 ----------------------------------------------------------------------------------------

test = native.file
db_driver = native.driver
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2

local legacy

local function legacy_connection()
   legacy = legacy or sysbench.sql.driver():connect()
   return legacy
end

function db_connect()
   return legacy_connection()
end

function db_disconnect()
   if legacy then
      legacy:disconnect()
      legacy = nil
   end
end

for _, name in ipairs({ "query", "prepare", "bulk_insert_init", "bulk_insert_next", "bulk_insert_done" }) do
   _G["db_" .. name] = function(...)
      local connection = legacy_connection()
      return connection[name](connection, ...)
   end
end

-- The values are those that the table has when the statement is executed.
function db_bind_param(statement, values)
   local parameters = {}
   for place = 1, #values do
      parameters[place] = setmetatable({}, {
         __index = function()
            return values[place]
         end,
      })
   end
   statement:bind_param(unpack(parameters))
end

function db_execute(statement)
   return statement:execute()
end

function db_store_results() end

function db_free_results() end

function db_close() end

-- It was never more than a word in sysbench either.
function db_bind_result()
   raise("db_bind_result is not supported: take the rows of db_query")
end

sysbench.db = complete("sysbench.db", {
   DB_ERROR_NONE = DB_ERROR_NONE,
   DB_ERROR_RESTART_TRANSACTION = DB_ERROR_RESTART_TRANSACTION,
   DB_ERROR_FAILED = DB_ERROR_FAILED,
})
for _, name in ipairs({
   "connect",
   "disconnect",
   "query",
   "bulk_insert_init",
   "bulk_insert_next",
   "bulk_insert_done",
   "prepare",
   "bind_param",
   "bind_result",
   "execute",
   "store_results",
   "free_results",
   "close",
}) do
   sysbench.db[name] = _G["db_" .. name]
end

local WHOLE_MAX = 2 ^ 32 - 1

function sb_rnd()
   return sysbench.rand.uniform(0, WHOLE_MAX)
end

-- Draws until a number lies in the range, because one that was left out is then never drawn in another range either.
-- Few numbers lie in a narrow range, so this goes on for a while, in turns that can be ended.
function sb_rand_uniq(low, high)
   low, high = low or 0, high or WHOLE_MAX
   if type(low) ~= "number" or type(high) ~= "number" then
      raise("sb_rand_uniq takes two numbers, the lowest and the highest")
   end
   if ceil(low) > floor(high) or low > WHOLE_MAX or high < 0 then
      raise(("sb_rand_uniq draws from 0 to 4294967295, where no number lies between %s and %s"):format(low, high))
   end
   local drawn
   repeat
      drawn = native.unique_within(low, high)
   until drawn
   return drawn
end

-- What scripts that make tables of their own expect, unless it is given as an option.
mysql_table_engine, myisam_max_rows = "innodb", 1000000

sb_rand = sysbench.rand.default
sb_rand_uniform = sysbench.rand.uniform
sb_rand_gaussian = sysbench.rand.gaussian
sb_rand_special = sysbench.rand.special
sb_rand_pareto = sysbench.rand.pareto
sb_rand_str = sysbench.rand.string

-- What scripts reach by other ways ---------------------------------------------------------------------------------

package.path = native.path .. ";" .. package.path

-- Modules are compiled once for all clients.
package.loaders[2] = function(name)
   local file, missing = package.searchpath(name, package.path)
   if not file then
      return missing
   end
   local module, mistake = native.module(file)
   return module or error(("error loading module '%s' from file '%s':\n\t%s"):format(name, file, mistake), 0)
end

-- A path counts from the script's folder, as that of a module does.
local function beside(file)
   return type(file) == "string" and package.searchpath(file, native.beside, "") or file
end

local load_file, open, lines = loadfile, io.open, io.lines

function loadfile(file)
   return load_file(beside(file))
end

function dofile(file)
   local chunk, mistake = loadfile(file)
   if not chunk then
      error(mistake, 0)
   end
   return chunk()
end

function io.open(file, mode)
   local reads = mode == nil or mode:sub(1, 1) == "r"
   return open(reads and beside(file) or file, mode)
end

function io.lines(file)
   if file == nil then
      return lines()
   end
   return lines(beside(file))
end

function os.exit()
   raise("os.exit is not supported: return true from event to end a client, or call error to end the run")
end

-- Functions of sysbench's own program, and those that would put the whole thread to sleep. Scripts take `ffi` and the
-- type of the counters for granted.
local system = require("ffi")
system.cdef([[
typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_ERROR, SB_CNT_RECONNECT } sb_counter_type;
]])

local function asleep(nanoseconds)
   answered({}, request(SLEEP, nanoseconds))
   return 0
end

local function symbol(name)
   return system.C[name]
end

local program = setmetatable({
   -- The tally counts errors and reconnects by itself.
   sb_counter_inc = function() end,
   usleep = function(microseconds)
      return asleep(tonumber(microseconds) * 1e3)
   end,
   sleep = function(seconds)
      return asleep(tonumber(seconds) * 1e9)
   end,
}, {
   __index = function(_, name)
      local there, found = pcall(symbol, name)
      if not there then
         raise("ffi.C." .. tostring(name) .. " is not supported: " .. tostring(found):gsub("^.-:%d+: ", ""))
      end
      return found
   end,
})
ffi = setmetatable({ C = program }, { __index = system })
package.loaded.ffi = ffi

