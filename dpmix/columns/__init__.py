"""What is public of the columns of records: units, categories, dates, cells, and what values are possible."""
