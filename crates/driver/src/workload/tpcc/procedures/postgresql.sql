-- The five transactions of TPC-C in PostgreSQL: procedures where rows are changed, and functions where rows are given
-- back, because a procedure gives one row. Outside of a transaction each call is one.

CREATE PROCEDURE tpcc_new_order(
    p_w_id INTEGER, p_d_id INTEGER, p_c_id INTEGER, p_lines INTEGER[], p_all_local INTEGER,
    p_cut INTEGER, p_client INTEGER, p_entry INTEGER,
    INOUT v_o_id INTEGER, INOUT v_discount NUMERIC, INOUT v_last TEXT, INOUT v_credit TEXT, INOUT v_d_tax NUMERIC,
    INOUT v_w_tax NUMERIC, INOUT v_total NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    -- A line is its item, its supplier and its quantity.
    v_lines INTEGER := array_length(p_lines, 1);
    v_item INTEGER;
    v_supplier INTEGER;
    v_quantity INTEGER;
    v_price NUMERIC;
    v_info TEXT;
    v_unused BOOLEAN := false;
BEGIN
    v_total := 0;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w_id AND d_id = p_d_id
        RETURNING d_next_o_id - 1, d_tax INTO v_o_id, v_d_tax;
    SELECT c_discount, c_last, c_credit, w_tax INTO STRICT v_discount, v_last, v_credit, v_w_tax
        FROM customer, warehouse WHERE w_id = p_w_id AND c_w_id = w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (v_o_id, p_d_id, p_w_id, p_c_id, CURRENT_TIMESTAMP, v_lines, p_all_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (v_o_id, p_d_id, p_w_id);
    FOR n IN 1 .. v_lines LOOP
        v_item := p_lines[n][1];
        v_supplier := p_lines[n][2];
        v_quantity := p_lines[n][3];
        SELECT i_price INTO v_price FROM item WHERE i_id = v_item;
        IF NOT FOUND THEN
            v_unused := true;
            CONTINUE;
        END IF;
        UPDATE stock SET
            s_quantity = CASE WHEN s_quantity - v_quantity >= 10 THEN s_quantity - v_quantity
                              ELSE s_quantity - v_quantity + 91 END,
            s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN v_supplier = p_w_id THEN 0 ELSE 1 END
            WHERE s_w_id = v_supplier AND s_i_id = v_item
            RETURNING CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07
                WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
            INTO STRICT v_info;
        v_total := v_total + v_quantity * v_price;
        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
                                ol_dist_info)
            VALUES (v_o_id, p_d_id, p_w_id, n, v_item, v_supplier, v_quantity, v_quantity * v_price, v_info);
    END LOOP;
    IF v_unused THEN
        ROLLBACK;
        v_o_id := NULL;
    ELSIF p_entry IS NOT NULL THEN
        INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
    END IF;
    v_total := v_total * (1 - v_discount) * (1 + v_d_tax + v_w_tax);
END
$$;

CREATE PROCEDURE tpcc_payment(
    p_w_id INTEGER, p_d_id INTEGER, p_c_w_id INTEGER, p_c_d_id INTEGER, INOUT v_c_id INTEGER, p_c_last TEXT,
    p_amount NUMERIC, p_cut INTEGER, p_client INTEGER, p_entry INTEGER,
    INOUT v_first TEXT, INOUT v_middle TEXT, INOUT v_last TEXT, INOUT v_c_street_1 TEXT, INOUT v_c_street_2 TEXT,
    INOUT v_c_city TEXT, INOUT v_c_state TEXT, INOUT v_c_zip TEXT, INOUT v_phone TEXT, INOUT v_since TIMESTAMP,
    INOUT v_credit TEXT, INOUT v_limit NUMERIC, INOUT v_discount NUMERIC, INOUT v_balance NUMERIC,
    INOUT v_w_street_1 TEXT, INOUT v_w_street_2 TEXT, INOUT v_w_city TEXT, INOUT v_w_state TEXT, INOUT v_w_zip TEXT,
    INOUT v_d_street_1 TEXT, INOUT v_d_street_2 TEXT, INOUT v_d_city TEXT, INOUT v_d_state TEXT, INOUT v_d_zip TEXT)
LANGUAGE plpgsql AS $$
DECLARE
    v_before INTEGER;
    v_w_name TEXT;
    v_d_name TEXT;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id
        RETURNING w_street_1, w_street_2, w_city, w_state, w_zip, w_name
        INTO STRICT v_w_street_1, v_w_street_2, v_w_city, v_w_state, v_w_zip, v_w_name;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w_id AND d_id = p_d_id
        RETURNING d_street_1, d_street_2, d_city, d_state, d_zip, d_name
        INTO STRICT v_d_street_1, v_d_street_2, v_d_city, v_d_state, v_d_zip, v_d_name;
    IF v_c_id IS NULL THEN
        -- Of several with one name, the middle one by first name, rounded up.
        SELECT (COUNT(*) - 1) / 2 INTO v_before FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        SELECT c_id INTO STRICT v_c_id FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
            ORDER BY c_first OFFSET v_before LIMIT 1;
    END IF;
    UPDATE customer SET
        c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC' THEN
                     left(concat_ws(' ', '|', v_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, p_amount, c_data), 500)
                 ELSE c_data END
        WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = v_c_id
        RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
                  c_credit_lim, c_discount, c_balance
        INTO STRICT v_first, v_middle, v_last, v_c_street_1, v_c_street_2, v_c_city, v_c_state, v_c_zip, v_phone,
                    v_since, v_credit, v_limit, v_discount, v_balance;
    INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (p_c_d_id, p_c_w_id, v_c_id, p_d_id, p_w_id, CURRENT_TIMESTAMP, p_amount,
                v_w_name || '    ' || v_d_name);
    IF p_entry IS NOT NULL THEN
        INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
    END IF;
END
$$;

CREATE FUNCTION tpcc_order_status(p_w_id INTEGER, p_d_id INTEGER, p_c_id INTEGER, p_c_last TEXT)
RETURNS TABLE (
    r_balance NUMERIC, r_first TEXT, r_middle TEXT, r_last TEXT, r_o_id INTEGER, r_carrier INTEGER,
    r_entered TIMESTAMP, r_item INTEGER, r_supplier INTEGER, r_quantity INTEGER, r_amount NUMERIC,
    r_delivered TIMESTAMP)
LANGUAGE plpgsql AS $$
DECLARE
    v_c_id INTEGER := p_c_id;
    v_before INTEGER;
BEGIN
    IF v_c_id IS NULL THEN
        SELECT (COUNT(*) - 1) / 2 INTO v_before FROM customer
            WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        SELECT c_id INTO STRICT v_c_id FROM customer
            WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
            ORDER BY c_first OFFSET v_before LIMIT 1;
    END IF;
    SELECT c_balance, c_first, c_middle, c_last INTO STRICT r_balance, r_first, r_middle, r_last
        FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = v_c_id;
    SELECT o_id, o_carrier_id, o_entry_d INTO STRICT r_o_id, r_carrier, r_entered
        FROM orders WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = v_c_id ORDER BY o_id DESC LIMIT 1;
    RETURN QUERY
        SELECT r_balance, r_first, r_middle, r_last, r_o_id, r_carrier, r_entered,
               ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = r_o_id;
END
$$;

CREATE PROCEDURE tpcc_delivery(
    p_w_id INTEGER, p_carrier INTEGER, p_cut INTEGER, p_client INTEGER, p_entry INTEGER, INOUT v_delivered INTEGER)
LANGUAGE plpgsql AS $$
DECLARE
    v_o_id INTEGER;
    v_c_id INTEGER;
    v_amount NUMERIC;
BEGIN
    v_delivered := 0;
    FOR v_d_id IN 1 .. 10 LOOP
        -- Where a lock had to be waited for, the oldest order can have gone, and the answer is none although there are
        -- others: a district without an answer is asked once more.
        FOR v_try IN 1 .. 2 LOOP
            SELECT no_o_id INTO v_o_id FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id
                ORDER BY no_w_id, no_d_id, no_o_id LIMIT 1 FOR UPDATE;
            EXIT WHEN FOUND;
        END LOOP;
        CONTINUE WHEN v_o_id IS NULL;
        DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id AND no_o_id = v_o_id;
        UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id
            RETURNING o_c_id INTO STRICT v_c_id;
        UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
            WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;
        SELECT SUM(ol_amount) INTO v_amount FROM order_line
            WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;
        UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = p_w_id AND c_d_id = v_d_id AND c_id = v_c_id;
        v_delivered := v_delivered + 1;
    END LOOP;
    IF p_entry IS NOT NULL THEN
        INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
    END IF;
END
$$;

CREATE FUNCTION tpcc_stock_level(p_w_id INTEGER, p_d_id INTEGER, p_threshold INTEGER) RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
    v_next INTEGER;
BEGIN
    SELECT d_next_o_id INTO STRICT v_next FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    RETURN (
        SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
        WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id < v_next AND ol_o_id >= v_next - 20
        AND s_w_id = p_w_id AND s_i_id = ol_i_id AND s_quantity < p_threshold);
END
$$;
