"""WHAT PROGRAMMERS CALL: sessions, and everything that is declared on them."""
