"""What the hub serves beside the dialects: operation, administration, documents. Each page is one small function."""
