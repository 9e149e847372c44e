"""What mechanisms share on the curator's side, and which one a spec asks for."""
