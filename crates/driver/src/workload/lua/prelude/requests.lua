-- What scripts of sysbench 1.0 call, over requests that the driver answers.
--
-- The driver runs this file once in each state, before the script, and gives it the functions that are written in
-- Rust. Whatever needs the server is a request: the script's coroutine yields it, the driver waits for the server
-- together with all other clients of its thread, and resumes the coroutine with the answer.

local native = ...

local concat, error, floor, ceil, getinfo = table.concat, error, math.floor, math.ceil, debug.getinfo
local ipairs, pairs = ipairs, pairs
local pcall, select, setmetatable = pcall, select, setmetatable
local tonumber, tostring, type, unpack, yield = tonumber, tostring, type, unpack, coroutine.yield

-- The same numbers and places as in request.rs. What is asked for, of which connection and with which of its statements
-- is one number, because every value that is yielded takes time.
local CONNECT, QUERY, PREPARE, EXECUTE, DISCONNECT, RECONNECT, SLEEP, CLOSE = 2, 3, 4, 5, 6, 7, 8, 9
local DONE, DONE_RESTART, DONE_REFUSED, DONE_BROKEN = 1 + 16, 1 + 32, 1 + 48, 1 + 64
local CONNECTION, STATEMENT = 16, 2 ^ 20

-- A bulk insert is sent when its text is as long as this.
local BULK_BYTES = 512 * 1024

-- States are many, their loops short, and each of them ends in a request, which compiled code cannot make: the
-- interpreter is both smaller and faster here.
jit.off()

-- Standard output belongs to whoever started the driver.
io.output(io.stderr)
io.stdout = io.stderr

function print(...)
   local words = {}
   for place = 1, select("#", ...) do
      words[place] = tostring((select(place, ...)))
   end
   io.stderr:write(concat(words, "\t"), "\n")
end

local own_source = getinfo(1, "S").source

-- Where the script is, as FILE:LINE. Functions of this file are passed over.
local function place()
   for level = 3, 100 do
      local info = getinfo(level, "Sl")
      if not info then
         break
      end
      if info.what ~= "C" and info.source ~= own_source then
         return info.source:gsub("^[@=]", "") .. ":" .. info.currentline
      end
   end
   return "the script"
end

local function raise(message)
   error(place() .. ": " .. message, 0)
end

-- Gives a table that refuses, by name and with the line, whatever it does not have.
local function complete(name, members)
   return setmetatable(members, {
      __index = function(_, key)
         raise(name .. "." .. tostring(key) .. " is not supported")
      end,
   })
end

local function a_text(value, what)
   if type(value) ~= "string" then
      raise(what .. " takes a text, not " .. (value == nil and "nothing" or "a " .. type(value)))
   end
   return value
end

-- The sysbench table ---------------------------------------------------------------------------------------------

sysbench = complete("sysbench", {
   version = "1.0.20",
   version_string = "sysbench 1.0.20",
   tid = native.tid,
   opt = native.opt,
   hooks = {},
   error = { NONE = 0, RESTART_EVENT = 1 },
   cmdline = complete("sysbench.cmdline", {
      command = native.command,
      script_path = native.file,
      options = {},
      commands = {},
      PARALLEL_COMMAND = true,
      -- The types that an option can have beside its default.
      ARG_NULL = 0,
      ARG_BOOL = 1,
      ARG_INT = 2,
      ARG_SIZE = 3,
      ARG_DOUBLE = 4,
      ARG_STRING = 5,
      ARG_LIST = 6,
      ARG_FILE = 7,
      ARG_MAX = 8,
   }),
   report_default = function(stat)
      native.reports().default(stat)
   end,
   report_csv = function(stat)
      native.reports().csv(stat)
   end,
   report_json = function(stat)
      native.reports().json(stat)
   end,
})
thread_id = native.tid

-- Requests -------------------------------------------------------------------------------------------------------

-- Whether the server cannot be asked: until the driver calls a function of the script, and in a coroutine of the script's
-- own, which would get the request in the place of the driver.
local barred = true

-- The text and the place of the last refusal that was raised as an error, to be told from errors of the script.
local refusal, refused_at = false

local function refuse_to_ask()
   raise("the server can be asked only while a function of the script runs that is no hook for reports, and not in a "
      .. "coroutine of its own")
end

local function request(...)
   if barred then
      refuse_to_ask()
   end
   return yield(...)
end

local create, resume = coroutine.create, coroutine.resume

local function back(before, ...)
   barred = before
   return ...
end

function coroutine.resume(...)
   local before = barred
   barred = true
   return back(before, resume(...))
end

local function unwrapped(ok, ...)
   if not ok then
      error((...), 0)
   end
   return ...
end

function coroutine.wrap(body)
   local own = create(body)
   return function(...)
      return unwrapped(coroutine.resume(own, ...))
   end
end

local function refuse(connection, ignorable, number, state, message)
   connection.sql_errno, connection.sql_state, connection.sql_errmsg = number, state, message
   local failure = { connection = connection, sql_errno = number, sql_state = state, sql_errmsg = message }
   local hook = sysbench.hooks.sql_error_ignorable
   if ignorable or (hook and hook(failure)) then
      failure.errcode, failure.at = sysbench.error.RESTART_EVENT, place()
      error(failure, 0)
   end
   refused_at = place()
   refusal = ("%s: SQL error, errno = %d, state = '%s': %s"):format(refused_at, number, state, message)
   error(refusal, 0)
end

-- An answer is numbers; false stands before what a refusal says.
local function answered(connection, number, ...)
   return number or refuse(connection, ...)
end

-- Results --------------------------------------------------------------------------------------------------------

-- Most results are never looked at, so one is nothing but the number by which the driver knows it: a light userdata,
-- which needs no memory. All of these share a metatable, and scripts have no others.
local Result, methods = {}, {}

local function row(found, ...)
   if found then
      return { ... }
   end
   if found == nil then
      raise("this result is gone: fetch its first row before the next statement on its connection")
   end
   return nil
end

function methods:fetch_row()
   return row(native.fetch(self))
end

function methods:free()
   native.forget(self)
end

complete("result", methods)

function Result:__index(key)
   if key == "nrows" or key == "nfields" then
      local rows, columns = native.size(self)
      if not rows then
         raise("this result is gone: too many statements came after it")
      end
      return key == "nrows" and rows or columns
   end
   return methods[key]
end

debug.setmetatable(native.null, Result)

-- Prepared statements --------------------------------------------------------------------------------------------

local types = complete("sysbench.sql.type", {
   NONE = 0,
   TINYINT = 1,
   SMALLINT = 2,
   INT = 3,
   BIGINT = 4,
   FLOAT = 5,
   DOUBLE = 6,
   TIME = 7,
   DATE = 8,
   DATETIME = 9,
   TIMESTAMP = 10,
   CHAR = 11,
   VARCHAR = 12,
})

local function no_number(value)
   raise("a parameter of a number cannot be " .. tostring(value))
end

-- How a parameter takes a value, by its type. One that is nil is NULL.
local function set_whole(parameter, value)
   if value ~= nil then
      value = tonumber(value) or no_number(value)
      value = value >= 0 and floor(value) or ceil(value)
   end
   parameter.value = value
end

local function set_real(parameter, value)
   if value ~= nil then
      value = tonumber(value) or no_number(value)
   end
   parameter.value = value
end

local function set_text(parameter, value)
   if value ~= nil then
      local length = parameter.length
      value = tostring(value)
      if length and #value > length then
         value = value:sub(1, length)
      end
   end
   parameter.value = value
end

local function set_rand_str(parameter, template)
   parameter:set(native.string(a_text(template, "set_rand_str")))
end

local Statement = {}

-- Parameters and statements have their methods themselves: looking into a metatable takes longer than most methods do.
function Statement:bind_create(kind, length)
   kind = tonumber(kind) or raise("bind_create takes a sysbench.sql.type")
   local set = kind <= types.BIGINT and set_whole or kind <= types.DOUBLE and set_real or set_text
   return { type = kind, length = tonumber(length), set = set, set_rand_str = set_rand_str }
end

function Statement:bind_param(...)
   local count = select("#", ...)
   self.parameters, self.count, self.only = { ... }, count, count == 1 and (...) or false
end

-- The values of several parameters.
local function values_of(statement)
   local parameters, values, count = statement.parameters, statement.values, statement.count
   for place = 1, count do
      values[place] = parameters[place].value
   end
   return unpack(values, 1, count)
end

local function stale()
   raise("this statement was closed, or prepared before its connection was closed or opened again")
end

function Statement:execute()
   if barred then
      refuse_to_ask()
   end
   local result, ignorable, number, state, message
   local request = self.request or stale()
   local only = self.only
   if only then
      -- As most statements have it. One value need not be put into a table to be taken out again.
      result, ignorable, number, state, message = yield(request, only.value)
   else
      result, ignorable, number, state, message = yield(request, values_of(self))
   end
   return result or refuse(self.connection, ignorable, number, state, message)
end

-- Statements of the same text share one at the server, which the last of them to be closed gives back.
function Statement:close()
   local asked = self.request
   if asked then
      self.request = false
      self.connection.statements[self] = nil
      answered(self.connection, request(asked - EXECUTE + CLOSE))
   end
end

Statement.__index = complete("statement", Statement)

-- Connections ----------------------------------------------------------------------------------------------------

local Connection = {}

local function open(connection)
   return connection.number or raise("the connection is closed")
end

function Connection:query(sql)
   return answered(self, request(QUERY + CONNECTION * open(self), a_text(sql, "query")))
end

function Connection:query_row(sql)
   local found = self:query(sql)
   if found.nrows == 0 then
      return nil
   end
   return select(2, native.fetch(found))
end

function Connection:prepare(sql)
   local asked = CONNECTION * open(self)
   local number = answered(self, request(PREPARE + asked, a_text(sql, "prepare")))
   local statement = setmetatable({
      connection = self,
      request = EXECUTE + asked + STATEMENT * number,
      execute = Statement.execute,
      parameters = {},
      values = {},
      count = 0,
      only = false,
   }, Statement)
   self.statements[statement] = true
   return statement
end

-- What was prepared on a connection that is closed or opened again cannot be executed any more.
local function forget_statements(connection)
   for statement in pairs(connection.statements) do
      statement.request = false
      connection.statements[statement] = nil
   end
end

local function send_bulk(connection, bulk)
   local sql = bulk.head .. " " .. concat(bulk.rows, ",", 1, bulk.count)
   bulk.count, bulk.bytes = 0, 0
   connection:query(sql)
end

function Connection:bulk_insert_init(sql)
   self.bulk = { head = a_text(sql, "bulk_insert_init"), rows = {}, count = 0, bytes = 0 }
end

function Connection:bulk_insert_next(values)
   local bulk = self.bulk or raise("bulk_insert_next needs a bulk_insert_init before it")
   local count = bulk.count + 1
   bulk.rows[count], bulk.count = a_text(values, "bulk_insert_next"), count
   bulk.bytes = bulk.bytes + #values
   if bulk.bytes >= BULK_BYTES then
      send_bulk(self, bulk)
   end
end

function Connection:bulk_insert_done()
   local bulk = self.bulk
   if bulk and bulk.count > 0 then
      send_bulk(self, bulk)
   end
   self.bulk = false
end

function Connection:reconnect()
   answered(self, request(RECONNECT + CONNECTION * open(self)))
   forget_statements(self)
end

function Connection:disconnect()
   if self.number then
      answered(self, request(DISCONNECT + CONNECTION * self.number))
      self.number = false
      forget_statements(self)
   end
end

-- Errors are raised where they happen: whoever comes here has none.
function Connection:check_error() end

-- Other sessions read all result sets of a statement as one.
local sets_apart = native.driver == "mysql"

function Connection:more_results()
   return sets_apart and native.more_results(open(self))
end

function Connection:next_result()
   if not sets_apart then
      raise("next_result is not supported on " .. native.driver .. ": all result sets come as one result")
   end
   return native.next_result(open(self))
end

Connection.__index = complete("connection", Connection)

local Driver = {}
local weak = { __mode = "k" }

function Driver:name()
   return native.driver
end

function Driver:connect()
   local connection = {
      driver = self,
      number = false,
      statements = setmetatable({}, weak),
      bulk = false,
      sql_errno = 0,
      sql_state = "",
      sql_errmsg = "",
   }
   setmetatable(connection, Connection)
   connection.number = answered(connection, request(CONNECT))
   return connection
end

Driver.__index = complete("driver", Driver)

sysbench.sql = complete("sysbench.sql", {
   type = types,
   error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
   driver = function(name)
      if name and name ~= native.driver then
         raise("the driver " .. tostring(name) .. " is not that of the server, which is " .. native.driver)
      end
      return setmetatable({}, Driver)
   end,
})

