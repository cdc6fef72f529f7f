"""What people look at: tables for terminals, figures."""
