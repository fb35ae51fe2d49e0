"""Storages, measured."""
