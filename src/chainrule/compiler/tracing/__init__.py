"""Tracing: a function run on symbols becomes a program."""
