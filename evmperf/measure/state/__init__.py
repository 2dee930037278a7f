"""What a board and its tester are doing around a case, and what follows from that."""
