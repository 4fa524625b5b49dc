-- The transactions of Dyno's tpcc, statement for statement, for sysbench 1.0.20 on MariaDB: to set its client's cost
-- beside ours. sysbench cannot fetch the rows of prepared statements, so these are sent as text. The tables are those
-- that `dyno load prepare tpcc` makes. Names and order of the statements: crates/driver/src/workload/tpcc.
sysbench.cmdline.options = { warehouses = { "Warehouses", 1 } }

local SYLLABLES = { "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }
local bor = bit.bor
local function between(low, high) return sysbench.rand.uniform(low, high) end
local function non_uniform(a, c, low, high)
  return (bor(between(0, a), between(low, high)) + c) % (high - low + 1) + low
end
local function customer_number() return non_uniform(1023, 259, 1, 3000) end
local function item_number() return non_uniform(8191, 7911, 1, 100000) end
local function last_name()
  local n = non_uniform(255, 208, 0, 999)
  return SYLLABLES[math.floor(n / 100) + 1] .. SYLLABLES[math.floor(n / 10) % 10 + 1] .. SYLLABLES[n % 10 + 1]
end
local function other(home)
  local drawn = between(1, sysbench.opt.warehouses - 1)
  return drawn >= home and drawn + 1 or drawn
end

local con, home, district_of
function thread_init()
  con = sysbench.sql.driver():connect()
  home = sysbench.tid % sysbench.opt.warehouses + 1
  district_of = math.floor(sysbench.tid / sysbench.opt.warehouses) % 10 + 1
end
function thread_done() con:disconnect() end

-- sysbench starts an event again after a deadlock; what it had done must not be committed by the next BEGIN.
function sysbench.hooks.before_restart_event() con:query("ROLLBACK") end

local function query(text, ...) return con:query(string.format(text, ...)) end
local function row(text, ...) return unpack(query(text, ...):fetch_row(), 1, 14) end

local function pick(w, d)
  if between(1, 100) > 60 then return customer_number() end
  local rs = query(
    "SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first", w, d, last_name())
  local numbers = {}
  for i = 1, rs.nrows do numbers[i] = rs:fetch_row()[1] end
  return tonumber(numbers[math.floor((#numbers + 1) / 2)])
end

local function new_order()
  local d, c, count = between(1, 10), customer_number(), between(5, 15)
  local unused, lines, all_local = between(1, 100) == 1, {}, 1
  for i = 1, count do
    local remote = sysbench.opt.warehouses > 1 and between(1, 100) == 1
    if remote then all_local = 0 end
    lines[i] = { supplier = remote and other(home) or home, quantity = between(1, 10),
      item = (unused and i == count) and 100001 or item_number() }
  end
  table.sort(lines, function(a, b) return a.supplier < b.supplier or (a.supplier == b.supplier and a.item < b.item) end)
  con:query("BEGIN")
  query("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %d AND d_id = %d", home, d)
  local next = row("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", home, d)
  local o = tonumber(next) - 1
  local from = 1
  while from <= count do
    local to, ids, supplier = from, {}, lines[from].supplier
    while to <= count and lines[to].supplier == supplier do ids[#ids + 1] = lines[to].item; to = to + 1 end
    local rs = query(
      "SELECT s_i_id, s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, " ..
      "s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_w_id = %d AND s_i_id IN (%s) FOR UPDATE", supplier, table.concat(ids, ", "))
    for _ = 1, rs.nrows do
      local stock = rs:fetch_row()
      local item = tonumber(stock[1])
      for i = from, to - 1 do if lines[i].item == item then lines[i].info = stock[3 + d] end end
    end
    from = to
  end
  row(
    "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = %d AND c_w_id = w_id " ..
    "AND c_d_id = %d AND c_id = %d", home, d, c)
  local ids = {}
  for i = 1, count do ids[i] = lines[i].item end
  local rs = query("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (%s)", table.concat(ids, ", "))
  for _ = 1, rs.nrows do
    local found = rs:fetch_row()
    local item, price = tonumber(found[1]), tonumber(found[2])
    for i = 1, count do if lines[i].item == item then lines[i].price = price end end
  end
  query(
    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (%d, %d, %d, " ..
    "%d, NOW(), %d, %d)", o, d, home, c, count, all_local)
  query("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (%d, %d, %d)", o, d, home)
  local values, number = {}, 0
  for i = 1, count do
    local line = lines[i]
    if line.price then
      local q = line.quantity
      query(
        "UPDATE stock SET s_quantity = CASE WHEN s_quantity - %d >= 10 THEN s_quantity - %d ELSE s_quantity - " ..
        "%d + 91 END, s_ytd = s_ytd + %d, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %d " ..
        "WHERE s_w_id = %d AND s_i_id = %d", q, q, q, q, line.supplier == home and 0 or 1, line.supplier, line.item)
      number = number + 1
      values[number] = string.format(
        "(%d, %d, %d, %d, %d, %d, %d, %.2f, '%s')", o, d, home, number, line.item, line.supplier, q, q * line.price, line.info)
    end
  end
  con:query(
    "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, " ..
    "ol_amount, ol_dist_info) VALUES" .. table.concat(values, ", "))
  con:query(number < count and "ROLLBACK" or "COMMIT")
end

local function payment()
  local d = between(1, 10)
  local cw, cd = home, d
  if sysbench.opt.warehouses > 1 and between(1, 100) <= 15 then cw, cd = other(home), between(1, 10) end
  local amount = between(100, 500000) / 100
  con:query("BEGIN")
  query("UPDATE warehouse SET w_ytd = w_ytd + %.2f WHERE w_id = %d", amount, home)
  query("UPDATE district SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d", amount, home, d)
  local c = pick(cw, cd)
  local credit = select(10, row(
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, " ..
    "c_credit_lim, c_discount, c_balance, c_since FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = " ..
    "%d FOR UPDATE", cw, cd, c))
  local w_name = select(6, row(
    "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = %d", home))
  local d_name = select(6, row(
    "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = %d AND d_id = " ..
    "%d", home, d))
  if credit == "BC" then
    local data = row("SELECT c_data FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", cw, cd, c)
    local new = string.format("| %d %d %d %d %d %.2f %s", c, cd, cw, d, home, amount, data):sub(1, 500)
    query(
      "UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f, c_payment_cnt " ..
      "= c_payment_cnt + 1, c_data = '%s' WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", amount, amount, new, cw, cd, c)
  else
    query(
      "UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f, c_payment_cnt " ..
      "= c_payment_cnt + 1 WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", amount, amount, cw, cd, c)
  end
  query(
    "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (%d, " ..
    "%d, %d, %d, %d, NOW(), %.2f, '%s    %s')", cd, cw, c, d, home, amount, w_name, d_name)
  con:query("COMMIT")
end

local function order_status()
  local d = between(1, 10)
  con:query("BEGIN")
  local c = pick(home, d)
  row(
    "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = " ..
    "%d", home, d, c)
  local o = row(
    "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER " ..
    "BY o_id DESC LIMIT 1", home, d, c)
  query(
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = %d " ..
    "AND ol_d_id = %d AND ol_o_id = %d", home, d, tonumber(o))
  con:query("COMMIT")
end

local function delivery()
  local carrier, orders = between(1, 10), {}
  con:query("BEGIN")
  for d = 1, 10 do
    local rs = query(
      "SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = %d AND no_d_id = %d ORDER BY no_w_id, no_d_id, " ..
      "no_o_id LIMIT 1 FOR UPDATE", home, d)
    if rs.nrows > 0 then orders[#orders + 1] = { d = d, o = tonumber(rs:fetch_row()[2]) } end
  end
  for _, x in ipairs(orders) do query(
    "DELETE FROM new_order WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = %d", home, x.d, x.o) end
  for _, x in ipairs(orders) do x.c = select(2, row(
    "SELECT o_d_id, o_c_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d FOR UPDATE", home, x.d, x.o)) end
  for _, x in ipairs(orders) do query(
    "UPDATE orders SET o_carrier_id = %d WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d", carrier, home, x.d, x.o) end
  for _, x in ipairs(orders) do query(
    "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d", home, x.d, x.o) end
  for _, x in ipairs(orders) do x.sum = select(2, row(
    "SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d " ..
    "GROUP BY ol_d_id", home, x.d, x.o)) end
  for _, x in ipairs(orders) do query(
    "UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = %d " ..
    "AND c_d_id = %d AND c_id = %d", x.sum, home, x.d, tonumber(x.c)) end
  con:query("COMMIT")
end

local function stock_level()
  local threshold = between(10, 20)
  con:query("BEGIN")
  local next = tonumber(row("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", home, district_of))
  query(
    "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < " ..
    "%d AND ol_o_id >= %d AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < %d", home, district_of, next, next - 20, home, threshold)
  con:query("COMMIT")
end

function event()
  local drawn = between(1, 100)
  if drawn <= 45 then new_order() elseif drawn <= 88 then payment() elseif drawn <= 92 then order_status()
  elseif drawn <= 96 then delivery() else stock_level() end
end
