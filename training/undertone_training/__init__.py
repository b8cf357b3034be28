"""How the shipped models are made and measured."""
