-- A table to change, with a first row.
USE shop;

CREATE TABLE orders (
  id         BIGINT AUTO_INCREMENT PRIMARY KEY,
  customer   VARCHAR(200) NOT NULL,
  status     VARCHAR(20) NOT NULL DEFAULT 'new',
  total      DECIMAL(12, 2) NOT NULL,
  placed_at  TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
);

INSERT INTO orders (customer, total) VALUES ('Ada', 12.50);
