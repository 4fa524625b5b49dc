-- The five transactions of TPC-C as procedures of MariaDB and MySQL. Each locks its contended rows before its first
-- plain read, because an engine may refuse to lock rows that are newer than the transaction's snapshot.

CREATE PROCEDURE tpcc_new_order(
    IN p_w_id INT, IN p_d_id INT, IN p_c_id INT, IN p_lines VARCHAR(255), IN p_all_local INT,
    IN p_cut INT, IN p_client INT, IN p_entry INT)
SQL SECURITY INVOKER
BEGIN
    -- A line is its item (6 digits), its supplier (6) and its quantity (2).
    DECLARE v_lines INT DEFAULT CHAR_LENGTH(p_lines) DIV 14;
    DECLARE v_n INT DEFAULT 0;
    DECLARE v_absent INT DEFAULT 0;
    DECLARE v_unused INT DEFAULT 0;
    DECLARE v_o_id, v_item, v_supplier, v_quantity INT;
    DECLARE v_d_tax, v_w_tax, v_discount DECIMAL(4, 4);
    DECLARE v_price DECIMAL(5, 2);
    DECLARE v_total DECIMAL(12, 2) DEFAULT 0;
    DECLARE v_last VARCHAR(16);
    DECLARE v_credit CHAR(2);
    DECLARE v_info CHAR(24);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_absent = 1;

    START TRANSACTION;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w_id AND d_id = p_d_id;
    SELECT d_next_o_id - 1, d_tax INTO v_o_id, v_d_tax FROM district
        WHERE d_w_id = p_w_id AND d_id = p_d_id FOR UPDATE;
    WHILE v_n < v_lines DO
        SET v_item = SUBSTR(p_lines, 14 * v_n + 1, 6);
        SET v_supplier = SUBSTR(p_lines, 14 * v_n + 7, 6);
        SET v_quantity = SUBSTR(p_lines, 14 * v_n + 13, 2);
        UPDATE stock SET
            s_quantity = CASE WHEN s_quantity - v_quantity >= 10 THEN s_quantity - v_quantity
                              ELSE s_quantity - v_quantity + 91 END,
            s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (v_supplier <> p_w_id)
            WHERE s_w_id = v_supplier AND s_i_id = v_item;
        SET v_n = v_n + 1;
    END WHILE;
    SELECT c_discount, c_last, c_credit, w_tax INTO v_discount, v_last, v_credit, v_w_tax
        FROM customer, warehouse WHERE w_id = p_w_id AND c_w_id = w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    IF v_absent THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'tpcc found no such district or customer';
    END IF;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (v_o_id, p_d_id, p_w_id, p_c_id, NOW(), v_lines, p_all_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (v_o_id, p_d_id, p_w_id);
    SET v_n = 0;
    WHILE v_n < v_lines DO
        SET v_item = SUBSTR(p_lines, 14 * v_n + 1, 6);
        SET v_supplier = SUBSTR(p_lines, 14 * v_n + 7, 6);
        SET v_quantity = SUBSTR(p_lines, 14 * v_n + 13, 2);
        SET v_n = v_n + 1;
        SET v_absent = 0;
        SELECT i_price,
            CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                        WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                        WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
            INTO v_price, v_info FROM item, stock
            WHERE i_id = v_item AND s_w_id = v_supplier AND s_i_id = v_item;
        IF v_absent THEN
            SET v_unused = v_unused + 1;
        ELSE
            SET v_total = v_total + v_quantity * v_price;
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                                    ol_amount, ol_dist_info)
                VALUES (v_o_id, p_d_id, p_w_id, v_n, v_item, v_supplier, v_quantity, v_quantity * v_price, v_info);
        END IF;
    END WHILE;
    IF v_unused > 0 THEN
        SET v_o_id = NULL;
        ROLLBACK;
    ELSE
        IF p_entry IS NOT NULL THEN
            INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
        END IF;
        COMMIT;
    END IF;
    SELECT v_o_id, v_discount, v_last, v_credit, v_d_tax, v_w_tax,
           v_total * (1 - v_discount) * (1 + v_d_tax + v_w_tax) AS total;
END;

CREATE PROCEDURE tpcc_payment(
    IN p_w_id INT, IN p_d_id INT, IN p_c_w_id INT, IN p_c_d_id INT, IN p_c_id INT, IN p_c_last VARCHAR(16),
    IN p_amount DECIMAL(6, 2), IN p_cut INT, IN p_client INT, IN p_entry INT)
SQL SECURITY INVOKER
BEGIN
    DECLARE v_c_id INT DEFAULT p_c_id;
    DECLARE v_before INT;
    DECLARE v_absent INT DEFAULT 0;
    DECLARE v_w_name, v_d_name VARCHAR(10);
    DECLARE v_w_street_1, v_w_street_2, v_w_city, v_d_street_1, v_d_street_2, v_d_city VARCHAR(20);
    DECLARE v_c_street_1, v_c_street_2, v_c_city VARCHAR(20);
    DECLARE v_w_state, v_d_state, v_c_state, v_middle, v_credit CHAR(2);
    DECLARE v_w_zip, v_d_zip, v_c_zip CHAR(9);
    DECLARE v_first, v_last VARCHAR(16);
    DECLARE v_phone CHAR(16);
    DECLARE v_since DATETIME;
    DECLARE v_limit, v_balance DECIMAL(12, 2);
    DECLARE v_discount DECIMAL(4, 4);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_absent = 1;

    START TRANSACTION;
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w_id AND d_id = p_d_id;
    IF v_c_id IS NULL THEN
        -- Of several with one name, the middle one by first name, rounded up.
        SELECT (COUNT(*) - 1) DIV 2 INTO v_before FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        SELECT c_id INTO v_c_id FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
            ORDER BY c_first LIMIT v_before, 1;
    END IF;
    SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim,
           c_discount, c_balance - p_amount, c_since
        INTO v_first, v_middle, v_last, v_c_street_1, v_c_street_2, v_c_city, v_c_state, v_c_zip, v_phone, v_credit,
             v_limit, v_discount, v_balance, v_since
        FROM customer WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = v_c_id FOR UPDATE;
    SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name
        INTO v_w_street_1, v_w_street_2, v_w_city, v_w_state, v_w_zip, v_w_name FROM warehouse WHERE w_id = p_w_id;
    SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name
        INTO v_d_street_1, v_d_street_2, v_d_city, v_d_state, v_d_zip, v_d_name
        FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    IF v_absent THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'tpcc found no such warehouse, district or customer';
    END IF;
    IF v_credit = 'BC' THEN
        UPDATE customer SET
            c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1,
            c_data = LEFT(CONCAT('| ', v_c_id, ' ', p_c_d_id, ' ', p_c_w_id, ' ', p_d_id, ' ', p_w_id, ' ', p_amount,
                                 ' ', COALESCE(c_data, '')), 500)
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = v_c_id;
    ELSE
        UPDATE customer SET
            c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = v_c_id;
    END IF;
    INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (p_c_d_id, p_c_w_id, v_c_id, p_d_id, p_w_id, NOW(), p_amount, CONCAT(v_w_name, '    ', v_d_name));
    IF p_entry IS NOT NULL THEN
        INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
    END IF;
    COMMIT;
    SELECT v_c_id, v_first, v_middle, v_last, v_c_street_1, v_c_street_2, v_c_city, v_c_state, v_c_zip, v_phone,
           v_since, v_credit, v_limit, v_discount, v_balance, v_w_street_1, v_w_street_2, v_w_city, v_w_state, v_w_zip,
           v_d_street_1, v_d_street_2, v_d_city, v_d_state, v_d_zip;
END;

CREATE PROCEDURE tpcc_order_status(IN p_w_id INT, IN p_d_id INT, IN p_c_id INT, IN p_c_last VARCHAR(16))
SQL SECURITY INVOKER
BEGIN
    DECLARE v_c_id INT DEFAULT p_c_id;
    DECLARE v_before, v_o_id, v_carrier INT;
    DECLARE v_absent INT DEFAULT 0;
    DECLARE v_balance DECIMAL(12, 2);
    DECLARE v_first, v_last VARCHAR(16);
    DECLARE v_middle CHAR(2);
    DECLARE v_entered DATETIME;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_absent = 1;

    START TRANSACTION;
    IF v_c_id IS NULL THEN
        SELECT (COUNT(*) - 1) DIV 2 INTO v_before FROM customer
            WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        SELECT c_id INTO v_c_id FROM customer
            WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
            ORDER BY c_first LIMIT v_before, 1;
    END IF;
    SELECT c_balance, c_first, c_middle, c_last INTO v_balance, v_first, v_middle, v_last
        FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = v_c_id;
    SELECT o_id, o_carrier_id, o_entry_d INTO v_o_id, v_carrier, v_entered
        FROM orders WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = v_c_id ORDER BY o_id DESC LIMIT 1;
    IF v_absent THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'tpcc found no order of the customer';
    END IF;
    SELECT v_c_id, v_balance, v_first, v_middle, v_last, v_o_id, v_carrier, v_entered;
    SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = v_o_id;
    COMMIT;
END;

CREATE PROCEDURE tpcc_delivery(
    IN p_w_id INT, IN p_carrier INT, IN p_cut INT, IN p_client INT, IN p_entry INT)
SQL SECURITY INVOKER
BEGIN
    DECLARE v_d_id INT DEFAULT 1;
    DECLARE v_delivered INT DEFAULT 0;
    DECLARE v_o_id, v_c_id INT;
    DECLARE v_amount DECIMAL(12, 2);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_o_id = NULL;

    START TRANSACTION;
    WHILE v_d_id <= 10 DO
        SELECT no_o_id INTO v_o_id FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id
            ORDER BY no_w_id, no_d_id, no_o_id LIMIT 1 FOR UPDATE;
        IF v_o_id IS NOT NULL THEN
            DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id AND no_o_id = v_o_id;
            SELECT o_c_id INTO v_c_id FROM orders
                WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id FOR UPDATE;
            UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id;
            UPDATE order_line SET ol_delivery_d = NOW()
                WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;
            -- The rows are this transaction's already. A plain read would make a snapshot, and the next district's rows
            -- may be newer than that.
            SELECT SUM(ol_amount) INTO v_amount FROM order_line
                WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id FOR UPDATE;
            UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = p_w_id AND c_d_id = v_d_id AND c_id = v_c_id;
            SET v_delivered = v_delivered + 1;
        END IF;
        SET v_d_id = v_d_id + 1;
    END WHILE;
    IF p_entry IS NOT NULL THEN
        INSERT INTO dyno_ledger (cut, client, entry) VALUES (p_cut, p_client, p_entry);
    END IF;
    COMMIT;
    SELECT v_delivered;
END;

CREATE PROCEDURE tpcc_stock_level(IN p_w_id INT, IN p_d_id INT, IN p_threshold INT)
SQL SECURITY INVOKER
BEGIN
    DECLARE v_next INT;
    START TRANSACTION;
    SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
        WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id < v_next AND ol_o_id >= v_next - 20
        AND s_w_id = p_w_id AND s_i_id = ol_i_id AND s_quantity < p_threshold;
    COMMIT;
END;
