"""Commands that look after the database: backup, restore, migrate."""
